package pixelwise

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// pixels compiles a step that makes an image of the pixels of another. Rows that follow
// one of the same pixels are copies of it.
func pixels(c *schedule.Context, op *plan.Pixels, in, out plan.Tensor) tiles.Step {
	work := c.Set.Cost.Value * float64(out.Shape.Elements(out.DType))
	if in.DType == bcnn.Float32 && inOrder(op, in.Shape, out.Shape) {
		src, dst := c.In, c.Out
		pixels, values := out.Shape.Pixels(), out.Shape.C
		return c.Pixels("copy", pixels, work, func(_ *tiles.Scratch, image, from, to int) {
			first, last := (image*pixels+from)*values, (image*pixels+to)*values
			copy(dst.F32[first:last], src.F32[first:])
		})
	}
	if in.DType == bcnn.Float32 {
		p := picker[float32]{op: op, runs: channelRuns(op.Cols), in: in.Shape, w: out.Shape.W, size: out.Shape.C}
		p.fill = slices.Repeat([]float32{op.Fill}, out.Shape.C)
		p.pick = func(to, from []float32, block, n int) {
			c.Set.ScaleFloat(to, op.BlockW*p.size, from[block*p.size:], p.in.C, p.size, n, kern.End{})
		}
		if math.Float32bits(op.Fill) == 0 {
			p.picks, p.times = rowPicks(c, op, in.Shape.W, in.Shape.C, p.size)
		}
		p.pickRow = c.Set.Pick
		src, dst := c.In, c.Out
		return c.Rows("pick pixels", out.Shape.H, work, func(_ *tiles.Scratch, image, y0, y1 int) {
			p.rows(dst.F32[image*out.Shape.Values():], src.F32[image*in.Shape.Values():], y0, y1)
		})
	}
	channels := out.Shape.C
	p := picker[uint64]{op: op, runs: channelRuns(op.Cols), in: in.Shape, w: out.Shape.W, size: bits.Words(channels)}
	p.in.C = bits.Words(in.Shape.C)
	p.fill = make([]uint64, p.size)
	if op.Fill > 0 {
		for i := range p.fill {
			p.fill[i] = ^uint64(0)
		}
		p.fill[p.size-1] = bits.TailMask(channels)
	}
	p.pick = func(to, from []uint64, block, n int) {
		for i := range n {
			pixel := to[i*op.BlockW*p.size:][:p.size]
			clear(pixel)
			bits.Copy(pixel, 0, from[i*p.in.C:][:p.in.C], block*channels, channels)
		}
	}
	if op.Fill <= 0 && op.BlockH*op.BlockW == 1 {
		p.picks, p.times = rowPicks(c, op, in.Shape.W, kern.Halves*p.size, kern.Halves*p.size)
	}
	p.pickRow = func(dst, src []uint64, picks *kern.Picks, rows int) {
		c.Set.Pick(kern.AsFloats(dst), kern.AsFloats(src), picks, rows)
	}
	src, dst := c.In, c.Out
	return c.Rows("pick pixels", out.Shape.H, work, func(_ *tiles.Scratch, image, y0, y1 int) {
		p.rows(dst.Words[image*out.Shape.H*p.w*p.size:], src.Words[image*p.in.Values():], y0, y1)
	})
}

// inOrder reports whether all values of an image stay in their order, as when each pixel becomes a
// column of pixels of fewer channels.
func inOrder(op *plan.Pixels, in, out bcnn.Shape) bool {
	ascending := func(list []int32) bool {
		for i, v := range list {
			if int(v) != i {
				return false
			}
		}
		return true
	}
	return in.Values() == out.Values() && (op.BlockH == 1 || in.W == 1) && ascending(op.Rows) && ascending(op.Cols)
}

// picker picks pixels of an image of floats or of words; in.C counts those of a pixel.
type picker[T float32 | uint64] struct {
	op   *plan.Pixels
	runs []channelRun // of columns
	in   bcnn.Shape
	w    int // of the output
	size int // of a pixel of the output
	fill []T // a pixel
	// pick copies one of the pixels that a pixel of the input holds, for n of those, to as
	// many of the output that are the columns of a block apart.
	pick func(to, from []T, block, n int)
	// picks, of which there may be none, make a row of one of the input, whose values they
	// take for channels, for each row of a block. They make so many copies of it.
	picks   []*kern.Picks
	times   int
	pickRow func(dst, src []T, picks *kern.Picks, rows int)
}

// pickPixel is the largest number of values of a pixel that is not copied on its own: up to
// there, permutations of vectors of a row are faster.
const pickPixel = 16

// rowPicks returns the picks for rows of w pixels of the input, or none where pixels are
// large or lie too far apart. n values are a pixel of the input, and size one of the output.
// Where all rows are repeated as often, and nothing else, the picks are those of all copies.
func rowPicks(c *schedule.Context, op *plan.Pixels, w, n, size int) (all []*kern.Picks, times int) {
	if size > pickPixel {
		return nil, 0
	}
	times = 1
	for times < len(op.Rows) && op.Rows[times] == 0 {
		times++
	}
	for y, from := range op.Rows {
		if op.BlockH > 1 || len(op.Rows)%times > 0 || int(from) != y/times {
			times = 1
			break
		}
	}
	for row := range op.BlockH {
		if c.Ended() || !c.Reserve(num.Product(4, times, len(op.Cols), size)) {
			return nil, 0
		}
		var index []int32
		for _, col := range op.Cols {
			for i := range size {
				at := -1
				if col >= 0 {
					at = int(col)/op.BlockW*n + (row*op.BlockW+int(col)%op.BlockW)*size + i
				}
				index = append(index, int32(at))
			}
		}
		p := kern.NewPicks(c.Set.PickLanes, w*n, slices.Repeat(index, times))
		if !c.Reserve(p.Bytes()) || len(p.Vectors) == 0 {
			return nil, 0
		}
		all = append(all, p)
	}
	return all, times
}

func (p *picker[T]) rows(dst, src []T, y0, y1 int) {
	row := p.w * p.size
	for y := y0; y < y1; y++ {
		if n := (y1 - y) / max(p.times, 1); p.times > 1 && y%p.times == 0 && n > 0 {
			in := p.in.W * p.in.C
			n = min(n, max(1, pickValues/(in+p.times*row)))
			p.pickRow(dst[y*row:], src[y/p.times*in:], p.picks[0], n)
			y += n*p.times - 1
			continue
		}
		to, from := dst[y*row:][:row], int(p.op.Rows[y])
		switch {
		case y > y0 && from == int(p.op.Rows[y-1]):
			copy(to, dst[(y-1)*row:][:row])
		case from < 0:
			for ; len(to) > 0; to = to[p.size:] {
				copy(to, p.fill)
			}
		default:
			p.row(to, src[from/p.op.BlockH*p.in.W*p.in.C:][:p.in.W*p.in.C], from%p.op.BlockH)
		}
	}
}

// row makes a row of one of the input, of which each pixel has several rows.
func (p *picker[T]) row(to, from []T, blockRow int) {
	if p.times == 1 {
		p.pickRow(to, from, p.picks[blockRow], 1)
		return
	}
	unblocked := p.op.BlockH*p.op.BlockW == 1
	for _, r := range p.runs {
		part := to[r.to*p.size:][:r.n*p.size]
		switch {
		case r.from < 0:
			for ; len(part) > 0; part = part[p.size:] {
				copy(part, p.fill)
			}
		case unblocked:
			copy(part, from[r.from*p.size:])
		default:
			for i := range min(p.op.BlockW, r.n) {
				col := r.from + i
				p.pick(part[i*p.size:], from[col/p.op.BlockW*p.in.C:], blockRow*p.op.BlockW+col%p.op.BlockW, num.CeilDiv(r.n-i, p.op.BlockW))
			}
		}
	}
}

// resample compiles sums of weighted pixels.
func resample(c *schedule.Context, op *plan.Resample, in, out bcnn.Shape) tiles.Step {
	set, src, dst := c.Set, c.In, c.Out
	rows := kern.NewBlendTaps(op.Rows.Index, op.Rows.Weight, in.W*in.C)
	cols := kern.NewBlendTaps(op.Cols.Index, op.Cols.Weight, in.C)
	c.Reserve(kern.BlendTapBytes * (len(rows) + len(cols)))
	var together *kern.BlendColumns // of pixels that are less than a vector
	if n := op.Cols.N; set.BlendRows != nil && out.C < set.FloatLanes && n == op.Rows.N {
		if together = kern.NewBlendColumns(set.FloatLanes, op.Cols.Index, op.Cols.Weight, n, in.C, in.W*in.C); together != nil {
			c.Reserve(together.Bytes())
		}
	}
	do := func(_ *tiles.Scratch, image, y0, y1 int) {
		from := src.F32[image*in.Values():][:in.Values()]
		for y := y0; y < y1; y++ {
			n := 1 // rows of the output that come from the same ones
			if together != nil {
				for index := op.Rows.Index; y+n < y1 && slices.Equal(index[y*op.Rows.N:][:op.Rows.N], index[(y+n)*op.Rows.N:][:op.Rows.N]); {
					n++
				}
			}
			to := dst.F32[(image*out.H+y)*out.W*out.C:][:n*out.W*out.C]
			taken := rows[y*op.Rows.N:][:n*op.Rows.N]
			if together != nil {
				set.BlendRows(to, from, taken, together)
			} else {
				set.Blend(to, from, taken, cols, out.C, out.W)
			}
			y += n - 1
		}
	}
	work := 2 * c.Set.Cost.Value * float64(out.Values()) * float64(op.Rows.N) * float64(op.Cols.N)
	kernel := "weighted pixels"
	if together != nil {
		kernel += ", several in a vector"
	}
	return c.Rows(kernel, out.H, work, do)
}

// topK compiles the search for the largest values of each pixel. The next one is the
// largest of those that come behind the one before.
func topK(c *schedule.Context, op *plan.TopK, in bcnn.Shape) tiles.Step {
	src, dst, k := c.In, c.Out, op.K
	if k == 1 {
		do := func(_ *tiles.Scratch, image, from, to int) {
			out := dst.F32[image*in.Pixels()+from : image*in.Pixels()+to]
			values := src.F32[(image*in.Pixels()+from)*in.C:][:len(out)*in.C]
			c.Set.Largest(out, values, in.C)
			if op.Values {
				for p, best := range out {
					out[p] = values[p*in.C+int(best)]
				}
			}
		}
		return c.Pixels("largest values", in.Pixels(), c.Set.Cost.Value*float64(in.Values()), do)
	}
	do := func(_ *tiles.Scratch, image, from, to int) {
		for p := image*in.Pixels() + from; p < image*in.Pixels()+to; p++ {
			values, out := src.F32[p*in.C:][:in.C], dst.F32[p*k:][:k]
			last, before := -1, float32(math.Inf(1))
			for i := range out {
				best, most := -1, float32(0)
				for c, v := range values {
					if v != v {
						v = float32(math.Inf(-1))
					}
					if (v < before || v == before && c > last) && (best < 0 || v > most) {
						best, most = c, v
					}
				}
				last, before = best, most
				if out[i] = float32(best); op.Values {
					out[i] = values[best]
				}
			}
		}
	}
	return c.Pixels("largest values", in.Pixels(), float64(in.Values())*float64(k), do)
}
