package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// table returns the address of constant bytes.
func table(name string, values []uint8) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := 0; i < len(values); i += 8 {
		var w uint64
		for j := range 8 {
			w |= uint64(values[i+j]) << (8 * j)
		}
		DATA(i, U64(w))
	}
	return m
}

// words returns the bytes of little-endian words.
func words(values ...uint64) []uint8 {
	var b []uint8
	for _, v := range values {
		for i := range 8 {
			b = append(b, uint8(v>>(8*i)))
		}
	}
	return b
}
