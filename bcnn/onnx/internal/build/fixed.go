package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Layers that give constants.

// always emits a number in the shape of v, whatever v is: 0 times v is NaN where v is infinite.
func (b *Builder) always(n *pb.Node, v *Value, x float32) *Value {
	zero := []float32{0}
	return b.Emit(n, "", bcnn.Affine{Scale: zero, Bias: []float32{x}}, v.Shape, b.without(n, v, zero))
}

// without returns a value with zeros in the channels whose scale, one number or one per channel, is 0.
// It returns the value itself where 0 times it is 0 anyway.
func (b *Builder) without(n *pb.Node, v *Value, scale []float32) *Value {
	if !slices.Contains(scale, 0) || try.Value(b.values.Of(v.Layer)).Only {
		return v
	}
	index := b.indices(v.Shape.C)
	for c := range index {
		index[c] = int32(c)
		if pick(scale, c) == 0 {
			index[c] = -1
		}
	}
	return b.Emit(n, "/zeros", bcnn.Channels{Index: index}, v.Shape, v)
}

// Halved returns half of a constant that holds infinities, for which it has the largest numbers, so
// that twice of that is the constant: layers have finite numbers only. ok is false for constants
// without infinities.
func (b *Builder) Halved(t *eval.Tensor) (half *eval.Tensor, ok bool) {
	if t.Type != pb.Float || b.finite(t) {
		return nil, false
	}
	infinite := false
	try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := t.At(i)
			infinite = infinite || math.IsInf(x, 0)
			if float64(float32(x/2)*2) != x {
				try.Failf("the constant holds %v beside an infinity", x)
			}
		}
	}))
	if !infinite {
		return nil, false
	}
	half = t
	for _, step := range []struct {
		op string
		by float64
	}{{"Mul", 0.5}, {"Min", math.MaxFloat32}, {"Max", -math.MaxFloat32}} {
		half = b.eval.Binary(step.op)([]*eval.Tensor{half, eval.Scalar(pb.Float, step.by)})
	}
	return half, true
}

// Twice emits 2·v.
func (b *Builder) Twice(n *pb.Node, v *Value) *Value {
	return b.Emit(n, "/twice", bcnn.Affine{Scale: []float32{2}}, v.Shape, v)
}
