package conv

import (
	"math"
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// rareZeros is a convolution of two planes whose lower one is empty as good as always: that
// of −1, 0 and +1 where 0 is rare. Where it is, the bits that differ are those of the
// weights, the same for all pixels, and only the upper plane is summed.
type rareZeros struct {
	both  rowsConv
	upper *wideConv // for rows whose lower plane is empty
	in    *bcnn.Tensor
	shape bcnn.Shape // of the image
	out   *bcnn.Tensor
	added *bcnn.Tensor
	next  tiles.Next
}

// newRareZeros returns both where there are no kernels for the upper plane alone, or its sums
// would be fractions.
func newRareZeros(
	c *schedule.Context, op *plan.Conv, both rowsConv, need tiles.Size, in, out plan.Tensor,
) (tiles.Step, tiles.Size) {
	if op.InPlanes != 2 || op.Groups > 1 || op.Dense || c.Set.Wide == nil {
		return both, need
	}
	one := *op
	one.InPlanes = 0
	if op.Threshold == nil { // the sums are doubled behind the kernels
		if one.Scale, one.Shift = doubled(op.Scale, op.Shift, op.Out); one.Scale == nil {
			return both, need
		}
	}
	shape := op.Image(in.Shape)
	poolH, poolW := 1, 1
	if op.Pool != nil {
		poolH, poolW = op.Pool.KH, op.Pool.KW
	}
	w := newWindow(&one, shape, out.Shape.H*poolH, out.Shape.W*poolW)
	w.each, w.plane = 2, 1
	if kernel, _ := pickKernel(c, &one, w, bcnn.Bits); kernel != wideKernel {
		return both, need
	}
	choice, tables := c.Choice, c.Tables
	upper, more := newWideConv(c, &one, w, in, out)
	if upper == nil || upper.at == nil {
		c.Choice, c.Tables = choice, tables
		return both, need
	}
	upper.table = upper.bitTable(op, 3*w.taps())
	if !upper.table.halve(op) {
		c.Choice, c.Tables = choice, tables
		return both, need
	}
	kernel := c.Choice.Kernel
	c.Choice = choice
	c.Choice.Kernel += "; " + kernel + " where the lower plane is empty"
	need.Grow(more)
	return &rareZeros{both: both, upper: upper, in: c.In, shape: shape, out: c.Out}, need
}

// doubled returns the scale and the shift that make of half a sum what others make of it; nil
// where there is no such scale.
func doubled(scale, shift []float32, n int) (twice, same []float32) {
	twice = make([]float32, n)
	for o := range twice {
		twice[o] = 2
		if scale != nil {
			twice[o] = 2 * scale[o]
		}
		if math.IsInf(float64(twice[o]), 0) {
			return nil, nil
		}
	}
	if shift == nil {
		shift = make([]float32, n)
	}
	return twice, shift
}

// halve makes of the table for counts of the lower plane and two times those of the upper
// one the table for counts of the upper plane, where the lower one is empty. It reports
// whether all sums are even.
func (t *wideTable) halve(op *plan.Conv) bool {
	filter := len(op.Bits) / op.Out
	for o := range op.Out {
		lower := int32(onesOf(op.Bits[o*filter:][:filter])) // the count of an empty plane
		for i := o; i < len(t.values); i += t.next / 4 {
			v := &t.values[i]
			switch {
			case op.Threshold == nil && *v%2 != 0:
				return false
			case op.Threshold == nil:
				*v = *v/2 - lower
			case *v != math.MaxInt32: // which is always
				*v = (*v - lower) >> 1
			}
		}
	}
	return true
}

// onesOf returns the number of bits that are set.
func onesOf(words []uint64) (n int) {
	for _, w := range words {
		n += mathbits.OnesCount64(w)
	}
	return n
}

// Lead is that of a tiles.Leader.
func (c *rareZeros) Lead(pixels, values int, next tiles.Next) bool {
	if !c.upper.Lead(pixels, values, next) {
		return false
	}
	c.next = next
	return true
}

// take is that of an ender. Rows of both planes are written before a tensor is added to them, which must lie
// elsewhere.
func (c *rareZeros) take(e schedule.End) (why string, overlaid bool) {
	switch {
	case !c.upper.ends() || c.upper.blockTiles > 1:
		return throughMemory, false
	case e.Levels != nil:
		return noLevels, false
	}
	if why, _ = c.upper.take(e); why == "" {
		c.added = e.Floats
	}
	return why, false
}

func (c *rareZeros) Tiles(n int) int { return c.upper.Tiles(n) }

func (c *rareZeros) Run(tile int, s *tiles.Scratch) {
	image, y0, y1, block, end := c.upper.tile(tile)
	rows := emptyRows{c: c, image: image}
	for y := y0; y < y1 && !s.Ended(); {
		from, empty := y, rows.empty(y)
		for y++; y < y1 && rows.empty(y) == empty; y++ {
		}
		if empty {
			c.upper.compute(s, image, from, y, block, end)
		} else {
			c.compute(s, image, from, y, block, end)
		}
	}
}

// compute computes rows of both planes.
func (c *rareZeros) compute(s *tiles.Scratch, image, y0, y1, block, end int) {
	for y := y0; y < y1; y += c.both.most() {
		c.both.compute(s, image, y, min(y+c.both.most(), y1), block, end)
	}
	width := c.upper.outShape.W
	if c.added != nil {
		from, to := (image*c.upper.outShape.H+y0)*width*c.upper.channels, (image*c.upper.outShape.H+y1)*width*c.upper.channels
		out := c.out.F32[from:to]
		c.upper.set.Add(out, out, c.added.F32[from:to], kern.Activation{})
	}
	if c.next != nil {
		c.next(s, image, y0*width, y1*width)
	}
}

// emptyRows tells for rising output rows whether the lower plane of all that they read is
// empty.
type emptyRows struct {
	c     *rareZeros
	image int
	seen  int // rows of the image, from above
	full  int // the last of them that is not empty, and 1
}

func (e *emptyRows) empty(y int) bool {
	w, c := &e.c.upper.window, e.c
	first := y*c.upper.poolH*w.StrideH - w.Pad.Top
	last := first + (c.upper.poolH-1)*w.StrideH + (w.KH-1)*w.DilationH
	e.seen = max(e.seen, first)
	row := c.shape.W * bits.Words(c.shape.C)
	for ; e.seen <= min(last, c.shape.H-1); e.seen++ {
		if !allZero(c.in.Words[(e.image*c.shape.H+e.seen)*2*row:][:row]) {
			e.full = e.seen + 1
		}
	}
	return e.full <= first
}

// allZero reports whether all words are 0.
func allZero(words []uint64) bool {
	for ; len(words) >= 8; words = words[8:] {
		w := words[:8]
		if w[0]|w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7] != 0 {
			return false
		}
	}
	for _, w := range words {
		if w != 0 {
			return false
		}
	}
	return true
}
