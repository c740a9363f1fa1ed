package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peakTimes is so many that the loop itself costs nothing.
const peakTimes = 8

// peak writes the innermost instructions of convCarries on registers only.
func peak() {
	read()
	peakFMA()
	TEXT("peakAVX512", NOSPLIT, "func(rounds int)")
	Doc("peakAVX512 does 8 × 12 times what adds two vectors of 512 products each to a parity", "and counts the carries, rounds times.")
	n := Load(Param("rounds"), GP64())
	x, w := ZMM(), ZMM()
	zmm.Zero(x)
	zmm.Zero(w)
	acc, parity := make([]reg.VecVirtual, 12), make([]reg.VecVirtual, 12)
	for i := range acc {
		acc[i], parity[i] = ZMM(), ZMM()
		zmm.Zero(acc[i])
		zmm.Zero(parity[i])
	}
	Label("next")
	for range peakTimes {
		for i, a := range acc {
			addPair(func(t reg.VecVirtual) { VPXORD(a, x, t) }, func(t reg.VecVirtual) { VPXORD(a, w, t) }, parity[i], a)
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

// read writes loads that nothing waits for.
func read() {
	TEXT("readAVX512", NOSPLIT, "func(p *uint8, n int)")
	Pragma("noescape")
	Doc("readAVX512 reads n times 2048 bytes, n at least 1.")
	p, n := Load(Param("p"), GP64()), Load(Param("n"), GP64())
	acc := make([]reg.VecVirtual, 8)
	for i := range acc {
		acc[i] = ZMM()
		zmm.Zero(acc[i])
	}
	Label("next")
	for at := 0; at < 2048; at += 64 {
		a := acc[at/64%len(acc)]
		VPORD(Mem{Base: p, Disp: at}, a, a)
	}
	ADDQ(U32(2048), p)
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
