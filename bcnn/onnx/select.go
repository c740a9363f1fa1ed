package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators on constants that look for values: of weights, mostly.

func (im *importer) argMaxConstant(n *pb.Node, t *eval.Tensor) (build.Operand, error) {
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	last, err := n.Int("select_last_index", 0)
	if err != nil {
		return build.Operand{}, err
	}
	keep, err := n.Int("keepdims", 1)
	if err != nil {
		return build.Operand{}, err
	}
	_, positions, err := im.eval.TopK(t, axis, 1, n.OpType == "ArgMin", last != 0)
	if err == nil && keep == 0 {
		positions = positions.Redim(edit(positions.Dims, []int{axis}, false, 1))
	}
	return build.Operand{Constant: positions}, err
}

func (im *importer) topKConstant(n *pb.Node, t *eval.Tensor, k int64, smallest bool) (build.Operand, error) {
	a, err := n.Int("axis", -1)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	values, positions, err := im.eval.TopK(t, axis, int(max(-1, min(k, pb.MaxSize))), smallest, false)
	if err != nil {
		return build.Operand{}, err
	}
	if len(n.Outputs) > 1 {
		im.env[n.Outputs[1]] = build.Operand{Constant: positions}
	}
	return build.Operand{Constant: values}, nil
}

// oneHot imports OneHot of constants.
func (im *importer) oneHot(n *pb.Node) (build.Operand, error) {
	var operands [3]*eval.Tensor
	for i := range operands {
		var err error
		if operands[i], err = im.required(n, i); err != nil {
			return build.Operand{}, err
		}
	}
	a, err := n.Int("axis", -1)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(operands[0].Dims)+1)
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.eval.OneHot(operands[0], operands[1], operands[2], axis)
	return build.Operand{Constant: out}, err
}
