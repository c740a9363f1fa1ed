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

// fmaPixels writes the ordered sums of pixels × vectors of 16 outputs; a single
// vector may have fewer.
func fmaPixels(pixels, vectors int) {
	name := fmt.Sprintf("fmaPixels%dx%dAVX512", pixels, 16*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	outputs := fmt.Sprint(16 * vectors)
	if vectors == 1 {
		outputs = "at most 16"
	}
	Doc(fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %s outputs o,", name, pixels, outputs),
		"with x the values of its patch in order,",
		"",
		"\tdst[p][o] = bias[o], then fma(x[i], w[i][o], dst[p][o]) for each i",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	mask := K()
	if vectors == 1 {
		lanes := GP64()
		MOVQ(I32(-1), lanes)
		n := GP64()
		MOVQ(Mem{Base: job, Disp: fmaOutputs}, n)
		BZHIQ(n, lanes, lanes)
		KMOVW(lanes.As32(), mask)
	}
	load := func(m Mem) reg.VecVirtual {
		v := ZMM()
		if vectors == 1 {
			VMOVUPS_Z(m, mask, v)
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
		acc[v] = load(Mem{Base: bias, Disp: 64 * v})
		for p := 1; p < pixels; p++ {
			acc[p*vectors+v] = ZMM()
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
		weights[v] = load(Mem{Base: w, Disp: 64 * v})
	}
	for p := range pixels {
		b := ZMM()
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
			m := Mem{Base: dst, Disp: 64 * v}
			if vectors == 1 {
				VMOVUPS(acc[p], mask, m)
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
