package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// A networkBuilder makes the layers of a network of values.
type networkBuilder struct {
	budget     *budget.Budget
	eval       *eval.Evaluator
	signOfZero bcnn.ZeroRule
	net        *bcnn.Network
	names      map[string]bool // of layers
	made       map[int]string  // the first layer that a node became
}

func newBuilder(e *eval.Evaluator, signOfZero bcnn.ZeroRule) *networkBuilder {
	return &networkBuilder{
		budget: e.Budget, eval: e, signOfZero: signOfZero,
		net: &bcnn.Network{}, names: map[string]bool{}, made: map[int]string{},
	}
}

// emit appends a layer made of a node (nil for the input) and returns its
// output, seen as the first operand is.
func (b *networkBuilder) emit(n *pb.Node, suffix string, op bcnn.Op, shape bcnn.Shape, inputs ...*value) *value {
	// Lowering allocates for every channel, row and column of a layer, however
	// large the file claims them to be. node sees the overdraft.
	_ = b.budget.Charge(16 * (int64(shape.C) + int64(shape.H) + int64(shape.W)))
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	out := &value{typ: pb.Float, node: n, shape: shape, view: inputs[0].view}
	name := b.layerName(n.Label() + suffix)
	out.layer = b.net.Append(name, op, list...)
	if n != nil && b.made[n.Index] == "" {
		b.made[n.Index] = name
	}
	return out
}

// layerName makes a name valid and unique.
func (b *networkBuilder) layerName(name string) string {
	const maxLen = 200
	name = strings.ToValidUTF8(name, "?")
	if len(name) > maxLen {
		name = strings.ToValidUTF8(name[:maxLen], "")
	}
	unique := name
	for i := 2; b.names[unique] || unique == ""; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	b.names[unique] = true
	return unique
}

// vector returns a value whose dimensions, one after the other, are in the
// order of the memory, as a vector.
func (b *networkBuilder) vector(v *value, n *pb.Node) (*value, error) {
	var all []view.Atom
	for _, d := range v.view.Flatten(v.shape)[1:] {
		all = append(all, d...)
	}
	if !slices.Equal(view.Merge(all), view.Whole(view.C, v.shape.Values())) {
		return nil, errors.New("its values are in an order that would need a transposition")
	}
	return b.flattened(v, n), nil
}

// flattened returns the value with all its pixels lined up as channels.
func (b *networkBuilder) flattened(v *value, n *pb.Node) *value {
	if v.shape.Pixels() == 1 {
		return v
	}
	out := b.emit(n, "/flatten", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: v.shape.Values()}, v)
	out.view, out.signs = v.view.Flatten(v.shape), v.signs
	return out
}

func shapeFits(s bcnn.Shape) error {
	if s.H < 1 || s.W < 1 {
		return errors.New("the window is larger than its padded input")
	}
	_, err := eval.Count([]int{s.H, s.W, s.C})
	return err
}

// floats allocates numbers for a layer.
func (b *networkBuilder) floats(n int) ([]float32, error) {
	if err := b.budget.Charge(4 * int64(n)); err != nil {
		return nil, err
	}
	return make([]float32, n), nil
}

// movable returns a value whose dimensions may be regrouped.
func (b *networkBuilder) movable(v *value) (*value, error) {
	v, err := b.settleSigns(v)
	if err != nil {
		return nil, err
	}
	switch {
	case v.pad != nil:
		return nil, v.pad.error()
	case !view.IsBatch(v.view[0]):
		return nil, errors.New("the first dimension of its input is not the batch")
	}
	return v, nil
}
