package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// float writes the ordered sums of float32 values.
func float() {
	for pixels := 6; pixels > 0; pixels-- {
		gen.FMAPixels(zmm, pixels, 4, 1)
	}
	for pixels := 12; pixels > 0; pixels-- {
		gen.FMANarrow(zmm, pixels, 2)
		gen.FMANarrow(zmm, pixels, 1)
		gen.FMANarrow(ymm, pixels, 1)
	}
	for _, vectors := range []int{4, 2, 1} {
		for pixels := 6; pixels > 0; pixels-- {
			gen.FMAEach(zmm, pixels, vectors)
		}
	}
	for _, taps := range []int{3, 5} {
		for pixels := 12; pixels > 2; pixels-- {
			gen.FMASlide(zmm, pixels, taps, 1, 1, 256)
		}
	}
	for _, inputs := range []int{2, 4, 8} {
		gen.FMAGroups(zmm, inputs, 8)
	}
	for columns := 7; columns > 0; columns-- {
		gen.FMAColumns(zmm, columns, 1, 3, true)
	}
	for columns := 2; columns > 0; columns-- {
		gen.FMAColumns(zmm, columns, 4, 3, true)
	}
	for columns := 5; columns > 0; columns-- {
		gen.FMAColumns(zmm, columns, 1, 5, true)
	}
	gen.Blend(zmm)
	gen.BlendRow(zmm, 2, 2, true)
	for _, taps := range []int{2, 4} {
		gen.BlendRow(zmm, taps, 1, false)
		gen.BlendRow(zmm, taps, 2, false)
	}
}

// means writes the means of windows.
func means() {
	for _, vectors := range []int{4, 1} {
		for pixels := 6; pixels > 0; pixels-- {
			gen.Means(zmm, pixels, vectors)
		}
	}
	for pixels := 12; pixels > 2; pixels-- {
		gen.MeanSlide(zmm, pixels, 3)
	}
}

// zmm and ymm are what gen needs to know.
var (
	zmm = vectors(16, ZMM)
	ymm = vectors(8, YMM)
)

func vectors(lanes int, vec func() reg.VecVirtual) gen.ISA {
	return gen.ISA{
		Name: "AVX512", Lanes: lanes, Vec: vec,
		Zero: func(v reg.VecVirtual) { VXORPS(v, v, v) }, // which avo knows to need nothing before
		PReLU: func(slope, zero, x reg.VecVirtual) {
			less := K()
			VCMPPS(U8(17), zero, x, less) // <
			VMULPS(slope, x, less, x)
		},
		FMABroadcast: func(m Mem, w, acc reg.VecVirtual) { VFMADD231PS_BCST(m, w, acc) },
		FirstLanes: func(n reg.Register) (func(Mem, reg.VecVirtual), func(reg.VecVirtual, Mem)) {
			lanes, mask := GP64(), K()
			MOVQ(I32(-1), lanes)
			BZHIQ(n, lanes, lanes)
			KMOVW(lanes.As32(), mask)
			return func(m Mem, v reg.VecVirtual) { VMOVUPS_Z(m, mask, v) },
				func(v reg.VecVirtual, m Mem) { VMOVUPS(v, mask, m) }
		},
	}
}
