package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Blend writes the kernel of weighted sums of pixels.
func Blend(isa ISA) {
	name := "blend" + isa.Name
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name + " writes the pixels of a BlendJob.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: job, Disp: disp}, r)
		return r
	}
	dst, src, rows, rowEnd, cols := at(BlendDst), at(BlendSrc), at(BlendRows), at(BlendRowCount), at(BlendCols)
	SHLQ(U8(4), rowEnd)
	ADDQ(rows, rowEnd)
	colEnd, row, col, base, left := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(cols, colEnd)
	ADDQ(Mem{Base: job, Disp: BlendColBytes}, colEnd)
	MOVQ(Mem{Base: job, Disp: BlendBytes}, left)
	ANDQ(U8(4*isa.Lanes-1), left)
	SHRQ(U8(2), left)
	loadRest, storeRest := isa.FirstLanes(left)
	// The values at src + i of every tap, so many vectors.
	part := func(label string, vectors int, load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
		acc := make([]reg.VecVirtual, vectors)
		for v := range acc {
			acc[v] = isa.Vec()
			isa.Zero(acc[v])
		}
		MOVQ(rows, row)
		Label(label + "row")
		MOVQ(Mem{Base: row, Disp: BlendTapOffset}, base)
		ADDQ(src, base)
		rowWeight := XMM()
		VMOVSS(Mem{Base: row, Disp: BlendTapWeight}, rowWeight)
		MOVQ(cols, col)
		Label(label + "col")
		offset, one, weight := GP64(), XMM(), isa.Vec()
		MOVQ(Mem{Base: col, Disp: BlendTapOffset}, offset)
		VMULSS(Mem{Base: col, Disp: BlendTapWeight}, rowWeight, one)
		VBROADCASTSS(one, weight)
		for v, sum := range acc {
			m := Mem{Base: base, Index: offset, Scale: 1, Disp: 4 * isa.Lanes * v}
			if load == nil {
				VFMADD231PS(m, weight, sum)
				continue
			}
			x := isa.Vec()
			load(m, x)
			VFMADD231PS(x, weight, sum)
		}
		ADDQ(U8(BlendTapSize), col)
		CMPQ(col, colEnd)
		JNE(LabelRef(label + "col"))
		ADDQ(U8(BlendTapSize), row)
		CMPQ(row, rowEnd)
		JNE(LabelRef(label + "row"))
		for v, sum := range acc {
			store(sum, Mem{Base: dst, Disp: 4 * isa.Lanes * v})
		}
	}
	Label("pixel")
	MOVQ(Mem{Base: job, Disp: BlendBytes}, left)
	for _, vectors := range []int{8, 4, 1} {
		label := fmt.Sprintf("of%d", vectors)
		bytes := 4 * isa.Lanes * vectors
		Label(label)
		CMPQ(left, I32(bytes))
		JLT(LabelRef(label + "done"))
		part(label, vectors, nil, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
		ADDQ(I32(bytes), src)
		ADDQ(I32(bytes), dst)
		SUBQ(I32(bytes), left)
		JMP(LabelRef(label))
		Label(label + "done")
	}
	TESTQ(left, left)
	JEQ(LabelRef("next"))
	part("rest", 1, loadRest, storeRest)
	ADDQ(left, src)
	ADDQ(left, dst)
	Label("next")
	SUBQ(Mem{Base: job, Disp: BlendBytes}, src)
	MOVQ(colEnd, cols)
	ADDQ(Mem{Base: job, Disp: BlendColBytes}, colEnd)
	DECQ(Mem{Base: job, Disp: BlendPixels})
	JNE(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}
