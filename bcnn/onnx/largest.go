package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// ArgMax, ArgMin and TopK of values.

// largest returns the first input of a node, arranged so that the axis of the node runs over the
// channels if it can be, and the axis. If smallest is set the values are negated.
func (im *importer) largest(n *pb.Node, fallback int64, smallest bool) (*build.Value, int) {
	v := im.value(n, 0)
	a := n.Int("axis", fallback)
	axis := axisIndex(a, len(v.View))
	if smallest {
		v = im.build.Settle(v)
		try.Check(v.CheckReal())
		v = im.build.Emit(n, "/negated", bcnn.Affine{Scale: []float32{-1}}, v.Shape, v)
	}
	v = im.overChannelsOf(n, v, axis)
	return v, axis
}

// topK imports TopK over channels: values and channel indices, the largest first.
func (im *importer) topK(n *pb.Node) build.Operand {
	largest := n.Bit("largest", 1)
	k := n.Int("k", -1) // before opset 10
	if !n.Has("k") {
		t := im.required(n, 1)
		if t.Type != pb.Int64 || t.Len() != 1 {
			try.Failf("K is %v of shape %v, want a single INT64", t.Type, t.Dims)
		}
		k = t.I64[0]
	}
	if r := im.operand(n, 0); r.Constant != nil {
		return im.topKConstant(n, r.Constant, k, largest == 0)
	}
	v, axis := im.largest(n, -1, largest == 0)
	op := bcnn.TopK{K: int(max(-1, min(k, pb.MaxSize)))}
	var values build.Operand
	if len(n.Outputs) > 1 && n.Outputs[1] != "" {
		out := im.build.TopK(n, "/indices", v, axis, op)
		im.env[n.Outputs[1]] = build.Operand{Value: out}
	}
	if name := n.Outputs[0]; name == "" || !im.read(name) {
		return im.env[n.Outputs[1]]
	}
	op.Values = true
	if values.Value = im.build.TopK(n, "", v, axis, op); largest == 0 {
		values.Value = im.build.Emit(n, "/values", bcnn.Affine{Scale: []float32{-1}}, values.Value.Shape, values.Value)
	}
	return values
}

// read reports whether a needed node reads a tensor, or it is an output of the graph.
func (im *importer) read(name string) bool {
	if im.budget.Charge(int64(len(im.model.Graph.Nodes))) != nil {
		return true // the caller of the handler sees the error
	}
	return slices.ContainsFunc(im.model.Graph.Outputs, func(o pb.ValueInfo) bool { return o.Name == name }) ||
		slices.ContainsFunc(im.model.Graph.Nodes, func(n *pb.Node) bool {
			names, err := im.reads(n)
			return im.needed[n.Index] && (err != nil || slices.Contains(names, name))
		})
}

// overChannelsOf returns a value as an image with dimension dim as its channels and the others as
// its rows and columns. It returns the value itself if dim runs over all channels or all values, or
// is the batch.
func (im *importer) overChannelsOf(n *pb.Node, v *build.Value, dim int) *build.Value {
	d := v.View[dim]
	if view.IsBatch(d) || view.Only(d, view.C) && view.Product(d) == v.Shape.C || view.Product(d) == v.Shape.Values() || len(v.View) > 4 || v.Hole {
		return v
	}
	others := []int{-1, -1} // rows and columns
	for i := len(v.View) - 1; i > 0; i-- {
		if i != dim {
			others = append([]int{i}, others...)
		}
	}
	rows, cols := others[0], others[1]
	if cols < 0 {
		rows, cols = cols, rows
	}
	return im.build.Arrange(n, v, dim, rows, cols)
}

// argMax imports ArgMax and ArgMin.
func (im *importer) argMax(n *pb.Node) build.Operand {
	if r := im.operand(n, 0); r.Constant != nil {
		return im.argMaxConstant(n, r.Constant)
	}
	v, axis := im.largest(n, 0, n.OpType == "ArgMin")
	last := n.Bit("select_last_index", 0)
	keep := n.Bit("keepdims", 1)
	size := view.Product(v.View[axis])
	if last != 0 { // the first of the reversed channels
		if view.IsBatch(v.View[axis]) {
			try.Failf("it would compare the images of the batch with each other")
		}
		reversed := try.Value(budget.List(im.budget, size, func(i int) int { return size - 1 - i }))
		v = im.build.Pick(n, "/reversed", v, axis, reversed)
	}
	out := im.build.TopK(n, "", v, axis, bcnn.TopK{K: 1})
	if last != 0 {
		from := im.build.Emit(n, "/position", bcnn.Affine{Scale: []float32{-1}, Bias: []float32{float32(size - 1)}}, out.Shape, out)
		from.Type, out = out.Type, from
	}
	if keep == 0 {
		out.View = edit(out.View, []int{axis}, false, nil)
	}
	return build.Operand{Value: out}
}
