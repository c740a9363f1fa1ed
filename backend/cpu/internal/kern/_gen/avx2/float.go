package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// float writes the ordered sums of float32 values.
func float() {
	laneMasks()
	gen.FMAPixels(ymm, 1, 8, 4) // two vectors are too few for the latency
	for pixels := 6; pixels > 0; pixels-- {
		gen.FMAPixels(ymm, pixels, 2, 1)
	}
	for pixels := 12; pixels > 0; pixels-- {
		gen.FMANarrow(ymm, pixels, 1)
	}
	for _, vectors := range []int{2, 1} {
		for pixels := 6; pixels > 0; pixels-- {
			gen.FMAEach(ymm, pixels, vectors)
		}
	}
	for _, taps := range []int{3, 5} {
		for pixels := 8; pixels > 2; pixels-- {
			gen.FMASlide(ymm, pixels, taps, 1, 1, 64)
		}
	}
	for pixels := 4; pixels > 1; pixels-- {
		gen.FMASlide(ymm, pixels, 3, 2, 2, 64)
	}
	for columns := 4; columns > 0; columns-- {
		gen.FMAColumns(ymm, columns, 1, 3, false)
	}
	for columns := 2; columns > 0; columns-- {
		gen.FMAColumns(ymm, columns, 2, 3, false)
	}
	gen.Blend(ymm)
	gen.BlendRow(ymm, 2, 2, true)
	gen.BlendRow(ymm, 2, 1, false)
	gen.BlendRow(ymm, 2, 2, false)
	gen.BlendRow(ymm, 4, 1, false)
}

// means writes the means of windows.
func means() {
	laneMasks()
	gen.Means(ymm, 1, 8) // two vectors are too few for the latency
	for _, vectors := range []int{2, 1} {
		for pixels := 6; pixels > 0; pixels-- {
			gen.Means(ymm, pixels, vectors)
		}
	}
	for pixels := 8; pixels > 2; pixels-- {
		gen.MeanSlide(ymm, pixels, 3)
	}
}

// ymm is what gen needs to know.
var ymm = gen.ISA{
	Name: "AVX2", Lanes: 8, Vec: YMM,
	Zero: func(v reg.VecVirtual) { VXORPS(v, v, v) },
	PReLU: func(slope, zero, x reg.VecVirtual) {
		less := YMM()
		VMULPS(x, slope, slope)
		VCMPPS(U8(17), zero, x, less) // <
		VBLENDVPS(less, slope, x, x)
	},
	FMABroadcast: func(m Mem, w, acc reg.VecVirtual) {
		x := YMM()
		VBROADCASTSS(m, x)
		VFMADD231PS(x, w, acc)
	},
	FirstLanes: func(n reg.Register) (func(Mem, reg.VecVirtual), func(reg.VecVirtual, Mem)) {
		mask := laneMask(n)
		of := func(v reg.VecVirtual) Op { // the part for half a vector, of half of one
			if v.Size() < mask.Size() {
				return mask.AsX()
			}
			return mask
		}
		return func(m Mem, v reg.VecVirtual) { VMASKMOVPS(m, of(v), v) },
			func(v reg.VecVirtual, m Mem) { VMASKMOVPS(v, of(v), m) }
	},
}
