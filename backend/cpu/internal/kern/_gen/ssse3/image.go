package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// image writes what reads the bytes of images.
func image() {
	thresholdBytes()
	minMax()
}

func thresholdBytes() {
	TEXT("thresholdBytesSSSE3", NOSPLIT, "func(dst *uint64, src, t *uint8, words, period int)")
	Doc("thresholdBytesSSSE3 sets, for i < 64·words, words > 0,", "",
		"\tbit i%64 of dst[i/64] = src[i] ≥ t[i mod 64·period]")
	Pragma("noescape")
	dst, src, t := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("t"), GP64())
	n, period := Load(Param("words"), GP64()), Load(Param("period"), GP64())
	bounds, left, word, part := GP64(), GP64(), GP64(), GP64()
	Label("period")
	MOVQ(t, bounds)
	MOVQ(period, left)
	Label("next")
	XORQ(word, word)
	for i := range 4 {
		x, y := XMM(), XMM()
		MOVOU(Mem{Base: src, Disp: 16 * i}, x)
		MOVOU(Mem{Base: bounds, Disp: 16 * i}, y)
		PMAXUB(x, y)
		PCMPEQB(x, y)
		PMOVMSKB(y, part.As32())
		if i > 0 {
			SHLQ(U8(16*i), part)
		}
		ORQ(part, word)
	}
	MOVQ(word, Mem{Base: dst})
	ADDQ(U8(8), dst)
	ADDQ(U8(64), src)
	ADDQ(U8(64), bounds)
	DECQ(n)
	JEQ(LabelRef("done"))
	DECQ(left)
	JNE(LabelRef("next"))
	JMP(LabelRef("period"))
	Label("done")
	RET()
}

func minMax() {
	TEXT("minMaxSSSE3", NOSPLIT, "func(src *uint8, vectors int, low, high *uint8)")
	Doc("minMaxSSSE3 stores the least and the greatest of every 16th byte, for 16·vectors", "bytes, vectors > 0.")
	Pragma("noescape")
	src, n := Load(Param("src"), GP64()), Load(Param("vectors"), GP64())
	low, high := XMM(), XMM()
	MOVOU(Mem{Base: src}, low)
	MOVO(low, high)
	Label("next")
	v := XMM()
	MOVOU(Mem{Base: src}, v)
	PMINUB(v, low)
	PMAXUB(v, high)
	ADDQ(U8(16), src)
	DECQ(n)
	JNE(LabelRef("next"))
	MOVOU(low, Mem{Base: Load(Param("low"), GP64())})
	MOVOU(high, Mem{Base: Load(Param("high"), GP64())})
	RET()
}
