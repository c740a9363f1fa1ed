package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convBytes writes the convolutions of bytes.
func convBytes() {
	for _, sums := range []bool{false, true} {
		conv(true, sums, false, 2, 4)
		conv(true, sums, false, 4, 2)
		conv(true, sums, false, 4, 1)
	}
	order := levelOrder()
	for _, tile := range [][2]int{{2, 4}, {4, 2}, {4, 1}} {
		(&kernel{bytes: true, floats: true, pixels: tile[0], vectors: tile[1]}).write()
		(&kernel{bytes: true, levels: true, order: order, pixels: tile[0], vectors: tile[1]}).write()
	}
	for _, vectors := range []int{2, 1} {
		conv(true, false, true, 4, vectors)
	}
}

// storeBytes is store for bytes.
func (k *kernel) storeBytes(wide Mem, dst, table reg.Register) {
	if k.floats || k.levels {
		values := make([]reg.VecVirtual, 2*k.vectors)
		for v := range values {
			values[v] = YMM()
			VMOVDQU(wide.Offset(32*v), values[v])
			VPADDD(Mem{Base: table, Disp: 32 * v}, values[v], values[v])
		}
		ymm.EndFloats(k.job, values, len(values), "")
		if k.levels {
			ymm.EndLevels(k.job, values, len(values), "")
			storeLevels(values, k.order, Mem{Base: dst})
		} else {
			ymm.StoreFloats(k.job, dst, values, "")
		}
		return
	}
	word, part := GP64(), k.temp
	for v := range 2 * k.vectors { // 8 outputs each
		sums := wide.Offset(32 * v)
		c := YMM()
		if k.sums {
			VMOVDQU(sums, c)
			VPADDD(Mem{Base: table, Disp: 32 * v}, c, c)
			VMOVDQU(c, Mem{Base: dst, Disp: 32 * v})
			continue
		}
		if k.pooled { // of the greatest sum
			greatest := YMM()
			VMOVDQU(sums, greatest)
			for q := 1; q < 4; q++ {
				VPMAXSD(sums.Offset(64*q*k.vectors), greatest, greatest)
			}
			VMOVDQU(Mem{Base: table, Disp: 32 * v}, c)
			VPCMPGTD(greatest, c, c)
		} else {
			VMOVDQU(Mem{Base: table, Disp: 32 * v}, c)
			VPCMPGTD(sums, c, c)
		}
		VMOVMSKPS(c, part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(8*v), part)
			ORQ(part, word)
		}
	}
	if k.sums {
		return
	}
	// The bits so far say where the threshold is greater.
	mask := GP64()
	MOVQ(U64(1<<(16*k.vectors-1)<<1-1), mask)
	XORQ(mask, word)
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}
