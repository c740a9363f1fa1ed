package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// float writes the ordered sums of float32 values.
func float() {
	fma()
	gen.FMAPixels(zmm, 4, 4)
	gen.FMAPixels(zmm, 6, 1)
}

// fma writes the sums of real weights, 64, 16 or fewer output channels at a
// time.
func fma() {
	for _, vectors := range []int{4, 1} {
		name := fmt.Sprintf("fma%dAVX512", 16*vectors)
		params := "func(acc, x *float32, n int, w *float32, stride int)"
		if vectors == 1 {
			params = "func(acc, x *float32, n int, w *float32, stride int, mask uint16)"
		}
		TEXT(name, NOSPLIT, params)
		outputs := fmt.Sprintf("o < %d", 16*vectors)
		if vectors == 1 {
			outputs = "o in mask"
		}
		Doc(name+" computes, for i < n in order, and for "+outputs+",", "",
			"\tacc[o] = fma(x[i], w[i·stride+o], acc[o])", "",
			"stride counts bytes.")
		Pragma("noescape")
		acc, x, n := Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
		w, stride := Load(Param("w"), GP64()), Load(Param("stride"), GP64())
		var k reg.OpmaskVirtual
		if vectors == 1 {
			mask := Load(Param("mask"), GP32())
			k = K()
			KMOVW(mask, k)
		}
		sums := make([]reg.VecVirtual, vectors)
		for v := range sums {
			sums[v] = ZMM()
			m := Mem{Base: acc, Disp: 64 * v}
			if vectors == 1 {
				VMOVUPS_Z(m, k, sums[v])
			} else {
				VMOVUPS(m, sums[v])
			}
		}
		Label("next")
		b := ZMM()
		VBROADCASTSS(Mem{Base: x}, b)
		for v := range sums {
			m := Mem{Base: w, Disp: 64 * v}
			if vectors == 1 {
				VFMADD231PS(m, b, k, sums[v])
			} else {
				VFMADD231PS(m, b, sums[v])
			}
		}
		ADDQ(U8(4), x)
		ADDQ(stride, w)
		DECQ(n)
		JNE(LabelRef("next"))
		for v := range sums {
			m := Mem{Base: acc, Disp: 64 * v}
			if vectors == 1 {
				VMOVUPS(sums[v], k, m)
			} else {
				VMOVUPS(sums[v], m)
			}
		}
		VZEROUPPER()
		RET()
	}
}

// zmm is what gen needs to know.
var zmm = gen.ISA{
	Name: "AVX512", Lanes: 16, Vec: ZMM,
	FirstLanes: func(n reg.Register) (func(Mem, reg.VecVirtual), func(reg.VecVirtual, Mem)) {
		lanes, mask := GP64(), K()
		MOVQ(I32(-1), lanes)
		BZHIQ(n, lanes, lanes)
		KMOVW(lanes.As32(), mask)
		return func(m Mem, v reg.VecVirtual) { VMOVUPS_Z(m, mask, v) },
			func(v reg.VecVirtual, m Mem) { VMOVUPS(v, mask, m) }
	},
}
