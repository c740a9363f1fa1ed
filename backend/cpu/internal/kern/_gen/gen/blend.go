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
	at := Fields(job)
	b := blend{isa: isa, job: job, dst: at(BlendDst), src: at(BlendSrc), cols: at(BlendCols), left: GP64(), row: GP64(), base: GP64()}
	rows, rowEnd := at(BlendRows), at(BlendRowCount)
	SHLQ(U8(4), rowEnd)
	ADDQ(rows, rowEnd)
	colEnd, col := GP64(), GP64()
	MOVQ(b.cols, colEnd)
	ADDQ(Mem{Base: job, Disp: BlendColBytes}, colEnd)
	MOVQ(Mem{Base: job, Disp: BlendBytes}, b.left)
	ANDQ(U8(4*isa.Lanes-1), b.left)
	SHRQ(U8(2), b.left)
	b.load, b.store = isa.FirstLanes(b.left)
	CMPQ(Mem{Base: job, Disp: BlendRowCount}, U8(2))
	JNE(LabelRef("pixel"))
	CMPQ(Mem{Base: job, Disp: BlendColBytes}, U8(2*BlendTapSize))
	JEQ(LabelRef("two"))
	b.pixels("", colEnd, func() {}, func(label string, add func(base, offset reg.Register, weight reg.VecVirtual)) {
		MOVQ(rows, b.row)
		Label(label + "row")
		MOVQ(Mem{Base: b.row, Disp: BlendTapOffset}, b.base)
		ADDQ(b.src, b.base)
		rowWeight := XMM()
		VMOVSS(Mem{Base: b.row, Disp: BlendTapWeight}, rowWeight)
		MOVQ(b.cols, col)
		Label(label + "col")
		offset, one, weight := GP64(), XMM(), isa.Vec()
		MOVQ(Mem{Base: col, Disp: BlendTapOffset}, offset)
		VMULSS(Mem{Base: col, Disp: BlendTapWeight}, rowWeight, one)
		VBROADCASTSS(one, weight)
		add(b.base, offset, weight)
		ADDQ(U8(BlendTapSize), col)
		CMPQ(col, colEnd)
		JNE(LabelRef(label + "col"))
		ADDQ(U8(BlendTapSize), b.row)
		CMPQ(b.row, rowEnd)
		JNE(LabelRef(label + "row"))
	})
	// Two rows and two columns, as bilinear resizing has them: the rows stay in registers,
	// and the weights of a pixel for all of its channels.
	Label("two")
	var offset, column [2]reg.GPVirtual
	var rowWeight [2]reg.VecVirtual
	var weight [2][2]reg.VecVirtual
	for i := range 2 {
		offset[i], column[i], rowWeight[i] = GP64(), GP64(), isa.Vec()
		MOVQ(Mem{Base: rows, Disp: BlendTapSize*i + BlendTapOffset}, offset[i])
		VBROADCASTSS(Mem{Base: rows, Disp: BlendTapSize*i + BlendTapWeight}, rowWeight[i])
		weight[i] = [2]reg.VecVirtual{isa.Vec(), isa.Vec()}
	}
	b.pixels("two", colEnd, func() {
		for j := range 2 {
			MOVQ(Mem{Base: b.cols, Disp: BlendTapSize*j + BlendTapOffset}, column[j])
			VBROADCASTSS(Mem{Base: b.cols, Disp: BlendTapSize*j + BlendTapWeight}, weight[1][j])
			for i := range 2 {
				VMULPS(rowWeight[i], weight[1][j], weight[i][j])
			}
		}
	}, func(_ string, add func(base, offset reg.Register, weight reg.VecVirtual)) {
		for i := range 2 {
			MOVQ(b.src, b.base)
			ADDQ(offset[i], b.base)
			for j := range 2 {
				add(b.base, column[j], weight[i][j])
			}
		}
	})
}

type blend struct {
	isa                             ISA
	job                             reg.Register
	dst, src, cols, left, row, base reg.GPVirtual
	load                            func(Mem, reg.VecVirtual) // of what is left of whole vectors
	store                           func(reg.VecVirtual, Mem)
}

// pixels writes the loop over all pixels, and the end of the function. begin begins a
// pixel, and taps adds up the values at src + what it says, so many vectors.
func (b *blend) pixels(name string, colEnd reg.GPVirtual, begin func(), taps func(label string, add func(base, offset reg.Register, weight reg.VecVirtual))) {
	part := func(label string, vec func() reg.VecVirtual, vectors int, load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
		acc := make([]reg.VecVirtual, vectors)
		for v := range acc {
			acc[v] = vec()
			if acc[v].Size() == 16 {
				VXORPS(acc[v], acc[v], acc[v])
			} else {
				b.isa.Zero(acc[v])
			}
		}
		taps(label, func(base, offset reg.Register, weight reg.VecVirtual) {
			for v, sum := range acc {
				m := Mem{Base: base, Index: offset, Scale: 1, Disp: 4 * b.isa.Lanes * v}
				if load == nil {
					VFMADD231PS(m, weight, sum)
					continue
				}
				x := vec()
				load(m, x)
				if x.Size() < weight.Size() {
					VFMADD231PS(x, weight.AsX(), sum)
				} else {
					VFMADD231PS(x, weight, sum)
				}
			}
		})
		for v, sum := range acc {
			store(sum, Mem{Base: b.dst, Disp: 4 * b.isa.Lanes * v})
		}
	}
	Label(name + "pixel")
	begin()
	MOVQ(Mem{Base: b.job, Disp: BlendBytes}, b.left)
	for _, vectors := range []int{8, 4, 1} {
		label := fmt.Sprintf("%sof%d", name, vectors)
		bytes := 4 * b.isa.Lanes * vectors
		Label(label)
		CMPQ(b.left, I32(bytes))
		JLT(LabelRef(label + "done"))
		part(label, b.isa.Vec, vectors, nil, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
		ADDQ(I32(bytes), b.src)
		ADDQ(I32(bytes), b.dst)
		SUBQ(I32(bytes), b.left)
		JMP(LabelRef(label))
		Label(label + "done")
	}
	TESTQ(b.left, b.left)
	JEQ(LabelRef(name + "next"))
	// A few values in a vector of their own size, which lies in fewer lines of the cache.
	CMPQ(b.left, U8(16))
	JGT(LabelRef(name + "several"))
	part(name+"few", func() reg.VecVirtual { return XMM() }, 1, b.load, b.store)
	JMP(LabelRef(name + "written"))
	Label(name + "several")
	part(name+"rest", b.isa.Vec, 1, b.load, b.store)
	Label(name + "written")
	ADDQ(b.left, b.src)
	ADDQ(b.left, b.dst)
	Label(name + "next")
	SUBQ(Mem{Base: b.job, Disp: BlendBytes}, b.src)
	MOVQ(colEnd, b.cols)
	ADDQ(Mem{Base: b.job, Disp: BlendColBytes}, colEnd)
	DECQ(Mem{Base: b.job, Disp: BlendPixels})
	JNE(LabelRef(name + "pixel"))
	VZEROUPPER()
	RET()
}
