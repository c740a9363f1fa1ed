package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak writes the innermost instructions of convBits on registers only.
func peak() {
	TEXT("peakSSSE3", NOSPLIT, "func(rounds int)")
	Doc("peakSSSE3 does 12 look-ups of the popcounts of 16 nibbles and their addition,", "rounds times.")
	n := Load(Param("rounds"), GP64())
	x, w := XMM(), XMM()
	PXOR(x, x)
	PXOR(w, w)
	acc := make([]reg.VecVirtual, 12)
	for i := range acc {
		acc[i] = XMM()
		PXOR(acc[i], acc[i])
	}
	Label("next")
	for _, a := range acc {
		t := XMM()
		MOVO(x, t)
		PSHUFB(w, t)
		PADDB(t, a)
	}
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}
