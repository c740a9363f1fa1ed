package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// convBytes writes the convolutions of bytes.
func convBytes() {
	for _, sums := range []bool{false, true} {
		for _, k := range []kernel{{pixels: 1, vectors: 8}, {pixels: 2, vectors: 4}, {pixels: 4, vectors: 2}} {
			k.bytes, k.sums = true, sums
			k.write()
		}
	}
}

// storeBytes is store for bytes.
func (k *kernel) storeBytes(wide Mem, dst, table reg.Register) {
	word, part := GP64(), k.temp
	for v := range 2 * k.vectors { // 4 outputs each
		c, t := XMM(), XMM()
		MOVOU(wide.Offset(16*v), c)
		MOVOU(Mem{Base: table, Disp: 16 * v}, t)
		if k.sums {
			PADDL(t, c)
			MOVOU(c, Mem{Base: dst, Disp: 16 * v})
			continue
		}
		PCMPGTL(c, t)
		MOVMSKPS(t, part.As32())
		join(word, part, v, 4)
	}
	k.storeWord(word, 8*k.vectors, dst)
}
