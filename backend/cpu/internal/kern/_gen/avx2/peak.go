package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak writes the innermost instructions of convBits on registers only.
func peak() {
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
