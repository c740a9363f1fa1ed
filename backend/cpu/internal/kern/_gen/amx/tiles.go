package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The instructions on tiles, which neither avo nor Go's assembler has, as bytes. Those that
// read or write memory take its address in RAX, and rows that are RBX bytes apart, or RCX for
// those of pixels. The codes are those of Intel's Software Developer's Manual, volume 2, under the names of the
// instructions.

// Prefixes in the last bits of the third byte of VEX.
const (
	none = 0
	p66  = 1
	pF3  = 2
	pF2  = 3
)

// memory is the byte behind the opcode for an operand in memory, address the one behind that for RAX and
// RBX, and apart that for RAX and RCX.
const memory, address, apart = 0x04, 0x18, 0x08

func tile(text string, reads []operand.Op, prefix, source byte, opcode ...byte) {
	code := append([]byte{0xc4, 0xe2, ^source&15<<3 | prefix}, opcode...)
	bytes := make([]string, len(code))
	for i, b := range code {
		bytes[i] = fmt.Sprintf("BYTE $0x%02x", b)
	}
	Instruction(&ir.Instruction{Opcode: strings.Join(bytes, "; ") + " // " + text, Inputs: reads})
}

var place = []operand.Op{reg.RAX, reg.RBX}

// loadConfig configures all tiles as the 64 bytes at RAX say.
func loadConfig() { tile("LDTILECFG (AX)", place[:1], none, 0, 0x49, 0x00) }

// release makes the state of all tiles the initial one.
func release() { tile("TILERELEASE", nil, none, 0, 0x49, 0xc0) }

func zeroTile(t byte) { tile(fmt.Sprintf("TILEZERO TMM%d", t), nil, pF2, 0, 0x49, 0xc0|t<<3) }

func loadTile(t byte) {
	tile(fmt.Sprintf("TILELOADD (AX)(BX*1), TMM%d", t), place, pF2, 0, 0x4b, memory|t<<3, address)
}

// loadPixels is loadTile of lines that are RCX bytes apart.
func loadPixels(t byte) {
	reads := []operand.Op{reg.RAX, reg.RCX}
	tile(fmt.Sprintf("TILELOADD (AX)(CX*1), TMM%d", t), reads, pF2, 0, 0x4b, memory|t<<3, apart)
}

func storeTile(t byte) {
	tile(fmt.Sprintf("TILESTORED TMM%d, (AX)(BX*1)", t), place, pF3, 0, 0x4b, memory|t<<3, address)
}

// products adds to the tile of int32 sums the products of uint8 in a and int8 in b.
func products(sums, a, b byte) {
	tile(fmt.Sprintf("TDPBUSD TMM%d, TMM%d, TMM%d", b, a, sums), nil, p66, b, 0x5e, 0xc0|sums<<3|a)
}
