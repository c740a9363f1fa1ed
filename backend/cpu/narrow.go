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
// at a time.
func narrow(p *plan.Plan) (narrowed *plan.Plan, least []int) {
	least = make([]int, len(p.Tensors))
	tensors := slices.Clone(p.Tensors)
	ends := p.Ends()
	for _, s := range p.Steps {
		op, ok := s.Op.(*plan.Quantize)
		if ok && tensors[s.Out].DType == bcnn.Float32 && op.Levels <= math.MaxUint8+1 && !ends[s.Out] && groupsRead(p, s.Out) {
			tensors[s.Out].DType, least[s.Out] = bcnn.Uint8, op.Low
		}
	}
	copied := *p
	copied.Tensors = tensors
	return &copied, least
}

// groupsRead reports whether all readers of a tensor are convolutions in float32 in groups.
func groupsRead(p *plan.Plan, t int) bool {
	for _, s := range p.Steps {
		op, ok := s.Op.(*plan.Conv)
		if slices.Contains(s.In, t) && (!ok || op.F32 == nil || op.Groups == 1) {
			return false
		}
	}
	return true
}
