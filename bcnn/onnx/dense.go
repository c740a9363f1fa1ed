package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// gemm imports alpha·A·B + beta·C with a computed A.
func (im *importer) gemm(n *pb.Node) (result, error) {
	transA, err := n.Int("transA", 0)
	if err != nil {
		return result{}, err
	}
	transB, err := n.Int("transB", 0)
	if err != nil {
		return result{}, err
	}
	alpha, err := n.Float("alpha", 1)
	if err != nil {
		return result{}, err
	}
	beta, err := n.Float("beta", 1)
	if err != nil {
		return result{}, err
	}
	if transA != 0 {
		return result{}, errors.New("transA would mix the images of a batch")
	}
	c, err := im.constant(n, 2)
	if err != nil {
		return result{}, err
	}
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if len(v.view) != 2 {
		return result{}, fmt.Errorf("its input has %d dimensions, want 2", len(v.view))
	}
	return im.dense(n, v, transB != 0, alpha, beta, c)
}

func (im *importer) matMul(n *pb.Node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	return im.dense(n, v, false, 1, 0, nil)
}

// dense emits a dense layer over all values of v.
func (im *importer) dense(n *pb.Node, v *value, transB bool, alpha, beta float32, c *eval.Tensor) (result, error) {
	v, err := im.build.movable(v)
	if err != nil {
		return result{}, err
	}
	if err := v.real(); err != nil {
		return result{}, err
	}
	w, err := im.required(n, 1)
	if err != nil {
		return result{}, err
	}
	if len(w.Dims) != 2 || w.Type != pb.Float {
		return result{}, fmt.Errorf("weights of %v %v, want two dimensions of FLOAT", w.Type, w.Dims)
	}
	k, out := w.Dims[0], w.Dims[1]
	if transB {
		k, out = out, k
	}
	last := v.view[len(v.view)-1]
	if len(v.view) < 2 || view.Product(last) != k || k != v.shape.Values() || out == 0 {
		return result{}, fmt.Errorf("weights %v for a last dimension of %d out of %d values: only vectors can be multiplied",
			w.Dims, view.Product(last), v.shape.Values())
	}
	rows, err := im.build.floats(w.Len())
	if err != nil {
		return result{}, err
	}
	if err := im.budget.Charge(8 * int64(k)); err != nil {
		return result{}, err
	}
	for i, to := range view.Offsets(last, view.FlatStride(v.shape)) {
		for o := range out {
			from := i*out + o
			if transB {
				from = o*k + i
			}
			rows[o*k+to] = w.F32[from] * alpha
		}
	}
	var bias []float32
	if c != nil && beta != 0 {
		if n := len(c.Dims); c.Type != pb.Float || n > 2 || n == 2 && c.Dims[0] != 1 ||
			n > 0 && c.Dims[n-1] != 1 && c.Dims[n-1] != out {
			return result{}, fmt.Errorf("a bias of %v %v, want %d FLOAT values", c.Type, c.Dims, out)
		}
		if bias, err = im.build.floats(out); err != nil {
			return result{}, err
		}
		for o := range bias {
			bias[o] = c.F32[o%c.Len()] * beta
		}
	}
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	y, err := im.build.weighted(n, v, rows, out, k, bias, shape, func(w bcnn.Weights, bias []float32, _ int) bcnn.Op {
		return bcnn.Dense{Out: out, Weights: w, Bias: bias}
	})
	if err != nil {
		return result{}, err
	}
	y.view = append(view.View{}, v.view...)
	y.view[len(y.view)-1] = view.Whole(view.C, out)
	return result{value: y}, nil
}
