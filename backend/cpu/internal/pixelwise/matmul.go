package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	// matMulBlock is the number of pixels that a tile is made of, for which the rows of the
	// second matrix are laid out once.
	matMulBlock = 64
	// matMulSums is the number of pixels whose integer sums are converted at a time.
	matMulSums = 16
)

// matMul compiles the product of the rows of two tensors, those of the second one laid out as
// weights.
func matMul(c *schedule.Context, in plan.Tensor, outputs int) (tiles.Step, tiles.Size) {
	m := &product{set: c.Set, a: c.In, b: c.Others[0], out: c.Out, in: in.Shape, outputs: outputs, pixels: min(in.Shape.W, matMulBlock)}
	m.blocks = num.CeilDiv(in.Shape.W, m.pixels)
	products := float64(in.Shape.Values()) * float64(outputs)
	pack := c.Set.Cost.Value * float64(m.blocks) * float64(in.Shape.H) * float64(outputs)
	if in.DType == bcnn.Bits {
		m.stride = num.RoundUp(outputs, c.Set.Block)
		size := tiles.Size{Words: kern.DotBitsLen(outputs, in.Shape.C, c.Set.Block), Sums: num.Product(min(m.pixels, matMulSums), m.stride)}
		work := products*c.Set.Cost.Bits + pack*float64(bits.Words(in.Shape.C))
		return alone{c.Items("product of bits", "block", in.Shape.H*m.blocks, work, m.bits)}, size
	}
	size := tiles.Size{Floats: kern.FloatPackLen(c.Set, outputs, in.Shape.C), Runs: 1}
	work := products*c.Set.Cost.Floats + pack*float64(in.Shape.C)
	return alone{c.Items("product of float32 values", "block", in.Shape.H*m.blocks, work, m.floats)}, size
}

// alone is a step that others do not follow tile by tile.
type alone struct{ tiles.Step }

// product is a matrix product of each row of two tensors. A row has blocks of pixels.
type product struct {
	set            *kern.Set
	a, b, out      *bcnn.Tensor
	in             bcnn.Shape // of a
	outputs        int
	pixels, blocks int // of a block, of a row
	stride         int // of the sums of a pixel
}

// each calls do for the blocks from from to before to, with the row of all images, the first
// pixel and the number of pixels, and pack before the first one of a row.
func (m *product) each(image, from, to int, pack func(row int), do func(row, first, n int)) {
	last := -1
	for i := from; i < to; i++ {
		row, first := image*m.in.H+i/m.blocks, i%m.blocks*m.pixels
		if row != last {
			pack(row)
			last = row
		}
		do(row, first, min(m.pixels, m.in.W-first))
	}
}

func (m *product) bits(s *tiles.Scratch, image, from, to int) {
	words := bits.Words(m.in.C)
	m.each(image, from, to, func(row int) {
		s.Bits.Pack(s.Words, m.b.Words[row*m.outputs*words:], m.outputs, m.in.C, m.set.Block)
	}, func(row, first, n int) {
		for end := first + n; first < end; first += matMulSums {
			n, pixel := min(matMulSums, end-first), row*m.in.W+first
			s.At = kern.Patches{Pixels: n, Step: words, Rows: 1, RowLen: words}
			m.set.DotBits(s.Sums, m.stride, m.a.Words[pixel*words:], &s.At, &s.Bits, 0, m.outputs)
			m.set.Scale(m.out.F32[pixel*m.outputs:], m.outputs, s.Sums, m.stride, m.outputs, n, kern.End{})
		}
	})
}

func (m *product) floats(s *tiles.Scratch, image, from, to int) {
	m.each(image, from, to, func(row int) {
		s.Reals.Pack(m.set, s.Floats, m.b.F32[row*m.outputs*m.in.C:], m.outputs, m.in.C)
	}, func(row, first, n int) {
		pixel := row*m.in.W + first
		s.Patches.Pixels, s.Patches.Step, s.Patches.RunLen, s.Patches.Slide, s.Patches.Stride = n, m.in.C, m.in.C, 0, 1
		s.Patches.Runs = append(s.Runs[:0], kern.FloatRun{})
		m.set.FMAPixels(m.out.F32[pixel*m.outputs:], m.outputs, m.a.F32[pixel*m.in.C:], &s.Patches, &s.Reals, 0, m.outputs, kern.End{})
	})
}

// transposeSide is the side of the squares that are transposed one after the other: 64 bits are
// a word, and as many values a few lines of the cache each.
const transposeSide = 64

// transpose compiles a step that swaps columns and channels. An item is a row of the output's
// squares.
func transpose(c *schedule.Context, in plan.Tensor) tiles.Step {
	src, dst, shape := c.In, c.Out, in.Shape
	strips := num.CeilDiv(shape.C, transposeSide)
	do := func(_ *tiles.Scratch, image, from, to int) {
		for i := from; i < to; i++ {
			row, first := image*shape.H+i/strips, i%strips*transposeSide
			last := min(first+transposeSide, shape.C)
			if in.DType == bcnn.Bits {
				transposeBits(dst.Words, src.Words, shape, row, first, last)
				continue
			}
			to, from := dst.F32[row*shape.W*shape.C:], src.F32[row*shape.W*shape.C:]
			for x := 0; x < shape.W; x += transposeSide {
				for ch := first; ch < last; ch++ {
					out := to[ch*shape.W:][:shape.W]
					for w := x; w < min(x+transposeSide, shape.W); w++ {
						out[w] = from[w*shape.C+ch]
					}
				}
			}
		}
	}
	return c.Items("swap columns and channels", "strip", shape.H*strips, c.Set.Cost.Value*float64(shape.Elements(in.DType)), do)
}

// transposeBits makes the rows from first to before last of the output, which first is a
// multiple of 64 for, by squares of 64×64 bits.
func transposeBits(dst, src []uint64, shape bcnn.Shape, row, first, last int) {
	in, out := bits.Words(shape.C), bits.Words(shape.W)
	src, dst = src[row*shape.W*in:], dst[row*shape.C*out:]
	for x := range out {
		var square [bits.WordBits]uint64
		for i := range min(bits.WordBits, shape.W-x*bits.WordBits) {
			square[i] = src[(x*bits.WordBits+i)*in+first/bits.WordBits]
		}
		transposeSquare(&square)
		for c := first; c < last; c++ {
			dst[c*out+x] = square[c-first]
		}
	}
}

// transposeSquare transposes a matrix of 64×64 bits, of which bit j of word i is in column j of
// row i: halves are swapped, then halves of the halves (Warren, "Hacker's Delight", 7-3).
func transposeSquare(a *[bits.WordBits]uint64) {
	mask := uint64(1)<<32 - 1
	for j := 32; j > 0; j >>= 1 {
		for k := 0; k < bits.WordBits; k = (k + j + 1) &^ j {
			t := (a[k]>>j ^ a[k+j]) & mask
			a[k] ^= t << j
			a[k+j] ^= t
		}
		mask ^= mask << (j >> 1)
	}
}
