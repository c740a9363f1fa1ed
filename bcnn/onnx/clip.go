package onnx

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// clipValue limits a value.
func (b *networkBuilder) clipValue(n *pb.Node, v *value, lo, hi float64) (result, error) {
	if err := v.real(); err != nil {
		return result{}, err
	}
	if math.IsNaN(lo) || math.IsNaN(hi) || lo > hi {
		return result{}, fmt.Errorf("limits %v and %v", lo, hi)
	}
	out := v.with(n)
	if c := v.clip; c != nil {
		lo, hi = max(lo, min(c.lo, hi)), max(lo, min(c.hi, hi))
		out.clip = nil
	}
	if lo <= -math.MaxFloat32 && hi >= math.MaxFloat32 {
		return result{value: out}, nil
	}
	if lo == 0 && hi >= math.MaxFloat32 {
		settled, err := b.settle(out)
		if err != nil {
			return result{}, err
		}
		return result{value: b.emit(n, "", bcnn.ReLU{}, settled.shape, settled)}, nil
	}
	settled, err := b.settle(out)
	if err != nil {
		return result{}, err
	}
	out = settled.with(n)
	out.clip = &clip{lo, hi, n}
	return result{value: out}, nil
}
