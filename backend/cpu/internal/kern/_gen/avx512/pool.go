package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// pool writes means, and the sums of ±1 values.
func pool() {
	means()
	gen.SumSigns(zmm, func() gen.Counts {
		one, count, byteOne := ZMM(), ZMM(), GP32()
		MOVL(U32(0x01010101), byteOne)
		VPBROADCASTD(byteOne, one)
		return gen.Counts{
			Clear: func() { VPXORD(count, count, count) },
			Add: func(m Mem) {
				k := K()
				KMOVQ(m, k)
				VPADDB(one, count, k, count)
			},
			Store: func(m Mem) { VMOVDQU32(count, m) },
		}
	})
}
