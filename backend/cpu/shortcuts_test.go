package cpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// shortcuts draws a plan of float32 tensors of one shape: convolutions of the signs of any of
// them, with sums, scales and products behind them that read any others. What nothing reads
// is an output, and some of the rest are.
func shortcuts(seed uint64) *planner {
	shape := bcnn.Shape{H: 2 + int(seed%5), W: 3 + int(seed%4), C: []int{65, 64, 130, 129}[seed%4]}
	p := newPlanner(seed, bcnn.Input{DType: bcnn.Float32, Shape: shape})
	last := func() int { return len(p.plan.Tensors) - 1 }
	some := func() int { // late ones above all
		for at := max(p.rng.IntN(last()+1), p.rng.IntN(last()+1)); ; at-- {
			if p.plan.Tensors[at].DType == bcnn.Float32 {
				return at
			}
		}
	}
	step := func(op plan.Op, to bcnn.DType, in ...int) {
		p.step("step", op, to, shape)
		p.plan.Steps[len(p.plan.Steps)-1].In = in
	}
	end := func() plan.Activation { return p.activation(p.anyActivation(), shape.C) }
	affine := func(in int, end plan.Activation) {
		step(&plan.Affine{Scale: p.floats(shape.C), Shift: p.floats(shape.C), Activation: end}, bcnn.Float32, in)
	}
	for range 6 + p.rng.IntN(9) {
		switch p.rng.IntN(6) {
		case 0:
			affine(some(), end())
		case 1:
			step(&plan.Pair{}, bcnn.Float32, some(), some())
		case 2:
			step(&plan.Add{Activation: end()}, bcnn.Float32, some(), some())
		default:
			step(&plan.Sign{Threshold: p.threshold(shape.C, 1, 2, false)}, bcnn.Bits, some())
			k := p.rng.IntN(2)
			p.conv(convOptions{window: bcnn.Window{KH: 1 + 2*k, KW: 1 + 2*k, Pad: pad(k)}, out: shape.C,
				float: true, raw: p.rng.IntN(2) == 0, end: p.anyActivation(), padValue: p.rng.IntN(3) - 1})
			if p.rng.IntN(2) == 0 {
				affine(last(), plan.Activation{})
			}
			if in := []int{last(), some()}; p.rng.IntN(4) > 0 {
				k := p.rng.IntN(2)
				step(&plan.Add{Activation: end()}, bcnn.Float32, in[k], in[1-k])
			}
			if p.rng.IntN(3) == 0 {
				affine(last(), end())
			}
		}
	}
	read := make([]bool, last())
	for _, s := range p.plan.Steps {
		for _, t := range s.In {
			if t < last() {
				read[t] = true
			}
		}
	}
	for t := 1; t < last(); t++ {
		if !read[t] || p.plan.Tensors[t].DType == bcnn.Float32 && seed%3 == 0 && p.rng.IntN(4) == 0 {
			p.plan.Outputs = append(p.plan.Outputs, t)
		}
	}
	return p
}

// TestShortcutsInPlace: no sum takes the place of a tensor that is still read. Sets that have
// no kernel for such sums get one here.
func TestShortcutsInPlace(t *testing.T) {
	inPlace, wide, plans := 0, false, uint64(40)
	if raceEnabled || testing.Short() {
		plans = 10
	}
	for seed := range plans {
		p := shortcuts(seed)
		made, in := p.done(), p.input(3)
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		for i, isa := range sets.Names() {
			set, err := sets.Lookup(isa)
			require.NoError(t, err)
			with := *set
			wide = wide || set.Wide != nil
			if with.ScaleAdd == nil {
				with.ScaleAdd = generic.ScaleAdd
			}
			e, err := newExecutable(t.Context(), made, &with, driver.Config{MaxBatch: 3, Threads: 1 + (i+int(seed))%3, ISA: isa, ArenaBytes: 1 << 30})
			require.NoError(t, err)
			for _, s := range made.Steps {
				_, sum := s.Op.(*plan.Add)
				for _, other := range s.In {
					a, b := e.full[other].F32, e.full[s.Out].F32
					if sum && other != s.Out-1 && a != nil && b != nil && &a[0] == &b[0] {
						inPlace++
					}
				}
			}
			requireOutputs(t, e, want, in, fmt.Sprintf("seed %d, %s", seed, isa))
			require.NoError(t, e.Close())
		}
	}
	if wide { // other convolutions do not end in sums
		require.Greater(t, inPlace, 5)
	}
}
