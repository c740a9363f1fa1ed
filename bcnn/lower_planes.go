package bcnn

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// Values of several levels flow as bits, in unary: a value that reaches n of the
// thresholds of its channel has n bits of 1, all of the same weight. So
//
//   - every bit is a threshold of the layers in front, like the bit of a sign;
//   - a maximum is an OR, bit by bit;
//   - the product with weights that are a sum of ±1 is one binary product over more
//     channels: the weights repeated for the bits, the bits for the weights.
//
// The bits of a channel lie side by side, so that groups of channels, flattened
// images and windows are what they were.

// levels says what a tensor of bits stands for: with s the bits of a channel as ±1,
//
//	x = (Σ s + bits·from) / 2
//
// from is 0 where the levels lie around 0, as many on both sides, +1 where they begin
// at 0, and −1 where they end there. So there is one value for s that, in all bits,
// stands for a padded tap, which is 0: −from, and as it is neither of both for 0, the
// tap is left out.
type levels struct {
	bits int // of a channel
	from int
}

// numbering returns how levels from low to high are written in unary, with how many
// bits before those of their thresholds that are always 1, and behind, never.
func numbering(low, high int) (l levels, always, never int) {
	switch {
	case low >= 0:
		return levels{high, 1}, low, 0
	case high <= 0:
		return levels{-low, -1}, 0, -high
	}
	most := max(-low, high)
	return levels{bits: 2 * most}, most + low, most - high
}

// mostPlanes is how many binary products may stand for one: beyond it, float32 is
// about as fast.
const mostPlanes = 16

// mostRepeated is how many products of bits are worth being computed again for each
// further bit of the result, before the sums go through memory instead.
const mostRepeated = 1 << 13

// quantize makes the bits of levels.
func (lo *lowering) quantize(v value, i int, op Quantize) (value, error) {
	n := op.Levels - 1
	l, always, never := numbering(op.Low, op.Low+n)
	if wanted, err := lo.wanted(i, l.bits); err != nil || !wanted {
		if err != nil {
			return v, err
		}
		t, err := lo.float(v)
		if err != nil {
			return v, err
		}
		t, err = lo.emit(&QuantizeStep{Low: op.Low, Levels: op.Levels, Thresholds: op.Thresholds}, []int{i}, Float32, lo.plan.Tensors[t].Shape, t)
		return value{tensor: t, flat: v.flat}, err
	}
	v, err := lo.plain(v)
	if err != nil {
		return v, err
	}
	again := l.bits == 1
	if v.conv != nil && v.conv.F32 == nil {
		again = int64(l.bits-1)*v.conv.taps(lo.plan.Tensors[v.convIn].Shape.C) <= mostRepeated
	}
	if v.conv == nil || !lo.fused || !again {
		if v, err = lo.numbers(v); err != nil {
			return v, err
		}
	}
	if !uniform(v.chain) && n*(1+len(v.chain))*searchSteps > workPerByte*bytesPerChannel(v.chain) {
		t, err := lo.float(v) // or every layer would take longer than its size explains
		if err != nil {
			return v, err
		}
		v = value{tensor: t, flat: v.flat}
	}
	cuts, err := lo.decideLevels(v, op, l, always, never)
	if err != nil {
		return v, err
	}
	if p := poolAt(v.chain); p < len(v.chain) {
		v.chain = slices.Clone(v.chain)
		v.chain[p].out.C *= l.bits
	}
	var out value
	if v.conv != nil {
		if err := lo.repeatFilters(&v, l.bits); err != nil {
			return v, err
		}
		out, err = lo.convBits(v, i, cuts)
	} else {
		layers := append(layersApart(v.chain), i)
		if v.tensor >= len(lo.plan.Inputs) { // a bias or a scale of the layer whose sums they are
			done := lo.writer(v.tensor).Layers
			n := len(layers)
			layers = slices.DeleteFunc(layers, func(l int) bool { return slices.Contains(done, l) })
			if len(layers) < n {
				lo.plan.Tensors[v.tensor].Coded = true
			}
		}
		threshold := cuts.threshold
		threshold.Flip = cuts.before.words()
		shape := lo.shape(v)
		shape.C *= l.bits
		out.tensor, err = lo.emit(&SignStep{Threshold: threshold}, layers, Bits, shape, v.tensor)
		if p := poolAt(v.chain); err == nil && p < len(v.chain) {
			out.tensor, err = lo.emitPool(v.chain[p], cuts.after.words(), out.tensor)
		}
	}
	if err != nil {
		return out, err
	}
	out.levels, out.flat = &l, v.flat
	for t := out.tensor; ; t = lo.writer(t).In[0] { // and in front of a pool
		lo.plan.Tensors[t].Coded = true
		if _, pool := lo.writer(t).Op.(*MaxPoolStep); !pool {
			break
		}
	}
	return out, nil
}

// wanted reports whether a layer reads levels of so many bits as bits.
func (lo *lowering) wanted(i, levelBits int) (bool, error) {
	for _, reader := range lo.next[i] {
		var w Weights
		op := lo.net.Layers[reader].Op
		if p, ok := op.(Pixels); ok && !p.normal().keepsLevels() {
			continue
		}
		switch op := op.(type) {
		case MaxPool, Flatten, Pixels:
			if yes, err := lo.wanted(reader, levelBits); yes || err != nil {
				return yes, err
			}
			continue
		case Conv2D:
			w = op.Weights
		case Dense:
			w = op.Weights
		default:
			continue
		}
		parts := 1
		if w.Int8 != nil {
			if err := lo.Charge(int64(len(w.Int8))); err != nil {
				return false, err
			}
			parts, _ = unary(w.Int8)
		}
		if !w.real() && parts*levelBits <= mostPlanes {
			return true, nil
		}
	}
	return false, nil
}

// decideLevels turns a pending chain and thresholds into a decision for each bit of
// each channel, of which so many are always 1 and so many never.
func (lo *lowering) decideLevels(v value, op Quantize, l levels, always, never int) (decisions, error) {
	n, channels := op.Levels-1, lo.shape(v).C
	values := channels * l.bits
	if err := lo.hold(4*int64(values) + 16*int64(bits.Words(values))); err != nil {
		return decisions{}, err
	}
	out := decisions{before: newFlips(values), after: newFlips(values)}
	d := lo.domain(v)
	lowest, highest := cut{i32: math.MinInt32, f32: float32(math.Inf(-1))}, cut{i32: math.MaxInt32, f32: float32(math.Inf(1))}
	set := func(at int, to cut) {
		if d.float {
			out.threshold.F32[at] = to.f32
		} else {
			out.threshold.I32[at] = to.i32
		}
	}
	if d.float {
		out.threshold.F32 = make([]float32, values)
	} else {
		out.threshold.I32 = make([]int32, values)
	}
	shared := len(op.Thresholds) == n
	once := shared && uniform(v.chain)
	decided := make([]decision, n)
	for c := range channels {
		if c == 0 || !once {
			if err := lo.Charge(searchSteps * int64(n) * int64(1+len(v.chain))); err != nil {
				return out, err
			}
			thresholds := op.Thresholds
			if !shared {
				thresholds = thresholds[c*n:][:n]
			}
			for k, t := range thresholds {
				decided[k] = decide(v.chain, func(y float64) bool { return y >= float64(t) }, c, d, v.conv != nil)
			}
		}
		at := c * l.bits
		for k := range always {
			set(at+k, lowest)
		}
		at += always
		for k, dec := range decided {
			set(at+k, dec.cut)
			out.before.set(at+k, dec.before)
			out.after.set(at+k, dec.after)
		}
		for k := range never {
			set(at+n+k, highest)
		}
		if decided[0].negate { // all are, or none
			for k := range l.bits {
				out.negate = append(out.negate, c*l.bits+k)
			}
		}
	}
	return out, nil
}

// repeatFilters computes every output channel of a pending convolution n times.
func (lo *lowering) repeatFilters(v *value, n int) error {
	if n == 1 {
		return nil
	}
	conv := v.conv
	if err := lo.hold(8 * int64(n) * int64(len(conv.Bits))); err != nil {
		return err
	}
	words := len(conv.Bits) / conv.Out
	repeated := make([]uint64, 0, n*len(conv.Bits))
	for o := range conv.Out {
		for range n {
			repeated = append(repeated, conv.Bits[o*words:][:words]...)
		}
	}
	conv.Bits, conv.Out, conv.Copies = repeated, n*conv.Out, n
	v.out.C *= n
	return nil
}

// bytesPerChannel is what the layers of a chain hold for each channel.
func bytesPerChannel(chain []link) int {
	n := 0
	for _, l := range chain {
		for _, list := range [][]float64{l.mean, l.scale, l.shift} {
			if len(list) > 1 {
				n += 4
			}
		}
	}
	return n
}

// numbers returns a value with its chain on a tensor of Float32, sums included.
func (lo *lowering) numbers(v value) (value, error) {
	v, err := lo.plain(v)
	if err != nil {
		return v, err
	}
	switch {
	case v.conv != nil:
		if err := lo.exact(v); err != nil {
			return v, err
		}
		v.tensor, err = lo.emitConv(v, nil, Float32, v.out)
		v.conv = nil
	case lo.plan.Tensors[v.tensor].DType != Float32:
		v.tensor, err = lo.emit(&AffineStep{}, nil, Float32, lo.plan.Tensors[v.tensor].Shape, v.tensor)
	}
	return v, err
}

// plain returns a value without levels: sums over the bits of every channel that are
// still to be made.
func (lo *lowering) plain(v value) (value, error) {
	if v.levels == nil {
		return v, nil
	}
	l, shape := *v.levels, lo.shape(v)
	words := bits.Words(l.bits)
	if err := lo.hold(8 * int64(shape.C) * int64(words)); err != nil {
		return v, err
	}
	conv := &ConvStep{
		Window: Window{KH: 1, KW: 1}.normal(), Out: shape.C, Groups: shape.C, PadValue: -1, Planes: l.bits,
		Bits: make([]uint64, shape.C*words),
	}
	for k := range conv.Bits {
		conv.Bits[k] = math.MaxUint64
		if k%words == words-1 {
			conv.Bits[k] = bits.TailMask(l.bits)
		}
	}
	half := link{kind: linkAffine, mean: []float64{0}, scale: []float64{0.5}, shift: []float64{float64(l.bits*l.from) / 2}}
	return value{conv: conv, convIn: v.tensor, out: shape, chain: append([]link{half}, v.chain...), mixed: v.mixed, flat: v.flat}, nil
}

// planes completes conv, whose rows of weights have rowLen values, on bits that stand
// for levels, or with integer weights, or both.
func (lo *lowering) planes(v value, i int, conv *ConvStep, w Weights, rowLen int, bias []float32) (value, error) {
	out := value{conv: conv, out: lo.types[i].shape, layers: []int{i}}
	in := levels{bits: 1}
	unit := 1.0
	if v.levels != nil {
		in, unit = *v.levels, 0.5
	}
	integers, err := lo.integers(w, rowLen)
	if err != nil {
		return out, err
	}
	weights, weightUnit := unary(integers)
	if in.bits*weights > mostPlanes {
		conv.WhyFloat = "its products would take more bits than float32"
		return lo.realConv(v, out, w, rowLen, bias)
	}
	conv.Planes = in.bits * weights
	if v.levels != nil {
		conv.PadValue = -in.from
	}
	if out.convIn, err = lo.repeat(v.tensor, weights, conv.Groups); err != nil {
		return out, err
	}
	n := lo.plan.Tensors[v.tensor].Shape.C / conv.Groups // bits of a tap
	if conv.Bits, err = lo.unaryRows(integers, n/in.bits, in.bits, weights, weightUnit); err != nil {
		return out, err
	}
	if scale := unit * weightUnit; scale != 1 || in.from != 0 {
		l := link{layers: []int{i}, kind: linkAffine, mean: []float64{0}, scale: []float64{scale}, shift: []float64{0}}
		if in.from != 0 {
			if l.shift, err = lo.filterSums(integers, conv.Out, float64(in.bits*in.from)/2); err != nil {
				return out, err
			}
		}
		if out, err = lo.push(out, l); err != nil {
			return out, err
		}
	}
	if len(bias) > 0 {
		if out, err = lo.push(out, affineLink(i, Affine{Bias: bias})); err != nil {
			return out, err
		}
	}
	return lo.begin(out)
}

// integers unpacks weights.
func (lo *lowering) integers(w Weights, rowLen int) ([]int8, error) {
	if !w.Binary() {
		return w.Int8, lo.Charge(int64(len(w.Int8)))
	}
	n := len(w.Bits) / bits.Words(rowLen) * rowLen
	if err := lo.Charge(int64(n)); err != nil {
		return nil, err
	}
	out := make([]int8, n)
	bits.Unpack(out, w.Bits, rowLen)
	return out, nil
}

// unary returns how many ±1 add up to each of the weights, in what unit.
func unary(weights []int8) (n int, unit float64) {
	odd, even := false, false
	for _, w := range weights {
		n = max(n, int(w), -int(w))
		odd, even = odd || w%2 != 0, even || w%2 == 0
	}
	if n == 0 || odd && even || !odd && even && n%2 != 0 {
		return max(2*n, 2), 0.5
	}
	return n, 1
}

// unaryRows packs rows of n weights, [weight bit][channel][input bit], so that a sum of
// products of bits is one of products of values.
func (lo *lowering) unaryRows(weights []int8, n, inputBits, weightBits int, unit float64) ([]uint64, error) {
	words := bits.Words(n * inputBits * weightBits)
	rows := len(weights) / n
	if err := lo.hold(8 * int64(rows) * int64(words)); err != nil {
		return nil, err
	}
	out := make([]uint64, rows*words)
	run := bits.TailMask(inputBits)
	for r := range rows {
		if err := lo.Charge(int64(n * weightBits)); err != nil {
			return nil, err
		}
		row := out[r*words:][:words]
		for c, w := range weights[r*n:][:n] {
			ones := (int(float64(w)/unit) + weightBits) / 2
			for j := range ones {
				at := (j*n + c) * inputBits
				k, shift := at/bits.WordBits, at%bits.WordBits
				row[k] |= run << shift
				if shift+inputBits > bits.WordBits {
					row[k+1] |= run >> (bits.WordBits - shift)
				}
			}
		}
	}
	return out, nil
}

// repeat writes the channels of every group n times.
func (lo *lowering) repeat(t, n, groups int) (int, error) {
	if n == 1 {
		return t, nil
	}
	shape := lo.plan.Tensors[t].Shape
	group := shape.C / groups
	shape.C *= n
	var op StepOp = &ConcatStep{}
	in := []int{t}
	if groups == 1 {
		in = slices.Repeat(in, n)
	} else {
		index, err := lo.repeatedChannels(shape.C, group, n)
		if err != nil {
			return 0, err
		}
		op = &ChannelsStep{Index: index}
	}
	out, err := lo.emit(op, nil, Bits, shape, in...)
	if err == nil {
		lo.plan.Tensors[out].Coded = true
	}
	return out, err
}

// repeatedChannels returns the channels of groups of so many, each group n times.
func (lo *lowering) repeatedChannels(channels, group, n int) ([]int32, error) {
	if err := lo.hold(4 * int64(channels)); err != nil {
		return nil, err
	}
	index := make([]int32, channels)
	for c := range index {
		index[c] = int32(c/(group*n)*group + c%group)
	}
	return index, nil
}

// filterSums returns the sums of the weights of each filter, times a factor.
func (lo *lowering) filterSums(weights []int8, out int, factor float64) ([]float64, error) {
	if err := lo.Charge(int64(len(weights)) + 8*int64(out)); err != nil {
		return nil, err
	}
	sums := make([]float64, out)
	n := len(weights) / out
	for o := range sums {
		sum := 0
		for _, w := range weights[o*n:][:n] {
			sum += int(w)
		}
		sums[o] = factor * float64(sum)
	}
	return sums, nil
}
