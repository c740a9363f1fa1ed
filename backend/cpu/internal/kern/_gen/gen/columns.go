package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// FMAColumns writes the sums of so many columns of pixels of a depthwise convolution of
// taps × taps, from the first row to the last, so many vectors of channels at a time. A
// row of the input is loaded once for all rows of outputs that it belongs to, each of
// which has accumulators of its own. kept says whether a vector of it stays in a register
// for all columns that it belongs to, too; sets of 16 registers have none left.
func FMAColumns(isa ISA, columns, vectors, taps int, kept bool) {
	name := fmt.Sprintf("fmaColumns%d_%dx%d%s", taps, columns, vectors*isa.Lanes, isa.Name)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes %d columns of pixels, %d channels at a time, of a depthwise convolution of", name, columns, vectors*isa.Lanes),
		fmt.Sprintf("%d×%d taps, and the end of that.", taps, taps))
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	c := columnsKernel{isa: isa, columns: columns, taps: taps, kept: kept, job: job, src: GP64(), weights: GP64(), step: GP64()}
	channel, dst, rows, skip, left := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: TileWeights}, c.weights)
	XORQ(channel, channel)
	Label("channels")
	MOVQ(Mem{Base: job, Disp: TileSrc}, c.src)
	ADDQ(channel, c.src)
	MOVQ(Mem{Base: job, Disp: TileStep}, c.step)
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	ADDQ(channel, dst)
	MOVQ(Mem{Base: job, Disp: ColumnsRows}, rows)
	MOVQ(Mem{Base: job, Disp: ColumnsSkip}, skip)
	MOVQ(Mem{Base: job, Disp: ColumnsSteps}, left)
	// acc[ky] are of the outputs whose row of the window ky the next row of the input is:
	// pixel by pixel, and of each the vectors.
	acc := make([][]reg.VecVirtual, taps)
	for ky := range acc {
		acc[ky] = make([]reg.VecVirtual, columns*vectors)
		for i := range acc[ky] {
			acc[ky][i] = isa.Vec()
		}
		c.bias(channel, acc[ky], vectors)
	}
	Label("row")
	SUBQ(Imm(1), rows)
	JLT(LabelRef("summed"))
	for v := range vectors {
		c.acc = make([][]reg.VecVirtual, taps)
		for ky := range c.acc {
			for p := range columns {
				c.acc[ky] = append(c.acc[ky], acc[ky][p*vectors+v])
			}
		}
		c.vector = v
		c.row()
	}
	ADDQ(Mem{Base: job, Disp: ColumnsSrcRow}, c.src)
	Label("summed")
	SUBQ(Imm(1), skip)
	JGE(LabelRef("skipped"))
	last := acc[taps-1]
	isa.fmaEnd(job, columns, vectors, last, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, channel)
	p := GP64()
	MOVQ(dst, p)
	for i, v := range last {
		VMOVUPS(v, Mem{Base: p, Disp: 4 * isa.Lanes * (i % vectors)})
		if (i+1)%vectors == 0 && i < len(last)-1 {
			ADDQ(Mem{Base: job, Disp: TileDstStep}, p)
		}
	}
	ADDQ(Mem{Base: job, Disp: ColumnsDstRow}, dst)
	Label("skipped")
	for ky := taps - 1; ky > 0; ky-- {
		for i, v := range acc[ky-1] {
			VMOVAPS(v, acc[ky][i])
		}
	}
	c.bias(channel, acc[0], vectors)
	DECQ(left)
	JNE(LabelRef("row"))
	ADDQ(I32(4*isa.Lanes*vectors*taps*taps), c.weights)
	// The last vectors end with the last channel.
	end := GP64()
	MOVQ(Mem{Base: job, Disp: ColumnsLast}, end)
	CMPQ(channel, end)
	JEQ(LabelRef("done"))
	ADDQ(I32(4*isa.Lanes*vectors), channel)
	CMPQ(channel, end)
	CMOVQGT(end, channel)
	JMP(LabelRef("channels"))
	Label("done")
	VZEROUPPER()
	RET()
}

type columnsKernel struct {
	isa                     ISA
	columns, taps           int
	kept                    bool
	job, src, weights, step reg.Register
	vector                  int                // in hand
	acc                     [][]reg.VecVirtual // of the vector in hand
	labels                  int
}

// bias starts sums.
func (c *columnsKernel) bias(channel reg.Register, acc []reg.VecVirtual, vectors int) {
	bias := GP64()
	MOVQ(Mem{Base: c.job, Disp: FMABias}, bias)
	for i, v := range acc {
		if i < vectors {
			VMOVUPS(Mem{Base: bias, Index: channel, Scale: 1, Disp: 4 * c.isa.Lanes * i}, v)
		} else {
			VMOVAPS(acc[i%vectors], v)
		}
	}
}

func (c *columnsKernel) weight(ky, kx int) Mem {
	return Mem{Base: c.weights, Disp: 4 * c.isa.Lanes * ((c.vector*c.taps+ky)*c.taps + kx)}
}

func (c *columnsKernel) value(at reg.Register) Mem {
	return Mem{Base: at, Disp: 4 * c.isa.Lanes * c.vector}
}

// row adds the products of a row of the input.
func (c *columnsKernel) row() {
	// Columns of the input: those at the sides are outside of the image for some tiles.
	columns := c.columns + c.taps - 1
	at := make([]reg.GPVirtual, columns)
	held := make([]reg.VecVirtual, columns)
	x := GP64()
	MOVQ(c.src, x)
	for j := range columns {
		if c.kept && !c.side(j) {
			held[j] = c.isa.Vec()
			VMOVUPS(c.value(x), held[j])
		} else {
			at[j] = GP64()
			MOVQ(x, at[j])
		}
		if j < columns-1 {
			ADDQ(c.step, x)
		}
	}
	for kx := range c.taps {
		if c.kept {
			c.keptTap(kx, at, held)
		} else {
			c.loadedTap(kx, at)
		}
	}
}

// side reports whether a column of the input is outside of the image for some tiles.
func (c *columnsKernel) side(j int) bool {
	return j < c.taps/2 || j >= c.columns+c.taps/2
}

// inside runs body where the column j is inside of the image.
func (c *columnsKernel) inside(j int, body func()) {
	if !c.side(j) {
		body()
		return
	}
	if j < c.taps/2 {
		CMPQ(Mem{Base: c.job, Disp: ColumnsLeft}, U8(j))
	} else {
		CMPQ(Mem{Base: c.job, Disp: ColumnsRight}, U8(c.columns+c.taps-2-j))
	}
	label := fmt.Sprintf("outside%d", c.labels)
	c.labels++
	JGT(LabelRef(label))
	body()
	Label(label)
}

func (c *columnsKernel) keptTap(kx int, at []reg.GPVirtual, held []reg.VecVirtual) {
	for p := range c.columns {
		j := p + kx
		if held[j] != nil {
			continue
		}
		c.inside(j, func() {
			v := c.isa.Vec()
			VMOVUPS(c.value(at[j]), v)
			for ky := range c.taps {
				VFMADD231PS(c.weight(ky, kx), v, c.acc[ky][p])
			}
		})
	}
	for ky := range c.taps {
		w := c.isa.Vec()
		VMOVUPS(c.weight(ky, kx), w)
		for p := range c.columns {
			if v := held[p+kx]; v != nil {
				VFMADD231PS(w, v, c.acc[ky][p])
			}
		}
	}
}

func (c *columnsKernel) loadedTap(kx int, at []reg.GPVirtual) {
	w := make([]reg.VecVirtual, c.taps)
	for ky := range w {
		w[ky] = c.isa.Vec()
		VMOVUPS(c.weight(ky, kx), w[ky])
	}
	for p := range c.columns {
		j := p + kx
		c.inside(j, func() {
			v := c.isa.Vec()
			VMOVUPS(c.value(at[j]), v)
			for ky := range c.taps {
				VFMADD231PS(w[ky], v, c.acc[ky][p])
			}
		})
	}
}
