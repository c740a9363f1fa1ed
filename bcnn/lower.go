package bcnn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// LowerOptions are the options of Lower. The zero value is good.
type LowerOptions struct {
	// Unfused lowers without fusing thresholds and pools into convolutions, so
	// that every sum can be seen through a tap as a Float32 tensor. The output is
	// the same, bit for bit; it serves to look inside.
	Unfused bool
	Limits  Limits
}

// Lower turns a network into a plan. It takes every decision about arithmetic,
// once, in float64 and exact integers: batch normalisation and sign become a
// threshold per channel, padding and the rule for 0 are fixed, pooling moves
// behind the threshold, lifetimes are computed. The network is not changed. When
// ctx ends, its error is returned.
func Lower(ctx context.Context, n *Network, opts LowerOptions) (*Plan, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	return lower(ctx, n, !opts.Unfused, limits)
}

// OutputShape returns the shape of the plan's output.
func (p *Plan) OutputShape() Shape { return p.Tensors[p.Output].Shape }

type lowering struct {
	net   *Network
	types []valueType
	plan  *Plan
	uses  []int // how many layers read a layer
	fused bool
}

// value is a layer's output while lowering: a tensor or a convolution that is
// not emitted yet, and the functions still to be applied.
type value struct {
	tensor int       // unless conv is set
	conv   *ConvStep // pending, without epilogue
	convIn int       // the tensor that conv reads
	layers []int     // layers that the next step will implement, links apart
	chain  []link
	flat   bool // seen as a vector of all values
	shared bool // something else may read the tensor
}

func lower(ctx context.Context, n *Network, fused bool, limits Limits) (*Plan, error) {
	if len(n.Layers) > limits.Layers {
		return nil, fmt.Errorf("network %q has %d layers, at most %d are allowed", n.Name, len(n.Layers), limits.Layers)
	}
	types, err := n.infer()
	if err != nil {
		return nil, err
	}
	lo := &lowering{net: n, types: types, fused: fused, uses: make([]int, len(n.Layers))}
	lo.plan = &Plan{Name: n.Name, Input: n.Input, Labels: n.Labels}
	lo.plan.Tensors = []PlanTensor{{Name: "input", DType: n.Input.DType, Shape: n.Input.Shape, First: -1, Offset: -1}}
	for _, l := range n.Layers {
		for _, source := range l.Inputs {
			if source != NetworkInput {
				lo.uses[source]++
			}
		}
	}
	values := make([]value, len(n.Layers))
	for i, l := range n.Layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in := make([]value, len(l.Inputs))
		for j, source := range l.Inputs {
			if source != NetworkInput { // whose value is the zero value: tensor 0
				in[j] = values[source]
				in[j].chain = slices.Clip(in[j].chain)
				in[j].layers = slices.Clip(in[j].layers)
			}
		}
		v, err := lo.layer(i, l.Op, in)
		if err != nil {
			return nil, fmt.Errorf("network %q: layer %q: %w", n.Name, l.Name, err)
		}
		if lo.uses[i] > 1 {
			if !lo.settled(v) {
				v = value{tensor: lo.float(v), flat: v.flat}
			}
			v.shared = true
		}
		values[i] = v
	}
	lo.finish(values[len(values)-1])
	return lo.plan, nil
}

// settled reports whether the value is just a tensor.
func (lo *lowering) settled(v value) bool { return v.conv == nil && len(v.chain) == 0 }

func (lo *lowering) layer(i int, op Op, in []value) (value, error) {
	v := in[0]
	switch op := op.(type) {
	case Flatten:
		v.flat = true
		return v, nil
	case Softmax:
		lo.plan.Softmax = true
		return v, nil
	case ReLU:
		v.chain = append(v.chain, link{layer: i, kind: linkReLU})
		return v, nil
	case Sign:
		return lo.sign(v, i, op.Zero), nil
	case Dense:
		return lo.dense(v, i, op)
	case Affine:
		if len(op.Scale) <= 1 && len(op.Bias) <= 1 { // the same for all values
			v.chain = append(v.chain, affineLink(i, op))
			return v, nil
		}
	}
	// The rest reads channels, so a flattened image must really be one vector.
	for j := range in {
		in[j] = lo.vector(in[j])
	}
	v = in[0]
	switch op := op.(type) {
	case Binarize:
		step := &BinarizeStep{Scheme: op.Scheme}
		if len(op.Thresholds) > 0 {
			step.Threshold = &Threshold{I32: op.Thresholds}
		}
		return value{tensor: lo.emit(step, []int{i}, Bits, lo.types[i].shape, v.tensor)}, nil
	case BatchNorm:
		v.chain = append(v.chain, batchNormLink(i, op))
		return v, nil
	case Affine:
		v.chain = append(v.chain, affineLink(i, op))
		return v, nil
	case MaxPool:
		return lo.maxPool(v, i, op.Window.normal()), nil
	case Conv2D:
		return lo.conv2D(v, i, op)
	case Add:
		a, b := lo.float(in[0]), lo.float(in[1])
		return value{tensor: lo.emit(&AddStep{}, []int{i}, Float32, lo.types[i].shape, a, b)}, nil
	}
	return v, fmt.Errorf("no lowering for %s", op.Kind())
}

// emit appends a step and returns the tensor that it writes.
func (lo *lowering) emit(op StepOp, layers []int, d DType, s Shape, in ...int) int {
	var unique []int
	var names []string
	for _, l := range layers {
		if !slices.Contains(unique, l) {
			unique = append(unique, l)
			names = append(names, lo.net.Layers[l].Name)
		}
	}
	name := strings.Join(names, "+")
	if name == "" { // a copy that no layer asks for
		name = op.stepKind()
	}
	out := len(lo.plan.Tensors)
	lo.plan.Tensors = append(lo.plan.Tensors, PlanTensor{Name: name, DType: d, Shape: s, First: len(lo.plan.Steps), Offset: -1})
	lo.plan.Steps = append(lo.plan.Steps, Step{Name: name, Layers: unique, In: in, Out: out, Op: op})
	return out
}

// convShape is the output shape of a pending convolution.
func (lo *lowering) convShape(v value) Shape {
	h, w, _ := v.conv.Window.output(lo.plan.Tensors[v.convIn].Shape) // checked by infer
	return Shape{h, w, v.conv.Out}
}

// shape is the shape of a value before its chain, and before flattening.
func (lo *lowering) shape(v value) Shape {
	if v.conv != nil {
		return lo.convShape(v)
	}
	return lo.plan.Tensors[v.tensor].Shape
}

// vector returns the value as a tensor that really has the flattened shape.
func (lo *lowering) vector(v value) value {
	if !v.flat {
		return v
	}
	flat := lo.shape(v).Pixels() == 1
	if p := poolAt(v.chain); flat && p == len(v.chain) {
		v.flat = false
		return v
	}
	t := v.tensor
	if !lo.settled(v) || lo.plan.Tensors[t].DType == Uint8 {
		t = lo.float(v)
	}
	from := lo.plan.Tensors[t]
	if from.Shape.Pixels() == 1 {
		return value{tensor: t}
	}
	return value{tensor: lo.emit(&FlattenStep{}, nil, from.DType, Shape{1, 1, from.Shape.Values()}, t)}
}

// prefix splits off the links that one step can do in its epilogue: affine
// functions, then at most one ReLU.
func prefix(chain []link) (affine []link, relu bool, rest []link) {
	n := 0
	for n < len(chain) && chain[n].kind == linkAffine {
		n++
	}
	affine, rest = chain[:n], chain[n:]
	if len(rest) > 0 && rest[0].kind == linkReLU {
		return affine, true, rest[1:]
	}
	return affine, false, rest
}

func layersOf(chain []link) []int {
	var layers []int
	for _, l := range chain {
		layers = append(layers, l.layer)
	}
	return layers
}

// float makes a Float32 tensor of a value and returns its index.
func (lo *lowering) float(v value) int {
	t, chain := v.tensor, v.chain
	if v.conv != nil {
		affine, relu, rest := prefix(chain)
		v.conv.ReLU = relu
		if len(affine) > 0 {
			v.conv.Scale, v.conv.Shift = compose(affine, v.conv.Out)
		}
		done := layersOf(chain[:len(chain)-len(rest)])
		t, chain = lo.emitConv(v, done, Float32, lo.convShape(v)), rest
	} else if lo.plan.Tensors[t].DType != Float32 && (len(chain) == 0 || chain[0].kind == linkPool) {
		t = lo.emit(&AffineStep{}, nil, Float32, lo.plan.Tensors[t].Shape, t)
	} else if len(chain) > 0 && chain[0].kind == linkReLU && t != 0 {
		// A ReLU behind a sum that nothing else reads is done by the sum.
		step := &lo.plan.Steps[lo.plan.Tensors[t].First]
		if add, ok := step.Op.(*AddStep); ok && !v.shared {
			add.ReLU = true
			step.Layers = append(step.Layers, chain[0].layer)
			step.Name += "+" + lo.net.Layers[chain[0].layer].Name
			lo.plan.Tensors[t].Name = step.Name
			chain = chain[1:]
		}
	}
	for len(chain) > 0 {
		shape := lo.plan.Tensors[t].Shape
		if chain[0].kind == linkPool {
			t = lo.emitPool(chain[0].pool, nil, chain[0].layer, t)
			chain = chain[1:]
			continue
		}
		affine, relu, rest := prefix(chain)
		step := &AffineStep{ReLU: relu}
		if len(affine) > 0 {
			step.Scale, step.Shift = compose(affine, shape.C)
		}
		layers := append(slices.Clone(v.layers), layersOf(chain[:len(chain)-len(rest)])...)
		v.layers = nil
		t, chain = lo.emit(step, layers, Float32, shape, t), rest
	}
	return t
}

func (lo *lowering) emitPool(w Window, flip []uint64, layer, t int) int {
	from := lo.plan.Tensors[t]
	h, wd, _ := w.output(from.Shape) // checked by infer
	return lo.emit(&MaxPoolStep{Window: w, Flip: flip}, []int{layer}, from.DType, Shape{h, wd, from.Shape.C}, t)
}

// disjoint reports whether windows tile the image, so that an OR over them can
// be fused into the step that makes the bits.
func disjoint(w Window) bool {
	return w.KH == w.StrideH && w.KW == w.StrideW && w.Pad == Padding{}
}

func (lo *lowering) maxPool(v value, i int, w Window) value {
	if lo.settled(v) && lo.plan.Tensors[v.tensor].DType == Bits {
		// Sign, then pool: OR in the convolution that made the bits, if it has
		// no other reader and no pool yet.
		t := &lo.plan.Tensors[v.tensor]
		step := &lo.plan.Steps[t.First]
		conv, ok := step.Op.(*ConvStep)
		if lo.fused && ok && conv.Pool == nil && disjoint(w) && !v.shared {
			conv.Pool = &w
			t.Shape.H, t.Shape.W, _ = w.output(t.Shape)
			step.Layers = append(step.Layers, i)
			step.Name += "+" + lo.net.Layers[i].Name
			t.Name = step.Name
			return v
		}
		return value{tensor: lo.emitPool(w, nil, i, v.tensor)}
	}
	// Otherwise the pool waits for what follows: a Sign can be moved before it.
	if poolAt(v.chain) < len(v.chain) || v.conv == nil && lo.plan.Tensors[v.tensor].DType != Float32 {
		v = value{tensor: lo.float(v)}
	}
	v.chain = append(v.chain, link{layer: i, kind: linkPool, pool: w})
	return v
}

// sign makes bits of a value.
func (lo *lowering) sign(v value, i int, rule ZeroRule) value {
	dtype := Float32
	if v.conv == nil {
		dtype = lo.plan.Tensors[v.tensor].DType
	}
	if dtype == Bits {
		if lo.settled(v) {
			return v // the sign of ±1
		}
		v = value{tensor: lo.float(v), flat: v.flat}
		dtype = Float32
	}
	d := domain{float: true}
	switch {
	case v.conv != nil && v.conv.F32 == nil:
		d = domain{hi: lo.bound(v)}
		d.lo = -d.hi
	case dtype == Uint8:
		d = domain{lo: 0, hi: 255}
	}
	shape := lo.shape(v)
	threshold := Threshold{}
	before, after := newFlips(shape.C), newFlips(shape.C)
	var negate []int
	for c := range shape.C {
		dec := decide(v.chain, rule, c, d, v.conv != nil)
		if d.float {
			threshold.F32 = append(threshold.F32, dec.f32)
		} else {
			threshold.I32 = append(threshold.I32, dec.i32)
		}
		before.set(c, dec.before)
		after.set(c, dec.after)
		if dec.negate {
			negate = append(negate, c)
		}
	}
	p := poolAt(v.chain)
	layers := append(layersOf(v.chain[:p]), layersOf(v.chain[min(p+1, len(v.chain)):])...)
	out := value{flat: v.flat}
	if v.conv != nil {
		v.conv.negate(negate, lo.plan.Tensors[v.convIn].Shape.C/v.conv.Groups)
		v.conv.Threshold = &threshold
		if p < len(v.chain) && disjoint(v.chain[p].pool) {
			w := v.chain[p].pool
			v.conv.Pool, threshold.Flip = &w, after.words()
			shape.H, shape.W, _ = w.output(shape)
			layers = append(layersOf(v.chain), i)
			out.tensor = lo.emitConv(v, layers, Bits, shape)
			return out
		}
		out.tensor = lo.emitConv(v, append(layers, i), Bits, shape)
	} else {
		layers = append(append(slices.Clone(v.layers), layers...), i)
		threshold.Flip = before.words()
		var op StepOp = &SignStep{Threshold: threshold}
		if dtype == Uint8 {
			op = &BinarizeStep{Scheme: SchemeThreshold, Threshold: &threshold}
		}
		out.tensor = lo.emit(op, layers, Bits, shape, v.tensor)
	}
	if p < len(v.chain) {
		out.tensor = lo.emitPool(v.chain[p].pool, after.words(), v.chain[p].layer, out.tensor)
	}
	return out
}

// bound is the largest magnitude that the integer sum of a pending convolution
// can have.
func (lo *lowering) bound(v value) int64 {
	in := lo.plan.Tensors[v.convIn]
	k := int64(v.conv.KH) * int64(v.conv.KW) * int64(in.Shape.C/v.conv.Groups)
	if in.DType == Uint8 {
		z := int64(v.conv.ZeroPoint)
		k *= max(z, 255-z)
	}
	return k
}

// begin makes a value of a convolution that has just been set up.
func (lo *lowering) begin(v value) (value, error) {
	if v.conv.F32 == nil {
		limit := int64(math.MaxInt32 - 1)
		if !lo.fused {
			limit = 1 << 24 // float32 holds the integers up to here
		}
		if b := lo.bound(v); b > limit {
			return v, fmt.Errorf("sums of up to %d exceed %d", b, limit)
		}
	}
	if lo.fused {
		return v, nil
	}
	return value{tensor: lo.emitConv(v, nil, Float32, lo.convShape(v)), chain: v.chain}, nil
}

// emitConv emits a pending convolution with its epilogue set.
func (lo *lowering) emitConv(v value, layers []int, d DType, s Shape) int {
	in := lo.plan.Tensors[v.convIn]
	if in.DType == Bits {
		v.conv.Border = newBorder(v.conv, in.Shape)
	}
	return lo.emit(v.conv, append(slices.Clone(v.layers), layers...), d, s, v.convIn)
}

// finish makes the output of the last value, and the lifetimes and the arena.
func (lo *lowering) finish(v value) {
	p := lo.plan
	p.Output = lo.float(lo.vector(v))
	if p.Output == 0 { // the output is never the caller's input
		p.Output = lo.emit(&AffineStep{}, nil, Float32, p.Tensors[0].Shape, 0)
	}
	for i := range p.Tensors {
		p.Tensors[i].Last = p.Tensors[i].First
	}
	for s, step := range p.Steps {
		for _, t := range step.In {
			p.Tensors[t].Last = s
		}
	}
	p.Tensors[p.Output].Last = len(p.Steps)
	var index []int
	var items []Lifetime
	for i, t := range p.Tensors {
		if i != 0 && i != p.Output {
			index = append(index, i)
			items = append(items, Lifetime{t.First, t.Last, t.Shape.Bytes(t.DType)})
		}
	}
	offsets, total := Arena(items)
	for k, i := range index {
		p.Tensors[i].Offset = offsets[k]
	}
	p.ArenaBytes = total
}
