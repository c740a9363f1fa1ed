// Package build makes the layers of a bcnn.Network for the operators of a graph.
//
// A Value is a tensor that the network computes: the output of a layer, seen through a view. A
// function of it (see Func) or windows over it (see Windows) may be pending. An operator changes
// what is pending, or emits a layer; the layer that reads the value settles the rest. So the layers
// do not depend on the way in which an exporter writes a binarisation.
package build

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// A Builder makes a network, layer by layer.
type Builder struct {
	eval      *eval.Evaluator
	budget    *budget.Budget
	options   Options
	maxLayers int
	// Net is the network so far.
	Net *bcnn.Network
	// Made is the name of the first layer that a node became, by the index of the node.
	Made map[int]string
	// names are the names of layers, and the last number appended to each of them.
	names map[string]int
	// Zeros are the signs whose value at 0 an option has changed.
	Zeros []Zero
	// Ternary are the signs that keep a value of their own for 0.
	Ternary []Zero
	// Rounding is the relative error that weights of the node at hand may have because the file has
	// rounded them and what they were computed from, more for FLOAT16 and BFLOAT16 than for FLOAT.
	// It extends Options.WeightTolerance; 0 extends nothing.
	Rounding float64
	// Quantised says that the file quantises weights of the node at hand.
	Quantised bool
	// Rearranges allows values to be put in another order in memory. Refused says that one would
	// have had to be.
	Rearranges, Refused bool

	values *values.Analysis
	limits map[limiter]int  // layers that limit values: exporters write one for each reader
	holes  map[int]Obstacle // by layer: the reason of a hole, if it is not an earlier one
	// rounding is Rounding by layer, where it is not 0.
	rounding map[int]float64
	// quantised are the layers whose weights the file quantises.
	quantised map[int]bool
	err       error
}

// limiter is a bcnn.ReLU or bcnn.Clip of the output of a layer.
type limiter struct {
	op bcnn.Op
	of int
}

// Options are those of the import that change the network.
type Options struct {
	// SignOfZero is the rule for a step whose value at its threshold lies between the others. 0
	// keeps three values.
	SignOfZero bcnn.ZeroRule
	// OverrideZeros extends the rule to steps whose input often is at the threshold.
	OverrideZeros bool
	// WeightTolerance is the largest distance, relative to α, of weights that are taken as ±α.
	WeightTolerance float64
}

// Zero is a sign with a value of its own at 0, which Options.SignOfZero has changed or which stays.
type Zero struct {
	Node     *pb.Node
	Frequent bool // its input is often 0
	layer    int
}

// New returns a builder of an empty network that may have maxLayers layers.
func New(e *eval.Evaluator, maxLayers int, opts Options) *Builder {
	b := &Builder{
		eval: e, budget: e.Budget, options: opts, maxLayers: maxLayers,
		Net: &bcnn.Network{}, names: map[string]int{}, Made: map[int]string{}, holes: map[int]Obstacle{}, rounding: map[int]float64{}, quantised: map[int]bool{},
	}
	b.limits = map[limiter]int{}
	b.values = values.New(b.Net, b.budget)
	b.values.Within = b.Tolerance
	return b
}

// Err returns the first error of Emit or Hole.
func (b *Builder) Err() error { return b.err }

// layerUnits is the cost of a layer without its weights. Channels and pixels, which the file may
// claim to be many, are counted when the network is lowered.
const layerUnits = 1024

// Emit appends a layer made of a node, nil for the input, and returns its output with the view of
// the first operand. Errors are in Err.
func (b *Builder) Emit(n *pb.Node, suffix string, op bcnn.Op, shape bcnn.Shape, inputs ...*Value) *Value {
	out := &Value{Type: pb.Float, Node: n, Shape: shape, View: inputs[0].View}
	if b.err == nil {
		b.err = b.budget.Charge(layerUnits)
	}
	if b.err == nil && len(b.Net.Layers) == b.maxLayers {
		b.err = fmt.Errorf("the network has more than the %d layers that are allowed", b.maxLayers)
	}
	if b.err != nil {
		return out
	}
	list := make([]int, len(inputs))
	for i, in := range inputs {
		if in.Func != nil { // it would be lost
			panic(fmt.Sprintf("layer %s reads a value on which a function is pending", n.Label()+suffix))
		}
		list[i] = in.Layer
	}
	switch op.(type) {
	case bcnn.ReLU, bcnn.Clip:
		limit, made := limiter{op, list[0]}, false
		if out.Layer, made = b.limits[limit]; made {
			return out
		}
		b.limits[limit] = len(b.Net.Layers)
	}
	name := b.layerName(n.Label() + suffix)
	out.Layer = b.Net.Append(name, op, list...)
	b.values.Append(shape)
	if n != nil && b.Made[n.Index] == "" {
		b.Made[n.Index] = name
	}
	return out
}

// layerName makes a name unique by appending a number. It remembers the last number, or many nodes
// of one name would take quadratic time.
func (b *Builder) layerName(name string) string {
	last, taken := b.names[name]
	if !taken {
		b.names[name] = 1
		return name
	}
	for {
		last++
		unique := fmt.Sprintf("%s_%d", name, last)
		if _, taken := b.names[unique]; !taken {
			b.names[name], b.names[unique] = last, 1
			return unique
		}
	}
}

// Vector returns the values of all dimensions in order, as a vector.
func (b *Builder) Vector(v *Value, n *pb.Node) *Value {
	v = b.Settle(v)
	var all []view.Atom
	for _, d := range v.View.Flatten(v.Shape)[1:] {
		all = append(all, d...)
	}
	switch all = view.Merge(all); {
	case slices.Equal(all, view.All(view.C, v.Shape.Values())):
		out := b.Flatten(v, n).With(n)
		out.View = view.Vector(out.Shape.C)
		return out
	case v.Shape.Pixels() == 1:
		out := v.With(n)
		out.View = view.View{view.Batch, all}
		return b.InChannelOrder(n, out)
	}
	shape := bcnn.Shape{H: 1, W: 1, C: v.Shape.Values()}
	seen := view.View{view.Batch}
	stride := shape.C
	for _, d := range v.View[1:] {
		var atoms []view.Atom
		if k := view.Product(d); k > 1 {
			stride /= k
			atoms = []view.Atom{{Axis: view.C, Stride: stride, Size: k}}
		}
		seen = append(seen, atoms)
	}
	out := b.rearranged(n, v, shape, seen)
	out.View = view.Vector(shape.C)
	return out
}

// Flatten returns a value with its pixels lined up as channels.
func (b *Builder) Flatten(v *Value, n *pb.Node) *Value {
	if v.Shape.Pixels() == 1 {
		return v
	}
	out := b.Emit(n, "/flatten", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: v.Shape.Values()}, v)
	out.View = v.View.Flatten(v.Shape)
	return out
}

// Bytes reports whether a layer is an input of bytes.
func (b *Builder) Bytes(layer int) bool {
	return layer <= bcnn.NetworkInput && b.Net.Inputs[bcnn.NetworkInput-layer].DType == bcnn.Uint8
}

// CheckShape fails if no layer may have an output of this shape.
func (b *Builder) CheckShape(s bcnn.Shape) error {
	if s.H < 1 || s.W < 1 {
		return errors.New("the window is larger than its padded input")
	}
	n, err := eval.Count([]int{s.H, s.W, s.C})
	if err != nil {
		return err
	}
	if bytes := 4 * int64(n); bytes > b.eval.TensorBytes {
		return fmt.Errorf("a feature map of %v takes %d bytes, at most %d are allowed", s, bytes, b.eval.TensorBytes)
	}
	return nil
}

// NewFloats allocates numbers for a layer.
func (b *Builder) NewFloats(n int) []float32 {
	try.Check(b.budget.Charge(4 * int64(n)))
	return make([]float32, n)
}

// Movable returns a value whose dimensions may be regrouped, with the batch first. Windows stay
// pending.
func (b *Builder) Movable(v *Value) *Value {
	if v.Windows == nil {
		v = b.Settle(v)
	}
	if !view.IsBatch(v.View[0]) {
		try.Failf("the first dimension of its input must be the batch")
	}
	return v
}
