package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// begin writes the function that loads what epilogues keep in registers, and finds that of the job.
func begin() {
	TEXT("beginAMX", NOSPLIT, "func()")
	Doc("beginAMX starts the kernels of a MatrixJob: see its generator for the registers.")
	at := reg.RAX
	for _, r := range []Op{pixel, dst, sumsAt, table} {
		XORQ(r, r)
	}
	MOVQ(pixel, field(gen.MatrixPendingEnd))
	VPBROADCASTD(field(gen.MatrixSumShift), shift)
	for _, v := range []Op{scale, move, slope, zero, level, levelMove, rest, scale2, move2} {
		VPXORD(v, v, v)
	}
	VBROADCASTSS(field(gen.MatrixLow), low)
	VBROADCASTSS(field(gen.MatrixHigh), high)
	VBROADCASTSS(field(gen.MatrixLow2), low2)
	VBROADCASTSS(field(gen.MatrixHigh2), high2)
	VBROADCASTSS(field(gen.MatrixLeast), least)
	VBROADCASTSS(field(gen.MatrixMost), most)
	VPBROADCASTD(field(gen.MatrixOffset), first)
	for r, name := range resultNames {
		next := fmt.Sprint("next", r)
		if r < len(resultNames)-1 {
			CMPQ(field(gen.MatrixResult), U8(r))
			JNE(LabelRef(next))
		}
		LEAQ(function("pend"+name+"AMX"), at)
		MOVQ(at, field(gen.MatrixPend))
		LEAQ(function("rows"+name+"AMX"), at)
		MOVQ(at, field(gen.MatrixRows))
		RET()
		if r < len(resultNames)-1 {
			Label(next)
		}
	}
}

// epilogue is the state of the functions that write a result.
type epilogue struct {
	result
	labels
}

func (e *epilogue) write() {
	name := resultNames[e.result]
	TEXT("pend"+name+"AMX", NOSPLIT, "func()")
	Doc("pend" + name + "AMX makes the rows that were stored those that rows" + name + "AMX ends.")
	e.pend()
	RET()
	TEXT("rows"+name+"AMX", NOSPLIT, "func()")
	Doc("rows" + name + "AMX ends rows of sums, those of the pixels up to R13.")
	Label("next")
	e.row()
	CMPQ(pixel, limit)
	JNE(LabelRef("next"))
	RET()
}

// pend makes the rows that were stored those to be ended. panel is the next one then.
func (e *epilogue) pend() {
	at := reg.RAX
	MOVQ(field(gen.MatrixPanel), panel)
	MOVQ(field(gen.MatrixBlockFrom), pixel)
	MOVQ(field(gen.MatrixBlockEnd), at)
	MOVQ(at, field(gen.MatrixPendingEnd))
	MOVQ(field(gen.MatrixTable), table)
	ADDQ(panel, table)
	MOVQ(field(gen.MatrixBlockDst), dst)
	MOVQ(field(gen.MatrixNow), sumsAt)
	MOVQ(sumsAt, at)
	XORQ(U32(mostTiles*tileBytes), at)
	MOVQ(at, field(gen.MatrixNow))
	MOVQ(panel, at)
	switch e.result {
	case packed:
		SHRQ(U8(5), at) // 2 bytes for 64 of the table
	case affineLevels, addLevels, levels:
		SHRQ(U8(2), at) // 16 bytes for 64 of the table
		MOVQ(panel, field(gen.MatrixPending))
	}
	ADDQ(at, dst)
	if e.result == packed {
		ADDQ(field(gen.MatrixFlip), at)
		MOVWLZX(Mem{Base: at}, at.As32())
		MOVQ(at, field(gen.MatrixPendingFlip))
	}
	load := func(offset int, v Op) {
		there := e.label("there")
		MOVQ(field(offset), at)
		TESTQ(at, at)
		JEQ(LabelRef(there))
		VMOVUPS(Mem{Base: at, Index: panel, Scale: 1}, v)
		Label(there)
	}
	if e.result >= affine {
		load(gen.MatrixScale, scale)
		load(gen.MatrixShift, move)
	}
	if e.any() || e.result == addLevels {
		load(gen.MatrixSlope, slope)
		load(gen.MatrixScale2, scale2)
		load(gen.MatrixShift2, move2)
	}
	if e.bytes() {
		load(gen.MatrixLevel, level)
		load(gen.MatrixRest, rest)
		load(gen.MatrixMove, levelMove)
	}
	ADDQ(U8(64), panel)
	MOVQ(panel, field(gen.MatrixPanel))
}

// row ends a row of 16 sums.
func (e *epilogue) row() {
	at, x := reg.RAX, temp[0]
	MOVL(Mem{Base: pixel}, at.As32())
	VMOVDQU32(Mem{Base: sumsAt, Index: at, Scale: 1}, x)
	MOVL(Mem{Base: pixel, Disp: 4}, at.As32())
	entry := Mem{Base: table, Index: at, Scale: 1}
	if e.result == packed {
		const notLess = 5
		VPCMPD(U8(notLess), entry, x, mask)
		KMOVW(mask, at.As32())
		XORL(field(gen.MatrixPendingFlip), at.As32())
		MOVW(at.As16(), Mem{Base: dst})
	} else {
		VPSLLVD(shift, x, x)
		VPADDD(entry, x, x)
		if e.result >= affine {
			e.end(x)
		}
		switch e.result {
		case affineLevels, addLevels:
			VMULPS(level, x, x)
		case levels:
			e.number(x, level, temp[1], gen.MatrixRest, func() Op { return rest })
		}
		if e.bytes() {
			VADDPS(levelMove, x, x)
			VMAXPS(least, x, x) // x where it is greater
			VMINPS(most, x, x)  // x where it is less
			VCVTPS2DQ(x, x)
			VPADDD(first, x, x)
			VPMOVDB(x, Mem{Base: dst})
		} else {
			VMOVDQU32(x, Mem{Base: dst})
		}
	}
	ADDQ(field(gen.MatrixDstStep), dst)
	ADDQ(U8(gen.MatrixPixelSize), pixel)
}

// unless leaves out what do does where the field is 0, which is in RAX for do.
func (e *epilogue) unless(offset int, do func()) {
	skip := e.label("skip")
	MOVQ(field(offset), reg.RAX)
	TESTQ(reg.RAX, reg.RAX)
	JEQ(LabelRef(skip))
	do()
	Label(skip)
}

// end makes float32 outputs of sums.
func (e *epilogue) end(x reg.VecPhysical) {
	VCVTDQ2PS(x, x)
	if !e.any() {
		VFMADD213PS(move, scale, x)
		switch e.result {
		case added:
			MOVQ(field(gen.MatrixAdded), reg.R12)
			VADDPS(e.added(), x, x)
		case addLevels:
			MOVQ(field(gen.MatrixAdded), reg.R12)
			value := e.added()
			VFMADD213PS(move2, scale2, value)
			VADDPS(value, x, x)
		}
		return
	}
	e.unless(gen.MatrixScale, func() { VFMADD213PS(move, scale, x) })
	e.unless(gen.MatrixSlope, func() {
		VCMPPS(U8(17), zero, x, mask)
		VMULPS(slope, x, mask, x)
	})
	e.unless(gen.MatrixClip, func() {
		VMAXPS(x, low, x)  // low where it is greater
		VMINPS(x, high, x) // high where it is less
	})
	if e.result == levels {
		e.unless(gen.MatrixFakeLevel, func() { e.fakeQuantize(x) })
	}
	e.unless(gen.MatrixAdded, func() {
		MOVQ(reg.RAX, reg.R12)
		value := e.added()
		then := value
		if e.result == floats {
			then = x
		}
		e.unless(gen.MatrixScale2, func() { VFMADD213PS(move2, scale2, then) })
		VADDPS(value, x, x)
		e.unless(gen.MatrixClip2, func() {
			VMAXPS(x, low2, x)  // low2 where it is greater
			VMINPS(x, high2, x) // high2 where it is less
		})
	})
}

// added returns the values that are added, which are R12 less 1 behind those to be written.
func (e *epilogue) added() Op {
	there := Mem{Base: dst, Index: reg.R12, Scale: 1, Disp: -1}
	if !e.bytes() {
		return there
	}
	VPMOVZXBD(there, temp[1])
	VCVTDQ2PS(temp[1], temp[1])
	return temp[1]
}

// number multiplies x by the scale of levels, and by its rest, if the field at offset has any.
func (e *epilogue) number(x, scale, small Op, offset int, rest func() Op) {
	whole, scaled := e.label("whole"), e.label("scaled")
	CMPQ(field(offset), U8(0))
	JEQ(LabelRef(whole))
	VMULPS(rest(), x, small)
	VFMADD213PS(small, scale, x)
	JMP(LabelRef(scaled))
	Label(whole)
	VMULPS(scale, x, x)
	Label(scaled)
}

// fakeQuantize makes x the values of its levels, whose scales are at RAX.
func (e *epilogue) fakeQuantize(x reg.VecPhysical) {
	at, from, v, u := reg.RAX, reg.R12, temp[1], temp[2]
	MOVQ(field(gen.MatrixPending), from)
	row := func(offset int, v Op) Op {
		MOVQ(field(offset), at)
		VMOVUPS(Mem{Base: at, Index: from, Scale: 1}, v)
		return v
	}
	VMOVUPS(Mem{Base: at, Index: from, Scale: 1}, v)
	e.number(x, v, u, gen.MatrixFakeRest, func() Op { return row(gen.MatrixFakeRest, u) })
	VADDPS(row(gen.MatrixFakeMove, v), x, x)
	VBROADCASTSS(field(gen.MatrixFakeLeast), v)
	VMAXPS(v, x, x) // x where it is greater
	VBROADCASTSS(field(gen.MatrixFakeMost), v)
	VMINPS(v, x, x) // x where it is less
	VCVTPS2DQ(x, x)
	VCVTDQ2PS(x, x)
	VBROADCASTSS(field(gen.MatrixFakeLow), v)
	VADDPS(v, x, x)
	row(gen.MatrixFakeScale, v)
	VFMADD213PS(row(gen.MatrixFakeShift, u), v, x)
}
