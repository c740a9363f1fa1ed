package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// ArgMax, ArgMin, TopK and OneHot of constants.

func (im *importer) argMaxConstant(n *pb.Node, t *eval.Tensor) build.Operand {
	a := n.Int("axis", 0)
	axis := axisIndex(a, len(t.Dims))
	last := n.Bit("select_last_index", 0)
	keep := n.Bit("keepdims", 1)
	_, positions := im.eval.TopK(t, axis, 1, n.OpType == "ArgMin", last != 0)
	if keep == 0 {
		positions = positions.Redim(edit(positions.Dims, []int{axis}, false, 1))
	}
	return build.Operand{Constant: positions}
}

func (im *importer) topKConstant(n *pb.Node, t *eval.Tensor, k int64, smallest bool) build.Operand {
	a := n.Int("axis", -1)
	axis := axisIndex(a, len(t.Dims))
	values, positions := im.eval.TopK(t, axis, int(max(-1, min(k, pb.MaxSize))), smallest, false)
	if len(n.Outputs) > 1 {
		im.env[n.Outputs[1]] = build.Operand{Constant: positions}
	}
	return build.Operand{Constant: values}
}

func (im *importer) oneHot(n *pb.Node) build.Operand {
	var operands [3]*eval.Tensor
	for i := range operands {
		operands[i] = im.required(n, i)
	}
	a := n.Int("axis", -1)
	axis := axisIndex(a, len(operands[0].Dims)+1)
	return build.Operand{Constant: im.eval.OneHot(operands[0], operands[1], operands[2], axis)}
}
