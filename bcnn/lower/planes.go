package lower

import (
	"math"
	mathbits "math/bits"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Values of several levels flow as bit planes (see plan.Conv), of the number of
// thresholds that they reach. So
//
//   - a convolution with ±1 weights is one binary product for every plane, times its
//     power of 2;
//   - weights that are a sum of ±1 are weights over more channels, which are repeated for
//     the parts of a weight.

// levels says what planes stand for: with S = Σ 2^j·(±1 of bit j),
//
//	x = (S + offset) / 2
//
// A padded tap, which is 0, has S = −offset.
//
// Where there are too many for planes, the numbers are bytes (planes is 1), and
//
//	x = number − zero
type levels struct {
	planes, offset int
	bytes          bool
	zero           uint8
}

// planesOf returns the planes for so many levels from low on.
func planesOf(low, count int) levels {
	planes := mathbits.Len(uint(count - 1))
	if planes == 1 && (low < -1 || low > 0) { // whose padding is neither of both, nor between
		planes = 2
	}
	return levels{planes: planes, offset: 2*low + 1<<planes - 1}
}

const (
	// fewProducts is how many binary products of levels may stand for one.
	fewProducts = 6
	// mostProducts is how many may where values are planes anyway: beyond it, float32 is
	// about as fast.
	mostProducts = 16
)

// Why a layer on levels, or with integer weights, is computed in float32.
const (
	tooManyProducts = "its weights have more levels than products of bits are worth, and its input is bits"
	bitsInGroups    = "it sums bits in groups that are too small"
	bytesInGroups   = "it sums bytes in groups that are too small"
	tooManyBytes    = "its sums of bytes might not fit into 32 bits"
	levelsAsFloats  = "0 is not among the levels of its input"
)

// quantize makes planes of levels.
func (lo *lowering) quantize(v value, i int, op bcnn.Quantize) (value, error) {
	l := planesOf(op.Low, op.Levels)
	form, err := lo.wanted(i, op, l.planes, costOfLevels)
	if err != nil {
		return v, err
	}
	if form != asPlanes {
		return lo.numbers(v, i, op, form)
	}
	v, err = lo.plain(v)
	if err != nil {
		return v, err
	}
	if !lo.fused || v.conv == nil || v.conv.F32 != nil || lo.plan.Tensors[v.convIn].DType != bcnn.Bits {
		if v, err = lo.floatValues(v); err != nil {
			return v, err
		}
	}
	if !uniform(v.chain) && (op.Levels-1)*(1+len(v.chain))*searchSteps > bcnn.WorkPerByte*bytesPerChannel(v.chain) {
		t, err := lo.float(v) // or every layer would take longer than its size explains
		if err != nil {
			return v, err
		}
		v = value{tensor: t, flat: v.flat}
	}
	cuts, err := lo.decideLevels(v, op, l.planes)
	if err != nil {
		return v, err
	}
	var out value
	if v.conv != nil {
		out, err = lo.convBits(v, i, cuts)
	} else {
		layers := lo.undone(append(layersButPool(v.chain), i), v.tensor)
		threshold := cuts.threshold
		threshold.Flip = cuts.before.words()
		shape := lo.shape(v)
		shape.H *= l.planes
		out.tensor, err = lo.emit(&plan.Sign{Threshold: threshold, Planes: l.planes}, layers, bcnn.Bits, shape, v.tensor)
		if p := poolAt(v.chain); err == nil && p < len(v.chain) {
			out.tensor, err = lo.emitPool(v.chain[p], l.planes, cuts.after.words(), out.tensor)
		}
	}
	if err != nil {
		return out, err
	}
	out.levels, out.flat = &l, v.flat
	for t := out.tensor; ; t = lo.writer(t).In[0] { // and in front of a pool
		lo.plan.Tensors[t].Coded = true
		if _, pool := lo.writer(t).Op.(*plan.MaxPool); !pool {
			break
		}
	}
	return out, nil
}

// numbers makes levels of layer i as bytes or as float32 values. The max-pool behind them is in front of
// them, if it can be, where they are made of the values of a convolution in float32.
func (lo *lowering) numbers(v value, i int, op bcnn.Quantize, form form) (value, error) {
	v, op, folded, err := lo.before(v, op)
	if err != nil {
		return v, err
	}
	real := v.conv != nil && v.conv.F32 != nil
	t, err := lo.float(v)
	if err != nil {
		return v, err
	}
	layers := lo.undone(append(folded, i), t)
	if pool, ok := lo.poolBehind(i); ok && real {
		if t, err = lo.emitPool(pool, 1, nil, t); err != nil {
			return v, err
		}
		lo.early[pool.layers[0]] = true
	}
	out, dtype := value{flat: v.flat}, bcnn.Float32
	if form == asBytes {
		out.levels, dtype = &levels{planes: 1, bytes: true, zero: uint8(-op.Low)}, bcnn.Uint8
	}
	step := &plan.Quantize{Low: op.Low, Levels: op.Levels, Thresholds: op.Thresholds}
	out.tensor, err = lo.emit(step, layers, dtype, lo.plan.Tensors[t].Shape, t)
	if err == nil {
		lo.plan.Tensors[out.tensor].Coded = form == asBytes
	}
	return out, err
}

// poolBehind returns the max-pool that is all that reads the levels of layer i, if it leaves fewer of
// them: in front of levels it does the same, as these never fall, and fewer are to be made.
func (lo *lowering) poolBehind(i int) (link, bool) {
	if !lo.fused || lo.uses[i] > 1 || len(lo.next[i]) == 0 {
		return link{}, false
	}
	reader := lo.next[i][0]
	out := lo.types[reader].Shape
	pool, ok := lo.net.Layers[reader].Op.(bcnn.MaxPool)
	if !ok || out.Values() >= lo.types[i].Shape.Values() {
		return link{}, false
	}
	w := pool.Window.Normal()
	return link{layers: []int{reader}, kind: linkPool, pool: &w, out: out}, true
}

// undone returns the layers that the step in front of them has not done: a bias or a
// scale of the layer whose sums it makes is a part of that one.
func (lo *lowering) undone(layers []int, t int) []int {
	if t < len(lo.plan.Inputs) {
		return layers
	}
	done := lo.writer(t).Layers
	n := len(layers)
	layers = slices.DeleteFunc(layers, func(l int) bool { return slices.Contains(done, l) })
	if len(layers) < n {
		lo.plan.Tensors[t].Coded = true
	}
	return layers
}

// floatValues returns a value with its chain on a tensor of Float32, sums included.
func (lo *lowering) floatValues(v value) (value, error) {
	v, err := lo.plain(v)
	if err != nil {
		return v, err
	}
	switch {
	case v.conv != nil:
		if err := lo.exact(v); err != nil {
			return v, err
		}
		v.tensor, err = lo.emitConv(v, nil, bcnn.Float32, v.out)
		v.conv = nil
	case lo.plan.Tensors[v.tensor].DType != bcnn.Float32:
		v.tensor, err = lo.emit(&plan.Affine{}, nil, bcnn.Float32, lo.plan.Tensors[v.tensor].Shape, v.tensor)
	}
	return v, err
}

// plain returns a value without levels: sums over the planes of every channel that are
// still to be made.
func (lo *lowering) plain(v value) (value, error) {
	if v.levels == nil {
		return v, nil
	}
	l, shape := *v.levels, lo.shape(v)
	if l.bytes {
		v.levels = nil
		if l.zero == 0 {
			return v, nil // the numbers are the values
		}
		if err := lo.hold(8 * int64(shape.C)); err != nil {
			return v, err
		}
		step := &plan.Affine{Scale: slices.Repeat([]float32{1}, shape.C), Shift: slices.Repeat([]float32{-float32(l.zero)}, shape.C)}
		var err error
		v.tensor, err = lo.emit(step, nil, bcnn.Float32, shape, v.tensor)
		return v, err
	}
	if err := lo.hold(12 * int64(shape.C)); err != nil {
		return v, err
	}
	conv := &plan.Conv{
		Window: bcnn.Window{KH: 1, KW: 1}.Normal(), Out: shape.C, Groups: shape.C, PadValue: -l.offset,
		InPlanes: l.planes, Bits: slices.Repeat([]uint64{1}, shape.C),
	}
	if l.offset != 0 {
		conv.Offset = slices.Repeat([]int32{int32(l.offset)}, shape.C)
	}
	half := link{kind: linkAffine, mean: []float64{0}, scale: []float64{0.5}, shift: []float64{0}}
	return value{conv: conv, convIn: v.tensor, out: shape, chain: append([]link{half}, v.chain...), mixed: v.mixed, flat: v.flat}, nil
}

// planes completes conv, whose rows of weights have rowLen values, on bits that stand
// for levels, or with integer weights, or both.
func (lo *lowering) planes(v value, i int, conv *plan.Conv, w bcnn.Weights, rowLen int, bias []float32) (value, error) {
	out := value{conv: conv, out: lo.types[i].Shape, layers: []int{i}}
	in := levels{planes: 1}
	unit := 1.0
	if v.levels != nil {
		in, unit = *v.levels, 0.5
	}
	integers, err := lo.integers(w, rowLen)
	if err != nil {
		return out, err
	}
	weights, weightUnit := unary(integers)
	if in.planes*weights > mostProducts {
		lo.notes[conv] = plan.Note{WhyFloat: tooManyProducts}
		lo.counting[conv] = true
		return lo.realConv(v, out, w, rowLen, bias)
	}
	conv.InPlanes, lo.notes[conv] = in.planes, plan.Note{Parts: weights}
	if v.levels != nil {
		conv.PadValue = -in.offset
	}
	if out.convIn, err = lo.repeat(v.tensor, weights, conv.Groups); err != nil {
		return out, err
	}
	n := lo.plan.Tensors[v.tensor].Shape.C / conv.Groups // channels of a tap
	if conv.Bits, err = lo.unaryRows(integers, n, weights, weightUnit); err != nil {
		return out, err
	}
	// Σ x·w is scale·(Σ S·p + offset·Σ p) with w = weightUnit·p: integers before the scale.
	scale := unit * weightUnit
	shift := []float64{0}
	if in.offset != 0 {
		if shift, err = lo.filterSums(integers, conv.Out, float64(in.offset)/weightUnit); err != nil {
			return out, err
		}
		if conv.Offset, err = lo.offsets(shift); err != nil {
			return out, err
		}
		if conv.Offset != nil {
			shift = []float64{0}
		}
	}
	if scale != 1 || len(shift) > 1 {
		for o := range shift {
			shift[o] *= scale
		}
		l := link{layers: []int{i}, kind: linkAffine, mean: []float64{0}, scale: []float64{scale}, shift: shift}
		if out, err = lo.push(out, l); err != nil {
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

// betweenZeros completes conv, in groups of bits with weights of ±1, as one that reads the inputs of all groups,
// with weights of 0 for those of others.
func (lo *lowering) betweenZeros(v value, i int, conv *plan.Conv, w bcnn.Weights, rowLen int, bias []float32) (value, error) {
	groups := conv.Groups
	signs, err := lo.integers(w, rowLen)
	if err != nil {
		return value{}, err
	}
	if err := lo.hold(int64(len(signs)) * int64(groups)); err != nil {
		return value{}, err
	}
	outputs, inputs := conv.Out/groups, lo.shape(v).C/groups
	all := make([]int8, len(signs)*groups) // [output][tap][group][input]
	taps := len(signs) / conv.Out / inputs
	for o := range conv.Out {
		for k := range taps {
			row := o*taps + k
			copy(all[(row*groups+o/outputs)*inputs:], signs[row*inputs:][:inputs])
		}
	}
	conv.Groups = 1
	out, err := lo.planes(v, i, conv, bcnn.Weights{Int8: all}, rowLen, bias)
	note := lo.notes[conv]
	note.Groups = groups
	lo.notes[conv] = note
	return out, err
}

// integers unpacks weights.
func (lo *lowering) integers(w bcnn.Weights, rowLen int) ([]int8, error) {
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

// unaryRows packs rows of n weights, [part of a weight][channel].
func (lo *lowering) unaryRows(weights []int8, n, parts int, unit float64) ([]uint64, error) {
	words := bits.Words(n * parts)
	rows := len(weights) / n
	if err := lo.hold(8 * int64(rows) * int64(words)); err != nil {
		return nil, err
	}
	out := make([]uint64, rows*words)
	for r := range rows {
		if err := lo.Charge(int64(n * parts)); err != nil {
			return nil, err
		}
		row := out[r*words:][:words]
		for c, w := range weights[r*n:][:n] {
			for j := range (int(float64(w)/unit) + parts) / 2 {
				at := j*n + c
				row[at/bits.WordBits] |= 1 << (at % bits.WordBits)
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
	var op plan.Op = &plan.Concat{}
	in := []int{t}
	if groups == 1 {
		in = slices.Repeat(in, n)
	} else {
		index, err := lo.repeatedChannels(shape.C, group, n)
		if err != nil {
			return 0, err
		}
		op = &plan.Channels{Index: index}
	}
	out, err := lo.emit(op, nil, bcnn.Bits, shape, in...)
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

// offsets returns numbers as plan.Conv.Offset, nil where they are too large for that.
func (lo *lowering) offsets(numbers []float64) ([]int32, error) {
	if err := lo.hold(4 * int64(len(numbers))); err != nil {
		return nil, err
	}
	list := make([]int32, len(numbers))
	for o, x := range numbers {
		if math.Abs(x) > plan.MaxOffset || x != math.Trunc(x) {
			return nil, nil
		}
		list[o] = int32(x)
	}
	return list, nil
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
