package build

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operand is a tensor of a graph, a constant or a value, or a sequence of tensors.
type Operand struct {
	Constant *eval.Tensor
	Value    *Value
	// Parts are the tensors of a sequence, which may be empty. nil means that it is no sequence.
	Parts []Operand
	// Sum says that the tensor is a sum or difference. nil means that it is none.
	Sum *Sum
}

// Type returns the element type.
func (r Operand) Type() pb.DataType {
	if r.Constant != nil {
		return r.Constant.Type
	}
	return r.Value.Type
}

// Value is a tensor that is computed from the input: the output of a layer seen through a view, and
// what is pending on it.
type Value struct {
	Type  pb.DataType
	Node  *pb.Node // that made it; nil for the input
	Layer int      // bcnn.NetworkInput or an index
	Shape bcnn.Shape
	View  view.View
	// Hole says that the value stands for one that cannot be computed. A nil View means unknown
	// dimensions.
	Hole bool

	Func    *Func
	Windows *Windows

	settled *Value // what Settle has made of it
	// turned is the value of which this one is a permutation, with the same function pending.
	turned *permuted
}

// permuted is a value, and which of its dimensions becomes each dimension of another one.
type permuted struct {
	of   *Value
	perm []int
}

// With returns a copy of the value, made by node n, for changes.
func (v *Value) With(n *pb.Node) *Value {
	w := *v
	w.Node, w.settled, w.turned = n, nil, nil
	return &w
}

// CheckReal checks that the value is FLOAT, which layers compute with.
func (v *Value) CheckReal() error {
	if v.Type != pb.Float {
		return fmt.Errorf("its input is %v, want FLOAT", v.Type)
	}
	return nil
}

// AxisOf returns the axis that dimension dim runs over completely and in order, or view.N if there
// is none. A dimension of size 1 has an axis if it is the height or width of an NCHW view.
func (v *Value) AxisOf(dim int) view.Axis {
	d := v.View[dim]
	if len(d) == 0 {
		if dim >= 2 && v.CheckImage() == nil {
			return view.Axis(dim) - 2 + view.H
		}
		return view.N
	}
	for x, size := range map[view.Axis]int{view.H: v.Shape.H, view.W: v.Shape.W, view.C: v.Shape.C} {
		if slices.Equal(d, view.All(x, size)) {
			return x
		}
	}
	return view.N
}

// Size returns the size of a dimension.
func (v *Value) Size(dim int) int { return view.Product(v.View[dim]) }

// CheckImage checks that the value is a batch of images seen as NCHW. The channels may be in any
// order.
func (v *Value) CheckImage() error {
	if len(v.View) != 4 {
		return fmt.Errorf("its input has %d dimensions, want 4: batch, channels, height, width", len(v.View))
	}
	if !view.IsBatch(v.View[0]) || !view.Only(v.View[1], view.C) || view.Product(v.View[1]) != v.Shape.C ||
		!slices.Equal(v.View[2], view.All(view.H, v.Shape.H)) || !slices.Equal(v.View[3], view.All(view.W, v.Shape.W)) {
		return fmt.Errorf("its input is not an image of batch, channels, height, width (stored as %v, height×width×channels): "+
			"a Reshape or Transpose before it cannot be represented", v.Shape)
	}
	return nil
}

// CheckPooled checks that the value is a batch of images, as CheckImage, or one whose heights lie
// along the columns in memory and whose widths lie along the rows: turned reports that.
func (v *Value) CheckPooled() (turned bool, err error) {
	if v.CheckImage() == nil {
		return false, nil
	}
	w := v.With(v.Node)
	if len(v.View) == 4 {
		w.View = view.View{v.View[0], v.View[1], v.View[3], v.View[2]}
	}
	if w.CheckImage() == nil {
		return true, nil
	}
	return false, v.CheckImage()
}

// Channels returns the channel in memory of each position of a dimension that runs over all
// channels, or nil if both orders are the same.
func (b *Builder) Channels(v *Value, d []view.Atom) []int {
	if slices.Equal(d, view.All(view.C, v.Shape.C)) {
		return nil
	}
	return b.Offsets(d, view.ChannelStride)
}

// Offsets is view.Offsets, charged to the budget.
func (b *Builder) Offsets(d []view.Atom, stride func(view.Atom) int) []int {
	try.Check(b.budget.Charge(24 * int64(view.Product(d))))
	return view.Offsets(d, stride)
}
