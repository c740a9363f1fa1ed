package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// elementwise writes what makes an output of every value.
func elementwise() {
	thresholds()
	or()
}

// thresholds writes the comparison and packing of whole words.
func thresholds() {
	for _, float := range []bool{false, true} {
		name, typ := "thresholdSSSE3", "int32"
		if float {
			name, typ = "thresholdFloatSSSE3", "float32"
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
		for v := range 16 {
			x, y := XMM(), XMM()
			MOVUPS(Mem{Base: values, Disp: 16 * v}, x)
			MOVUPS(Mem{Base: t, Disp: 16 * v}, y)
			if float {
				CMPPS(x, y, U8(2)) // y ≤ x
			} else {
				PCMPGTL(x, y)
			}
			MOVMSKPS(y, part.As32())
			SHLQ(U8(4*v), part)
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
		RET()
	}
}

func or() {
	TEXT("orSSSE3", NOSPLIT, "func(dst, src *uint64, blocks int)")
	Doc("orSSSE3 computes dst[i] |= src[i] for i < 8·blocks, blocks > 0.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("blocks"), GP64())
	Label("next")
	for v := range 4 {
		x, y := XMM(), XMM()
		MOVOU(Mem{Base: dst, Disp: 16 * v}, x)
		MOVOU(Mem{Base: src, Disp: 16 * v}, y)
		POR(y, x)
		MOVOU(x, Mem{Base: dst, Disp: 16 * v})
	}
	ADDQ(U8(64), dst)
	ADDQ(U8(64), src)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}
