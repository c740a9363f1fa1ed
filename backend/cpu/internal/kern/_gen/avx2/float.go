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
	laneMasks()
	fma()
	gen.FMAPixels(ymm, 6, 2)
	gen.FMAPixels(ymm, 6, 1)
	fmaEach()
}

// fma writes the sums of real weights.
func fma() {
	for _, vectors := range []int{8, 1} {
		name := fmt.Sprintf("fma%dAVX2", 8*vectors)
		TEXT(name, NOSPLIT, "func(acc, x *float32, n int, w *float32, stride int)")
		Doc(fmt.Sprintf("%s computes, for i < n in order, and for o < %d,", name, 8*vectors), "",
			"\tacc[o] = fma(x[i], w[i·stride+o], acc[o])", "",
			"stride counts bytes.")
		Pragma("noescape")
		acc, x, n := Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
		w, stride := Load(Param("w"), GP64()), Load(Param("stride"), GP64())
		sums := make([]reg.VecVirtual, vectors)
		for v := range sums {
			sums[v] = YMM()
			VMOVUPS(Mem{Base: acc, Disp: 32 * v}, sums[v])
		}
		Label("next")
		b := YMM()
		VBROADCASTSS(Mem{Base: x}, b)
		for v := range sums {
			VFMADD231PS(Mem{Base: w, Disp: 32 * v}, b, sums[v])
		}
		ADDQ(U8(4), x)
		ADDQ(stride, w)
		DECQ(n)
		JNE(LabelRef("next"))
		for v := range sums {
			VMOVUPS(sums[v], Mem{Base: acc, Disp: 32 * v})
		}
		VZEROUPPER()
		RET()
	}
	TEXT("fma1AVX2", NOSPLIT, "func(acc, x *float32, n int, w *float32, stride int)")
	Doc("fma1AVX2 is fma8AVX2 for one output.")
	Pragma("noescape")
	acc, x, n := Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	w, stride := Load(Param("w"), GP64()), Load(Param("stride"), GP64())
	sum, v := XMM(), XMM()
	VMOVSS(Mem{Base: acc}, sum)
	Label("next")
	VMOVSS(Mem{Base: x}, v)
	VFMADD231SS(Mem{Base: w}, v, sum)
	ADDQ(U8(4), x)
	ADDQ(stride, w)
	DECQ(n)
	JNE(LabelRef("next"))
	VMOVSS(sum, Mem{Base: acc})
	RET()
}

// ymm is what gen needs to know.
var ymm = gen.ISA{
	Name: "AVX2", Lanes: 8, Vec: YMM,
	FirstLanes: func(n reg.Register) (func(Mem, reg.VecVirtual), func(reg.VecVirtual, Mem)) {
		mask := laneMask(n)
		return func(m Mem, v reg.VecVirtual) { VMASKMOVPS(m, mask, v) },
			func(v reg.VecVirtual, m Mem) { VMASKMOVPS(v, mask, m) }
	},
}

// fmaEach writes the ordered sums of depthwise convolutions.
func fmaEach() {
	TEXT("fmaEachAVX2", NOSPLIT, "func(acc, x, w *float32, n int)")
	Doc("fmaEachAVX2 computes acc[i] = fma(x[i], w[i], acc[i]) for i < n, n > 0.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("w"), GP64())}
	lanes(Load(Param("n"), GP64()), p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		acc, x, w := load(0), load(1), load(2)
		VFMADD231PS(w, x, acc)
		store(acc, 0)
	})
}
