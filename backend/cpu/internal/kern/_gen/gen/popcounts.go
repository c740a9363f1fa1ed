package gen

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Popcounts writes the table "popcounts" of popcount(a XOR b), a row for every
// nibble a < rows.
func Popcounts(rows int) {
	GLOBL("popcounts", RODATA|NOPTR)
	for a := range rows {
		var row [2]uint64
		for b := range 16 {
			n := uint64(0)
			for d := a ^ b; d != 0; d &= d - 1 {
				n++
			}
			row[b/8] |= n << (8 * (b % 8))
		}
		DATA(16*a, U64(row[0]))
		DATA(16*a+8, U64(row[1]))
	}
}
