package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// LevelParts are what instruction sets do for levels in ways of their own.
type LevelParts struct {
	// Down rounds y down.
	Down func(y reg.VecVirtual)
	// Next adds 1 to y where x is not less than the value at from that index says.
	Next func(from reg.Register, index, y reg.VecVirtual, x Mem)
	// Bytes stores the bytes of one vector or of four.
	Bytes func(y []reg.VecVirtual, dst Mem)
}

// times makes fma(y, scale, float32(y·rest)) of y.
func (isa ISA) times(rest, scale Op, y reg.VecVirtual) {
	small := isa.Vec()
	VMULPS(rest, y, small)
	VFMADD132PS(scale, small, y)
}

// Levels writes the numbers of levels, as bytes and as floats.
func Levels(isa ISA, parts LevelParts) {
	for _, bytes := range []bool{true, false} {
		name, what := "levelFloats", "low plus the levels"
		if bytes {
			name, what = "levelBytes", "the levels"
		}
		name += isa.Name
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(fmt.Sprintf("%s writes %s of the values of a LevelsJob, of which there are %d at least.", name, what, isa.Lanes),
			"dst must not be src.")
		Pragma("noescape")
		job := Load(Param("job"), GP64())
		at := func(disp int) reg.GPVirtual {
			r := GP64()
			MOVQ(Mem{Base: job, Disp: disp}, r)
			return r
		}
		dst, src, scale, shift, list, last := at(LevelsDst), at(LevelsSrc), at(LevelsScale), at(LevelsShift), at(LevelsList), at(LevelsN)
		least, most, low := isa.Vec(), isa.Vec(), isa.Vec()
		VBROADCASTSS(Mem{Base: job, Disp: LevelsLeast}, least)
		VBROADCASTSS(Mem{Base: job, Disp: LevelsMost}, most)
		if bytes {
			VPBROADCASTD(Mem{Base: job, Disp: LevelsOffset}, low)
		} else {
			VBROADCASTSS(Mem{Base: job, Disp: LevelsLow}, low)
		}
		o := GP64()
		XORQ(o, o)
		of := func(r reg.Register, v int) Mem { return Mem{Base: r, Index: o, Scale: 4, Disp: 4 * isa.Lanes * v} }
		part := func(label string, vectors int) []reg.VecVirtual {
			x := make([]reg.VecVirtual, vectors)
			for v := range x {
				x[v] = isa.Vec()
				VMOVUPS(of(src, v), x[v])
			}
			CMPQ(Mem{Base: job, Disp: LevelsDown}, U8(0))
			JEQ(LabelRef(label + "whole"))
			for _, y := range x {
				parts.Down(y)
			}
			Label(label + "whole")
			either := func(disp int, name string, usual, other func(v int, y reg.VecVirtual)) {
				CMPQ(Mem{Base: job, Disp: disp}, U8(0))
				JNE(LabelRef(label + name))
				for v, y := range x {
					usual(v, y)
				}
				JMP(LabelRef(label + name + "done"))
				Label(label + name)
				for v, y := range x {
					other(v, y)
				}
				Label(label + name + "done")
			}
			either(LevelsRest, "rest",
				func(v int, y reg.VecVirtual) { VMULPS(of(scale, v), y, y) },
				func(v int, y reg.VecVirtual) {
					rest := GP64()
					MOVQ(Mem{Base: job, Disp: LevelsRest}, rest)
					isa.times(of(rest, v), of(scale, v), y)
				})
			for v, y := range x {
				VADDPS(of(shift, v), y, y)
				VMAXPS(least, y, y) // y where it is greater
				VMINPS(most, y, y)  // y where it is less
			}
			either(LevelsTruncate, "truncate",
				func(_ int, y reg.VecVirtual) { VCVTPS2DQ(y, y) },
				func(_ int, y reg.VecVirtual) { VCVTTPS2DQ(y, y) })
			from := at(LevelsTable)
			TESTQ(from, from)
			JEQ(LabelRef(label + "sure"))
			for v, y := range x {
				index := isa.Vec()
				VPADDD(of(list, v), y, index)
				parts.Next(from, index, y, of(src, v))
			}
			Label(label + "sure")
			for v, y := range x {
				if bytes {
					VPADDD(low, y, y)
					continue
				}
				VCVTDQ2PS(y, y)
				VADDPS(low, y, y)
				VMOVUPS(y, of(dst, v))
			}
			return x
		}
		end := GP64()
		Label("many")
		LEAQ(Mem{Base: o, Disp: 4 * isa.Lanes}, end)
		CMPQ(end, last)
		JGT(LabelRef("few"))
		x := part("many", 4)
		if bytes {
			parts.Bytes(x, Mem{Base: dst, Index: o, Scale: 1})
		}
		MOVQ(end, o)
		JMP(LabelRef("many"))
		Label("few")
		CMPQ(o, last)
		JEQ(LabelRef("done"))
		// One vector, the last ones of which some may be written twice.
		LEAQ(Mem{Base: last, Disp: -isa.Lanes}, end)
		CMPQ(o, end)
		CMOVQGT(end, o)
		x = part("few", 1)
		if bytes {
			parts.Bytes(x, Mem{Base: dst, Index: o, Scale: 1})
		}
		ADDQ(U8(isa.Lanes), o)
		JMP(LabelRef("few"))
		Label("done")
		VZEROUPPER()
		RET()
	}
}
