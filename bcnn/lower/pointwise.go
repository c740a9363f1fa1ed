package lower

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// maxMixed is the largest length of a chain in which some function has a value per channel. Each
// threshold is found by evaluating the whole chain, and thousands of functions for each of millions
// of channels would take hours, so the functions before become a tensor. A chain that is the same
// for all channels is evaluated once, and may have any length.
const maxMixed = 16

// searchSteps is how often a chain is evaluated to find a threshold: once per bit of a float32, and
// for the ends of the range and the direction.
const searchSteps = 36

// push adds a function to the chain of a value.
func (lo *lowering) push(v value, l link) (value, error) {
	if last := len(v.chain) - 1; last >= 0 && l.kind == linkReLU && v.chain[last].kind == linkReLU {
		v.chain[last].layers = append(v.chain[last].layers, l.layers...) // does nothing more
		return v, nil
	}
	v.mixed = v.mixed || !l.uniform()
	if v.mixed && len(v.chain) >= maxMixed {
		t, err := lo.float(v)
		if err != nil {
			return v, err
		}
		v = value{tensor: t, flat: v.flat, mixed: !l.uniform()}
	}
	v.chain = append(v.chain, l)
	if l.bends() { // it has no single threshold
		t, err := lo.float(v)
		return value{tensor: t, flat: v.flat}, err
	}
	return v, nil
}

// vector returns a value that is seen as a vector as one with that shape.
func (lo *lowering) vector(v value) (value, error) {
	if !v.flat {
		return v, nil
	}
	flat := lo.shape(v).Pixels() == 1
	if v.levels != nil && !flat { // planes lie in rows, so they cannot be flattened
		var err error
		if v, err = lo.plain(v); err != nil {
			return v, err
		}
	}
	if p := poolAt(v.chain); flat && p == len(v.chain) {
		v.flat = false
		return v, nil
	}
	t := v.tensor
	if !lo.settled(v) || lo.plan.Tensors[t].DType == bcnn.Uint8 {
		var err error
		if t, err = lo.float(v); err != nil {
			return v, err
		}
	}
	from := lo.plan.Tensors[t]
	if from.Shape.Pixels() == 1 {
		return value{tensor: t, levels: v.levels}, nil
	}
	t, err := lo.copy(lo.vectors, &plan.Flatten{}, from.DType, bcnn.Shape{H: 1, W: 1, C: from.Shape.Values()}, t)
	return value{tensor: t}, err
}

// copy emits a step that copies tensor t, or returns the copy in made.
func (lo *lowering) copy(made map[int]int, op plan.Op, d bcnn.DType, s bcnn.Shape, t int) (int, error) {
	if out, ok := made[t]; ok {
		return out, nil
	}
	out, err := lo.emit(op, nil, d, s, t)
	made[t] = out
	return out, err
}

func (lo *lowering) activation(l *link, channels int) (plan.Activation, error) {
	if l.kind == linkPReLU {
		if err := lo.hold(4 * int64(channels)); err != nil {
			return plan.Activation{}, err
		}
	}
	return l.activation(channels), nil
}

func layersOf(chain []link) []int {
	var layers []int
	for _, l := range chain {
		layers = append(layers, l.layers...)
	}
	return layers
}

// float makes a Float32 tensor of a value, and returns it.
func (lo *lowering) float(v value) (t int, err error) {
	if v, err = lo.plain(v); err != nil {
		return 0, err
	}
	t, chain := v.tensor, v.chain
	if v.conv != nil {
		return lo.convFloat(v)
	}
	if lo.plan.Tensors[t].DType != bcnn.Float32 && (len(chain) == 0 || chain[0].kind == linkPool) {
		if t, err = lo.copy(lo.floats, &plan.Affine{}, bcnn.Float32, lo.plan.Tensors[t].Shape, t); err != nil {
			return 0, err
		}
	} else if chain, err = lo.addedActivation(v); err != nil {
		return 0, err
	}
	return lo.affines(t, chain, lo.only(t))
}

// convFloat is float for a pending convolution.
func (lo *lowering) convFloat(v value) (t int, err error) {
	chain, of := v.chain, lo.sums(v)
	if of.unit != 0 {
		if chain, of, err = lo.addedIntegers(v, chain, of); err != nil {
			return 0, err
		}
	}
	affine, activation, rest, err := lo.prefix(chain, v.conv.Out, of, false)
	if err != nil {
		return 0, err
	}
	done := layersOf(chain[:len(chain)-len(rest)])
	v.conv.Activation = activation
	if v.conv.Scale, v.conv.Shift, err = lo.compose(affine, v.conv.Out); err != nil {
		return 0, err
	}
	if t, err = lo.emitConv(v, done, bcnn.Float32, v.out); err != nil {
		return 0, err
	}
	return lo.affines(t, rest, of.behind(chain))
}

// addedActivation fuses the first link of a chain, if it is an activation, into the Add that writes
// the tensor, if nothing else reads that. It returns the rest of the chain.
func (lo *lowering) addedActivation(v value) ([]link, error) {
	t, chain := v.tensor, v.chain
	if len(chain) == 0 || t < len(lo.plan.InputTensors()) {
		return chain, nil
	}
	switch chain[0].kind {
	case linkAffine, linkPool, linkFunction:
		return chain, nil
	}
	add, ok := lo.writer(t).Op.(*plan.Add)
	if !ok || v.shared || add.Activation.Kind != plan.ActivationNone {
		return chain, nil
	}
	var err error
	if add.Activation, err = lo.activation(&chain[0], lo.plan.Tensors[t].Shape.C); err != nil {
		return nil, err
	}
	return chain[1:], lo.implement(t, chain[0].layers)
}

// affines emits the steps of a chain behind Float32 tensor t, whose values are of.
func (lo *lowering) affines(t int, chain []link, of values) (int, error) {
	for len(chain) > 0 {
		shape := lo.plan.Tensors[t].Shape
		var err error
		if chain[0].kind == linkPool {
			if t, err = lo.emitPool(chain[0], 1, nil, t); err != nil {
				return 0, err
			}
			chain, of = chain[1:], values{}
			continue
		}
		affine, activation, rest, err := lo.prefix(chain, shape.C, of, true)
		if err != nil {
			return 0, err
		}
		step := &plan.Affine{Activation: activation}
		if step.Scale, step.Shift, err = lo.compose(affine, shape.C); err != nil {
			return 0, err
		}
		if t, err = lo.emit(step, layersOf(chain[:len(chain)-len(rest)]), bcnn.Float32, shape, t); err != nil {
			return 0, err
		}
		of, chain = of.behind(chain), rest
	}
	return t, nil
}

// emitPool emits the max-pool of a link, on a number of planes.
func (lo *lowering) emitPool(l link, planes int, flip []uint64, t int) (int, error) {
	shape := l.out
	shape.H *= max(planes, 1)
	return lo.emit(&plan.MaxPool{Window: *l.pool, Planes: planes, Flip: flip}, l.layers, lo.plan.Tensors[t].DType, shape, t)
}

// disjoint reports whether windows tile the image, so that a pool of bits, an OR, can be fused into
// the step that makes the bits.
func disjoint(w bcnn.Window) bool {
	return w.KH == w.StrideH && w.KW == w.StrideW && w.Pad == bcnn.Padding{}
}

func (lo *lowering) maxPool(v value, i int, w bcnn.Window) (value, error) {
	l := link{layers: []int{i}, kind: linkPool, pool: &w, out: lo.types[i].Shape}
	if v.levels != nil && v.levels.bytes {
		t, err := lo.emitPool(l, 0, nil, v.tensor)
		if err == nil {
			lo.plan.Tensors[t].Coded = true
		}
		return value{tensor: t, levels: v.levels}, err
	}
	if lo.settled(v) && lo.plan.Tensors[v.tensor].DType == bcnn.Bits {
		planes := 1
		if v.levels != nil {
			planes = v.levels.planes
		}
		// A pool behind a sign is an OR. It is fused into the convolution that made the bits if
		// that has no other reader and no pool yet.
		t := &lo.plan.Tensors[v.tensor]
		conv, ok := lo.writer(v.tensor).Op.(*plan.Conv)
		if lo.fused && ok && conv.Pool == nil && disjoint(w) && !v.shared {
			conv.Pool = &w
			t.Shape = l.out
			t.Shape.H *= planes
			return v, lo.implement(v.tensor, l.layers)
		}
		t2, err := lo.emitPool(l, planes, nil, v.tensor)
		lo.plan.Tensors[t2].Coded = v.levels != nil
		return value{tensor: t2, levels: v.levels}, err
	}
	// Otherwise the pool stays pending: a Sign behind it can move in front of it.
	if poolAt(v.chain) < len(v.chain) || v.conv == nil && lo.plan.Tensors[v.tensor].DType != bcnn.Float32 {
		t, err := lo.float(v)
		if err != nil {
			return v, err
		}
		v = value{tensor: t}
	}
	return lo.push(v, l)
}

// sign makes bits of a value, for the Sign of layer i.
func (lo *lowering) sign(v value, i int, rule bcnn.ZeroRule) (value, error) {
	dtype, sums := bcnn.Float32, v.conv != nil && v.conv.Integer()
	if sums {
		var err error
		if v, err = lo.floatValues(v); err != nil {
			return v, err
		}
	}
	if v.conv == nil {
		dtype = lo.plan.Tensors[v.tensor].DType
	}
	if dtype == bcnn.Bits {
		return lo.signOfBits(v, i, rule)
	}
	shape := lo.shape(v)
	cuts, err := lo.decide(v, shape.C, rule, lo.domain(v))
	if err != nil {
		return v, err
	}
	if v.conv != nil {
		return lo.convBits(v, i, cuts)
	}
	threshold := cuts.threshold
	threshold.Flip = cuts.before.words()
	var op plan.Op = &plan.Sign{Threshold: threshold}
	if dtype == bcnn.Uint8 {
		op = &plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &threshold}
	}
	p := poolAt(v.chain)
	out := value{flat: v.flat}
	layers := append(layersButPool(v.chain), i)
	if sums {
		layers = lo.undone(layers, v.tensor)
	}
	out.tensor, err = lo.emit(op, layers, bcnn.Bits, shape, v.tensor)
	if err == nil && p < len(v.chain) {
		out.tensor, err = lo.emitPool(v.chain[p], 1, cuts.after.words(), out.tensor)
	}
	return out, err
}

// signOfBits makes bits of functions of ±1, which it evaluates for both.
func (lo *lowering) signOfBits(v value, i int, rule bcnn.ZeroRule) (value, error) {
	if lo.settled(v) {
		return v, nil // the sign of ±1
	}
	channels := lo.plan.Tensors[v.tensor].Shape.C
	// bits returns the bits that −1 and +1 become.
	bits := func(c int) (minus, plus bool) {
		return positive(rule, evaluate(v.chain, c, -1)), positive(rule, evaluate(v.chain, c, 1))
	}
	once, same := uniform(v.chain), true
	for c := range channels {
		if c > 0 && (once || !same) {
			break
		}
		if err := lo.Charge(2 * int64(1+len(v.chain))); err != nil {
			return v, err
		}
		minus, plus := bits(c)
		same = plus && !minus
	}
	if same {
		out := value{tensor: v.tensor, flat: v.flat, shared: v.shared}
		return out, lo.implement(v.tensor, append(layersOf(v.chain), i))
	}
	if err := lo.hold(12 * int64(channels)); err != nil {
		return v, err
	}
	step := &plan.Affine{Scale: make([]float32, channels), Shift: make([]float32, channels)}
	for c := range channels {
		if c > 0 && once {
			step.Scale[c], step.Shift[c] = step.Scale[0], step.Shift[0]
			continue
		}
		if err := lo.Charge(2 * int64(1+len(v.chain))); err != nil {
			return v, err
		}
		switch minus, plus := bits(c); {
		case plus != minus:
			step.Scale[c] = map[bool]float32{true: 1, false: -1}[plus]
		case plus:
			step.Shift[c] = 1
		default:
			step.Shift[c] = -1
		}
	}
	shape := lo.plan.Tensors[v.tensor].Shape
	t, err := lo.emit(step, layersOf(v.chain), bcnn.Float32, shape, v.tensor)
	if err != nil {
		return v, err
	}
	lo.plan.Tensors[t].Coded = true
	out := value{flat: v.flat}
	out.tensor, err = lo.emit(&plan.Sign{Threshold: plan.Threshold{F32: make([]float32, channels)}}, []int{i}, bcnn.Bits, shape, t)
	return out, err
}

// domain returns the numbers among which a threshold of a value is searched.
func (lo *lowering) domain(v value) domain {
	switch {
	case v.conv != nil && v.conv.F32 == nil:
		d := domain{hi: lo.bound(v)}
		d.lo = -d.hi
		return d
	case v.conv == nil && lo.plan.Tensors[v.tensor].DType == bcnn.Uint8:
		return domain{lo: 0, hi: 255}
	}
	return domain{float: true}
}

// layersButPool returns the layers of a chain without that of its pool.
func layersButPool(chain []link) []int {
	p := poolAt(chain)
	return append(layersOf(chain[:p]), layersOf(chain[min(p+1, len(chain)):])...)
}

// convBits emits a pending convolution whose output is the bits of layer i.
func (lo *lowering) convBits(v value, i int, cuts decisions) (value, error) {
	if err := lo.negate(v, cuts.negate); err != nil {
		return v, err
	}
	threshold, planes := cuts.threshold, max(cuts.planes, 1)
	for k, t := range threshold.I32 { // to thresholds of sums without their offset
		if v.conv.Offset != nil && t != math.MinInt32 && t != math.MaxInt32 {
			threshold.I32[k] = t - v.conv.Offset[k%v.conv.Out]
		}
	}
	v.conv.Offset = nil
	v.conv.Threshold, v.conv.OutPlanes = &threshold, planes
	out := value{flat: v.flat}
	var err error
	p := poolAt(v.chain)
	if p < len(v.chain) && disjoint(*v.chain[p].pool) {
		v.conv.Pool, threshold.Flip = v.chain[p].pool, cuts.after.words()
		shape := v.chain[p].out
		shape.H *= planes
		out.tensor, err = lo.emitConv(v, append(layersOf(v.chain), i), bcnn.Bits, shape)
		return out, err
	}
	shape := v.out
	shape.H *= planes
	if out.tensor, err = lo.emitConv(v, append(layersButPool(v.chain), i), bcnn.Bits, shape); err == nil && p < len(v.chain) {
		out.tensor, err = lo.emitPool(v.chain[p], planes, cuts.after.words(), out.tensor)
	}
	return out, err
}

// decisions are the decisions of all channels.
type decisions struct {
	threshold     plan.Threshold
	planes        int   // of the number of thresholds that are reached; 0 means 1
	negate        []int // channels
	before, after flips
}

// decide turns a pending chain and a Sign into a decision per channel. A chain that is the same for
// all channels is evaluated once.
func (lo *lowering) decide(v value, channels int, rule bcnn.ZeroRule, d domain) (decisions, error) {
	// For each channel a threshold, and flips before and after a pool.
	if err := lo.hold(4*int64(channels) + 16*int64(len(newFlips(channels).row))); err != nil {
		return decisions{}, err
	}
	out := decisions{before: newFlips(channels), after: newFlips(channels)}
	if d.float {
		out.threshold.F32 = make([]float32, channels)
	} else {
		out.threshold.I32 = make([]int32, channels)
	}
	once := uniform(v.chain)
	var dec decision
	for c := range channels {
		if c == 0 || !once {
			if err := lo.Charge(searchSteps * int64(1+len(v.chain))); err != nil {
				return out, err
			}
			dec = decide(v.chain, func(y float64) bool { return positive(rule, y) }, c, d, v.conv != nil)
		}
		if d.float {
			out.threshold.F32[c] = dec.f32
		} else {
			out.threshold.I32[c] = dec.i32
		}
		out.before.set(c, dec.before)
		out.after.set(c, dec.after)
		if dec.negate {
			out.negate = append(out.negate, c)
		}
	}
	return out, nil
}

// zeroPoint tests whether the chain of a value of bytes is (x − z)·slope for all channels, with an
// integer z from 0 to 255. If not, why says so.
func (lo *lowering) zeroPoint(v value) (z uint8, slope float64, why string, err error) {
	chain, channels := v.chain, lo.plan.Tensors[v.tensor].Shape.C
	if slices.ContainsFunc(chain, func(l link) bool { return l.kind != linkAffine }) {
		return 0, 0, "the input passes through an activation", nil
	}
	slope = slopeOf(chain, 0)
	if slope == 0 {
		return 0, 0, "the scale of the input is 0", nil
	}
	zero := math.RoundToEven(-evaluate(chain, 0, 0) / slope)
	if zero < 0 || zero > 255 {
		return 0, 0, "the zero of the scaled input is not a byte", nil
	}
	if uniform(chain) {
		channels = 1
	}
	for c := range channels {
		if err := lo.Charge(2 * int64(len(chain))); err != nil {
			return 0, 0, "", err
		}
		if slopeOf(chain, c) != slope {
			return 0, 0, "the input is scaled differently per channel", nil
		}
		if evaluate(chain, c, zero) != 0 {
			return 0, 0, "the zero of the scaled input is not one integer for all channels", nil
		}
	}
	return uint8(zero), slope, "", nil
}
