package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// linear are the operands of QuantizeLinear and DequantizeLinear: scale and zero are
// one number each, or one for each position of an axis.
type linear struct {
	x           build.Operand
	scale, zero *eval.Tensor // zero may be nil
}

func (im *importer) linear(n *pb.Node) (l linear, err error) {
	if l.x, err = im.operand(n, 0); err != nil {
		return l, err
	}
	if l.scale, err = im.required(n, 1); err != nil {
		return l, err
	}
	if l.zero, err = im.constant(n, 2); err != nil {
		return l, err
	}
	if block, err := n.Int("block_size", 0); err != nil {
		return l, err
	} else if block != 0 {
		return l, errors.New("a scale for each block is not supported")
	}
	dims := slices.Repeat([]int{1}, rankOf(l.x)) // of scales beside x
	if l.x.Constant != nil {
		dims = l.x.Constant.Dims
	}
	along := func(t *eval.Tensor) (*eval.Tensor, error) {
		if t == nil {
			return nil, nil
		}
		if t.Len() == 1 {
			return t.Redim([]int{}), nil
		}
		a, err := n.Int("axis", 1)
		if err != nil {
			return nil, err
		}
		axis, err := axisIndex(a, len(dims))
		if err != nil {
			return nil, err
		}
		if len(t.Dims) != 1 || l.x.Constant != nil && t.Dims[0] != dims[axis] {
			return nil, fmt.Errorf("scales of dimensions %v for %v", t.Dims, dims)
		}
		shape := slices.Repeat([]int{1}, len(dims))
		shape[axis] = t.Dims[0]
		return t.Redim(shape), nil
	}
	if l.zero != nil && l.zero.Len() > 1 && l.x.Constant == nil {
		same := true
		err := im.budget.Loop(l.zero.Len(), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				same = same && l.zero.At(i) == l.zero.At(0)
			}
		})
		switch {
		case err != nil:
			return l, err
		case !same:
			return l, errors.New("a zero point of each channel of a computed tensor is not supported")
		}
		l.zero = eval.Scalar(l.zero.Type, l.zero.At(0))
	}
	if l.scale, err = along(l.scale); err == nil {
		l.zero, err = along(l.zero)
	}
	return l, err
}

// computed applies operators to constants one after the other, each to the result and
// the next constant.
func (im *importer) computed(t *eval.Tensor, ops []string, with ...*eval.Tensor) (*eval.Tensor, error) {
	var err error
	for i, op := range ops {
		if with[i] == nil {
			continue
		}
		if t, err = im.eval.Binary(op)([]*eval.Tensor{t, with[i]}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// dequantizeLinear imports DequantizeLinear, (x − zero)·scale: of weights that are
// stored as integers, and of what QuantizeLinear has made.
func (im *importer) dequantizeLinear(n *pb.Node) (build.Operand, error) {
	l, err := im.linear(n)
	if err != nil {
		return build.Operand{}, err
	}
	if v := l.x.Value; v != nil {
		if v.Stairs == nil || v.Type == pb.Float {
			return build.Operand{}, errors.New("of computed tensors only those behind QuantizeLinear are supported")
		}
		out := v.With(n)
		if l.zero != nil {
			out = v.Shifted(n, -l.zero.At(0))
		}
		out.Type = pb.Float
		if l.scale.Len() > 1 {
			if out, err = im.build.Settle(out); err != nil {
				return build.Operand{}, err
			}
			return im.withConstant(n, "Mul", out, l.scale, false)
		}
		scaled, ok := out.Scaled(n, l.scale.At(0))
		if !ok {
			return build.Operand{}, fmt.Errorf("a scale of %v", l.scale.At(0))
		}
		return build.Operand{Value: scaled}, nil
	}
	toFloat := im.eval.Cast(l.scale.Type)
	y, err := toFloat([]*eval.Tensor{l.x.Constant})
	if err == nil && l.zero != nil {
		l.zero, err = toFloat([]*eval.Tensor{l.zero})
	}
	if err != nil {
		return build.Operand{}, err
	}
	y, err = im.computed(y, []string{"Sub", "Mul"}, l.zero, l.scale)
	return build.Operand{Constant: y}, err
}

// quantizeLinear imports QuantizeLinear: x/scale, rounded, plus zero, within the limits
// of bytes.
func (im *importer) quantizeLinear(n *pb.Node) (build.Operand, error) {
	l, err := im.linear(n)
	if err != nil {
		return build.Operand{}, err
	}
	typ := pb.Uint8
	if l.zero != nil {
		typ = l.zero.Type
	}
	lo, hi := 0.0, float64(math.MaxUint8)
	switch typ {
	case pb.Uint8:
	case pb.Int8:
		lo, hi = math.MinInt8, math.MaxInt8
	default:
		return build.Operand{}, fmt.Errorf("a result of %v is not supported", typ)
	}
	if v := l.x.Value; v != nil {
		v, scales, err := im.divisors(n, v, l.scale)
		if err != nil {
			return build.Operand{}, err
		}
		zero := 0.0
		if l.zero != nil {
			zero = l.zero.At(0)
		}
		return im.build.Round(n, v, typ, len(scales), func(c int, x float32) float64 {
			return max(lo, min(math.RoundToEven(float64(x/scales[c]))+zero, hi))
		})
	}
	y, err := im.computed(l.x.Constant, []string{"Div"}, l.scale)
	if err == nil {
		y, err = im.eval.Unary("Round")([]*eval.Tensor{y})
	}
	if err == nil && l.zero != nil {
		l.zero, err = im.eval.Cast(y.Type)([]*eval.Tensor{l.zero})
	}
	if err == nil {
		y, err = im.computed(y, []string{"Add", "Max", "Min"}, l.zero, eval.Scalar(l.scale.Type, lo), eval.Scalar(l.scale.Type, hi))
	}
	if err != nil {
		return build.Operand{}, err
	}
	y, err = im.eval.Cast(typ)([]*eval.Tensor{y})
	return build.Operand{Constant: y}, err
}
