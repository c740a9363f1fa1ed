package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levels writes the numbers of levels, as bytes and as floats.
func levels() {
	// Packing puts the values of a lane of 16 bytes side by side.
	order := table("levelOrder", words(0|4<<32, 1|5<<32, 2|6<<32, 3|7<<32))
	for _, bytes := range []bool{true, false} {
		name, what, size := "levelFloatsAVX2", "low plus the levels", 4
		if bytes {
			name, what, size = "levelBytesAVX2", "the levels", 1
		}
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(fmt.Sprintf("%s writes %s of the values of a LevelsJob, of which there are 8 at least.", name, what),
			"dst must not be src.")
		Pragma("noescape")
		job := Load(Param("job"), GP64())
		at := func(disp int) reg.GPVirtual {
			r := GP64()
			MOVQ(Mem{Base: job, Disp: disp}, r)
			return r
		}
		dst, src, scale, shift, list, last := at(gen.LevelsDst), at(gen.LevelsSrc), at(gen.LevelsScale), at(gen.LevelsShift), at(gen.LevelsList), at(gen.LevelsN)
		least, most, low := YMM(), YMM(), YMM()
		VBROADCASTSS(Mem{Base: job, Disp: gen.LevelsLeast}, least)
		VBROADCASTSS(Mem{Base: job, Disp: gen.LevelsMost}, most)
		if bytes {
			VPBROADCASTD(Mem{Base: job, Disp: gen.LevelsOffset}, low)
		} else {
			VBROADCASTSS(Mem{Base: job, Disp: gen.LevelsLow}, low)
		}
		o := GP64()
		XORQ(o, o)
		of := func(r reg.Register, v int) Mem { return Mem{Base: r, Index: o, Scale: 4, Disp: 32 * v} }
		part := func(label string, vectors int) []reg.VecVirtual {
			x := make([]reg.VecVirtual, vectors)
			for v := range x {
				x[v] = YMM()
				VMOVUPS(of(src, v), x[v])
			}
			CMPQ(Mem{Base: job, Disp: gen.LevelsDown}, U8(0))
			JEQ(LabelRef(label + "whole"))
			for _, y := range x {
				VROUNDPS(U8(9), y, y) // down
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
			either(gen.LevelsDivide, "divide",
				func(v int, y reg.VecVirtual) { VMULPS(of(scale, v), y, y) },
				func(v int, y reg.VecVirtual) { VDIVPS(of(scale, v), y, y) })
			for v, y := range x {
				VADDPS(of(shift, v), y, y)
				VMAXPS(least, y, y) // y where it is greater
				VMINPS(most, y, y)  // y where it is less
			}
			either(gen.LevelsTruncate, "truncate",
				func(_ int, y reg.VecVirtual) { VCVTPS2DQ(y, y) },
				func(_ int, y reg.VecVirtual) { VCVTTPS2DQ(y, y) })
			from := at(gen.LevelsTable)
			TESTQ(from, from)
			JEQ(LabelRef(label + "sure"))
			for v, y := range x {
				index, all, next := YMM(), YMM(), YMM()
				VPADDD(of(list, v), y, index)
				VPCMPEQD(all, all, all)
				VGATHERDPS(all, Mem{Base: from, Index: index, Scale: 4}, next)
				VCMPPS(U8(2), of(src, v), next, next) // next ≤ x
				VPSUBD(next, y, y)
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
		LEAQ(Mem{Base: o, Disp: 32}, end)
		CMPQ(end, last)
		JGT(LabelRef("few"))
		x := part("many", 4)
		if bytes {
			VPACKUSDW(x[1], x[0], x[0])
			VPACKUSDW(x[3], x[2], x[2])
			VPACKUSWB(x[2], x[0], x[0])
			places := YMM()
			VMOVDQU(order, places)
			VPERMD(x[0], places, x[0])
			VMOVDQU(x[0], Mem{Base: dst, Index: o, Scale: uint8(size)})
		}
		MOVQ(end, o)
		JMP(LabelRef("many"))
		Label("few")
		CMPQ(o, last)
		JEQ(LabelRef("done"))
		// 8 values, the last ones of which some may be written twice.
		LEAQ(Mem{Base: last, Disp: -8}, end)
		CMPQ(o, end)
		CMOVQGT(end, o)
		x = part("few", 1)
		if bytes {
			high := XMM()
			VEXTRACTI128(U8(1), x[0], high)
			VPACKUSDW(high, x[0].AsX(), high)
			VPACKUSWB(high, high, high)
			VMOVQ(high, Mem{Base: dst, Index: o, Scale: uint8(size)})
		}
		ADDQ(U8(8), o)
		JMP(LabelRef("few"))
		Label("done")
		VZEROUPPER()
		RET()
	}
}
