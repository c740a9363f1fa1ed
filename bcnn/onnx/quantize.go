package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// bipolarQuant imports the QONNX operator.
func (im *importer) bipolarQuant(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return result{}, err
	}
	return im.bipolar(n, operands[0], operands[1].constant)
}

func (im *importer) bipolar(n *pb.Node, x result, scale *eval.Tensor) (result, error) {
	if scale == nil {
		return result{}, errors.New("the scale must be constant")
	}
	if r, ok, err := im.build.pointwise(n, []result{x, {constant: scale}}, im.eval.Binary("BipolarQuant")); ok || err != nil {
		return r, err
	}
	minus, err := im.eval.Unary("Neg")([]*eval.Tensor{scale})
	if err != nil {
		return result{}, err
	}
	return im.build.threshold(n, x.value, eval.Scalar(x.value.typ, 0), minus, scale, scale)
}

// quantNode imports the QONNX operator Quant: on constants any, on values the
// one with one signed bit, which is bipolar.
func (im *importer) quantNode(n *pb.Node) (result, error) {
	operands, err := im.operands(n, 4)
	if err != nil {
		return result{}, err
	}
	var c [4]*eval.Tensor
	for i, o := range operands {
		c[i] = o.constant
		if i > 0 && (c[i] == nil || c[i].Type != pb.Float) {
			return result{}, fmt.Errorf("input %d must be a FLOAT constant", i)
		}
	}
	signed, err := n.Int("signed", 1)
	if err != nil {
		return result{}, err
	}
	narrow, err := n.Int("narrow", 1)
	if err != nil {
		return result{}, err
	}
	mode, err := n.Text("rounding_mode", "ROUND")
	if err != nil {
		return result{}, err
	}
	rounding := map[string]string{"ROUND": "Round", "CEIL": "Ceil", "FLOOR": "Floor"}[mode]
	if rounding == "" {
		return result{}, fmt.Errorf("rounding mode %q is not supported", mode)
	}
	if r, ok, err := im.build.pointwise(n, operands, im.eval.Quant(signed != 0, narrow != 0, eval.UnaryOps[rounding])); ok || err != nil {
		return r, err
	}
	for i := range c[1].Len() {
		if !(c[1].At(i) > 0) {
			return result{}, fmt.Errorf("scale %v, want more than 0", c[1].At(i))
		}
	}
	for i := range c[2].Len() {
		if c[2].At(i) != 0 {
			return result{}, errors.New("a zero point is not supported")
		}
	}
	if signed == 0 || c[3].Len() != 1 || c[3].At(0) != 1 {
		return result{}, errors.New("activations of more than one signed bit are not supported")
	}
	return im.bipolar(n, operands[0], c[1])
}

// binarize imports the operator of domain bitcnn: bytes of the graph's input to
// ±1, see bcnn.Binarize.
func (im *importer) binarize(n *pb.Node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v.layer != bcnn.NetworkInput || im.build.net.Input.DType != bcnn.Uint8 {
		return result{}, errors.New("it must read the graph's input, as bytes")
	}
	if v.pad != nil || v.clip != nil || v.step != nil {
		return result{}, errors.New("it must read the graph's input as it is")
	}
	if err := v.image(); err != nil {
		return result{}, err
	}
	scheme, err := n.Text("scheme", "")
	if err != nil {
		return result{}, err
	}
	list, err := n.Ints("thresholds")
	if err != nil {
		return result{}, err
	}
	op := bcnn.Binarize{Scheme: bcnn.Scheme(scheme)}
	for _, t := range list {
		if t < math.MinInt32 || t > math.MaxInt32 {
			return result{}, fmt.Errorf("threshold %d", t)
		}
		op.Thresholds = append(op.Thresholds, int32(t))
	}
	shape := v.shape
	switch op.Scheme {
	case bcnn.SchemeGrey:
		shape.C = 1
	case bcnn.SchemeLBP:
		shape.C = 3
	}
	if !v.view.Equal(view.NCHW(v.shape)) && shape == v.shape {
		return result{}, errors.New("a Transpose before it is not supported")
	}
	out := im.build.emit(n, "", op, shape, v)
	out.view, out.signs = view.NCHW(shape), true
	return result{value: out}, nil
}
