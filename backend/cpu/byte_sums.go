package cpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
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

// pages is what a placement may take more than another, since tensors start at different offsets within
// pages: see spread.
const pages = 64 << 10

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
	case !e.readBy(made.Out, b.sum) || !e.readBy(values.Out, b.sum) || !e.readBy(sum.Out, b.levels):
		return nil
	}
	for _, t := range append(slices.Clone(b.inner), levels.Out, values.In[0]) {
		if !e.standalone(t) {
			return nil
		}
	}
	return b
}

// readBy reports whether a step alone reads a tensor.
func (e *executable) readBy(t, step int) bool {
	for i, s := range e.plan.Steps {
		if slices.Contains(s.In, t) != (i == step) {
			return false
		}
	}
	return true
}

// fuseByteSums makes one step of each byteSum that the kernels of its convolution can compute, unless that
// needs notably more memory than placed says. It returns the groups whose tensors are needed at the same time
// then, and where they lie.
func (e *executable) fuseByteSums(groups []group, placed plan.Placement) ([]group, plan.Placement) {
	groups = slices.Clone(groups)
	for k := 0; k+1 < len(groups); k++ {
		first, second := groups[k], groups[k+1]
		conv, can := e.steps[first.first].(interface {
			AddLevels(*bcnn.Tensor, kern.End, *kern.Levels, *bcnn.Tensor) bool
		})
		if !can || first.first != first.last {
			continue
		}
		b := e.byteSum(first.first, second.first, second.last)
		if b == nil {
			continue
		}
		for _, t := range b.inner {
			e.unmade[t] = true
		}
		fused := slices.Replace(slices.Clone(groups), k, k+2, group{first.first, second.last})
		less, err := e.layout(fused, nil)
		values, sum, levels := e.plan.Steps[b.values], e.plan.Steps[b.sum].Op.(*plan.Add), e.plan.Steps[b.levels]
		then := kern.End{Activation: activation.Of(sum.Activation)}
		if op := values.Op.(*plan.Affine); op.Scale != nil {
			then.Scale, then.Shift = op.Scale, op.Shift
		}
		if err != nil || less.Bytes > placed.Bytes+pages ||
			!conv.AddLevels(&e.tensors[values.In[0]], then, e.levels[b.levels], &e.tensors[levels.Out]) {
			for _, t := range b.inner {
				e.unmade[t] = false
			}
			continue
		}
		groups, placed = fused, less
		for _, i := range []int{b.values, b.sum, b.levels} {
			e.steps[i] = nil
			e.choices[i] = driver.Choice{Kernel: "in that of " + e.plan.Steps[b.conv].Name, Why: "its values are in registers"}
		}
	}
	return groups, placed
}
