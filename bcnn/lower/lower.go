// Package lower turns networks into plans. It takes every decision about arithmetic, once, on the
// host, so that backends take none.
package lower

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Options are the options of Network. The zero value is good.
type Options struct {
	// Unfused keeps thresholds and pools in steps of their own, so that a tap sees every sum as a
	// Float32 tensor. The output has the same bits, but for signs of NaNs.
	Unfused bool
	Limits  bcnn.Limits
}

// Network turns a network into a plan. It takes every decision about arithmetic, once, in float64 and
// exact integers: batch normalisation and sign become a threshold per channel, padding and the rule
// for 0 are fixed, and a pool moves behind the threshold. The network is not changed. Time and
// memory are linear in the size of the network. When ctx ends, its error is returned.
func Network(ctx context.Context, n *bcnn.Network, opts Options) (*plan.Plan, error) {
	p, _, err := lower(ctx, n, opts)
	return p, err
}

// lowering is the state of Network.
type lowering struct {
	spending
	net   *bcnn.Network
	types []bcnn.ValueType
	plan  *plan.Plan
	uses  []int   // by layer: how many layers read it, plus one for each output
	next  [][]int // by layer: the layers that read it
	// ranges are the integers that each layer gives, see findRanges; moved has the results of
	// movedAs.
	ranges []levelRange
	moved  map[int]form
	fused  bool
	// groups are convolutions in groups, by the concatenation that stands for each. inGroups are
	// the other layers that they replace.
	groups   map[int]*groupedConv
	inGroups []bool
	// early are max-pools that have moved in front of levels.
	early map[int]bool
	// outputs are the tensors that are outputs of the plan so far.
	outputs map[int]bool
	// floats and vectors are copies of tensors, by tensor: as Float32, and flattened.
	floats, vectors map[int]int
	// counting are the convolutions whose sums are integers although they are computed in float32.
	counting map[*plan.Conv]bool
	notes    map[*plan.Conv]plan.Note
}

// value is the output of a layer while lowering: a tensor, or a convolution that is not emitted
// yet, and a chain of functions still to be applied. If anything is pending, only one layer reads
// the value, and takes it over.
type value struct {
	tensor int        // unless conv is set
	levels *levels    // what the bits of the tensor stand for, if not ±1
	conv   *plan.Conv // pending, without epilogue
	convIn int        // the tensor that conv reads
	out    bcnn.Shape // of conv
	layers []int      // that the step of conv will implement, besides those of the chain
	chain  []link
	mixed  bool // a link of the chain has a value per channel
	flat   bool // seen as a vector of all values
	shared bool // something else may read the tensor
}

// lower is Network, and also returns what it has spent.
func lower(ctx context.Context, n *bcnn.Network, opts Options) (*plan.Plan, spending, error) {
	defer fpmode.Enter().Leave()
	if n == nil {
		return nil, spending{}, errors.New("no network to lower")
	}
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, spending{}, err
	}
	if len(n.Layers) > limits.Layers {
		return nil, spending{}, fmt.Errorf("network %s has %d layers, at most %d are allowed; Limits.Layers allows more", text.Quote(n.Name), len(n.Layers), limits.Layers)
	}
	b := budget.New(ctx, 0)
	types, err := n.Types(b)
	if err != nil {
		return nil, spending{}, err
	}
	lo := &lowering{
		spending: newSpending(b, b.Used(), limits), // checking has charged the size of the network
		net:      n, types: types, fused: !opts.Unfused, uses: make([]int, len(n.Layers)),
		early: map[int]bool{}, floats: map[int]int{}, vectors: map[int]int{}, counting: map[*plan.Conv]bool{}, notes: map[*plan.Conv]plan.Note{},
		plan: &plan.Plan{Name: n.Name, Inputs: slices.Clone(n.Inputs), Labels: n.Labels},
	}
	if err := lo.run(); err != nil {
		return nil, lo.spending, fmt.Errorf("network %s: %w", text.Quote(n.Name), err)
	}
	return lo.plan, lo.spending, nil
}

func (lo *lowering) run() error {
	for i, in := range lo.net.Inputs {
		if err := lo.fits("an input", in.Shape.Bytes(in.DType)); err != nil {
			return err
		}
		lo.plan.Tensors = append(lo.plan.Tensors, plan.Tensor{Name: lo.net.InputName(i), DType: in.DType, Shape: in.Shape})
	}
	lo.next = make([][]int, len(lo.net.Layers))
	for i, l := range lo.net.Layers {
		for _, source := range l.Inputs {
			if source > bcnn.NetworkInput {
				lo.uses[source]++
				lo.next[source] = append(lo.next[source], i)
			}
		}
	}
	lo.findRanges()
	outputs := lo.net.OutputLayers()
	for _, l := range outputs {
		lo.uses[l]++
	}
	values := make([]value, len(lo.net.Layers))
	if lo.fused {
		if err := lo.findGroups(); err != nil {
			return err
		}
	}
	for i, l := range lo.net.Layers {
		if lo.fused && lo.inGroups[i] {
			continue
		}
		op, in := lo.inputs(i, values)
		v, err := lo.layer(i, op, in)
		if g := lo.groups[i]; g != nil {
			v.layers = g.layers
		}
		if err == nil && lo.uses[i] > 1 {
			v, err = lo.share(i, v)
		}
		if err != nil {
			return fmt.Errorf("layer %q: %w", l.Name, err)
		}
		values[i] = v
	}
	for k, l := range outputs {
		t, err := lo.output(values[l])
		if err != nil {
			return err
		}
		lo.plan.Tensors[t].Name = lo.net.OutputName(k)
		lo.plan.Outputs = append(lo.plan.Outputs, t)
	}
	if lo.fused {
		if err := lo.tables(); err != nil {
			return err
		}
	}
	lo.plan.Notes = make([]plan.Note, len(lo.plan.Steps))
	for i, s := range lo.plan.Steps {
		if conv, ok := s.Op.(*plan.Conv); ok {
			lo.plan.Notes[i] = lo.notes[conv]
		}
	}
	return nil
}

// share settles a value of layer i, which several layers read: nothing of it may be pending, unless
// all of them take signs, whose thresholds cost the same in front of functions.
func (lo *lowering) share(i int, v value) (value, error) {
	if v.conv == nil && len(v.chain) < maxMixed-1 && poolAt(v.chain) == len(v.chain) && lo.compared(i, true) {
		v.chain = slices.Clip(v.chain)
	} else if !lo.settled(v) {
		t, err := lo.float(v)
		if err != nil {
			return v, err
		}
		v = value{tensor: t, flat: v.flat}
	}
	v.shared = true
	return v, nil
}

// compared reports whether all that is done with the output of layer i is to take signs of it, with
// an Affine in between if there may be one. (Levels are counted faster where their thresholds are
// even, which those in front of functions are not.)
func (lo *lowering) compared(i int, affine bool) bool {
	return lo.uses[i] == len(lo.next[i]) && !slices.ContainsFunc(lo.next[i], func(reader int) bool {
		switch lo.net.Layers[reader].Op.(type) {
		case bcnn.Sign:
			return false
		case bcnn.Affine:
			return !affine || !lo.compared(reader, false)
		}
		return true
	})
}

// settled reports whether nothing of the value is pending.
func (lo *lowering) settled(v value) bool { return v.conv == nil && len(v.chain) == 0 }

// layer lowers layer i, an op on values in.
func (lo *lowering) layer(i int, op bcnn.Op, in []value) (value, error) {
	_, largest := bcnn.ParameterBytes(op)
	if err := lo.fits("parameters", largest); err != nil {
		return in[0], err
	}
	switch op.(type) {
	case bcnn.Flatten, bcnn.Conv2D, bcnn.Dense, bcnn.MaxPool, bcnn.Pixels, bcnn.Concat, bcnn.Channels, bcnn.Transpose: // they take levels
	default:
		if err := each(in, lo.plain); err != nil {
			return in[0], err
		}
	}
	if out, ok, err := lo.uniform(i, op, in[0]); ok || err != nil {
		return out, err
	}
	// The layers below read channels, so a flattened image must become a vector.
	if err := each(in, lo.vector); err != nil {
		return in[0], err
	}
	if len(in) > 1 {
		return lo.several(i, op, in)
	}
	v := in[0]
	switch op := op.(type) {
	case bcnn.Binarize:
		step := &plan.Binarize{Scheme: op.Scheme}
		if len(op.Thresholds) > 0 {
			step.Threshold = &plan.Threshold{I32: op.Thresholds}
		}
		t, err := lo.emit(step, []int{i}, bcnn.Bits, lo.types[i].Shape, v.tensor)
		return value{tensor: t}, err
	case bcnn.BatchNorm:
		return lo.push(v, batchNormLink(i, op))
	case bcnn.Affine:
		return lo.push(v, affineLink(i, op))
	case bcnn.PReLU:
		return lo.push(v, preluLink(i, op))
	case bcnn.Quantize:
		return lo.quantize(v, i, op)
	case bcnn.MaxPool:
		if lo.early[i] {
			return v, nil
		}
		return lo.maxPool(v, i, op.Window.Normal())
	case bcnn.Conv2D:
		return lo.conv2D(v, i, op)
	case bcnn.AvgPool:
		return lo.join(i, &plan.AvgPool{Window: op.Window.Normal(), CountPadding: op.CountPadding}, in, lo.packed(in), bcnn.Float32)
	case bcnn.Pixels:
		return lo.pixels(i, in, op.Normal())
	case bcnn.Resample:
		step := plan.Resample(op)
		return lo.join(i, &step, in, false, bcnn.Float32)
	case bcnn.TopK:
		step := plan.TopK(op)
		return lo.join(i, &step, in, false, bcnn.Float32)
	case bcnn.Transpose:
		return lo.move(i, &plan.Transpose{}, in, true)
	case bcnn.Channels:
		return lo.move(i, &plan.Channels{Index: op.Index}, in, !slices.Contains(op.Index, -1))
	}
	return v, fmt.Errorf("layers of kind %s cannot be lowered", op.Kind())
}

// each replaces every value of a list by f of it.
func each(list []value, f func(value) (value, error)) error {
	for k, v := range list {
		var err error
		if list[k], err = f(v); err != nil {
			return err
		}
	}
	return nil
}

// uniform lowers a layer that treats all values alike, or reads all of them in order, so that it
// may read a flattened image. ok is false for other layers.
func (lo *lowering) uniform(i int, op bcnn.Op, v value) (out value, ok bool, err error) {
	switch op := op.(type) {
	case bcnn.Flatten:
		v.flat = true
		return v, true, nil
	case bcnn.Softmax:
		lo.plan.Softmax = lo.plan.Softmax || i == lo.net.OutputLayers()[0]
		return v, true, nil
	case bcnn.ReLU:
		out, err = lo.push(v, link{layers: []int{i}, kind: linkReLU})
	case bcnn.Clip:
		out, err = lo.push(v, clipLink(i, op))
	case bcnn.Function:
		out, err = lo.push(v, functionLink(i, op))
	case bcnn.PReLU:
		if len(op.Slope) > 1 {
			return v, false, nil
		}
		out, err = lo.push(v, preluLink(i, op))
	case bcnn.Sign:
		out, err = lo.sign(v, i, op.Zero)
	case bcnn.Quantize:
		if len(op.Thresholds) >= op.Levels {
			return v, false, nil
		}
		out, err = lo.quantize(v, i, op)
	case bcnn.Dense:
		out, err = lo.dense(v, i, op)
	case bcnn.Affine:
		l := affineLink(i, op)
		if !l.uniform() {
			return v, false, nil
		}
		out, err = lo.push(v, l)
	default:
		return v, false, nil
	}
	return out, true, err
}

// several lowers a layer of several inputs.
func (lo *lowering) several(i int, op bcnn.Op, in []value) (value, error) {
	pairs := map[string]plan.PairKind{bcnn.Mul{}.Kind(): plan.PairMul, bcnn.Min{}.Kind(): plan.PairMin, bcnn.Max{}.Kind(): plan.PairMax, bcnn.Mask{}.Kind(): plan.PairMask}
	switch op.(type) {
	case bcnn.Add:
		return lo.join(i, &plan.Add{}, in, false, bcnn.Float32)
	case bcnn.Concat:
		return lo.move(i, &plan.Concat{}, in, true)
	case bcnn.MatMul:
		return lo.join(i, &plan.MatMul{}, in, lo.packed(in), bcnn.Float32)
	}
	kind, ok := pairs[op.Kind()]
	if !ok {
		return in[0], fmt.Errorf("layers of kind %s cannot be lowered", op.Kind())
	}
	return lo.join(i, &plan.Pair{Kind: kind}, in, false, bcnn.Float32)
}

// packed reports whether all values are tensors of bits, with nothing pending.
func (lo *lowering) packed(in []value) bool {
	return !slices.ContainsFunc(in, func(v value) bool {
		return !lo.settled(v) || lo.plan.Tensors[v.tensor].DType != bcnn.Bits
	})
}

// joinAs is join with an output of bits if asBits is set, and otherwise of Float32.
func (lo *lowering) joinAs(i int, op plan.Op, in []value, asBits bool) (value, error) {
	if asBits {
		return lo.join(i, op, in, true, bcnn.Bits)
	}
	return lo.join(i, op, in, false, bcnn.Float32)
}

// join emits the step of layer i, with an output of type d. The step reads its inputs as they are
// if asBits is set, and otherwise as Float32.
func (lo *lowering) join(i int, op plan.Op, in []value, asBits bool, d bcnn.DType) (value, error) {
	tensors := make([]int, len(in))
	for j, v := range in {
		tensors[j] = v.tensor
		if !asBits {
			var err error
			if tensors[j], err = lo.float(v); err != nil {
				return v, err
			}
		}
	}
	t, err := lo.emit(op, []int{i}, d, lo.types[i].Shape, tensors...)
	return value{tensor: t}, err
}

// emit appends a step that implements the given layers, and returns the tensor that it writes. The
// name of the step joins the names of its layers with "+".
func (lo *lowering) emit(op plan.Op, layers []int, d bcnn.DType, s bcnn.Shape, in ...int) (int, error) {
	if err := lo.fits("a tensor", s.Bytes(d)); err != nil {
		return 0, err
	}
	out := len(lo.plan.Tensors)
	lo.plan.Tensors = append(lo.plan.Tensors, plan.Tensor{DType: d, Shape: s})
	lo.plan.Steps = append(lo.plan.Steps, plan.Step{In: in, Out: out, Op: op})
	return out, lo.implement(out, layers)
}

// writer returns the step that writes tensor t. While lowering, tensors are the inputs and then one
// per step, in order.
func (lo *lowering) writer(t int) *plan.Step { return &lo.plan.Steps[t-len(lo.plan.Inputs)] }

// implement adds layers to the step that writes tensor t, and renames both.
func (lo *lowering) implement(t int, layers []int) error {
	step := lo.writer(t)
	return lo.name(step, &lo.plan.Tensors[t], append(step.Layers, layers...))
}

// name sets the layers that a step implements, its name, and that of the tensor that it writes.
func (lo *lowering) name(step *plan.Step, t *plan.Tensor, layers []int) error {
	step.Layers = slices.Compact(layers)
	if len(step.Layers) == 0 { // a copy that no layer asks for
		step.Name = step.Kind()
	} else {
		names := make([]string, len(step.Layers))
		for i, l := range step.Layers {
			names[i] = lo.net.Layers[l].Name
		}
		step.Name = strings.Join(names, "+")
	}
	t.Name = step.Name
	return lo.Charge(int64(len(step.Name)) + bcnn.LayerBytes*int64(1+len(step.Layers)))
}

// shape returns the shape of a value without its chain and before flattening.
func (lo *lowering) shape(v value) bcnn.Shape {
	if v.conv != nil {
		return v.out
	}
	shape := lo.plan.Tensors[v.tensor].Shape
	if v.levels != nil {
		shape.H /= v.levels.planes
	}
	return shape
}

// output returns a Float32 tensor of a value, as an output of the plan.
func (lo *lowering) output(v value) (int, error) {
	p := lo.plan
	v, err := lo.vector(v)
	if err != nil {
		return 0, err
	}
	t, err := lo.float(v)
	if err != nil {
		return 0, err
	}
	// An output must be neither an input nor another output.
	if lo.outputs[t] || t < len(p.Inputs) {
		if t, err = lo.emit(&plan.Affine{}, nil, bcnn.Float32, p.Tensors[t].Shape, t); err != nil {
			return 0, err
		}
	}
	if lo.outputs == nil {
		lo.outputs = map[int]bool{}
	}
	lo.outputs[t] = true
	return t, nil
}
