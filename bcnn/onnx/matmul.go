package onnx

import (
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

func (im *importer) matMul(n *pb.Node) build.Operand {
	operands := im.operands(n, 2)
	a, b := operands[0], operands[1]
	switch {
	case a.Constant != nil && b.Constant != nil:
		return build.Operand{Constant: im.eval.MatMul(a.Constant, b.Constant)}
	case a.Value != nil && b.Value != nil:
		return im.product(n, a.Value, b.Value)
	case a.Value != nil:
		return im.multiplied(n, a.Value, b.Constant)
	}
	// A·x is (xᵀ·Aᵀ)ᵀ.
	t := a.Constant
	for len(t.Dims) > 2 && t.Dims[0] == 1 {
		t = t.Redim(t.Dims[1:])
	}
	if rank := len(b.Value.View); len(t.Dims) == 2 && rank > 2 {
		perm := make([]int, rank)
		for i := range perm {
			perm[i] = i
		}
		perm[rank-2], perm[rank-1] = rank-1, rank-2
		turned := im.permute(n, b, perm)
		weights := im.eval.Transpose(t, []int{1, 0})
		r := im.multiplied(n, turned.Value, weights)
		return im.permute(n, r, perm)
	}
	panic(try.Errorf("input 0 (%s) is a constant of dimensions %v: want a matrix, and an input 1 with more than 2 dimensions", text.Quote(n.Input(0)), t.Dims))
}

// product returns the product of two computed matrices of each image, as attention has it: of
// dimensions [batch, rows, k] and [batch, k, columns], perhaps with heads behind the batch.
func (im *importer) product(n *pb.Node, a, b *build.Value) build.Operand {
	a, b = im.build.Movable(a), im.build.Movable(b)
	rank := len(a.View)
	if rank != len(b.View) || rank != 3 && rank != 4 {
		try.Failf("the product of two computed tensors of %d and %d dimensions is not supported: both must have batch, rows and columns, "+
			"with or without heads behind the batch", rank, len(b.View))
	}
	if a.Size(rank-1) != b.Size(rank-2) || rank == 4 && a.Size(1) != b.Size(1) {
		try.Failf("matrices of dimensions %v and %v (without the batch) cannot be multiplied", dimensions(a)[1:], dimensions(b)[1:])
	}
	heads := -1
	if rank == 4 {
		heads = 1
	}
	x := im.build.Arrange(n, a, rank-1, heads, rank-2)
	if view.Only(b.View[rank-1], view.C) { // its columns are the channels: heads are told apart, then they swap
		b = im.build.Arrange(n, b, rank-1, heads, rank-2)
	}
	y := im.build.Arrange(n, b, rank-2, heads, rank-1)
	try.Check(x.CheckReal())
	try.Check(y.CheckReal())
	shape := bcnn.Shape{H: x.Shape.H, W: x.Shape.W, C: y.Shape.W}
	try.Check(im.build.CheckShape(shape))
	out := im.build.Emit(n, "", bcnn.MatMul{}, shape, x, y)
	out.View = view.View{view.Batch, view.All(view.W, shape.W), view.All(view.C, shape.C)}
	if heads > 0 {
		out.View = view.View{view.Batch, view.All(view.H, shape.H), view.All(view.W, shape.W), view.All(view.C, shape.C)}
	}
	return build.Operand{Value: out}
}

// einsumOfTwo imports an Einsum of two computed tensors, of labels first and second, that sums one
// dimension that both have: each image, or each head of it, has two matrices to multiply.
func (im *importer) einsumOfTwo(n *pb.Node, a, b *build.Value, first, second, to string, refuse func() build.Operand) build.Operand {
	if first == "" || len(first) != len(a.View) || len(second) != len(b.View) || len(first) != len(second) || len(to) != len(first) ||
		repeats(first) || repeats(second) || repeats(to) {
		return refuse()
	}
	only := func(labels, without string) string { // the labels that another list lacks
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(without, r) {
				return -1
			}
			return r
		}, labels)
	}
	both := only(first, only(first, second))
	joined, rows, columns := only(both, to), only(first, second), only(second, first)
	shared := only(both, joined)
	if len(joined) != 1 || len(rows) != 1 || len(columns) != 1 || len(shared) != len(first)-2 || first[0] != shared[0] || second[0] != shared[0] {
		return refuse()
	}
	x := im.permute(n, build.Operand{Value: a}, order(shared+rows+joined, first, refuse))
	y := im.permute(n, build.Operand{Value: b}, order(shared+joined+columns, second, refuse))
	return im.permute(n, im.product(n, x.Value, y.Value), order(to, shared+rows+columns, refuse))
}
