package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// bipolarQuant imports the QONNX operator.
func (im *importer) bipolarQuant(n *pb.Node) (build.Operand, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	return im.bipolar(n, operands[0], operands[1].Constant)
}

func (im *importer) bipolar(n *pb.Node, x build.Operand, scale *eval.Tensor) (build.Operand, error) {
	if scale == nil {
		return build.Operand{}, errors.New("the scale must be constant")
	}
	if r, ok, err := im.build.Pointwise(n, []build.Operand{x, {Constant: scale}}, im.eval.Binary("BipolarQuant")); ok || err != nil {
		return r, err
	}
	minus, err := im.eval.Unary("Neg")([]*eval.Tensor{scale})
	if err != nil {
		return build.Operand{}, err
	}
	return im.build.Threshold(n, x.Value, eval.Scalar(x.Value.Type, 0), minus, scale, scale)
}

// quantNode imports the QONNX operator Quant. One signed bit is bipolar.
func (im *importer) quantNode(n *pb.Node) (build.Operand, error) {
	operands, err := im.operands(n, 4)
	if err != nil {
		return build.Operand{}, err
	}
	var c [4]*eval.Tensor
	for i, o := range operands {
		c[i] = o.Constant
		if i > 0 && (c[i] == nil || c[i].Type != pb.Float) {
			return build.Operand{}, fmt.Errorf("input %d must be a FLOAT constant", i)
		}
	}
	signed, err := n.Int("signed", 1)
	if err != nil {
		return build.Operand{}, err
	}
	narrow, err := n.Int("narrow", 1)
	if err != nil {
		return build.Operand{}, err
	}
	mode, err := n.Text("rounding_mode", "ROUND")
	if err != nil {
		return build.Operand{}, err
	}
	rounding := map[string]string{"ROUND": "Round", "CEIL": "Ceil", "FLOOR": "Floor"}[mode]
	if rounding == "" {
		return build.Operand{}, fmt.Errorf("rounding mode %s is not supported", text.Quote(mode))
	}
	if r, ok, err := im.build.Pointwise(n, operands, im.eval.Quant(signed != 0, narrow != 0, eval.UnaryOps[rounding])); ok || err != nil {
		return r, err
	}
	positive, zero := true, true
	err = im.budget.Loop(c[1].Len(), func(lo, hi int) {
		for _, scale := range c[1].F32[lo:hi] {
			positive = positive && scale > 0
		}
	})
	if err == nil {
		err = im.budget.Loop(c[2].Len(), func(lo, hi int) {
			for _, point := range c[2].F32[lo:hi] {
				zero = zero && point == 0
			}
		})
	}
	switch {
	case err != nil:
		return build.Operand{}, err
	case !positive:
		return build.Operand{}, errors.New("a scale is not more than 0")
	case !zero:
		return build.Operand{}, errors.New("a zero point is not supported")
	}
	if signed != 0 && c[3].Len() == 1 && c[3].At(0) == 1 {
		return im.bipolar(n, operands[0], c[1])
	}
	least, most, err := eval.QuantLimits(c[3], signed != 0, narrow != 0)
	if err != nil {
		return build.Operand{}, err
	}
	return im.quantValue(n, operands[0].Value, c[1], func(x float32) float64 {
		return eval.UnaryOps[rounding](max(least, min(float64(x), most)))
	})
}

// quantValue rounds a value divided by a scale, and multiplies it again.
func (im *importer) quantValue(n *pb.Node, v *build.Value, scale *eval.Tensor, round func(x float32) float64) (build.Operand, error) {
	scales := scale.F32
	if scale.Len() > 1 {
		settled, err := im.build.Settle(v)
		if err != nil {
			return build.Operand{}, err
		}
		if v, scales, err = im.build.Broadcast(settled, scale, n); err != nil {
			return build.Operand{}, err
		}
	}
	r, err := im.build.Round(n, v, v.Type, len(scales), func(c int, x float32) float64 { return round(x / scales[c]) })
	if err != nil {
		return build.Operand{}, err
	}
	if len(scales) == 1 {
		if out, ok := r.Value.Scaled(n, float64(scales[0])); ok {
			return build.Operand{Value: out}, nil
		}
	}
	if v, err = im.build.Settle(r.Value); err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Value: im.build.Emit(n, "/values", bcnn.Affine{Scale: scales}, v.Shape, v)}, nil
}

// binarize imports the operator of domain bitcnn: bytes of the graph's input to
// ±1, see bcnn.Binarize.
func (im *importer) binarize(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if !im.build.Bytes(v.Layer) {
		return build.Operand{}, errors.New("it must read the graph's input, as bytes")
	}
	if v.Pad != nil || v.Clip != nil || v.Step != nil || v.Stairs != nil {
		return build.Operand{}, errors.New("it must read the graph's input as it is")
	}
	if err := v.CheckImage(); err != nil {
		return build.Operand{}, err
	}
	scheme, err := n.Text("scheme", "")
	if err != nil {
		return build.Operand{}, err
	}
	list, err := n.Ints("thresholds")
	if err != nil {
		return build.Operand{}, err
	}
	op := bcnn.Binarize{Scheme: bcnn.Scheme(scheme)}
	if err := im.budget.Charge(8 * int64(len(list))); err != nil {
		return build.Operand{}, err
	}
	for _, t := range list {
		if t < math.MinInt32 || t > math.MaxInt32 {
			return build.Operand{}, fmt.Errorf("threshold %d", t)
		}
		op.Thresholds = append(op.Thresholds, int32(t))
	}
	shape := v.Shape
	switch op.Scheme {
	case bcnn.SchemeGrey:
		shape.C = 1
	case bcnn.SchemeLBP:
		shape.C = 3
	}
	if !v.View.Equal(view.NCHW(v.Shape)) && shape == v.Shape {
		return build.Operand{}, errors.New("a Transpose before it is not supported")
	}
	out := im.build.Emit(n, "", op, shape, v)
	out.View, out.Signs = view.NCHW(shape), true
	return build.Operand{Value: out}, nil
}
