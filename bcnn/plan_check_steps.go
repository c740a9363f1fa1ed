package bcnn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/internal/num"
)

// checkedStep is a step of a known kind. output reports whether there is such a step for the
// types of its tensors, and returns the shape that its output must have.
type checkedStep interface {
	output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error)
}

func (op *BinarizeStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape = in[0].Shape
	shape.C, err = op.check(in[0].Shape.C)
	return in[0].DType == Uint8 && out.DType == Bits, shape, err
}

func (op *ConvStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = op.check(in[0], out)
	return out.DType != Uint8, shape, err
}

func (op *MaxPoolStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = op.check(in[0])
	return in[0].DType == out.DType, shape, err
}

func (op *AffineStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape = in[0].Shape
	if err = checkScale(op.Scale, op.Shift, shape.C); err == nil {
		err = op.Activation.check(shape.C)
	}
	return out.DType == Float32, shape, err
}

func (op *TableStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = op.check(in[0].Shape, out.DType)
	return in[0].DType == Uint8, shape, err
}

func (op *SignStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape = in[0].Shape
	if err = checkPlanes(op.Planes, 0); err == nil {
		shape.H *= max(op.Planes, 1)
		err = op.Threshold.checkPlanes(false, shape.C, op.Planes)
	}
	return in[0].DType == Float32 && out.DType == Bits, shape, err
}

func (op *QuantizeStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	types = in[0].DType == Float32 && (out.DType == Float32 || out.DType == Uint8)
	return types, in[0].Shape, checkLevels(op.Low, op.Levels, op.Thresholds, in[0].Shape.C)
}

func (op *AddStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	err = op.Activation.checkFused(in[0].Shape.C)
	if in[0].Shape != in[1].Shape {
		err = fmt.Errorf("it adds %v and %v, whose shapes differ", in[0].Shape, in[1].Shape)
	}
	return floats(in, out), in[0].Shape, err
}

func (op *PairStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	if op.Kind > PairMax {
		return false, Shape{}, Unsupported(fmt.Sprintf("PairKind(%d)", op.Kind))
	}
	return floats(in, out), in[0].Shape, checkPair(in[0].Shape, in[1].Shape)
}

func (op *AvgPoolStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = op.check(in[0].Shape)
	return in[0].DType != Uint8 && out.DType == Float32, shape, err
}

func (op *ConcatStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
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

func (op *ChannelsStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape = in[0].Shape
	shape.C = len(op.Index)
	if err = checkIndex(op.Index, in[0].Shape.C); err == nil && in[0].DType == Bits && slices.Contains(op.Index, -1) {
		err = errors.New("bits have no channel of zeros")
	}
	return moves(in[0], out), shape, err
}

func (op *PixelsStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = Pixels(*op).shape(in[0].Shape)
	if err == nil && in[0].DType == Bits && !Pixels(*op).keepsSigns() {
		err = fmt.Errorf("bits cannot be filled with pixels of %v", op.Fill)
	}
	return moves(in[0], out), shape, err
}

func (op *ResampleStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = Resample(*op).shape(in[0].Shape)
	return floats(in, out), shape, err
}

func (op *TopKStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = TopK(*op).shape(in[0].Shape)
	return floats(in, out), shape, err
}

func (op *FlattenStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	return moves(in[0], out), Shape{H: 1, W: 1, C: in[0].Shape.Values()}, nil
}

// floats reports whether all tensors are of float32.
func floats(in []PlanTensor, out PlanTensor) bool {
	return out.DType == Float32 && !slices.ContainsFunc(in, func(t PlanTensor) bool { return t.DType != Float32 })
}

// moves reports whether a step that only moves values can move those of a tensor to another.
func moves(in, out PlanTensor) bool { return in.DType == out.DType && in.DType != Uint8 }
