package bcnn

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// conv2D sets up a convolution: on bits or bytes where weights and input allow
// exact integers, in float32 otherwise.
func (lo *lowering) conv2D(v value, i int, op Conv2D) (value, error) {
	conv := &ConvStep{Window: op.Window.normal(), Out: op.Out, Groups: max(op.Groups, 1), PadValue: op.PadValue}
	c := lo.shape(v).C / conv.Groups
	return lo.weighted(v, i, conv, op.Weights, c, op.Bias)
}

// dense sets up a dense layer: a window as large as the image.
func (lo *lowering) dense(v value, i int, op Dense) (value, error) {
	if v.conv != nil || poolAt(v.chain) < len(v.chain) {
		v = value{tensor: lo.float(v)}
	}
	s := lo.plan.Tensors[v.tensor].Shape
	conv := &ConvStep{
		Window: Window{KH: s.H, KW: s.W, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1},
		Out:    op.Out, Groups: 1, Dense: true,
	}
	return lo.weighted(v, i, conv, op.Weights, s.Values(), op.Bias)
}

// weighted completes conv, whose rows of binary weights have rowLen bits.
func (lo *lowering) weighted(v value, i int, conv *ConvStep, w Weights, rowLen int, bias []float32) (value, error) {
	out := value{conv: conv}
	dtype := Float32 // of a pending convolution
	if v.conv == nil {
		dtype = lo.plan.Tensors[v.tensor].DType
	}
	switch {
	case !w.Binary():
		conv.WhyFloat = "its weights are real"
	case dtype == Bits && lo.settled(v):
		out.convIn, out.layers = v.tensor, v.layers
	case dtype == Uint8:
		z, slope, why := zeroPoint(v.chain, lo.plan.Tensors[v.tensor].Shape.C)
		conv.WhyFloat = why
		if why == "" {
			conv.ZeroPoint = z
			out.convIn, out.layers = v.tensor, append(slices.Clone(v.layers), layersOf(v.chain)...)
			if slope != 1 {
				out.chain = []link{{layer: i, scale: []float64{slope}, mean: []float64{0}, shift: []float64{0}}}
			}
		}
	default:
		conv.WhyFloat = "its input is real: no sign in front of it"
	}
	out.layers = append(out.layers, i)
	if conv.WhyFloat == "" {
		if lo.plan.Tensors[out.convIn].DType != Bits {
			conv.PadValue = 0
		}
		conv.Bits = w.Bits
		if conv.Dense {
			conv.Bits = splitRows(w.Bits, rowLen, lo.plan.Tensors[out.convIn].Shape.C)
		}
		if len(bias) > 0 {
			l := affineLink(i, Affine{Bias: bias})
			out.chain = append(out.chain, l)
		}
		return lo.begin(out)
	}
	out.convIn = lo.float(v)
	conv.PadValue = 0
	conv.Bits, conv.F32, conv.Bias = nil, w.F32, bias
	if w.Binary() {
		conv.F32 = make([]float32, len(w.Bits)/bits.Words(rowLen)*rowLen)
		bits.Unpack(conv.F32, w.Bits, rowLen)
	}
	if len(bias) == 0 {
		conv.Bias = make([]float32, conv.Out)
	}
	return lo.begin(out)
}

// splitRows turns packed rows of n bits into packed rows of c bits each, as the
// pixels of an image with c channels are packed.
func splitRows(w []uint64, n, c int) []uint64 {
	if c%bits.WordBits == 0 || c == n {
		return w
	}
	words, pixels := bits.Words(n), n/c
	out := make([]uint64, 0, len(w)/words*pixels*bits.Words(c))
	pixel := make([]uint64, bits.Words(c))
	for ; len(w) > 0; w = w[words:] {
		for p := range pixels {
			bits.Slice(pixel, w[:words], p*c, c)
			out = append(out, pixel...)
		}
	}
	return out
}

// negate complements the filters of the given output channels, whose sums then
// change sign. Padding bits stay 0. rowLen is the number of channels of a tap.
func (c *ConvStep) negate(channels []int, rowLen int) {
	if len(channels) == 0 {
		return
	}
	if c.F32 != nil {
		c.F32, c.Bias = slices.Clone(c.F32), slices.Clone(c.Bias)
		taps := len(c.F32) / c.Out
		for _, o := range channels {
			for k := o * taps; k < (o+1)*taps; k++ {
				c.F32[k] = -c.F32[k]
			}
			c.Bias[o] = -c.Bias[o]
		}
		return
	}
	c.Bits = slices.Clone(c.Bits)
	words := len(c.Bits) / c.Out
	last := bits.Words(rowLen)
	for _, o := range channels {
		filter := c.Bits[o*words : (o+1)*words]
		for k := range filter {
			mask := ^uint64(0)
			if k%last == last-1 {
				mask = bits.TailMask(rowLen)
			}
			filter[k] ^= mask
		}
	}
}

// flips collects a packed row of flags; words is nil if none is set.
type flips struct {
	row []uint64
	any bool
}

func newFlips(channels int) flips { return flips{row: make([]uint64, bits.Words(channels))} }

func (f *flips) set(c int, on bool) {
	if on {
		f.row[c/bits.WordBits] |= 1 << (c % bits.WordBits)
		f.any = true
	}
}

func (f *flips) words() []uint64 {
	if f.any {
		return f.row
	}
	return nil
}
