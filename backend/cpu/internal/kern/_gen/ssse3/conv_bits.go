package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convBits writes the convolutions of bits.
func convBits() {
	gen.Popcounts(16)
	for _, sums := range []bool{false, true} {
		for _, k := range []kernel{{pixels: 2, vectors: 4}, {pixels: 4, vectors: 2}, {pixels: 4, vectors: 1}} {
			k.sums = sums
			k.write()
		}
	}
}

// store writes the results of a pixel.
func (k *kernel) store(wide Mem, dst, table reg.Register) {
	word, part := GP64(), k.temp
	for v := range k.vectors {
		sums := wide.Offset(32 * v)
		odd, low, high := XMM(), XMM(), XMM()
		MOVOU(sums, low)
		MOVOU(sums.Offset(16), odd)
		MOVO(low, high)
		PUNPCKLWL(odd, low)
		PUNPCKHWL(odd, high)
		if k.sums {
			zero := XMM()
			PXOR(zero, zero)
			for i, s := range []reg.VecVirtual{low, high} {
				upper := XMM()
				MOVO(s, upper)
				PUNPCKLWL(zero, s)
				PUNPCKHWL(zero, upper)
				for j, c := range []reg.VecVirtual{s, upper} {
					place := 64*v + 32*i + 16*j
					t := XMM()
					PADDL(c, c)
					MOVOU(Mem{Base: table, Disp: place}, t)
					PSUBL(c, t)
					MOVOU(t, Mem{Base: dst, Disp: place})
				}
			}
			continue
		}
		for i, s := range []reg.VecVirtual{low, high} {
			// Saturated to 16 bits, a threshold means the same.
			a, b := XMM(), XMM()
			MOVOU(Mem{Base: table, Disp: 64*v + 32*i}, a)
			MOVOU(Mem{Base: table, Disp: 64*v + 32*i + 16}, b)
			PACKSSLW(b, a)
			PCMPGTW(a, s)
		}
		PACKSSWB(high, low)
		PMOVMSKB(low, part.As32())
		join(word, part, v, 16)
	}
	k.storeWord(word, 16*k.vectors, dst)
}
