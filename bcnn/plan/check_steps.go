package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

// checkedStep is a step of a known kind. output reports whether there is such a step for the
// types of its tensors, and returns the shape that its output must have.
type checkedStep interface {
	output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error)
}

func (op *Binarize) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape = in[0].Shape
	shape.C, err = op.check(in[0].Shape.C)
	return in[0].DType == bcnn.Uint8 && out.DType == bcnn.Bits, shape, err
}

func (op *Conv) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = op.check(in[0], out)
	return out.DType != bcnn.Uint8, shape, err
}

func (op *MaxPool) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = op.check(in[0])
	return in[0].DType == out.DType, shape, err
}

func (op *Affine) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape = in[0].Shape
	if err = checkScale(op.Scale, op.Shift, shape.C); err == nil {
		err = op.Activation.check(shape.C)
	}
	return out.DType == bcnn.Float32, shape, err
}

func (op *Table) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = op.check(in[0].Shape, out.DType)
	return in[0].DType == bcnn.Uint8, shape, err
}

func (op *Sign) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape = in[0].Shape
	if err = checkPlanes(op.Planes, 0); err == nil {
		shape.H *= max(op.Planes, 1)
		err = op.Threshold.checkPlanes(false, shape.C, op.Planes)
	}
	return in[0].DType == bcnn.Float32 && out.DType == bcnn.Bits, shape, err
}

func (op *Quantize) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	types = in[0].DType == bcnn.Float32 && (out.DType == bcnn.Float32 || out.DType == bcnn.Uint8)
	return types, in[0].Shape, bcnn.Quantize{Low: op.Low, Levels: op.Levels, Thresholds: op.Thresholds}.Check(in[0].Shape.C)
}

func (op *Add) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	err = op.Activation.checkFused(in[0].Shape.C)
	if in[0].Shape != in[1].Shape {
		err = fmt.Errorf("it adds %v and %v, whose shapes differ", in[0].Shape, in[1].Shape)
	}
	return floats(in, out), in[0].Shape, err
}

func (op *Pair) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	if op.Kind > PairMask {
		return false, bcnn.Shape{}, Unsupported(fmt.Sprintf("PairKind(%d)", op.Kind))
	}
	return floats(in, out), in[0].Shape, bcnn.CheckPair(in[0].Shape, in[1].Shape)
}

func (op *AvgPool) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = op.check(in[0].Shape)
	return in[0].DType != bcnn.Uint8 && out.DType == bcnn.Float32, shape, err
}

func (op *Concat) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	types, shape = moves(in[0], out), in[0].Shape
	for _, other := range in[1:] {
		types = types && other.DType == in[0].DType
		if other.Shape.H != shape.H || other.Shape.W != shape.W {
			err = fmt.Errorf("it joins %v and %v, whose heights or widths differ", in[0].Shape, other.Shape)
		}
		shape.C = num.Sum(shape.C, other.Shape.C)
	}
	return types, shape, err
}

func (op *Channels) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape = in[0].Shape
	shape.C = len(op.Index)
	if err = (bcnn.Channels{Index: op.Index}).Check(in[0].Shape.C); err == nil && in[0].DType == bcnn.Bits && slices.Contains(op.Index, -1) {
		err = errors.New("bits have no channel of zeros")
	}
	return moves(in[0], out), shape, err
}

func (op *Pixels) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = bcnn.Pixels(*op).OutputShape(in[0].Shape)
	if err == nil && in[0].DType == bcnn.Bits && !bcnn.Pixels(*op).KeepsSigns() {
		err = fmt.Errorf("bits cannot be filled with pixels of %v", op.Fill)
	}
	return moves(in[0], out), shape, err
}

func (op *Resample) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = bcnn.Resample(*op).OutputShape(in[0].Shape)
	return floats(in, out), shape, err
}

func (op *TopK) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = bcnn.TopK(*op).OutputShape(in[0].Shape)
	return floats(in, out), shape, err
}

func (op *Flatten) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	return moves(in[0], out), bcnn.Shape{H: 1, W: 1, C: in[0].Shape.Values()}, nil
}

// floats reports whether all tensors are of float32.
func floats(in []Tensor, out Tensor) bool {
	return out.DType == bcnn.Float32 && !slices.ContainsFunc(in, func(t Tensor) bool { return t.DType != bcnn.Float32 })
}

// moves reports whether a step that only moves values can move those of a tensor to another.
func moves(in, out Tensor) bool { return in.DType == out.DType && in.DType != bcnn.Uint8 }

func (op *MatMul) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	shape, err = bcnn.MatMul{}.OutputShape(in[0].Shape, in[1].Shape)
	return in[0].DType != bcnn.Uint8 && in[0].DType == in[1].DType && out.DType == bcnn.Float32, shape, err
}

func (op *Transpose) output(in []Tensor, out Tensor) (types bool, shape bcnn.Shape, err error) {
	return moves(in[0], out), in[0].Shape.Transposed(), nil
}
