package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// moved are the operators that do not change values, so that these may depend on the batch size.
var moved = []string{"Flatten", "Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze"}

// ofBatch evaluates a node that computes with the batch size, which may cancel later: LSQ, for
// instance, divides by the number of values of a tensor. See eval.Tensor.Power. ok is false for any
// other node.
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
	known := constant && n.Domain == ""
	if known && slices.Contains(moved, n.OpType) {
		return r, false
	}
	if known && !slices.Contains(c, nil) {
		if r, ok = im.sized(n, c, sized); ok {
			for i := range n.Inputs { // all are in c
				n.Input(i)
			}
			return r, true
		}
	}
	if sized {
		try.Failf("its result depends on the batch size, which does not cancel out: export the model for a fixed batch size")
	}
	return r, false
}

// sized evaluates an operator on constants that depend on the batch size. is says that one of them
// is not just sizes in a shape, but computed from them. ok is false for operators that it does not
// know.
func (im *importer) sized(n *pb.Node, c []*eval.Tensor, is bool) (r build.Operand, ok bool) {
	var t *eval.Tensor
	switch op := n.OpType; op {
	case "ReduceProd":
		if is || len(c) != 1 {
			return r, false
		}
		keep := n.Bit("keepdims", 1)
		t = im.eval.SizedProduct(c[0], keep != 0)
	case "Mul", "Div", "Pow":
		if len(c) != 2 {
			return r, false
		}
		t = im.eval.SizedBinary(op, c[0], c[1])
	case "Add", "Sub":
		if len(c) != 2 {
			return r, false
		}
		return im.sizedSum(n, c[0], c[1]), true
	case "Sqrt", "Reciprocal", "Neg", "Abs":
		if len(c) != 1 {
			return r, false
		}
		t = im.eval.SizedUnary(op, c[0])
	case "Cast":
		to := pb.DataType(n.Int("to", 0))
		if len(c) != 1 || !is && !to.Real() { // sizes in a shape, which the handler casts
			return r, false
		}
		t = im.eval.SizedCast(to, c[0])
	default:
		return r, false
	}
	return build.Operand{Constant: t}, true
}

// sizedSum evaluates Add or Sub, and cancels terms (see build.Sum).
func (im *importer) sizedSum(n *pb.Node, a, b *eval.Tensor) build.Operand {
	r := build.Operand{Constant: im.eval.SizedBinary(n.OpType, a, b)}
	r.Sum = &build.Sum{A: im.lookup(n.Input(0)), B: im.lookup(n.Input(1)), Minus: n.OpType == "Sub"}
	rest, ok := im.build.Cancel(r.Sum, r)
	if ok {
		im.cancelled = append(im.cancelled, n.Label())
		return rest
	}
	return r
}
