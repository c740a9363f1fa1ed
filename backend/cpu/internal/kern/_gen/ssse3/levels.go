package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levels writes the numbers of levels, as bytes and as floats, of those that are a product, a
// sum and a rounding.
func levels() {
	for _, bytes := range []bool{true, false} {
		name, what := "levelFloatsSSSE3", "low plus the levels"
		if bytes {
			name, what = "levelBytesSSSE3", "the levels"
		}
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(fmt.Sprintf("%s writes %s of the values of a LevelsJob that is Usual, 16·n of them, n > 0.", name, what))
		Pragma("noescape")
		job := Load(Param("job"), GP64())
		at := func(disp int) reg.GPVirtual {
			r := GP64()
			MOVQ(Mem{Base: job, Disp: disp}, r)
			return r
		}
		dst, src, scale, shift, last := at(gen.LevelsDst), at(gen.LevelsSrc), at(gen.LevelsScale), at(gen.LevelsShift), at(gen.LevelsN)
		everywhere := func(disp int) reg.VecVirtual {
			v := XMM()
			MOVSS(Mem{Base: job, Disp: disp}, v)
			SHUFPS(U8(0), v, v)
			return v
		}
		least, most := everywhere(gen.LevelsLeast), everywhere(gen.LevelsMost)
		var low reg.VecVirtual
		if bytes {
			low = everywhere(gen.LevelsOffset)
		} else {
			low = everywhere(gen.LevelsLow)
		}
		o := GP64()
		XORQ(o, o)
		Label("next")
		var x [4]reg.VecVirtual
		for v := range x {
			of := func(r reg.Register) Mem { return Mem{Base: r, Index: o, Scale: 4, Disp: 16 * v} }
			y, by := XMM(), XMM()
			x[v] = y
			MOVUPS(of(src), y)
			MOVUPS(of(scale), by)
			MULPS(by, y)
			MOVUPS(of(shift), by)
			ADDPS(by, y)
			MAXPS(least, y) // y where it is greater
			MINPS(most, y)  // y where it is less
			CVTPS2PL(y, y)
			if bytes {
				PADDL(low, y)
				continue
			}
			CVTPL2PS(y, y)
			ADDPS(low, y)
			MOVUPS(y, of(dst))
		}
		if bytes {
			PACKSSLW(x[1], x[0])
			PACKSSLW(x[3], x[2])
			PACKUSWB(x[2], x[0])
			MOVOU(x[0], Mem{Base: dst, Index: o, Scale: 1})
		}
		ADDQ(U8(16), o)
		CMPQ(o, last)
		JNE(LabelRef("next"))
		RET()
	}
}
