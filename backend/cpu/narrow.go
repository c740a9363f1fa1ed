package cpu

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// narrow returns the plan with bytes for float32 levels that nothing but convolutions in groups reads,
// such as those between the layers of a MobileNet in 8 bits, and for each tensor what its byte 0
// stands for. Bytes take a quarter of the cache. The convolutions make float32 values of a few rows
// at a time. If stepwise is set, whoever asks for the tensors gets what the plan says.
func narrow(p *plan.Plan, stepwise bool) (narrowed *plan.Plan, least []int) {
	least = make([]int, len(p.Tensors))
	if stepwise {
		return p, least
	}
	needed := p.Ends() // as they are
	for _, s := range p.Steps {
		if op, ok := s.Op.(*plan.Conv); !ok || op.F32 == nil || op.Groups == 1 {
			for _, t := range s.In {
				needed[t] = true
			}
		}
	}
	copied := *p
	copied.Tensors = slices.Clone(p.Tensors)
	for _, s := range p.Steps {
		op, ok := s.Op.(*plan.Quantize)
		if out := &copied.Tensors[s.Out]; ok && out.DType == bcnn.Float32 && op.Levels <= math.MaxUint8+1 && !needed[s.Out] {
			out.DType, least[s.Out] = bcnn.Uint8, op.Low
		}
	}
	return &copied, least
}
