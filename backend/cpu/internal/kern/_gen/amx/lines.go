package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// lines writes the kernels that make lines of rows of bits and of bytes, and of patches.
func lines() {
	linesOfRuns()
	rowsOfLines("linesOfBitsAMX", "Σ over j < planes of 2^j · bit i of src[r·row + p·step + j·plane]",
		func(at reg.Register) func(src, dst reg.Register) {
			ones, value, planes, plane, top := ZMM(), GP64(), GP64(), GP64(), GP64()
			MOVQ(U32(0x01010101), value)
			VPBROADCASTD(value.As32(), ones)
			MOVQ(Mem{Base: at, Disp: gen.LinesPlanes}, planes)
			MOVQ(Mem{Base: at, Disp: gen.LinesPlane}, plane)
			MOVQ(planes, top)
			DECQ(top)
			IMULQ(plane, top)
			return func(src, dst reg.Register) {
				x, set, from, j := ZMM(), K(), GP64(), GP64()
				LEAQ(Mem{Base: src, Index: top, Scale: 1}, from)
				KMOVQ(Mem{Base: from}, set)
				VMOVDQU8_Z(ones, set, x)
				MOVQ(planes, j)
				JMP(LabelRef("plane"))
				Label("next")
				SUBQ(plane, from)
				VPADDB(x, x, x)
				KMOVQ(Mem{Base: from}, set)
				VPADDB(ones, x, set, x)
				Label("plane")
				DECQ(j)
				JNE(LabelRef("next"))
				VMOVDQU8(x, Mem{Base: dst})
			}
		})
	rowsOfLines("linesOfBytesAMX", "src[r·row + p·step + i] where bit i of mask is set, else 0",
		func(at reg.Register) func(src, dst reg.Register) {
			mask := K()
			KMOVQ(Mem{Base: at, Disp: gen.LinesMask}, mask)
			return func(src, dst reg.Register) {
				x := ZMM()
				VMOVDQU8_Z(Mem{Base: src}, mask, x)
				VMOVDQU8(x, Mem{Base: dst})
			}
		})
}

// rowsOfLines writes a kernel of lines. start loads what stays in registers, and line makes one.
func rowsOfLines(name, what string, start func(at reg.Register) (line func(src, dst reg.Register))) {
	TEXT(name, NOSPLIT, "func(dst, src, at *byte)")
	Doc(name+" writes rows of lines of 64 bytes, one after the other, for a LineRows: of row r, before lines",
		"of the border, then for each p < inside",
		"",
		"\tline[i] = "+what,
		"",
		"and after lines of the border, whose bytes are border where the mask is set, else 0.")
	Pragma("noescape")
	dst, src, at := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("at"), GP64())
	border, mask := ZMM(), K()
	KMOVQ(Mem{Base: at, Disp: gen.LinesMask}, mask)
	VPBROADCASTB(Mem{Base: at, Disp: gen.LinesBorder}, border)
	VMOVDQU8_Z(border, mask, border)
	line := start(at)
	rows := GP64()
	MOVQ(Mem{Base: at, Disp: gen.LinesRows}, rows)
	Label("row")
	borders := func(label string, field int) {
		n := GP64()
		MOVQ(Mem{Base: at, Disp: field}, n)
		JMP(LabelRef(label + "check"))
		Label(label)
		VMOVDQU8(border, Mem{Base: dst})
		ADDQ(U8(64), dst)
		Label(label + "check")
		DECQ(n)
		JGE(LabelRef(label))
	}
	borders("before", gen.LinesBefore)
	pixels, pixel := GP64(), GP64()
	MOVQ(Mem{Base: at, Disp: gen.LinesInside}, pixels)
	MOVQ(src, pixel)
	JMP(LabelRef("check"))
	Label("pixel")
	line(pixel, dst)
	ADDQ(Mem{Base: at, Disp: gen.LinesStep}, pixel)
	ADDQ(U8(64), dst)
	Label("check")
	DECQ(pixels)
	JGE(LabelRef("pixel"))
	borders("after", gen.LinesAfter)
	ADDQ(Mem{Base: at, Disp: gen.LinesRow}, src)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// linesOfRuns writes the kernel that makes lines of the runs of patches.
func linesOfRuns() {
	TEXT("linesOfRunsAMX", NOSPLIT, "func(dst, src, at *byte)")
	Doc("linesOfRunsAMX writes a line of 64 bytes for each pixel p of each row r of a RunRows,",
		"",
		"\tline[i] = src[r·row + p·step + offset + i] of the last run whose mask has bit i, else 0")
	Pragma("noescape")
	dst, src, at := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("at"), GP64())
	rows, pixels, pixel := GP64(), GP64(), GP64()
	run, runs, offset, mask, x := GP64(), GP64(), GP64(), K(), ZMM()
	MOVQ(Mem{Base: at, Disp: gen.RunsRows}, rows)
	Label("row")
	MOVQ(Mem{Base: at, Disp: gen.RunsPixels}, pixels)
	MOVQ(src, pixel)
	Label("pixel")
	VPXORD(x, x, x)
	MOVQ(Mem{Base: at, Disp: gen.RunsRuns}, run)
	MOVQ(Mem{Base: at, Disp: gen.RunsCount}, runs)
	Label("run")
	MOVQ(Mem{Base: run, Disp: gen.RunOffset}, offset)
	KMOVQ(Mem{Base: run, Disp: gen.RunMask}, mask)
	VMOVDQU8(Mem{Base: pixel, Index: offset, Scale: 1}, mask, x)
	ADDQ(U8(gen.RunSize), run)
	DECQ(runs)
	JNE(LabelRef("run"))
	VMOVDQU8(x, Mem{Base: dst})
	ADDQ(U8(64), dst)
	ADDQ(Mem{Base: at, Disp: gen.RunsStep}, pixel)
	DECQ(pixels)
	JNE(LabelRef("pixel"))
	ADDQ(Mem{Base: at, Disp: gen.RunsRow}, src)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
