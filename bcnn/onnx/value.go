package onnx

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// result is a tensor of the graph: a constant or a value.
type result struct {
	constant *eval.Tensor
	value    *value
}

func (r result) typ() pb.DataType {
	if r.constant != nil {
		return r.constant.Type
	}
	return r.value.typ
}

// value is a tensor that is computed from the input: the output of a layer
// seen through a view, and what is still to be done to it.
type value struct {
	typ   pb.DataType
	node  *pb.Node // that made it, nil for the input
	layer int      // bcnn.NetworkInput or an index
	shape bcnn.Shape
	view  view.View
	signs bool    // all values are ±1, times gain
	gain  float32 // pending factor of ±1 values; 0 means 1

	pad  *pending // values around the image
	clip *clip
	step *step

	// What settleSigns and settle made of the value.
	signed, plain *value
}

// pending is padding that the next window takes in.
type pending struct {
	bcnn.Padding
	value float32
	node  *pb.Node
}

// clip is max(lo, min(x, hi)), which only a binarisation behind it can absorb.
type clip struct {
	lo, hi float64
	node   *pb.Node
}

// with returns a copy of the value as made by node n, for changes.
func (v *value) with(n *pb.Node) *value {
	w := *v
	w.node, w.signed, w.plain = n, nil, nil
	return &w
}

// real checks that the value is of a type that layers compute with.
func (v *value) real() error {
	if v.typ != pb.Float {
		return fmt.Errorf("its input is %v, want FLOAT", v.typ)
	}
	return nil
}

// axisOf returns the axis that a dimension runs over in order, or axisN. A
// dimension of size 1 has one where the view is NCHW.
func (v *value) axisOf(dim int) view.Axis {
	d := v.view[dim]
	if len(d) == 0 {
		if dim >= 2 && v.image() == nil {
			return view.Axis(dim) - 2 + view.H
		}
		return view.N
	}
	for x, size := range map[view.Axis]int{view.H: v.shape.H, view.W: v.shape.W, view.C: v.shape.C} {
		if slices.Equal(d, view.Whole(x, size)) {
			return x
		}
	}
	return view.N
}

// size returns the size of a dimension, padding included.
func (v *value) size(dim int) int {
	n := view.Product(v.view[dim])
	if v.pad != nil {
		switch v.axisOf(dim) {
		case view.H:
			n += v.pad.Top + v.pad.Bottom
		case view.W:
			n += v.pad.Left + v.pad.Right
		}
	}
	return n
}

// image checks that the value is a batch of feature maps in NCHW, whose
// channels may be in any order.
func (v *value) image() error {
	if len(v.view) != 4 {
		return fmt.Errorf("its input has %d dimensions, want 4: batch, channels, height, width", len(v.view))
	}
	if !view.IsBatch(v.view[0]) || !view.Only(v.view[1], view.C) || view.Product(v.view[1]) != v.shape.C ||
		!slices.Equal(v.view[2], view.Whole(view.H, v.shape.H)) || !slices.Equal(v.view[3], view.Whole(view.W, v.shape.W)) {
		return fmt.Errorf("its input is not an image of batch, channels, height, width (%v in memory): "+
			"a Reshape or Transpose before it cannot be represented", v.shape)
	}
	return nil
}

// channels returns the order of a dimension that runs over all channels, nil
// if it is that of the memory.
func (v *value) channels(d []view.Atom) []int {
	if slices.Equal(d, view.Whole(view.C, v.shape.C)) {
		return nil
	}
	return view.Offsets(d, view.ChannelStride)
}

func (p *pending) error() error {
	return fmt.Errorf("%v must stand right before a Conv", p.node)
}
