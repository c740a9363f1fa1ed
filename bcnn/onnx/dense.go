package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// gemm imports alpha·A·B + beta·C with a computed A.
func (im *importer) gemm(n *pb.Node) (build.Operand, error) {
	transA, err := n.Int("transA", 0)
	if err != nil {
		return build.Operand{}, err
	}
	transB, err := n.Int("transB", 0)
	if err != nil {
		return build.Operand{}, err
	}
	alpha, err := n.Float("alpha", 1)
	if err != nil {
		return build.Operand{}, err
	}
	beta, err := n.Float("beta", 1)
	if err != nil {
		return build.Operand{}, err
	}
	if transA != 0 {
		return build.Operand{}, errors.New("transA would mix the images of a batch")
	}
	c, err := im.constant(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(v.View) != 2 {
		return build.Operand{}, fmt.Errorf("its input has %d dimensions, want 2", len(v.View))
	}
	w, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	return im.dense(n, v, w, transB != 0, alpha, beta, c)
}

func (im *importer) matMul(n *pb.Node) (build.Operand, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	a, b := operands[0], operands[1]
	switch {
	case a.Constant != nil && b.Constant != nil:
		t, err := im.eval.MatMul(a.Constant, b.Constant)
		return build.Operand{Constant: t}, err
	case a.Value != nil && b.Value != nil:
		return build.Operand{}, errors.New("the product of two computed matrices, as attention has it, is not supported: a network has no layer for it")
	case a.Value != nil:
		return im.multiplied(n, a.Value, b.Constant)
	}
	// A·x is the transpose of xᵀ·Aᵀ.
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
		turned, err := im.permute(n, b, perm)
		if err != nil {
			return build.Operand{}, err
		}
		weights, err := im.eval.Transpose(t, []int{1, 0})
		if err != nil {
			return build.Operand{}, err
		}
		r, err := im.multiplied(n, turned.Value, weights)
		if err != nil {
			return build.Operand{}, err
		}
		return im.permute(n, r, perm)
	}
	return build.Operand{}, fmt.Errorf("input 0 (%s) is a constant of dimensions %v", text.Quote(n.Input(0)), t.Dims)
}

// multiplied makes v·w with constant weights of two dimensions.
func (im *importer) multiplied(n *pb.Node, v *build.Value, w *eval.Tensor) (build.Operand, error) {
	return im.dense(n, v, w, false, 1, 0, nil)
}

// dense emits a dense layer over all values of v.
func (im *importer) dense(n *pb.Node, v *build.Value, w *eval.Tensor, transB bool, alpha, beta float32, c *eval.Tensor) (build.Operand, error) {
	v, err := im.build.Movable(v)
	if err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	if len(w.Dims) != 2 || w.Type != pb.Float {
		return build.Operand{}, fmt.Errorf("weights of %v %v, want two dimensions of FLOAT", w.Type, w.Dims)
	}
	if v.Windows != nil {
		if c == nil && alpha == 1 {
			if r, ok, err := im.windowed(n, v, w, transB); ok || err != nil {
				return r, err
			}
		}
		if v, err = im.build.Settle(v); err != nil {
			return build.Operand{}, err
		}
	}
	k, out := w.Dims[0], w.Dims[1]
	if transB {
		k, out = out, k
	}
	last := v.View[len(v.View)-1]
	if rank := len(v.View); (rank == 3 || rank == 4) && k == view.Product(last) && k != v.Shape.Values() &&
		(!view.Only(last, view.C) || k != v.Shape.C) && c == nil && out > 0 {
		rows := -1
		if rank == 4 {
			rows = 1
		}
		if v, err = im.build.Arranged(n, v, rank-1, rows, rank-2); err != nil {
			return build.Operand{}, err
		}
		last = v.View[rank-1]
	}
	if k == v.Shape.C && k != v.Shape.Values() && view.Only(last, view.C) && view.Product(last) == k && c == nil && out > 0 {
		return im.pixelDense(n, v, w, out)
	}
	if len(v.View) < 2 || view.Product(last) != k || k != v.Shape.Values() || out == 0 {
		return build.Operand{}, fmt.Errorf("weights %v for a last dimension of %d out of %d values: only vectors can be multiplied",
			w.Dims, view.Product(last), v.Shape.Values())
	}
	rows, err := im.build.Floats(w.Len())
	if err != nil {
		return build.Operand{}, err
	}
	order, err := im.build.Offsets(last, view.FlatStride(v.Shape))
	if err != nil {
		return build.Operand{}, err
	}
	i, o := 0, 0 // input and output of the value at from
	err = im.budget.Loop(len(rows), func(lo, hi int) {
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
	})
	if err != nil {
		return build.Operand{}, err
	}
	var bias []float32
	if c != nil && beta != 0 {
		if n := len(c.Dims); c.Type != pb.Float || n > 2 || n == 2 && c.Dims[0] != 1 ||
			n > 0 && c.Dims[n-1] != 1 && c.Dims[n-1] != out {
			return build.Operand{}, fmt.Errorf("a bias of %v %v, want %d FLOAT values", c.Type, c.Dims, out)
		}
		if bias, err = im.build.Floats(out); err != nil {
			return build.Operand{}, err
		}
		for o := range bias {
			bias[o] = c.F32[o%c.Len()] * beta
		}
	}
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	y, err := im.build.Weighted(n, v, bcnn.Dense{Out: out, Weights: bcnn.Weights{F32: rows}, Bias: bias}, shape)
	if err != nil {
		return build.Operand{}, err
	}
	y.View = append(view.View{}, v.View...)
	y.View[len(y.View)-1] = view.Whole(view.C, out)
	return build.Operand{Value: y}, nil
}

// pixelDense emits a product of the channels of every pixel, the last dimension of v,
// with weights [channel][out]: a 1×1 convolution.
func (im *importer) pixelDense(n *pb.Node, v *build.Value, w *eval.Tensor, out int) (build.Operand, error) {
	k, last := v.Shape.C, len(v.View)-1
	order, err := im.build.Offsets(v.View[last], view.ChannelStride)
	if err != nil {
		return build.Operand{}, err
	}
	rows, err := im.build.Floats(w.Len())
	if err != nil {
		return build.Operand{}, err
	}
	err = im.budget.Loop(len(rows), func(lo, hi int) {
		for from := lo; from < hi; from++ {
			rows[from%out*k+order[from/out]] = w.F32[from]
		}
	})
	if err != nil {
		return build.Operand{}, err
	}
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: out}
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	y, err := im.build.Weighted(n, v, bcnn.Conv2D{Window: tiles(1, 1), Out: out, Groups: 1, Weights: bcnn.Weights{F32: rows}}, shape)
	if err != nil {
		return build.Operand{}, err
	}
	y.View = append(view.View{}, v.View...)
	y.View[last] = view.Whole(view.C, out)
	return build.Operand{Value: y}, nil
}
