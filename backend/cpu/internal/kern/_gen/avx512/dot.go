package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.dotJob.
const (
	dotDst     = 0
	dotDstStep = 8
	dotSrc     = 16
	dotStep    = 24
	dotRows    = 32
	dotRun     = 40
	dotSkip    = 48
	dotWeights = 56
	dotBlock   = 64
	dotK       = 72
	dotPixels  = 80
)

// dotBits writes the sums of pixels × vectors of 8 outputs, one 64-bit word of
// every patch at a time.
func dotBits(pixels, vectors int) {
	name := fmt.Sprintf("dotBits%dx%dAVX512", pixels, 8*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %d outputs o, with x the words of", name, pixels, 8*vectors),
		"its patch,",
		"",
		"\tdst[p][o] = K − 2·Σ over i of popcount(x[i] XOR w[i][o])",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	Label("next")
	CMPQ(Mem{Base: job, Disp: dotPixels}, U8(pixels))
	JLT(LabelRef("done"))
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		if p == 0 {
			MOVQ(Mem{Base: job, Disp: dotSrc}, x[p])
		} else {
			MOVQ(x[p-1], x[p])
			ADDQ(Mem{Base: job, Disp: dotStep}, x[p])
		}
	}
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = ZMM()
		VPXORQ(acc[i], acc[i], acc[i])
	}
	w, w3, block := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: dotWeights}, w)
	MOVQ(Mem{Base: job, Disp: dotBlock}, block)
	at := []Mem{{Base: w}}
	if vectors == 4 {
		LEAQ(Mem{Base: w, Index: block, Scale: 2}, w3)
		ADDQ(block, w3)
		at = []Mem{{Base: w}, {Base: w, Index: block, Scale: 1}, {Base: w, Index: block, Scale: 2}, {Base: w3}}
	}
	i, row, end := GP64(), GP64(), GP64()
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: dotRows}, row)
	Label("row")
	MOVQ(Mem{Base: job, Disp: dotRun}, end)
	ADDQ(i, end)
	Label("word")
	weights := make([]Op, vectors)
	for v := range weights {
		weights[v] = at[v]
		if pixels > 1 {
			r := ZMM()
			VMOVDQU64(at[v], r)
			weights[v] = r
		}
	}
	for p := range pixels {
		b := ZMM()
		VPBROADCASTQ(Mem{Base: x[p], Index: i, Scale: 1}, b)
		for v := range vectors {
			a, t := acc[p*vectors+v], ZMM()
			VPXORQ(weights[v], b, t)
			VPOPCNTQ(t, t)
			VPADDQ(t, a, a)
		}
	}
	ADDQ(U8(64), w)
	if vectors == 4 {
		ADDQ(U8(64), w3)
	}
	ADDQ(U8(8), i)
	CMPQ(i, end)
	JNE(LabelRef("word"))
	ADDQ(Mem{Base: job, Disp: dotSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))

	dst := GP64()
	MOVQ(Mem{Base: job, Disp: dotDst}, dst)
	k := YMM()
	VPBROADCASTD(Mem{Base: job, Disp: dotK}, k)
	for p := range pixels {
		for v := range vectors {
			s := YMM()
			VPMOVQD(acc[p*vectors+v], s)
			VPADDD(s, s, s)
			VPSUBD(s, k, s)
			VMOVDQU32(s, Mem{Base: dst, Disp: 32 * v})
		}
		ADDQ(Mem{Base: job, Disp: dotDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: dotDst})
	last := x[pixels-1]
	ADDQ(Mem{Base: job, Disp: dotStep}, last)
	MOVQ(last, Mem{Base: job, Disp: dotSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: dotPixels})
	JMP(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
