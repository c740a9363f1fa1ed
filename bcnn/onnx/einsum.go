package onnx

import (
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// mostEquation is the longest equation of an Einsum, in bytes.
const mostEquation = 64

// einsum imports Einsum of two computed matrices, or of a value and a constant, with at most one
// label that both have and the result lacks.
func (im *importer) einsum(n *pb.Node) build.Operand {
	equation := strings.ReplaceAll(n.Text("equation", ""), " ", "")
	refuse := func() build.Operand {
		panic(try.Errorf("equation %s is not supported: want a computed tensor and a constant, or two computed matrices, that are summed over at most one dimension in common", text.Quote(equation[:min(len(equation), mostEquation)])))
	}
	in, to, explicit := strings.Cut(equation, "->")
	first, second, two := strings.Cut(in, ",")
	if !explicit || !two || len(equation) > mostEquation || strings.ContainsAny(equation, ".") || len(n.Inputs) != 2 {
		return refuse()
	}
	operands := im.operands(n, 2)
	a, b := operands[0], operands[1]
	switch {
	case a.Value != nil && b.Value != nil:
		return im.einsumOfTwo(n, a.Value, b.Value, first, second, to, refuse)
	case a.Value != nil && b.Constant != nil:
		return im.einsumWith(n, a.Value, b.Constant, first, second, to, refuse)
	case a.Constant != nil && b.Value != nil:
		return im.einsumWith(n, b.Value, a.Constant, second, first, to, refuse)
	}
	return refuse()
}

// einsumWith imports an Einsum of a value and a constant, of the given labels. With a label that
// the result lacks it is a product with the weights at every position, without one it is a product
// with broadcasting.
func (im *importer) einsumWith(n *pb.Node, v *build.Value, t *eval.Tensor, labels, of, to string, refuse func() build.Operand) build.Operand {
	if len(labels) != len(v.View) || len(of) != len(t.Dims) || labels == "" || repeats(labels) || repeats(of) || repeats(to) {
		return refuse()
	}
	joined := strings.IndexFunc(labels, func(r rune) bool { return strings.ContainsRune(of, r) && !strings.ContainsRune(to, r) })
	if joined < 0 {
		return im.einsumProduct(n, v, t.Dims, labels, of, to, refuse)
	}
	// Move the summed dimension to the end of the value, and to the front of the weights.
	c := labels[joined]
	if len(of) != 2 || joined == 0 {
		return refuse()
	}
	o := strings.ReplaceAll(of, string(c), "")
	have := labels[:joined] + labels[joined+1:] + o
	if len(o) != 1 || strings.Contains(labels, o) || len(to) != len(have) || to[0] != labels[0] {
		return refuse()
	}
	turned := im.permute(n, build.Operand{Value: v}, order(labels[:joined]+labels[joined+1:]+labels[joined:joined+1], labels, refuse))
	if of[0] != c {
		t = im.eval.Transpose(t, []int{1, 0})
	}
	return im.permute(n, im.multiplied(n, turned.Value, t), order(to, have, refuse))
}

// order returns the position of each label of to among labels.
func order(to, labels string, refuse func() build.Operand) []int {
	perm := make([]int, len(to))
	for i := range perm {
		if perm[i] = strings.IndexByte(labels, to[i]); perm[i] < 0 {
			refuse()
		}
	}
	return perm
}

// einsumProduct imports an Einsum that sums nothing: a Mul with broadcasting.
func (im *importer) einsumProduct(n *pb.Node, v *build.Value, sizes []int, labels, of, to string, refuse func() build.Operand) build.Operand {
	if len(to) != len(labels) || to[0] != labels[0] {
		return refuse()
	}
	perm, turn, dims := order(to, labels, refuse), []int{}, slices.Repeat([]int{1}, len(to))
	for i := range dims {
		if k := strings.IndexByte(of, to[i]); k >= 0 {
			turn = append(turn, k)
			dims[i] = sizes[k]
		}
	}
	if len(turn) != len(of) {
		return refuse()
	}
	t := im.env[n.Input(0)].Constant
	if t == nil {
		t = im.env[n.Input(1)].Constant
	}
	t = im.eval.Transpose(t, turn)
	r := im.permute(n, build.Operand{Value: v}, perm)
	return im.compute(n, "Mul", r, build.Operand{Constant: t.Redim(dims)})
}

// repeats reports whether a letter occurs twice.
func repeats(s string) bool {
	letters := []byte(s)
	slices.Sort(letters)
	return len(slices.Compact(letters)) != len(s)
}
