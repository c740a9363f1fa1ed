package cpu

import (
	"slices"
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

func joinedOf(p *plan.Plan) []int { return joined(graphOf(p), groupsOf(p, false)) }

// TestJoined looks at what lies in what, and compares with the reference.
func TestJoined(t *testing.T) {
	plan := dense(5, 7, 1).done()
	got := map[int]int{} // channels
	for t, whole := range joinedOf(plan) {
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

// melius draws a plan whose blocks join new channels, and then others in their place, as a MeliusNet does. late
// is which signs read what the first of these made when that is too late: −1 for none.
func melius(h, w, c, late int) *planner {
	p := newPlanner(uint64(h*w*c), input(bcnn.Float32, h, w, c))
	last := func() int { return len(p.plan.Tensors) - 1 }
	of := func(in ...int) { p.plan.Steps[len(p.plan.Steps)-1].In = in }
	sign := func(t int) {
		shape := p.plan.Tensors[t].Shape
		p.step("sign", &plan.Sign{Threshold: p.threshold(shape.C, 1, 2, false)}, bcnn.Bits, shape)
		of(t)
	}
	conv := func(t int) int {
		sign(t)
		p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, out: c, padValue: 0, float: true})
		return last()
	}
	join := func(a, b int) int {
		shape := p.plan.Tensors[a].Shape
		shape.C += p.plan.Tensors[b].Shape.C
		p.step("join", &plan.Concat{}, bcnn.Float32, shape)
		of(a, b)
		return last()
	}
	p.affine(plan.ActivationNone)
	all, first := join(1, 1), -1
	for block := range 3 {
		more := conv(all)
		joined := join(all, more)
		p.step("add", &plan.Add{}, bcnn.Float32, p.plan.Tensors[conv(joined)].Shape)
		of(more, last()-1)
		all = join(all, last())
		if block == late {
			first = joined
		}
	}
	if first >= 0 {
		sign(first)
		p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: 3, float: true})
		out := last()
		shape := p.plan.Tensors[all].Shape
		p.step("end", &plan.Affine{Scale: slices.Repeat([]float32{2}, shape.C), Shift: make([]float32, shape.C)}, bcnn.Float32, shape)
		of(all)
		join(last(), out)
		return p
	}
	p.affine(plan.ActivationNone)
	return p
}

// TestJoinedAgain: what is joined twice holds one tensor after the other, unless the first is read too late.
func TestJoinedAgain(t *testing.T) {
	for late, want := range map[int][][2]int{ // channels of what is joined, and of what it lies in
		-1: {{4, 10}, {6, 10}, {6, 10}, {8, 10}, {8, 10}, {10, 10}, {10, 10}},
		1:  {{4, 6}, {6, 6}, {6, 6}, {8, 8}, {8, 10}, {10, 10}, {10, 10}},
	} {
		p := melius(5, 7, 2, late).done()
		var got [][2]int
		for i, whole := range joinedOf(p) {
			if i > 0 && i < len(p.Tensors)-1 && isConcat(p.Steps[graphOf(p).Writer[i]]) {
				got = append(got, [2]int{p.Tensors[i].Shape.C, p.Tensors[whole].Shape.C})
			}
		}
		require.Equal(t, want, got, "late: %d", late)
	}
	forEach(t, func(t *testing.T, opts backend.Options) {
		requireReference(t, melius(12, 11, 64, -1), opts)
		for late := -1; late < 3; late++ {
			requireReference(t, melius(9, 4, 20, late), opts)
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
	require.Equal(t, whole, joinedOf(&p.plan)[part])
	p.sign() // of the affine step
	p.step("sign", &plan.Sign{Threshold: p.threshold(32, 1, 2, false)}, bcnn.Bits, p.plan.Tensors[part].Shape)
	p.plan.Steps[len(p.plan.Steps)-1].In = []int{part}
	p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: 8, float: true})
	require.Equal(t, whole, joinedOf(p.done())[part])
	forEach(t, func(t *testing.T, opts backend.Options) { requireReference(t, p, opts) })
}
