package build

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Clip limits a value.
func (b *Builder) Clip(n *pb.Node, v *Value, lo, hi float64) (Operand, error) {
	if err := v.CheckReal(); err != nil {
		return Operand{}, err
	}
	if math.IsNaN(lo) || math.IsNaN(hi) || lo > hi {
		return Operand{}, fmt.Errorf("limits %v and %v", lo, hi)
	}
	out := v.With(n)
	if c := v.Clip; c != nil {
		lo, hi = max(lo, min(c.Lo, hi)), max(lo, min(c.Hi, hi))
		out.Clip = nil
	}
	if lo <= -math.MaxFloat32 && hi >= math.MaxFloat32 {
		return Operand{Value: out}, nil
	}
	if lo == 0 && hi >= math.MaxFloat32 {
		settled, err := b.Settle(out)
		if err != nil {
			return Operand{}, err
		}
		return Operand{Value: b.Emit(n, "", bcnn.ReLU{}, settled.Shape, settled)}, nil
	}
	settled, err := b.Settle(out)
	if err != nil {
		return Operand{}, err
	}
	out = settled.With(n)
	out.Clip = &Clip{lo, hi, n}
	return Operand{Value: out}, nil
}
