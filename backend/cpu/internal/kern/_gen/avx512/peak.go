package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peakTimes is so many that the loop itself costs nothing.
const peakTimes = 8

// peak writes the innermost instructions of convBits on registers only.
func peak() {
	peakFMA()
	TEXT("peakAVX512", NOSPLIT, "func(rounds int)")
	Doc("peakAVX512 does 8 × 16 vectors of xor, popcount and add, 512 products each,", "rounds times.")
	n := Load(Param("rounds"), GP64())
	x := ZMM()
	VPXORD(x, x, x)
	acc := make([]reg.VecVirtual, 16)
	for i := range acc {
		acc[i] = ZMM()
		VPXORD(acc[i], acc[i], acc[i])
	}
	Label("next")
	for range peakTimes {
		for _, a := range acc {
			t := ZMM()
			VPXORD(a, x, t)
			VPOPCNTD(t, t)
			VPADDD(t, a, a)
		}
	}
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// peakFMA writes the innermost instruction of fmaPixels on registers only.
func peakFMA() {
	TEXT("peakFMAAVX512", NOSPLIT, "func(rounds int)")
	Doc("peakFMAAVX512 does 8 × 16 vectors of fused products and sums, 16 each, rounds", "times.")
	n := Load(Param("rounds"), GP64())
	x, w := ZMM(), ZMM()
	VPXORD(x, x, x)
	VPXORD(w, w, w)
	acc := make([]reg.VecVirtual, 16)
	for i := range acc {
		acc[i] = ZMM()
		VPXORD(acc[i], acc[i], acc[i])
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
