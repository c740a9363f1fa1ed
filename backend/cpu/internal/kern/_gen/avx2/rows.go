package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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

// thresholds writes the comparison and packing of whole words.
func thresholds() {
	for _, float := range []bool{false, true} {
		name, typ := "thresholdAVX2", "int32"
		if float {
			name, typ = "thresholdFloatAVX2", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, words int)", typ))
		Doc(name+" sets, for o < 64·words, words > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]")
		Pragma("noescape")
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n, part := Load(Param("words"), GP64()), GP64()
		Label("next")
		word := GP64()
		XORQ(word, word)
		for v := range 8 {
			x := YMM()
			if float {
				VMOVUPS(Mem{Base: values, Disp: 32 * v}, x)
				VCMPPS(U8(13), Mem{Base: t, Disp: 32 * v}, x, x)
			} else {
				VMOVDQU(Mem{Base: t, Disp: 32 * v}, x)
				VPCMPGTD(Mem{Base: values, Disp: 32 * v}, x, x)
			}
			VMOVMSKPS(x, part.As32())
			SHLQ(U8(8*v), part)
			ORQ(part, word)
		}
		if !float {
			NOTQ(word)
		}
		MOVQ(word, Mem{Base: dst})
		ADDQ(U8(8), dst)
		ADDQ(U32(256), values)
		ADDQ(U32(256), t)
		DECQ(n)
		JNE(LabelRef("next"))
		VZEROUPPER()
		RET()
	}
}

// peak writes the innermost instructions of convBits on registers only.
func peak() {
	TEXT("peakAVX2", NOSPLIT, "func(rounds int)")
	Doc("peakAVX2 does 12 look-ups of the popcounts of 32 nibbles and their addition,", "rounds times.")
	n := Load(Param("rounds"), GP64())
	x, w := YMM(), YMM()
	VPXOR(x, x, x)
	VPXOR(w, w, w)
	acc := make([]reg.VecVirtual, 12)
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	Label("next")
	for _, a := range acc {
		t := YMM()
		VPSHUFB(w, x, t)
		VPADDB(t, a, a)
	}
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
