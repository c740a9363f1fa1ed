//go:build amd64 || arm64

package kern

import "unsafe"

// The assembly counts on the places of these fields, which _gen/gen/job.go names.
// A constant of uintptr is not negative, so any other place does not compile.
const (
	_ = -(unsafe.Offsetof(ConvJob{}.DstStep) ^ 8)
	_ = -(unsafe.Offsetof(ConvJob{}.Src) ^ 16)
	_ = -(unsafe.Offsetof(ConvJob{}.Table) ^ 40)
	_ = -(unsafe.Offsetof(ConvJob{}.weights) ^ 48)
	_ = -(unsafe.Offsetof(ConvJob{}.rows) ^ 56)
	_ = -(unsafe.Offsetof(ConvJob{}.run) ^ 64)
	_ = -(unsafe.Offsetof(ConvJob{}.skip) ^ 72)
	_ = -(unsafe.Offsetof(ConvJob{}.Pixels) ^ 80)
	_ = -(unsafe.Offsetof(ConvJob{}.Flip) ^ 88)
	_ = -(unsafe.Offsetof(ConvJob{}.tail) ^ 96)
	_ = -(unsafe.Offsetof(ConvJob{}.dst) ^ 104)
	_ = -(unsafe.Offsetof(ConvJob{}.at) ^ 112)
	_ = -(unsafe.Offsetof(ConvJob{}.class) ^ 120)

	_ = -unsafe.Offsetof(DotJob{}.dst)
	_ = -(unsafe.Offsetof(DotJob{}.dstStep) ^ 8)
	_ = -(unsafe.Offsetof(DotJob{}.src) ^ 16)
	_ = -(unsafe.Offsetof(DotJob{}.step) ^ 24)
	_ = -(unsafe.Offsetof(DotJob{}.rows) ^ 32)
	_ = -(unsafe.Offsetof(DotJob{}.run) ^ 40)
	_ = -(unsafe.Offsetof(DotJob{}.skip) ^ 48)
	_ = -(unsafe.Offsetof(DotJob{}.weights) ^ 56)
	_ = -(unsafe.Offsetof(DotJob{}.block) ^ 64)
	_ = -(unsafe.Offsetof(DotJob{}.k) ^ 72)
	_ = -(unsafe.Offsetof(DotJob{}.pixels) ^ 80)

	_ = -unsafe.Offsetof(FMAJob{}.dst)
	_ = -(unsafe.Offsetof(FMAJob{}.dstStep) ^ 8)
	_ = -(unsafe.Offsetof(FMAJob{}.src) ^ 16)
	_ = -(unsafe.Offsetof(FMAJob{}.step) ^ 24)
	_ = -(unsafe.Offsetof(FMAJob{}.rows) ^ 32)
	_ = -(unsafe.Offsetof(FMAJob{}.run) ^ 40)
	_ = -(unsafe.Offsetof(FMAJob{}.skip) ^ 48)
	_ = -(unsafe.Offsetof(FMAJob{}.weights) ^ 56)
	_ = -(unsafe.Offsetof(FMAJob{}.tap) ^ 64)
	_ = -(unsafe.Offsetof(FMAJob{}.bias) ^ 72)
	_ = -(unsafe.Offsetof(FMAJob{}.pixels) ^ 80)
	_ = -(unsafe.Offsetof(FMAJob{}.outputs) ^ 88)

	_ = -unsafe.Offsetof(PoolJob{}.dst)
	_ = -(unsafe.Offsetof(PoolJob{}.src) ^ 8)
	_ = -(unsafe.Offsetof(PoolJob{}.taps) ^ 16)
	_ = -(unsafe.Offsetof(PoolJob{}.count) ^ 24)
	_ = -(unsafe.Offsetof(PoolJob{}.bytes) ^ 32)
	_ = -(unsafe.Offsetof(PoolJob{}.step) ^ 40)
	_ = -(unsafe.Offsetof(PoolJob{}.dstStep) ^ 48)
	_ = -(unsafe.Offsetof(PoolJob{}.pixels) ^ 56)
)
