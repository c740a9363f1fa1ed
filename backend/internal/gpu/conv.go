package gpu

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Conv is a convolution or dense layer of which kernels compute blocks of so many
// output channels, a lane each.
type Conv struct {
	G Geometry
	Sizes
	// MixedLanes says that the lanes of a block belong to different groups, or that groups
	// of bits do not fill words.
	MixedLanes bool
	op         *plan.Conv
}

// Conv starts the geometry of a convolution or dense layer. Border corrections are not
// part of it yet.
func (s Step) Conv(op *plan.Conv, lanes int) Conv {
	c := Conv{G: s.geometry(), op: op, Sizes: Sizes{
		Taps: op.KH * op.KW, In: s.In.Shape.C / op.Groups, Out: op.Out, PerGroup: op.Out / op.Groups, Lanes: lanes,
	}}
	c.Blocks, c.Words = num.CeilDiv(op.Out, lanes), num.CeilDiv(c.In, 32)
	inBits := s.In.DType == bcnn.Bits
	c.MixedLanes = op.Groups > 1 && (c.PerGroup%lanes != 0 || inBits && c.In%32 != 0)
	if c.MixedLanes && inBits {
		c.Words = MixedWords(c.In, op.Groups)
	}
	g, conv := &c.G, s.Out.Shape
	g.setPlanes(op.InPlanes, op.OutPlanes)
	conv.H = int(g.OutH)
	g.setWindow(op.Window)
	g.PoolH, g.PoolW = 1, 1
	if op.Pool != nil {
		g.PoolH, g.PoolW = int32(op.Pool.KH), int32(op.Pool.KW)
		// Rows and columns that fill no window are not needed.
		conv.H, conv.W = conv.H*op.Pool.KH, conv.W*op.Pool.KW
	}
	g.ConvH, g.ConvW = int32(conv.H), int32(conv.W)
	g.Blocks = int32(c.Blocks)
	if s.Out.DType == bcnn.Bits { // words of padding are written, too
		g.Blocks = int32(words32(op.Out))
	}
	g.Words, g.GroupIn, g.GroupOut = int32(c.Words), int32(c.In), int32(c.PerGroup)
	g.Taps, g.ZeroPoint = int32(c.Taps*c.In), int32(op.ZeroPoint)
	g.Scaled, g.Activation = flag(op.Scale != nil), int32(op.Activation.Kind)
	g.Flip = flag(op.Threshold != nil && op.Threshold.Flip != nil)
	return c
}

// Int8 are the weights of a convolution of bytes, [output][tap][channel]; those of ±1, too,
// and none of 16 bits.
func (c *Conv) Int8() []int8 {
	if c.op.Int8 != nil {
		return c.op.Int8
	}
	weights := make([]int8, c.Out*c.Taps*c.In)
	bits.Unpack(weights, c.op.Bits, c.In)
	return weights
}

// ByteBias is what sums of bytes with weights of such sums lack for a zero point of 0.
func (c *Conv) ByteBias(sums []int32) []int32 {
	bias := make([]int32, c.Stride())
	for o, sum := range sums {
		bias[o] = -int32(c.op.ZeroPoint) * sum
	}
	return bias
}

// Stride is the number of outputs that constants are filled up to.
func (c *Conv) Stride() int { return int(c.G.Blocks) * c.Lanes }

// HasPlanes reports whether input or output have bit planes, and so other kernels.
func HasPlanes(op *plan.Conv) bool { return op.InPlanes > 1 || op.OutPlanes > 1 }

// ThresholdsI32 are the thresholds of integer sums of n outputs, [threshold][output]; those that there are
// not are never reached. nil where the output is floats.
func (c *Conv) ThresholdsI32(n int) []int32 {
	if c.op.Threshold == nil {
		return nil
	}
	var all []int32
	for t := range slices.Chunk(c.op.Threshold.I32, c.op.Out) {
		all = append(all, PadTo(t, n, math.MaxInt32)...)
	}
	return all
}

// ThresholdsF32 are the thresholds of float sums, as ThresholdsI32.
func (c *Conv) ThresholdsF32(n int) []float32 {
	if c.op.Threshold == nil {
		return nil
	}
	return PadTo(c.op.Threshold.F32, n, float32(math.Inf(1)))
}

// Mask is what is XORed to the packed outputs; nil for nothing.
func (c *Conv) Mask() []uint32 {
	if c.op.Threshold == nil {
		return nil
	}
	return Rows(c.op.Threshold.Flip)
}

// Slope are the values that the activation takes, as Slope.
func (c *Conv) Slope() []float32 { return Slope(c.op.Activation) }

// Tail are the last arguments of kernels: scale, shift, slope and the mask of the output.
func (c *Conv) Tail() []any { return []any{c.op.Scale, c.op.Shift, c.Slope(), c.Mask()} }

// Border puts the correction of zero padding into the geometry and returns it with the
// classes of rows and columns; nil where there is none.
func (c *Conv) Border() (rows, cols, correction []int32) {
	b := c.op.Border
	if b == nil {
		return nil, nil, nil
	}
	c.G.Border, c.G.Cols = 1, int32(b.Cols)
	return Corrections(b.Row, b.Col, b.Correction, c.Out, c.Stride())
}

// PaddedBorder is Border for kernels that read corrections only where a tap is padded: offset
// is what they add to all sums, and the others are beside it.
func (c *Conv) PaddedBorder() (rows, cols, correction, offset []int32) {
	rows, cols, correction = c.Border()
	stride := c.Stride()
	if correction == nil {
		return nil, nil, nil, make([]int32, stride)
	}
	offset = slices.Clone(correction[:stride]) // class 0
	if len(correction) == stride {
		c.G.Border = 0
		return nil, nil, nil, offset
	}
	for i := range correction {
		correction[i] -= offset[i%stride]
	}
	return rows, cols, correction, offset
}

// Epilogue puts the correction of zero padding into the geometry and returns what the
// kernels that sum up bits take as their last arguments.
func (c *Conv) Epilogue() []any {
	rows, cols, correction := c.Border()
	return append(append([]any{c.ThresholdsI32(c.Stride())}, c.Tail()...), rows, cols, correction)
}
