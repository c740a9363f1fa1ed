package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// moved are the operators that leave values as they are, whatever those stand for.
var moved = []string{"Flatten", "Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze"}

// ofBatch evaluates a node that computes with the batch size, as the code of LSQ does with the
// number of values, where it may cancel: see eval.Tensor.Power. ok is false for any other node.
func (im *importer) ofBatch(n *pb.Node) (r build.Operand, ok bool) {
	sized, batch := false, false
	for _, name := range n.Inputs {
		if t := im.env[name].Constant; t != nil {
			sized, batch = sized || t.Sized(), batch || t.HasBatch()
		}
	}
	if !batch {
		return r, false
	}
	c, constant := im.constants(n)
	switch op := n.OpType; {
	case constant && n.Domain == "" && slices.Contains(moved, op):
		return r, false
	case !constant, n.Domain != "", slices.Contains(c, nil):
	case op == "ReduceProd" && !sized && len(c) == 1:
		keep := n.Int("keepdims", 1)
		return build.Operand{Constant: im.eval.SizedProduct(c[0], keep != 0)}, true
	case (op == "Mul" || op == "Div" || op == "Pow") && len(c) == 2:
		return build.Operand{Constant: im.eval.SizedBinary(op, c[0], c[1])}, true
	case (op == "Add" || op == "Sub") && len(c) == 2:
		return im.sizedSum(n, c[0], c[1]), true
	case (op == "Sqrt" || op == "Reciprocal" || op == "Neg" || op == "Abs") && len(c) == 1:
		return build.Operand{Constant: im.eval.SizedUnary(op, c[0])}, true
	case op == "Cast" && len(c) == 1:
		to := pb.DataType(n.Int("to", 0))
		if !sized && !to.Real() { // the sizes in a shape
			return r, false
		}
		return build.Operand{Constant: im.eval.SizedCast(to, c[0])}, true
	}
	if sized {
		try.Failf("it computes with the batch size, which does not cancel")
	}
	return r, false
}

// sizedSum is a sum or a difference of which a part may cancel.
func (im *importer) sizedSum(n *pb.Node, a, b *eval.Tensor) build.Operand {
	r := build.Operand{Constant: im.eval.SizedBinary(n.OpType, a, b)}
	r.Sum = &build.Sum{A: im.lookup(n.Inputs[0]), B: im.lookup(n.Inputs[1]), Minus: n.OpType == "Sub"}
	rest, ok := im.build.Cancel(r.Sum, r)
	if ok {
		im.cancelled = append(im.cancelled, n.Label())
		return rest
	}
	return r
}
