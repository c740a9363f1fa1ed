package gpu

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// RangeParts is the number of parts of an image of which ImageRanges finds the smallest
// and largest byte each.
const RangeParts = 32

// ImageRanges is the kernel that comes before binarize where an image is scaled to its
// range.
const ImageRanges = "image_ranges"

// Elementwise is a kernel whose every item makes a value of the output, or 32 channels
// of a pixel where the output is bits.
type Elementwise struct {
	Kernel
	Items int // of an image
}

// Elementwise returns the kernels of a step that is no convolution.
func (s Step) Elementwise(op bcnn.StepOp) ([]Elementwise, error) {
	e := Elementwise{Kernel: Kernel{File: "elementwise", G: s.geometry()}, Items: s.Out.Shape.Values()}
	if s.Out.DType == bcnn.Bits {
		e.Items = s.Out.Shape.Pixels() * words32(s.Out.Shape.C)
	}
	switch op := op.(type) {
	case *bcnn.BinarizeStep:
		return s.binarize(op, e), nil
	case *bcnn.MaxPoolStep:
		e.G.setWindow(op.Window)
		e.Name, e.Args = "max_pool_float", []any{s.X, s.Y}
		if s.In.DType == bcnn.Bits {
			e.G.Flip = flag(op.Flip != nil)
			e.Name, e.Args = "max_pool_bits", append(e.Args, Rows(op.Flip))
		}
	case *bcnn.AffineStep:
		e.G.Scaled, e.G.Relu = flag(op.Scale != nil), flag(op.Activation.Kind == bcnn.ActivationReLU)
		e.Name, e.Args = "affine", []any{s.X, s.Y, op.Scale, op.Shift}
	case *bcnn.SignStep:
		e.G.Flip = flag(op.Threshold.Flip != nil)
		e.Name, e.Args = "sign_bits", []any{s.X, s.Y, op.Threshold.F32, Rows(op.Threshold.Flip)}
	case *bcnn.AddStep:
		e.G.Relu = flag(op.Activation.Kind == bcnn.ActivationReLU)
		e.Name, e.Args = "add", []any{s.X, s.Other, s.Y}
	case *bcnn.FlattenStep:
		e.Name, e.Args = "flatten_float", []any{s.X, s.Y}
		if s.In.DType == bcnn.Bits {
			e.Name = "flatten_bits"
		}
	default:
		return nil, bcnn.Unsupported(fmt.Sprintf("operation %T", op))
	}
	return []Elementwise{e}, nil
}

// CheckActivation refuses activations that no kernel has.
func CheckActivation(op bcnn.StepOp) error {
	var a bcnn.ActivationKind
	switch op := op.(type) {
	case *bcnn.ConvStep:
		a = op.Activation.Kind
	case *bcnn.AffineStep:
		a = op.Activation.Kind
	case *bcnn.AddStep:
		a = op.Activation.Kind
	}
	if a != bcnn.ActivationNone && a != bcnn.ActivationReLU {
		return bcnn.Unsupported(fmt.Sprintf("activation %v", a))
	}
	return nil
}

// SchemeNumber is the number that kernels have for a way to binarise.
func SchemeNumber(s bcnn.Scheme) int32 {
	return map[bcnn.Scheme]int32{bcnn.SchemeThreshold: 0, bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 2, bcnn.SchemeMinMax: 3}[s]
}

func (s Step) binarize(op *bcnn.BinarizeStep, e Elementwise) []Elementwise {
	e.File, e.Name = "binarize", "binarize"
	e.G.Scheme, e.G.Parts = SchemeNumber(op.Scheme), RangeParts
	var thresholds []int32
	var mask []uint32
	if op.Threshold != nil {
		thresholds, mask = op.Threshold.I32, Rows(op.Threshold.Flip)
	}
	e.G.Flip = flag(mask != nil)
	ranges := Scratch{SumMemory, s.Batch * RangeParts * 2 * 4}
	e.Args = []any{s.X, s.Y, thresholds, ranges, mask}
	if op.Scheme != bcnn.SchemeMinMax {
		return []Elementwise{e}
	}
	search := Elementwise{Kernel: Kernel{File: e.File, Name: ImageRanges, G: e.G, Args: []any{s.X, ranges}}, Items: RangeParts}
	return []Elementwise{search, e}
}
