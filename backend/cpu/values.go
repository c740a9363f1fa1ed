package cpu

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// This file tells what tensors of a plan can hold.

// largest returns the largest byte that each tensor of bytes can have.
func largest(p *plan.Plan) []uint8 {
	most := slices.Repeat([]uint8{math.MaxUint8}, len(p.Tensors))
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *plan.Quantize:
			most[s.Out] = uint8(min(op.Levels-1, math.MaxUint8))
		case *plan.MaxPool:
			most[s.Out] = most[s.In[0]]
		}
	}
	return most
}

// rareZeros returns which tensors of two planes are −1, +1 and, for a single float32 of each channel, 0, as
// torch.sign makes them.
func rareZeros(p *plan.Plan) []bool {
	rare := make([]bool, len(p.Tensors))
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *plan.Sign:
			rare[s.Out] = op.Planes == 2 && meetsOneValue(op.Threshold.F32, p.Tensors[s.Out].Shape.C)
		case *plan.MaxPool, *plan.Channels, *plan.Pixels:
			rare[s.Out] = rare[s.In[0]]
		}
	}
	return rare
}

// meetsOneValue reports whether a single float32 of each channel reaches the middle one of three levels. Of
// three thresholds of a channel, one is met by all values or by none.
func meetsOneValue(thresholds []float32, channels int) bool {
	next := func(x float32) float32 { return math.Nextafter32(x, float32(math.Inf(1))) }
	for c := range len(thresholds) / 3 {
		low, middle, high := thresholds[c], thresholds[channels+c], thresholds[2*channels+c]
		allMeetLow := math.IsInf(float64(low), -1) && high == next(middle)
		noneMeetsHigh := math.IsNaN(float64(high)) && middle == next(low)
		if !allMeetLow && !noneMeetsHigh {
			return false
		}
	}
	return len(thresholds) > 0
}
