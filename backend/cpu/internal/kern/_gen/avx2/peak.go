package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak writes the innermost instructions of convBits on registers only.
func peak() {
	read()
	peakFMA()
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

// peakFMA writes the innermost instruction of fmaPixels on registers only.
func peakFMA() {
	TEXT("peakFMAAVX2", NOSPLIT, "func(rounds int)")
	Doc("peakFMAAVX2 does 8 × 12 vectors of fused products and sums, 8 each, rounds", "times.")
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
	for range 8 {
		for _, a := range acc {
			VFMADD231PS(w, x, a)
		}
	}
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// read writes loads that nothing waits for.
func read() {
	TEXT("readAVX2", NOSPLIT, "func(p *uint8, n int)")
	Pragma("noescape")
	Doc("readAVX2 reads n times 2048 bytes, n at least 1.")
	p, n := Load(Param("p"), GP64()), Load(Param("n"), GP64())
	acc := make([]reg.VecVirtual, 8)
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	Label("next")
	for at := 0; at < 2048; at += 32 {
		a := acc[at/32%len(acc)]
		VPOR(Mem{Base: p, Disp: at}, a, a)
	}
	ADDQ(U32(2048), p)
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
