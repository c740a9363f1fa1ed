package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// allConstant returns the inputs, count of them, of an operator that is supported on constants
// only.
func (im *importer) allConstant(n *pb.Node, count int) []*eval.Tensor {
	operands := im.operands(n, count)
	list := make([]*eval.Tensor, count)
	for i, o := range operands {
		if list[i] = o.Constant; o.Constant == nil {
			try.Failf("%w on computed tensors, only on constants", errUnsupported)
		}
	}
	return list
}

// axisOf returns the attribute axis, 0 without it, as a dimension of a tensor.
func axisOf(n *pb.Node, t *eval.Tensor) int {
	a := n.Int("axis", 0)
	return axisIndex(a, len(t.Dims))
}

// scatter imports Scatter, ScatterND and ScatterElements of constants, which replace some weights
// by others, or combine them with others. assign imports them for values.
func (im *importer) scatter(n *pb.Node) build.Operand {
	if r := im.operands(n, 3); r[0].Value != nil || r[2].Value != nil {
		return im.assign(n, r[0], r[2], im.required(n, 1))
	}
	c := im.allConstant(n, 3)
	how := n.Text("reduction", "none")
	if n.OpType == "ScatterND" {
		return build.Operand{Constant: im.eval.ScatterND(c[0], c[1], c[2], how)}
	}
	axis := axisOf(n, c[0])
	return build.Operand{Constant: im.eval.ScatterElements(c[0], c[1], c[2], axis, how)}
}

func (im *importer) gatherElements(n *pb.Node) build.Operand {
	c := im.allConstant(n, 2)
	axis := axisOf(n, c[0])
	return build.Operand{Constant: im.eval.GatherElements(c[0], c[1], axis)}
}

func (im *importer) cumSum(n *pb.Node) build.Operand {
	c := im.allConstant(n, 2)
	list := try.Value(c[1].Integers())
	if len(list) != 1 {
		try.Failf("its axis must be a single integer")
	}
	axis := axisIndex(list[0], len(c[0].Dims))
	exclusive := n.Bit("exclusive", 0)
	reverse := n.Bit("reverse", 0)
	return build.Operand{Constant: im.eval.CumSum(c[0], axis, exclusive != 0, reverse != 0)}
}
