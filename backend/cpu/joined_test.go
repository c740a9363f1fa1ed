package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// dense draws a plan that joins new channels to all before, as a DenseNet does, and some
// where what they are joined to cannot lie in the result.
func dense(h, w, c int) *planner {
	p := newPlanner(uint64(h*w*c), input(bcnn.Float32, h, w, c))
	same := bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}
	last := func() int { return len(p.plan.Tensors) - 1 }
	all := 0
	// of has the last step read something else.
	of := func(in ...int) { p.plan.Steps[len(p.plan.Steps)-1].In = in }
	join := func(more int) {
		shape := p.plan.Tensors[all].Shape
		shape.C += p.plan.Tensors[more].Shape.C
		p.step("join", &plan.Concat{}, bcnn.Float32, shape)
		of(all, more)
		all = last()
	}
	block := func() {
		shape := p.plan.Tensors[all].Shape
		p.step("sign", &plan.Sign{Threshold: p.threshold(shape.C, 1, 2, false)}, bcnn.Bits, shape)
		of(all)
		p.conv(convOptions{window: same, out: c, padValue: 0, float: true})
		join(last())
	}
	p.affine(plan.ActivationNone)
	all = last()
	for range 4 {
		block()
	}
	join(all) // twice the same
	block()
	join(last() - 1)
	p.affine(plan.ActivationPReLU) // reads it too
	other := last()
	all = last() - 1
	block()
	block()
	join(other)
	p.affine(plan.ActivationNone)
	return p
}

// TestJoined looks at what lies in what, and compares with the reference.
func TestJoined(t *testing.T) {
	plan := dense(5, 7, 1).done()
	got := map[int]int{} // channels
	for t, whole := range joined(graphOf(plan)) {
		if whole != t {
			got[plan.Tensors[t].Shape.C] = plan.Tensors[whole].Shape.C
		}
	}
	require.Equal(t, map[int]int{2: 5, 3: 5, 4: 5, 10: 12, 11: 12, 13: 26, 14: 26}, got)
	forEach(t, func(t *testing.T, opts backend.Options) {
		for _, s := range [][3]int{{5, 7, 1}, {9, 4, 20}, {12, 11, 64}} {
			requireReference(t, dense(s[0], s[1], s[2]), opts)
		}
	})
}

// TestJoinedIsReadLate: a step does not write over a tensor that holds another, which a sign
// behind that step reads.
func TestJoinedIsReadLate(t *testing.T) {
	p := newPlanner(7, input(bcnn.Float32, 5, 7, 16))
	join := func(with int) int {
		in := p.last().Shape
		in.C += p.plan.Tensors[with].Shape.C
		p.step("join", &plan.Concat{}, bcnn.Float32, in, with)
		return len(p.plan.Tensors) - 1
	}
	p.affine(plan.ActivationNone)
	part := join(1)
	whole := join(1)
	p.affine(plan.ActivationNone)
	require.Equal(t, whole, joined(graphOf(&p.plan))[part])
	p.sign() // of the affine step
	p.step("sign", &plan.Sign{Threshold: p.threshold(32, 1, 2, false)}, bcnn.Bits, p.plan.Tensors[part].Shape)
	p.plan.Steps[len(p.plan.Steps)-1].In = []int{part}
	p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: 8, float: true})
	require.Equal(t, whole, joined(graphOf(p.done()))[part])
	forEach(t, func(t *testing.T, opts backend.Options) { requireReference(t, p, opts) })
}
