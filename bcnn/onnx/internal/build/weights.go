package build

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Weighted emits a layer with real weights. Package simplify finds out whether they are
// binary.
func (b *Builder) Weighted(n *pb.Node, v *Value, op bcnn.Weighted, shape bcnn.Shape) *Value {
	v = b.Settle(v)
	if _, w, _ := op.Filters(); len(w.F32) == 0 {
		try.Failf("the weights are empty")
	}
	y := b.Emit(n, "", op, shape, v)
	if b.Rounding != 0 && b.err == nil {
		b.rounding[y.Layer] = b.Rounding
	}
	if b.Quantised && b.err == nil {
		b.quantised[y.Layer] = true
	}
	return y
}

// IsQuantised reports whether the file quantises the weights of a layer.
func (b *Builder) IsQuantised(layer int) bool { return b.quantised[layer] }

// Tolerance returns how far the weights of a layer may be from what they are taken for.
func (b *Builder) Tolerance(layer int) weights.Tolerance {
	return weights.Tolerance{Relative: b.options.WeightTolerance, Rounding: b.rounding[layer]}
}
