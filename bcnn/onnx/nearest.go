package onnx

import (
	"cmp"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Nearest levels: additive powers of two (APoT; Li, Dong and Wang, ICLR 2020) take the level that is
// nearest to each value,
//
//	levels[argmin over the first dimension of |x.view(−1).unsqueeze(0) − levels.unsqueeze(1)|]
//
// The levels have a dimension of their own in front of the batch, which no layer has. Their number is a
// function of one value with a threshold between each two.

// distances are a tensor with a dimension in front of that of a value.
type distances struct {
	of     *build.Value // unrolled
	levels []float32    // that are subtracted; nil: there is one position, the value
	abs    bool
}

// apart makes distances of a flattened value whose Unsqueeze puts a dimension in front; ok is false for
// any other node.
func (im *importer) apart(n *pb.Node) (r build.Operand, ok bool) {
	v := im.env[n.Input(0)].Value
	if v != nil && im.lines[n.Input(0)] != nil {
		v = im.lines[n.Input(0)]
	}
	if n.OpType != "Unsqueeze" || !isRows(v) || len(v.View) != 1 {
		return r, false
	}
	axes := n.Ints("axes")
	if axes == nil {
		axes = try.Value(im.required(n, 1).Integers())
	}
	if !slices.Equal(axes, []int64{0}) && !slices.Equal(axes, []int64{-2}) {
		return r, false
	}
	im.distances[n.Outputs[0]] = &distances{of: im.build.Settle(unrolled(v))}
	return build.Operand{Value: v}, true
}

// ofDistances imports a node that reads distances; ok is false for any other node.
func (im *importer) ofDistances(n *pb.Node) (r build.Operand, ok bool) {
	at := slices.IndexFunc(n.Inputs, func(name string) bool { return im.distances[name] != nil })
	if at < 0 {
		return r, false
	}
	d := *im.distances[n.Input(at)]
	switch {
	case n.OpType == "Sub" && len(n.Inputs) == 2 && d.levels == nil && im.distances[n.Input(1-at)] == nil:
		t := im.required(n, 1-at)
		if t.Type != pb.Float || len(t.Dims) != 2 || t.Dims[1] != 1 || t.Dims[0] == 0 {
			try.Failf("what a value is compared with is %v of shape %v, want FLOAT levels in a column", t.Type, t.Dims)
		}
		d.levels = t.F32
	case n.OpType == "Abs" && d.levels != nil:
		d.abs = true
	case n.OpType == "ArgMin" && d.abs && n.Int("axis", 0) == 0 && n.Bit("keepdims", 1) == 0 && n.Bit("select_last_index", 0) == 0:
		return im.nearest(n, d.of, d.levels), true
	default:
		try.Failf("the dimension in front of the batch is that of levels, of which only the nearest can be taken: ArgMin of |x − levels|")
	}
	im.distances[n.Outputs[0]] = &d
	return build.Operand{Value: d.of}, true
}

// mostLevels is the largest number of levels that a value is compared with.
const mostLevels = 256

// nearest is the number of the level nearest to each value, the first of several.
func (im *importer) nearest(n *pb.Node, v *build.Value, levels []float32) build.Operand {
	if len(levels) > mostLevels {
		try.Failf("a value is compared with %d levels, at most %d are supported", len(levels), mostLevels)
	}
	order := make([]int, len(levels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(levels[i], levels[k]) })
	order = slices.CompactFunc(order, func(i, k int) bool { return levels[i] == levels[k] }) // the first of equals
	if len(order) < 2 {
		try.Failf("a value is compared with one level, want several")
	}
	im.requireApart(v, levels, order)
	integer := func(i int) *eval.Tensor { return eval.Scalar(pb.Int64, float64(i)) }
	sum := build.Operand{Constant: integer(order[0])}
	for i, k := range order[1:] {
		below, above := order[i], k
		a, b := levels[below], levels[above]
		t := f32.Least(func(x float32) bool {
			from, to := float32(math.Abs(float64(x-a))), float32(math.Abs(float64(x-b)))
			return x >= b || x > a && (to < from || to == from && above < below)
		})
		step := im.build.Threshold(n, v, eval.Scalar(pb.Float, float64(t)), integer(0), integer(above-below), integer(above-below))
		var ok bool
		if sum, ok = im.build.Pointwise(n, []build.Operand{sum, step}, im.eval.Binary("Add")); !ok {
			try.Failf("the levels cannot be ordered")
		}
	}
	sum.Value = rolled(sum.Value)
	return sum
}

// requireApart fails unless the distances of a value from levels, in their order, differ wherever they
// would without rounding by more than one step: far from all levels, float32 has one distance from several.
func (im *importer) requireApart(v *build.Value, levels []float32, order []int) {
	from, to := im.build.Bounds(v)
	least, most := float64(levels[order[0]]), float64(levels[order[len(order)-1]])
	gap := math.Inf(1)
	for i, k := range order[1:] {
		gap = min(gap, float64(levels[k])-float64(levels[order[i]]))
	}
	const steps = 1 << 20
	if far := max(to, most) - min(from, least); !(far <= gap*steps) {
		try.Failf("its values lie from %g to %g: limit them by a Clip, since far from all levels none is nearest in float32", from, to)
	}
}

// gatherSteps imports Gather from a list of constants with the numbers that steps of a value give.
func (im *importer) gatherSteps(n *pb.Node, list *eval.Tensor, index *build.Value) build.Operand {
	r, _ := im.build.Pointwise(n, []build.Operand{{Value: index}}, func(args []*eval.Tensor) *eval.Tensor {
		return im.eval.Gather(list, args[0], 0)
	})
	return r
}
