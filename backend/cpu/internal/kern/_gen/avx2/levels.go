package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levelsOfFloats writes the numbers of levels.
func levelsOfFloats() {
	order := levelOrder()
	gen.Levels(ymm, gen.LevelParts{
		Down: func(y reg.VecVirtual) { VROUNDPS(U8(9), y, y) },
		Next: func(from reg.Register, index, y reg.VecVirtual, x Mem) {
			all, next := YMM(), YMM()
			VPCMPEQD(all, all, all)
			VGATHERDPS(all, Mem{Base: from, Index: index, Scale: 4}, next)
			VCMPPS(U8(2), x, next, next) // next ≤ x
			VPSUBD(next, y, y)
		},
		Bytes: func(x []reg.VecVirtual, dst Mem) { storeLevels(x, order, dst) },
	})
}

// levelOrder is the order in which storeLevels has values, as packing puts those of a lane of
// 16 bytes side by side.
func levelOrder() Mem { return table("levelOrder", words(0|4<<32, 1|5<<32, 2|6<<32, 3|7<<32)) }

// storeLevels stores int32 values as bytes, those of one or two vectors, or of several times
// four.
func storeLevels(x []reg.VecVirtual, order, dst Mem) {
	if len(x) == 1 {
		high := XMM()
		VEXTRACTI128(U8(1), x[0], high)
		VPACKUSDW(high, x[0].AsX(), high)
		VPACKUSWB(high, high, high)
		VMOVQ(high, dst)
		return
	}
	if len(x) == 2 {
		places := YMM()
		VPACKUSDW(x[1], x[0], x[0])
		VPACKUSWB(x[0], x[0], x[0])
		VMOVDQU(order, places)
		VPERMD(x[0], places, x[0])
		VMOVDQU(x[0].AsX(), dst)
		return
	}
	for v := 0; v < len(x); v += 4 {
		VPACKUSDW(x[v+1], x[v], x[v])
		VPACKUSDW(x[v+3], x[v+2], x[v+2])
		VPACKUSWB(x[v+2], x[v], x[v])
		places := YMM()
		VMOVDQU(order, places)
		VPERMD(x[v], places, x[v])
		VMOVDQU(x[v], dst.Offset(8*v))
	}
}
