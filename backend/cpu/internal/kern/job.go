//go:build (amd64 || arm64) && !purego

package kern

import "unsafe"

// The assembly counts on these.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(ConvJob{}.weights)-48]
	_ = [1]struct{}{}[unsafe.Offsetof(ConvJob{}.Flip)-88]
	_ = [1]struct{}{}[unsafe.Offsetof(ConvJob{}.tail)-96]
	_ = [1]struct{}{}[unsafe.Offsetof(ConvJob{}.class)-120]
	_ = [1]struct{}{}[unsafe.Offsetof(poolJob{}.pixels)-56]
)
