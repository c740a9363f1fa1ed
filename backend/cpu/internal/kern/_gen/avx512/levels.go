package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levelsOfFloats writes the numbers of levels.
func levelsOfFloats() {
	gen.Levels(zmm, gen.LevelParts{
		Down: func(y reg.VecVirtual) { VRNDSCALEPS(U8(9), y, y) },
		Next: func(from reg.Register, index, y reg.VecVirtual, x Mem) {
			next, all, reached := ZMM(), K(), K()
			KXNORW(all, all, all)
			VGATHERDPS(Mem{Base: from, Index: index, Scale: 4}, all, next)
			VCMPPS(U8(2), x, next, reached) // next ≤ x
			less := ZMM()
			VPTERNLOGD(U8(0xff), less, less, less) // −1
			VPSUBD(less, y, reached, y)
		},
		Bytes: func(x []reg.VecVirtual, dst Mem) {
			for v, y := range x {
				VPMOVDB(y, dst.Offset(16*v))
			}
		},
	})
}
