package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// gemm imports Gemm, alpha·A·B + beta·C, with a computed A and constant B and C.
func (im *importer) gemm(n *pb.Node) build.Operand {
	transA := n.Bit("transA", 0)
	transB := n.Bit("transB", 0)
	alpha := n.Float("alpha", 1)
	beta := n.Float("beta", 1)
	if transA != 0 {
		try.Failf("transA must be 0, since a transposed input would mix the images of the batch")
	}
	c := im.constant(n, 2)
	v := im.value(n, 0)
	if len(v.View) != 2 {
		try.Failf("its input has %d dimensions, want 2: batch and features", len(v.View))
	}
	w := im.required(n, 1)
	return im.dense(n, v, w, transB != 0, alpha, beta, c)
}

// multiplied returns the product of a value and a constant matrix.
func (im *importer) multiplied(n *pb.Node, v *build.Value, w *eval.Tensor) build.Operand {
	return im.dense(n, v, w, false, 1, 0, nil)
}

// dense returns alpha·v·w + beta·c, with w transposed if transB is set: a dense layer over all
// values of v, a 1×1 convolution if v has a last dimension of channels (as a MatMul may), or a
// convolution if v has windows pending.
func (im *importer) dense(n *pb.Node, v *build.Value, w *eval.Tensor, transB bool, alpha, beta float32, c *eval.Tensor) build.Operand {
	v = im.build.Movable(v)
	try.Check(v.CheckReal())
	if len(w.Dims) != 2 || w.Type != pb.Float {
		try.Failf("its weights are %v of shape %v, want FLOAT with 2 dimensions", w.Type, w.Dims)
	}
	if v.Windows != nil {
		if c == nil && alpha == 1 {
			if r, ok := im.windowed(n, v, w, transB); ok {
				return r
			}
		}
		v = im.build.Settle(v)
	}
	k, out := w.Dims[0], w.Dims[1]
	if transB {
		k, out = out, k
	}
	if c == nil && out > 0 && k != v.Shape.Values() { // of each position, as in a MatMul
		if v = im.channelled(n, v, k); k == v.Shape.C && view.Only(lastOf(v), view.C) && view.Product(lastOf(v)) == k {
			return im.pixelDense(n, v, w, nil)
		}
	}
	if len(v.View) < 2 || view.Product(lastOf(v)) != k || k != v.Shape.Values() || out == 0 {
		try.Failf("weights of shape %v cannot multiply a last dimension of %d out of the %d values of an image: it must hold all values, or the channels",
			w.Dims, view.Product(lastOf(v)), v.Shape.Values())
	}
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	try.Check(im.build.CheckShape(shape))
	rows := im.denseRows(v, w, k, out, transB, alpha)
	y := im.build.Weighted(n, v, bcnn.Dense{Out: out, Weights: bcnn.Weights{F32: rows}, Bias: im.denseBias(c, out, beta)}, shape)
	y.View = append(view.View{}, v.View...)
	y.View[len(y.View)-1] = view.All(view.C, out)
	return build.Operand{Value: y}
}

// lastOf returns the last dimension of a value.
func lastOf(v *build.Value) []view.Atom { return v.View[len(v.View)-1] }

// channelled rearranges a value so that its last dimension, of size k, runs over the channels. It
// returns the value itself where that is so already, or where it cannot be.
func (im *importer) channelled(n *pb.Node, v *build.Value, k int) *build.Value {
	rank := len(v.View)
	if rank != 3 && rank != 4 || k != view.Product(lastOf(v)) || view.Only(lastOf(v), view.C) && k == v.Shape.C {
		return v
	}
	rows := -1
	if rank == 4 {
		rows = 1
	}
	return im.build.Arrange(n, v, rank-1, rows, rank-2)
}

// denseRows returns the weights of a dense layer, [out][k], times alpha, with the k inputs in the
// order of the values in memory.
func (im *importer) denseRows(v *build.Value, w *eval.Tensor, k, out int, transB bool, alpha float32) []float32 {
	rows := im.build.NewFloats(w.Len())
	order := im.build.Offsets(lastOf(v), view.FlatStride(v.Shape))
	i, o := 0, 0 // input and output of weight from
	try.Check(im.budget.Loop(len(rows), func(lo, hi int) {
		for from := lo; from < hi; from++ {
			rows[o*k+order[i]] = w.F32[from] * alpha
			if transB {
				if i++; i == k {
					i, o = 0, o+1
				}
			} else if o++; o == out {
				i, o = i+1, 0
			}
		}
	}))
	return rows
}

// denseBias returns the biases of a dense layer, nil for none.
func (im *importer) denseBias(c *eval.Tensor, out int, beta float32) []float32 {
	if c == nil || beta == 0 {
		return nil
	}
	if n := len(c.Dims); c.Type != pb.Float || n > 2 || n == 2 && c.Dims[0] != 1 ||
		n > 0 && c.Dims[n-1] != 1 && c.Dims[n-1] != out {
		try.Failf("its bias is %v of shape %v, want %d FLOAT values", c.Type, c.Dims, out)
	}
	bias := im.build.NewFloats(out)
	for o := range bias {
		bias[o] = c.F32[o%c.Len()] * beta
	}
	return bias
}

// pixelDense emits a 1×1 convolution: the product of the channels of every pixel, the last
// dimension of v, with weights w [channel][out], and a bias per output, nil for none.
func (im *importer) pixelDense(n *pb.Node, v *build.Value, w *eval.Tensor, bias []float32) build.Operand {
	k, out, last := v.Shape.C, w.Dims[1], len(v.View)-1
	order := im.build.Offsets(v.View[last], view.ChannelStride)
	rows := im.build.NewFloats(w.Len())
	try.Check(im.budget.Loop(len(rows), func(lo, hi int) {
		for from := lo; from < hi; from++ {
			rows[from%out*k+order[from/out]] = w.F32[from]
		}
	}))
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: out}
	try.Check(im.build.CheckShape(shape))
	y := im.build.Weighted(n, v, bcnn.Conv2D{Window: tiles(1, 1), Out: out, Groups: 1, Weights: bcnn.Weights{F32: rows}, Bias: bias}, shape)
	y.View = append(view.View{}, v.View...)
	y.View[last] = view.All(view.C, out)
	return build.Operand{Value: y}
}
