package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// compare imports the comparisons.
func (im *importer) compare(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return result{}, err
	}
	if r, ok, err := im.build.pointwise(n, operands, im.eval.Binary(n.OpType)); ok || err != nil {
		return r, err
	}
	f := eval.BinaryOps[n.OpType]
	v, t := operands[0].value, operands[1].constant
	if v == nil {
		v, t = operands[1].value, operands[0].constant
		g := f
		f = func(x, y float64) float64 { return g(y, x) }
	}
	if v == nil || t == nil || n.OpType == "And" || n.OpType == "Or" || n.OpType == "Xor" {
		return result{}, errors.New("two computed tensors cannot be compared")
	}
	return im.build.threshold(n, v, t, eval.Scalar(pb.Bool, f(-1, 0)), eval.Scalar(pb.Bool, f(0, 0)), eval.Scalar(pb.Bool, f(1, 0)))
}

func (im *importer) whereNode(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 3)
	if err != nil {
		return result{}, err
	}
	r, ok, err := im.build.pointwise(n, operands, im.eval.Where)
	if err == nil && !ok {
		err = errors.New("only a choice between constants by a comparison with a constant is supported")
	}
	return r, err
}

// unaryNode imports Sign, Round, Not, Neg, Relu and others.
func (im *importer) unaryNode(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 1)
	if err != nil {
		return result{}, err
	}
	if r, ok, err := im.build.pointwise(n, operands, im.eval.Unary(n.OpType)); ok || err != nil {
		return r, err
	}
	v := operands[0].value
	if err := v.real(); err != nil {
		return result{}, err
	}
	switch n.OpType {
	case "Sign":
		return im.build.threshold(n, v, eval.Scalar(v.typ, 0), eval.Scalar(v.typ, -1), eval.Scalar(v.typ, 0), eval.Scalar(v.typ, 1))
	case "Relu":
		return im.build.clipValue(n, v, 0, math.Inf(1))
	case "Neg":
		if v, err = im.build.settle(v); err != nil {
			return result{}, err
		}
		return result{value: im.build.emit(n, "", bcnn.Affine{Scale: []float32{-1}}, v.shape, v)}, nil
	case "Round":
		// One step, if the clip before it leaves just one half-integer h.
		if c := v.clip; c != nil {
			h := math.Ceil(c.lo-0.5) + 0.5
			if c.lo > h-1 && c.hi < h+1 && c.lo < h && c.hi > h {
				return im.build.threshold(n, v, eval.Scalar(v.typ, h),
					eval.Scalar(v.typ, h-0.5), eval.Scalar(v.typ, math.RoundToEven(h)), eval.Scalar(v.typ, h+0.5))
			}
		}
		return result{}, errors.New("Round is only supported as a binarisation: behind a Clip to 0 and 1")
	}
	return result{}, errors.New("this operator is only supported on constants")
}

// castNode imports Cast. Values are computed in float32; bytes become float
// exactly.
func (im *importer) castNode(n *pb.Node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	to, err := n.Int("to", 0)
	if err != nil {
		return result{}, err
	}
	typ := pb.DataType(to)
	if r, ok, err := im.build.pointwise(n, []result{r}, im.eval.Cast(typ)); ok || err != nil {
		return r, err
	}
	v := r.value
	if typ != v.typ && (typ != pb.Float || v.typ != pb.Uint8) {
		return result{}, fmt.Errorf("conversion of computed %v to %v is not supported", v.typ, typ)
	}
	out := v.with(n)
	out.typ = typ
	return result{value: out}, nil
}

// identity imports Identity and Dropout, which does nothing at inference.
func (im *importer) identity(n *pb.Node) (result, error) {
	if n.OpType == "Dropout" {
		training, err := im.constant(n, 2)
		if err != nil {
			return result{}, err
		}
		if training != nil && (training.Len() != 1 || training.At(0) != 0) {
			return result{}, errors.New("it is in training mode")
		}
	}
	r, err := im.operand(n, 0)
	if r.value != nil {
		r.value = r.value.with(n)
	}
	return r, err
}
