package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.fmaJob.
const (
	fmaDst     = 0
	fmaDstStep = 8
	fmaSrc     = 16
	fmaStep    = 24
	fmaRows    = 32
	fmaRun     = 40
	fmaSkip    = 48
	fmaWeights = 56
	fmaTap     = 64
	fmaBias    = 72
	fmaLeft    = 80
	fmaOutputs = 88
)

// fmaPixels writes the ordered sums of pixels × vectors of 8 outputs; a single
// vector may have fewer.
func fmaPixels(pixels, vectors int) {
	name := fmt.Sprintf("fmaPixels%dx%dAVX2", pixels, 8*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	outputs := fmt.Sprint(8 * vectors)
	if vectors == 1 {
		outputs = "at most 8"
	}
	Doc(fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %s outputs o,", name, pixels, outputs),
		"with x the values of its patch in order,",
		"",
		"\tdst[p][o] = bias[o], then fma(x[i], w[i][o], dst[p][o]) for each i",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	var mask reg.VecVirtual
	if vectors == 1 {
		// The last 8 − n of 8 set lanes and 8 clear ones.
		mask = YMM()
		base, n := GP64(), GP64()
		LEAQ(NewDataAddr(NewStaticSymbol("laneMasks"), 32), base)
		MOVQ(Mem{Base: job, Disp: fmaOutputs}, n)
		SHLQ(U8(2), n)
		SUBQ(n, base)
		VMOVUPS(Mem{Base: base}, mask)
	}
	load := func(m Mem) reg.VecVirtual {
		v := YMM()
		if vectors == 1 {
			VMASKMOVPS(m, mask, v)
		} else {
			VMOVUPS(m, v)
		}
		return v
	}
	Label("next")
	CMPQ(Mem{Base: job, Disp: fmaLeft}, U8(pixels))
	JLT(LabelRef("done"))
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		if p == 0 {
			MOVQ(Mem{Base: job, Disp: fmaSrc}, x[p])
		} else {
			MOVQ(x[p-1], x[p])
			ADDQ(Mem{Base: job, Disp: fmaStep}, x[p])
		}
	}
	bias := GP64()
	MOVQ(Mem{Base: job, Disp: fmaBias}, bias)
	acc := make([]reg.VecVirtual, pixels*vectors)
	for v := range vectors {
		acc[v] = load(Mem{Base: bias, Disp: 32 * v})
		for p := 1; p < pixels; p++ {
			acc[p*vectors+v] = YMM()
			VMOVAPS(acc[v], acc[p*vectors+v])
		}
	}
	w, tap, i, row, end := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: fmaWeights}, w)
	MOVQ(Mem{Base: job, Disp: fmaTap}, tap)
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: fmaRows}, row)
	Label("row")
	MOVQ(Mem{Base: job, Disp: fmaRun}, end)
	ADDQ(i, end)
	Label("tap")
	weights := make([]reg.VecVirtual, vectors)
	for v := range weights {
		weights[v] = load(Mem{Base: w, Disp: 32 * v})
	}
	for p := range pixels {
		b := YMM()
		VBROADCASTSS(Mem{Base: x[p], Index: i, Scale: 1}, b)
		for v := range weights {
			VFMADD231PS(weights[v], b, acc[p*vectors+v])
		}
	}
	ADDQ(tap, w)
	ADDQ(U8(4), i)
	CMPQ(i, end)
	JNE(LabelRef("tap"))
	ADDQ(Mem{Base: job, Disp: fmaSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))

	dst := GP64()
	MOVQ(Mem{Base: job, Disp: fmaDst}, dst)
	for p := range pixels {
		for v := range vectors {
			m := Mem{Base: dst, Disp: 32 * v}
			if vectors == 1 {
				VMASKMOVPS(acc[p], mask, m)
			} else {
				VMOVUPS(acc[p*vectors+v], m)
			}
		}
		ADDQ(Mem{Base: job, Disp: fmaDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: fmaDst})
	last := x[pixels-1]
	ADDQ(Mem{Base: job, Disp: fmaStep}, last)
	MOVQ(last, Mem{Base: job, Disp: fmaSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: fmaLeft})
	JMP(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
