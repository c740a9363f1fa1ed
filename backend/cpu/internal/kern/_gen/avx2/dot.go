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

// dotBits writes the sums of pixels × vectors of 4 outputs, one 64-bit word of
// every patch at a time. Bits are counted by table look-up, in bytes, which are
// added to sums before they overflow.
func dotBits(pixels, vectors int) {
	const budget = 8 * 31 // bytes of input, 8 for every byte of 31 words
	name := fmt.Sprintf("dotBits%dx%dAVX2", pixels, 4*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %d outputs o, with x the words of", name, pixels, 4*vectors),
		"its patch,",
		"",
		"\tdst[p][o] = K − 2·Σ over i of popcount(x[i] XOR w[i][o])",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	counts, low := YMM(), YMM()
	m := NewDataAddr(NewStaticSymbol("popcounts"), 0) // the row of nibble 0
	VBROADCASTI128(m, counts)
	VPCMPEQB(low, low, low)
	VPSRLW(U8(12), low, low)
	t := YMM()
	VPSLLW(U8(8), low, t)
	VPOR(t, low, low)
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
	acc, sum := make([]reg.VecVirtual, pixels*vectors), make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i], sum[i] = YMM(), YMM()
		VPXOR(acc[i], acc[i], acc[i])
		VPXOR(sum[i], sum[i], sum[i])
	}
	w, w3, block := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: dotWeights}, w)
	MOVQ(Mem{Base: job, Disp: dotBlock}, block)
	weights := []Mem{{Base: w}}
	if vectors == 4 {
		LEAQ(Mem{Base: w, Index: block, Scale: 2}, w3)
		ADDQ(block, w3)
		weights = []Mem{{Base: w}, {Base: w, Index: block, Scale: 1}, {Base: w, Index: block, Scale: 2}, {Base: w3}}
	}
	i, row, end, stop, left := GP64(), GP64(), GP64(), GP64(), GP64()
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: dotRows}, row)
	MOVQ(U32(budget), left)
	Label("row")
	MOVQ(Mem{Base: job, Disp: dotRun}, end)
	ADDQ(i, end)
	Label("chunk")
	LEAQ(Mem{Base: i, Index: left, Scale: 1}, stop)
	CMPQ(stop, end)
	CMOVQGT(end, stop)
	ADDQ(i, left)
	SUBQ(stop, left)
	Label("word")
	for p := range pixels {
		b := YMM()
		VPBROADCASTQ(Mem{Base: x[p], Index: i, Scale: 1}, b)
		for v := range vectors {
			a, l, h := acc[p*vectors+v], YMM(), YMM()
			VPXOR(weights[v], b, h)
			VPAND(low, h, l)
			VPSRLW(U8(4), h, h)
			VPAND(low, h, h)
			VPSHUFB(l, counts, l)
			VPSHUFB(h, counts, h)
			VPADDB(l, a, a)
			VPADDB(h, a, a)
		}
	}
	ADDQ(U8(32), w)
	if vectors == 4 {
		ADDQ(U8(32), w3)
	}
	ADDQ(U8(8), i)
	CMPQ(i, stop)
	JNE(LabelRef("word"))
	CMPQ(left, U8(0))
	JNE(LabelRef("go"))
	flush := func() {
		zero := YMM()
		VPXOR(zero, zero, zero)
		for k, a := range acc {
			VPSADBW(zero, a, a)
			VPADDQ(a, sum[k], sum[k])
			VPXOR(a, a, a)
		}
	}
	flush()
	MOVQ(U32(budget), left)
	Label("go")
	CMPQ(i, end)
	JNE(LabelRef("chunk"))
	ADDQ(Mem{Base: job, Disp: dotSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))
	flush()

	dst := GP64()
	MOVQ(Mem{Base: job, Disp: dotDst}, dst)
	k := YMM()
	VPBROADCASTQ(Mem{Base: job, Disp: dotK}, k)
	for p := range pixels {
		for v := range vectors {
			s, upper := sum[p*vectors+v], XMM()
			VPADDQ(s, s, s)
			VPSUBQ(s, k, s)
			VEXTRACTI128(U8(1), s, upper)
			VSHUFPS(U8(0x88), upper, s.AsX(), upper)
			VMOVUPS(upper, Mem{Base: dst, Disp: 16 * v})
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
