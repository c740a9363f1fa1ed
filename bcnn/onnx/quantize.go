package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

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
	if v.Clip != nil || v.Step != nil || v.Stairs != nil {
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
	out.View = view.NCHW(shape)
	return build.Operand{Value: out}, nil
}
