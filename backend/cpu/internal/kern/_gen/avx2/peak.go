package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
