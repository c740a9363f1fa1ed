package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak writes the innermost instructions of a convolution on the first-level cache only.
func peak() {
	TEXT("peakAMX", NOSPLIT, "func(config, memory *byte, rounds int)")
	Doc("peakAMX loads two tiles of pixels and two of weights from memory and adds all four products,",
		"16 × 16 × 64 each, rounds times.")
	Pragma("noescape")
	Load(Param("config"), reg.RAX)
	loadConfig()
	at, n := Load(Param("memory"), GP64()), Load(Param("rounds"), GP64())
	MOVQ(U32(64), reg.RBX)
	for t := range mostTiles {
		zeroTile(byte(t))
	}
	Label("next")
	for t := range 4 {
		MOVQ(at, reg.RAX)
		if t > 0 {
			ADDQ(U32(uint32(t)*tileBytes), reg.RAX)
		}
		loadTile(byte(4 + t))
	}
	for t := range byte(4) {
		products(t, 4+t/2, 6+t%2)
	}
	DECQ(n)
	JNE(LabelRef("next"))
	release()
	RET()
}
