package cpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// randomGraph draws a plan whose steps read any tensors before them: pools, affine steps, sums,
// concatenations and signs of float32 values, some of which are outputs. So tensors are read
// late, lie in others, and take the places of others.
func randomGraph(seed uint64) *planner {
	sides := []int{1, 2, 5, 9, 13}
	channels := []int{1, 3, 9, 16, 20, 64, 70, 131}[seed%8]
	p := newPlanner(seed, input(bcnn.Float32, sides[seed/8%5], sides[seed/40%5], channels))
	p.affine(p.anyActivation())
	last := func() int { return len(p.plan.Tensors) - 1 }
	// like draws another tensor of float32 values that fits, or returns −1.
	like := func(t int, fits func(s bcnn.Shape) bool) int {
		var all []int
		for i := 1; i <= last(); i++ {
			if other := p.plan.Tensors[i]; i != t && other.DType == bcnn.Float32 && fits(other.Shape) {
				all = append(all, i)
			}
		}
		if len(all) == 0 {
			return -1
		}
		return all[p.rng.IntN(len(all))]
	}
	var outputs []int
	for range 3 + p.rng.IntN(9) {
		t := last()
		if p.rng.IntN(3) == 0 {
			t = max(like(0, func(bcnn.Shape) bool { return true }), 1)
		}
		s := p.plan.Tensors[t].Shape
		in := []int{t}
		emit := func(name string, op plan.Op, shape bcnn.Shape) {
			p.step(name, op, bcnn.Float32, shape)
			p.plan.Steps[len(p.plan.Steps)-1].In = in
		}
		switch p.rng.IntN(5) {
		case 0:
			w := bcnn.Window{KH: 1 + p.rng.IntN(3), KW: 1 + p.rng.IntN(4), StrideH: 1 + p.rng.IntN(4), StrideW: 1 + p.rng.IntN(4)}
			if p.rng.IntN(2) == 0 {
				w.Pad = bcnn.Padding{Top: p.rng.IntN(w.KH), Left: p.rng.IntN(w.KW)}
			}
			if out := w.Output(s, s.C); out.H > 0 && out.W > 0 {
				emit("pool", &plan.MaxPool{Window: w}, out)
			}
		case 1:
			emit("affine", &plan.Affine{Scale: p.floats(s.C), Shift: p.floats(s.C)}, s)
		case 2:
			if other := like(t, func(o bcnn.Shape) bool { return o == s }); other > 0 {
				in = append(in, other)
				if p.rng.IntN(2) == 0 {
					slices.Reverse(in)
				}
				emit("add", &plan.Add{Activation: p.activation(p.anyActivation(), s.C)}, s)
			}
		case 3:
			other := like(0, func(o bcnn.Shape) bool { return o.H == s.H && o.W == s.W && o.C+s.C <= 400 })
			if other > 0 {
				in = append(in, other)
				s.C += p.plan.Tensors[other].Shape.C
				emit("join", &plan.Concat{}, s)
			}
		default:
			p.step("sign", &plan.Sign{Threshold: p.threshold(s.C, 1, 2, false)}, bcnn.Bits, s)
			p.plan.Steps[len(p.plan.Steps)-1].In = in
			k := 1 + 2*p.rng.IntN(2)
			p.conv(convOptions{window: bcnn.Window{KH: k, KW: k, Pad: pad(k / 2)}, out: []int{s.C, 16, 32, 64}[p.rng.IntN(4)], float: true})
		}
		if p.rng.IntN(8) == 0 {
			outputs = append(outputs, last())
		}
	}
	p.affine(plan.ActivationNone)
	p.plan.Outputs = append(slices.DeleteFunc(slices.Compact(outputs), func(t int) bool { return t == last() }), p.plan.Outputs...)
	return p
}

// requireGraph compares all outputs of a drawn plan with the reference, for two batches.
func requireGraph(t *testing.T, seed uint64, opts backend.Options) {
	p := randomGraph(seed)
	plan := p.done()
	if opts.MaxBatch == 0 {
		opts.MaxBatch = 2
	}
	exe, err := Device().Compile(t.Context(), plan, opts)
	require.NoError(t, err)
	for _, n := range []int{opts.MaxBatch, 1} {
		in := []bcnn.Tensor{p.input(n)}
		want, err := ref.RunAll(t.Context(), plan, in, nil)
		require.NoError(t, err)
		var out []bcnn.Tensor
		for _, w := range want {
			out = append(out, bcnn.NewTensor(bcnn.Float32, w.N, w.Shape))
		}
		require.NoError(t, exe.Run(t.Context(), out, in))
		for i := range want {
			requireSame(t, want[i], out[i], fmt.Sprintf("seed %d, output %d", seed, i))
		}
	}
	require.NoError(t, exe.Close())
}

func TestRandomGraphs(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) {
		for seed := range uint64(62) {
			if seed >= 60 { // of which a part is read behind what takes the place of the whole
				seed = []uint64{1376, 1935}[seed-60]
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) { requireGraph(t, seed, opts) })
		}
	})
}

func FuzzRandomGraph(f *testing.F) {
	f.Add(uint64(1), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, threads, batch uint8) {
		isas := sets.Names()
		requireGraph(t, seed, backend.Options{
			ISA: isas[int(threads)/4%len(isas)], Threads: 1 + int(threads%4), MaxBatch: 1 + int(batch%4),
		})
	})
}
