package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// allConstant returns the inputs of an operator that is supported on constants only.
func (im *importer) allConstant(n *pb.Node, count int) ([]*eval.Tensor, error) {
	operands, err := im.operands(n, count)
	if err != nil {
		return nil, err
	}
	list := make([]*eval.Tensor, count)
	for i, o := range operands {
		if list[i] = o.Constant; o.Constant == nil {
			return nil, fmt.Errorf("%w on anything but constants", errUnsupported)
		}
	}
	return list, nil
}

// axisOf is the attribute of that name, a dimension of a tensor.
func axisOf(n *pb.Node, t *eval.Tensor) (int, error) {
	a, err := n.Int("axis", 0)
	if err != nil {
		return 0, err
	}
	return axisIndex(a, len(t.Dims))
}

// scatter imports ScatterND and ScatterElements of constants: weights of which a part is
// replaced.
func (im *importer) scatter(n *pb.Node) (build.Operand, error) {
	c, err := im.allConstant(n, 3)
	if err != nil {
		return build.Operand{}, err
	}
	how, err := n.Text("reduction", "none")
	if err != nil {
		return build.Operand{}, err
	}
	if how != "none" {
		return build.Operand{}, fmt.Errorf("reduction %s is not supported", text.Quote(how))
	}
	if n.OpType == "ScatterND" {
		t, err := im.eval.ScatterND(c[0], c[1], c[2])
		return build.Operand{Constant: t}, err
	}
	axis, err := axisOf(n, c[0])
	if err != nil {
		return build.Operand{}, err
	}
	t, err := im.eval.ScatterElements(c[0], c[1], c[2], axis)
	return build.Operand{Constant: t}, err
}

func (im *importer) gatherElements(n *pb.Node) (build.Operand, error) {
	c, err := im.allConstant(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisOf(n, c[0])
	if err != nil {
		return build.Operand{}, err
	}
	t, err := im.eval.GatherElements(c[0], c[1], axis)
	return build.Operand{Constant: t}, err
}

func (im *importer) cumSum(n *pb.Node) (build.Operand, error) {
	c, err := im.allConstant(n, 2)
	if err != nil {
		return build.Operand{}, err
	}
	list, err := c[1].Integers()
	if err == nil && len(list) != 1 {
		err = errors.New("its axis is not one number")
	}
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(list[0], len(c[0].Dims))
	if err != nil {
		return build.Operand{}, err
	}
	exclusive, err := n.Int("exclusive", 0)
	if err != nil {
		return build.Operand{}, err
	}
	reverse, err := n.Int("reverse", 0)
	if err != nil {
		return build.Operand{}, err
	}
	t, err := im.eval.CumSum(c[0], axis, exclusive != 0, reverse != 0)
	return build.Operand{Constant: t}, err
}
