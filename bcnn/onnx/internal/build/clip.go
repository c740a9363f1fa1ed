package build

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Clip limits a value: it is min(max(x, lo), hi), so where lo is above hi all values are hi,
// as the operator has it since opset 13. A ReLU is a layer at once; other limits stay
// pending, because a binarisation behind them may make them superfluous.
func (b *Builder) Clip(n *pb.Node, v *Value, lo, hi float64) Operand {
	if math.IsNaN(lo) || math.IsNaN(hi) {
		try.Failf("limits %v and %v", lo, hi)
	}
	lo = min(lo, hi)
	if v.Stairs != nil {
		if out, ok := v.bounded(n, lo, hi); ok {
			return Operand{Value: out}
		}
	}
	try.Check(v.CheckReal())
	for _, limit := range []float64{lo, hi} {
		if math.Abs(limit) <= math.MaxFloat32 && float64(float32(limit)) != limit {
			try.Failf("the limit %v has no exact float32 value", limit)
		}
	}
	out := v.With(n)
	if c := v.Clip; c != nil {
		lo, hi = max(lo, min(c.Lo, hi)), max(lo, min(c.Hi, hi))
		out.Clip = nil
	}
	if lo <= -math.MaxFloat32 && hi >= math.MaxFloat32 {
		return Operand{Value: out}
	}
	settled := b.Settle(out)
	if lo == 0 && hi >= math.MaxFloat32 {
		return Operand{Value: b.Emit(n, "", bcnn.ReLU{}, settled.Shape, settled)}
	}
	out = settled.With(n)
	out.Clip = &Clip{lo, hi, n}
	return Operand{Value: out}
}

// clipLayer emits the layer of a clip that stays.
func (b *Builder) clipLayer(v *Value) *Value {
	in := v.With(v.Node)
	in.Clip = nil
	limit := func(x float64) float32 {
		if math.Abs(x) > math.MaxFloat32 {
			return float32(math.Inf(int(math.Copysign(1, x))))
		}
		return float32(x)
	}
	return b.Emit(v.Clip.node, "", bcnn.Clip{Min: limit(v.Clip.Lo), Max: limit(v.Clip.Hi)}, v.Shape, in)
}
