package lower

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// conv2D sets up a convolution: of bits or bytes if weights and input allow exact integers, and
// otherwise of float32.
func (lo *lowering) conv2D(v value, i int, op bcnn.Conv2D) (value, error) {
	conv := &plan.Conv{Window: op.Window.Normal(), Out: op.Out, Groups: max(op.Groups, 1), PadValue: op.PadValue}
	c := lo.shape(v).C / conv.Groups
	return lo.weighted(v, i, conv, op.Weights, c, op.Bias)
}

// dense sets up a dense layer, as a convolution whose window is the whole image.
func (lo *lowering) dense(v value, i int, op bcnn.Dense) (value, error) {
	if v.conv != nil || poolAt(v.chain) < len(v.chain) {
		t, err := lo.float(v)
		if err != nil {
			return v, err
		}
		v = value{tensor: t}
	}
	s := lo.shape(v)
	conv := &plan.Conv{
		Window: bcnn.Window{KH: s.H, KW: s.W, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1},
		Out:    op.Out, Groups: 1, Dense: true,
	}
	return lo.weighted(v, i, conv, op.Weights, lo.shape(v).Values(), op.Bias)
}

// sums is what a layer adds up.
type sums int

const (
	ofFloats sums = iota
	ofBits
	ofBitsBetweenZeros // for groups: one group, in which weights between the groups are 0
	ofPlanes
	ofLevels // as bytes
	ofPixels // bytes of an image
)

// choice is how a layer is computed.
type choice struct {
	sums sums
	// slope is the factor by which sums of pixels are multiplied afterwards.
	slope float64
	// why is the reason for ofFloats; groups is set if it is that a group has too few channels for bits.
	why    string
	groups bool
}

// weighted completes conv with weights and bias. Rows of binary weights have rowLen bits. If it
// is computed in float32, its note says why.
func (lo *lowering) weighted(v value, i int, conv *plan.Conv, w bcnn.Weights, rowLen int, bias []float32) (out value, err error) {
	out = value{conv: conv, out: lo.types[i].Shape, layers: []int{i}}
	real := w // the weights if it is computed in float32
	if w.Real() && lo.dtype(v) == bcnn.Uint8 && v.levels == nil {
		if conv.Int8, conv.Int16, err = lo.integerWeights(w.F32, conv.Out); err != nil {
			return out, err
		}
		w.Int8 = conv.Int8
	}
	c, err := lo.choose(v, i, conv, w)
	if err != nil {
		return out, err
	}
	switch c.sums {
	case ofBitsBetweenZeros:
		return lo.betweenZeros(v, i, conv, w, rowLen, bias)
	case ofPlanes:
		return lo.planes(v, i, conv, w, rowLen, bias)
	case ofLevels:
		return lo.bytes(v, i, conv, w, rowLen, bias)
	case ofPixels:
		out.layers = append(layersOf(v.chain), i)
		if c.slope != 1 {
			out.chain = []link{{layers: []int{i}, scale: []float64{c.slope}, mean: []float64{0}, shift: []float64{0}}}
		}
		fallthrough
	case ofBits:
		out.convIn = v.tensor
		return lo.exactConv(out, i, w, rowLen, bias)
	}
	conv.Int8, conv.Int16 = nil, nil
	lo.notes[conv] = plan.Note{WhyFloat: c.why}
	if !real.Real() && len(bias) == 0 && (c.groups || lo.readsLevels(i)) {
		lo.counting[conv] = true
	}
	return lo.realConv(v, out, real, rowLen, bias)
}

// dtype returns the type of a value's tensor; a pending convolution gives float32.
func (lo *lowering) dtype(v value) bcnn.DType {
	if v.conv != nil {
		return bcnn.Float32
	}
	return lo.plan.Tensors[v.tensor].DType
}

// choose decides how layer i is computed. For pixels it sets the zero point of conv.
func (lo *lowering) choose(v value, i int, conv *plan.Conv, w bcnn.Weights) (choice, error) {
	of := grouping{groups: conv.Groups, inputs: lo.shape(v).C / conv.Groups, outputs: conv.Out / conv.Groups}
	of.taps = num.Product(conv.KH, conv.KW, of.inputs)
	dtype := lo.dtype(v)
	switch {
	case w.Real() && conv.Int16 == nil:
		return choice{why: "its weights are real"}, nil
	case dtype == bcnn.Bits && lo.settled(v):
		return lo.chooseBits(v, i, conv, of, w)
	case dtype == bcnn.Uint8:
		return lo.chooseBytes(v, conv, of, w)
	case lo.readsLevels(i):
		return choice{why: cmp.Or(of.noBytes(w), levelsAsFloats)}, nil
	}
	return choice{why: "its input is real: no sign in front of it, or a scale or offset between that is not one number"}, nil
}

// chooseBits is choose for an input of bits or their planes.
func (lo *lowering) chooseBits(v value, i int, conv *plan.Conv, of grouping, w bcnn.Weights) (choice, error) {
	noBits, err := lo.noBits(v, i, of, w)
	switch {
	case err != nil:
		return choice{}, err
	case noBits && w.Binary() && v.levels == nil && of.betweenZeros(conv.KH, conv.KW):
		return choice{sums: ofBitsBetweenZeros}, nil
	case noBits:
		return choice{why: bitsInGroups, groups: true}, nil
	case v.levels != nil || !w.Binary():
		return choice{sums: ofPlanes}, nil
	}
	return choice{sums: ofBits}, nil
}

// chooseBytes is choose for an input of bytes, which are levels or pixels.
func (lo *lowering) chooseBytes(v value, conv *plan.Conv, of grouping, w bcnn.Weights) (c choice, err error) {
	if v.levels != nil || !w.Binary() {
		if why := of.noBytes(w); why != "" {
			return choice{why: why}, nil
		}
	}
	if v.levels != nil {
		return choice{sums: ofLevels}, nil
	}
	if conv.ZeroPoint, c.slope, c.why, err = lo.zeroPoint(v); err == nil && c.why == "" {
		c.sums = ofPixels
	}
	return c, err
}

// noBits is grouping.noBits for layer i on bits.
func (lo *lowering) noBits(v value, i int, of grouping, w bcnn.Weights) (bool, error) {
	if of.groups == 1 {
		return false, nil
	}
	parts, err := lo.parts(w)
	if err != nil {
		return false, err
	}
	l := levels{planes: 1}
	if v.levels != nil {
		l = *v.levels
	}
	return of.noBits(l, parts, lo.endsInSign(i)), nil
}

// exactConv completes a convolution of bits or bytes.
func (lo *lowering) exactConv(out value, i int, w bcnn.Weights, rowLen int, bias []float32) (value, error) {
	conv, in := out.conv, lo.plan.Tensors[out.convIn]
	if in.DType != bcnn.Bits {
		conv.PadValue = 0
	}
	conv.Bits, conv.Int8 = w.Bits, w.Int8 // or Int16
	var err error
	if conv.Dense && w.Binary() {
		if conv.Bits, err = lo.splitRows(w.Bits, rowLen, in.Shape.C); err != nil {
			return out, err
		}
	}
	if len(bias) > 0 {
		if out, err = lo.push(out, affineLink(i, bcnn.Affine{Bias: bias})); err != nil {
			return out, err
		}
	}
	return lo.begin(out)
}

// readsLevels reports whether layer i reads levels.
func (lo *lowering) readsLevels(i int) bool {
	in := lo.net.Layers[i].Inputs
	return len(in) == 1 && in[0] > bcnn.NetworkInput && lo.ranges[in[0]].count > 0
}

// realConv completes the convolution of out, on the values of v as float32.
func (lo *lowering) realConv(v, out value, w bcnn.Weights, rowLen int, bias []float32) (value, error) {
	conv := out.conv
	var err error
	if out.convIn, err = lo.float(v); err != nil {
		return out, err
	}
	if conv.PadValue != 0 && conv.Pad != (bcnn.Padding{}) {
		if out.convIn, err = lo.bordered(out.convIn, conv); err != nil {
			return out, err
		}
	}
	conv.PadValue = 0
	conv.Bits, conv.F32, conv.Bias = nil, w.F32, bias
	if !w.Real() {
		n := len(w.Int8)
		if w.Binary() {
			n = len(w.Bits) / bits.Words(rowLen) * rowLen
		}
		if err := lo.hold(4 * int64(n)); err != nil {
			return out, err
		}
		conv.F32 = make([]float32, n)
		if w.Binary() {
			bits.Unpack(conv.F32, w.Bits, rowLen)
		}
		for k, x := range w.Int8 {
			conv.F32[k] = float32(x)
		}
	}
	if len(bias) == 0 {
		if err := lo.hold(4 * int64(conv.Out)); err != nil {
			return out, err
		}
		conv.Bias = make([]float32, conv.Out)
	}
	return lo.begin(out)
}

// bordered emits the padding of a convolution around tensor t, and removes it from conv. Float32
// kernels pad with 0 only.
func (lo *lowering) bordered(t int, conv *plan.Conv) (int, error) {
	positions := func(before, n, after int) ([]int32, error) {
		if err := lo.hold(4 * int64(before+n+after)); err != nil {
			return nil, err
		}
		list := slices.Repeat([]int32{-1}, before+n+after)
		for i := range n {
			list[before+i] = int32(i)
		}
		return list, nil
	}
	shape, pad := lo.plan.Tensors[t].Shape, conv.Pad
	step := &plan.Pixels{Fill: float32(conv.PadValue), BlockH: 1, BlockW: 1}
	var err error
	if step.Rows, err = positions(pad.Top, shape.H, pad.Bottom); err != nil {
		return 0, err
	}
	if step.Cols, err = positions(pad.Left, shape.W, pad.Right); err != nil {
		return 0, err
	}
	shape.H, shape.W = len(step.Rows), len(step.Cols)
	if err := shape.Check(); err != nil {
		return 0, fmt.Errorf("with its padding: %w", err)
	}
	conv.Pad = bcnn.Padding{}
	out, err := lo.emit(step, nil, bcnn.Float32, shape, t)
	if err == nil {
		lo.plan.Tensors[out].Coded = true
	}
	return out, err
}

// begin returns a convolution that has just been set up, pending if fused. It fails if the sums may
// exceed int32 or, unfused, the integers that float32 holds.
func (lo *lowering) begin(v value) (value, error) {
	if lo.fused {
		if b := lo.bound(v); v.conv.F32 == nil && v.conv.Int16 == nil && b > math.MaxInt32-1 {
			return v, fmt.Errorf("sums may reach %d, but must not exceed %d to fit into 32 bits", b, math.MaxInt32-1)
		}
		return v, nil
	}
	if err := lo.exact(v); err != nil {
		return v, err
	}
	t, err := lo.emitConv(v, nil, bcnn.Float32, v.out)
	return value{tensor: t, chain: v.chain, mixed: v.mixed}, err
}

// exactFloats is the magnitude up to which float32 holds all integers.
const exactFloats = 1 << 24

// exact fails if float32 does not hold the integer sums of a pending convolution. Sums of 8-bit and
// 16-bit weights are rounded instead.
func (lo *lowering) exact(v value) error {
	if b := lo.bound(v); v.conv.F32 == nil && !v.conv.Integer() && b > exactFloats {
		return fmt.Errorf("sums may reach %d, but float32 holds all integers only up to %d", b, exactFloats)
	}
	return nil
}

// bound returns the largest magnitude of the integer sums of a pending convolution with weights of
// at most 8 bits.
func (lo *lowering) bound(v value) int64 {
	in := lo.plan.Tensors[v.convIn]
	k := v.conv.Taps(in.Shape.C) * int64(v.conv.LargestInput())
	if in.DType == bcnn.Uint8 {
		z := int64(v.conv.ZeroPoint)
		k *= max(z, 255-z)
	}
	if v.conv.Int8 != nil {
		k *= -math.MinInt8
	}
	var most int32
	for _, offset := range v.conv.Offset {
		most = max(most, offset, -offset)
	}
	return k + int64(most)
}

// emitConv emits a pending convolution whose epilogue is set.
func (lo *lowering) emitConv(v value, layers []int, d bcnn.DType, s bcnn.Shape) (int, error) {
	in := lo.plan.Tensors[v.convIn]
	if in.DType == bcnn.Bits {
		var err error
		if v.conv.Border, err = lo.border(v.conv, v.conv.Image(in.Shape), v.out); err != nil {
			return 0, err
		}
	}
	return lo.emit(v.conv, append(slices.Clone(v.layers), layers...), d, s, v.convIn)
}

// splitRows turns packed rows of n bits into packed rows of c bits each, as the pixels of an image
// with c channels are packed.
func (lo *lowering) splitRows(w []uint64, n, c int) ([]uint64, error) {
	if c%bits.WordBits == 0 || c == n {
		return w, nil
	}
	words, pixels := bits.Words(n), n/c
	size := len(w) / words * pixels * bits.Words(c)
	if err := lo.hold(8 * int64(size)); err != nil {
		return nil, err
	}
	out := make([]uint64, size)
	for to := out; len(w) > 0; w = w[words:] {
		bits.Split(to, w[:words], n, c)
		to = to[pixels*bits.Words(c):]
	}
	return out, nil
}

// negate complements the filters of the given output channels of a pending convolution, so that
// their sums change sign. Padding bits stay 0.
func (lo *lowering) negate(v value, channels []int) error {
	c := v.conv
	if len(channels) == 0 {
		return nil
	}
	if err := lo.hold(8*int64(len(c.Bits)) + 4*int64(len(c.F32)+len(c.Bias))); err != nil {
		return err
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
		return nil
	}
	if c.Offset != nil {
		if err := lo.hold(4 * int64(c.Out)); err != nil {
			return err
		}
		c.Offset = slices.Clone(c.Offset)
		for _, o := range channels {
			c.Offset[o] = -c.Offset[o]
		}
	}
	c.Bits = slices.Clone(c.Bits)
	words := len(c.Bits) / c.Out
	rowLen := lo.plan.Tensors[v.convIn].Shape.C / c.Groups // channels of a tap
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
	return nil
}

// flips collects a packed row of flags.
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

// words returns the row, or nil if no flag is set.
func (f *flips) words() []uint64 {
	if f.any {
		return f.row
	}
	return nil
}
