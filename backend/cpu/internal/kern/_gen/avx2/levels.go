package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levels writes the numbers of levels.
func levels() {
	// Packing puts the values of a lane of 16 bytes side by side.
	order := table("levelOrder", words(0|4<<32, 1|5<<32, 2|6<<32, 3|7<<32))
	gen.Levels(ymm, gen.LevelParts{
		Down: func(y reg.VecVirtual) { VROUNDPS(U8(9), y, y) },
		Next: func(from reg.Register, index, y reg.VecVirtual, x Mem) {
			all, next := YMM(), YMM()
			VPCMPEQD(all, all, all)
			VGATHERDPS(all, Mem{Base: from, Index: index, Scale: 4}, next)
			VCMPPS(U8(2), x, next, next) // next ≤ x
			VPSUBD(next, y, y)
		},
		Bytes: func(x []reg.VecVirtual, dst Mem) {
			if len(x) == 1 {
				high := XMM()
				VEXTRACTI128(U8(1), x[0], high)
				VPACKUSDW(high, x[0].AsX(), high)
				VPACKUSWB(high, high, high)
				VMOVQ(high, dst)
				return
			}
			VPACKUSDW(x[1], x[0], x[0])
			VPACKUSDW(x[3], x[2], x[2])
			VPACKUSWB(x[2], x[0], x[0])
			places := YMM()
			VMOVDQU(order, places)
			VPERMD(x[0], places, x[0])
			VMOVDQU(x[0], dst)
		},
	})
}
