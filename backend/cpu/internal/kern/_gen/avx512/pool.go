package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// pool writes means, and those of ±1 values.
func pool() {
	means()
	gen.MeanSigns(zmm, func() gen.Counts {
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
			Lanes: func(v int, to reg.VecVirtual) {
				part := count.AsX()
				if v > 0 {
					part = XMM()
					VEXTRACTI32X4(U8(v), count, part)
				}
				VPMOVZXBD(part, to)
			},
		}
	})
}
