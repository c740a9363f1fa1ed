package gen

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Popcounts writes the table "popcounts" of popcount(a XOR b), a row for every
// nibble a < rows.
func Popcounts(rows int) {
	GLOBL("popcounts", RODATA|NOPTR)
	for a := range rows {
		popcountRow(16*a, a)
	}
}

// PopcountPairs writes a table of the rows of Popcounts for both nibbles of each byte, the lower
// one first.
func PopcountPairs() {
	GLOBL("popcountPairs", RODATA|NOPTR)
	for a := range 256 {
		popcountRow(32*a, a&15)
		popcountRow(32*a+16, a>>4)
	}
}

// popcountRow writes the differences of a nibble from all others.
func popcountRow(at, a int) {
	var row [2]uint64
	for b := range 16 {
		row[b/8] |= uint64(bits.OnesCount(uint(a^b))) << (8 * (b % 8))
	}
	DATA(at, U64(row[0]))
	DATA(at+8, U64(row[1]))
}
