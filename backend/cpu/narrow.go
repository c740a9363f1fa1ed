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
func narrow(g *plan.Graph, stepwise bool) (narrowed *plan.Graph, least []int) {
	least = make([]int, len(g.Tensors))
	if stepwise {
		return g, least
	}
	inGroups := func(i int) bool {
		op, ok := g.Steps[i].Op.(*plan.Conv)
		return ok && op.F32 != nil && op.Groups != 1
	}
	needed := func(t int) bool { // as it is
		return g.IsEnd(t) || slices.ContainsFunc(g.Readers[t], func(i int) bool { return !inGroups(i) })
	}
	copied, of := *g, *g.Plan
	copied.Plan, of.Tensors = &of, slices.Clone(g.Tensors)
	for _, s := range g.Steps {
		op, ok := s.Op.(*plan.Quantize)
		if out := &of.Tensors[s.Out]; ok && out.DType == bcnn.Float32 && op.Levels <= math.MaxUint8+1 && !needed(s.Out) {
			out.DType, least[s.Out] = bcnn.Uint8, op.Low
		}
	}
	return &copied, least
}
