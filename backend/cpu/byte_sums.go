package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// byteSum is a convolution, the sum of what it makes and of what bytes stand for, and the bytes of levels
// that become of that, as residual networks of few bits have them: float32 values between them need no
// memory.
type byteSum struct {
	conv, values, sum, levels int // steps
	inner                     []int
}

// byteSum finds one of which the convolution is step i and the others begin at step next.
func (e *executable) byteSum(i, next, last int) *byteSum {
	if next+2 > last {
		return nil
	}
	b := &byteSum{conv: i, values: next, sum: next + 1, levels: next + 2}
	made, values, sum, levels := e.plan.Steps[i], e.plan.Steps[b.values], e.plan.Steps[b.sum], e.plan.Steps[b.levels]
	scale, ok := values.Op.(*plan.Affine)
	add, adds := sum.Op.(*plan.Add)
	b.inner = []int{made.Out, values.Out, sum.Out}
	switch {
	case !ok || !adds || scale.Activation.Kind != plan.ActivationNone || add.Activation.Kind == plan.ActivationFunction:
		return nil
	case e.plan.Tensors[values.In[0]].DType != bcnn.Uint8 || e.levels[b.levels] == nil || e.plan.Tensors[levels.Out].DType != bcnn.Uint8:
		return nil
	case !slices.Contains(sum.In, made.Out) || !slices.Contains(sum.In, values.Out) || made.Out == values.Out || levels.In[0] != sum.Out:
		return nil
	case !e.graph.ReadOnlyBy(made.Out, b.sum, b.sum) || !e.graph.ReadOnlyBy(values.Out, b.sum, b.sum) || !e.graph.ReadOnlyBy(sum.Out, b.levels, b.levels):
		return nil
	}
	for _, t := range append(slices.Clone(b.inner), levels.Out, values.In[0]) {
		if !e.standalone(t) {
			return nil
		}
	}
	return b
}

// levelsAdder is a convolution whose kernels can end in a byteSum.
type levelsAdder interface {
	AddsLevels(then kern.End, l *kern.Levels) bool
	AddLevels(bytes *bcnn.Tensor, then kern.End, l *kern.Levels, out *bcnn.Tensor)
}

// fuseByteSums makes one step of each byteSum that the kernels of its convolution can compute. It returns
// the groups whose tensors are needed at the same time then, and where they lie.
func (e *executable) fuseByteSums(groups []group, placed placement, workers tiles.Size, fits fits) ([]group, placement) {
	fused := slices.Clone(groups)
	var all []*byteSum
	var unmade []int
	for k := 0; k+1 < len(fused); k++ {
		first, second := fused[k], fused[k+1]
		conv, can := e.steps[first.first].(levelsAdder)
		if !can || first.first != first.last || e.parted(first.last) {
			continue
		}
		b := e.byteSum(first.first, second.first, second.last)
		if b == nil || !conv.AddsLevels(e.then(b), e.levels[b.levels]) {
			continue
		}
		all, unmade = append(all, b), append(unmade, b.inner...)
		fused = slices.Replace(fused, k, k+2, group{first.first, second.last})
	}
	less, ok := e.without(unmade, fused, placed, workers, fits)
	if !ok {
		return groups, placed
	}
	for _, b := range all {
		bytes, out := e.plan.Steps[b.values].In[0], e.plan.Steps[b.levels].Out
		e.steps[b.conv].(levelsAdder).AddLevels(&e.tensors[bytes], e.then(b), e.levels[b.levels], &e.tensors[out])
		for _, i := range []int{b.values, b.sum, b.levels} {
			e.steps[i] = nil
			e.choices[i] = driver.Choice{Kernel: "in that of " + e.plan.Steps[b.conv].Name, Why: "its values are in registers"}
		}
	}
	return fused, less
}

// then is what happens to the bytes, and to the sum.
func (e *executable) then(b *byteSum) kern.End {
	then := kern.End{Activation: activation.Of(e.plan.Steps[b.sum].Op.(*plan.Add).Activation)}
	if op := e.plan.Steps[b.values].Op.(*plan.Affine); op.Scale != nil {
		then.Scale, then.Shift = op.Scale, op.Shift
	}
	return then
}
