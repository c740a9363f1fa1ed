package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// pools draws a plan of a few pools of float32 values, some of which others read too.
func pools(seed uint64) *planner {
	channels := []int{1, 3, 16, 20, 64, 70, 131}[seed%7]
	p := newPlanner(seed, input(bcnn.Float32, 9+int(seed%5), 7+int(seed%6), channels))
	index := make([]int32, channels)
	for i := range index {
		index[i] = int32(i)
	}
	p.step("channels", &plan.Channels{Index: index}, bcnn.Float32, p.last().Shape)
	for range 1 + p.rng.IntN(3) {
		in, tensor := p.last().Shape, len(p.plan.Tensors)-1
		w := bcnn.Window{KH: 1 + p.rng.IntN(3), KW: 1 + p.rng.IntN(3), StrideH: 1 + p.rng.IntN(2), StrideW: 1 + p.rng.IntN(2)}
		if p.rng.IntN(2) == 0 {
			w.Pad = bcnn.Padding{Top: p.rng.IntN(w.KH), Left: p.rng.IntN(w.KW), Bottom: p.rng.IntN(w.KH), Right: p.rng.IntN(w.KW)}
		}
		out := w.Output(in, channels)
		if out.H < 2 || out.W < 2 {
			break
		}
		p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, out)
		switch p.rng.IntN(4) {
		case 0: // read again
			p.plan.Outputs = append(p.plan.Outputs, len(p.plan.Tensors)-1)
			p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: in.H, KW: in.W, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: channels})
			p.plan.Steps[len(p.plan.Steps)-1].In = []int{tensor}
			return p
		case 1: // in its group
			p.step("affine", &plan.Affine{Scale: p.floats(channels), Shift: p.floats(channels)}, bcnn.Float32, out)
		}
	}
	p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}}, bcnn.Float32, p.last().Shape)
	return p
}

// TestPoolsInPlace: a pool takes the place of its input where nothing reads that any more, one
// thread does it, and no window begins before its output.
func TestPoolsInPlace(t *testing.T) {
	inPlace, apart := 0, 0
	for seed := range uint64(80) {
		p := pools(seed)
		made, in := p.done(), p.input(3)
		for i := range in.F32 { // equal values whose bits differ, and NaN
			switch p.rng.IntN(5) {
			case 0:
				in.F32[i] = float32(math.Copysign(0, float64(p.rng.IntN(2))-0.5))
			case 1:
				in.F32[i] = -1
			case 2:
				if seed%8 == 0 {
					in.F32[i] = math.Float32frombits(0x7fc00000)
				}
			}
		}
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		for _, isa := range sets.Names() {
			for _, threads := range []int{1, 2} {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 3, Threads: threads, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				for _, s := range made.Steps {
					a, b := e.full[s.In[0]].F32, e.full[s.Out].F32
					if _, pool := s.Op.(*plan.MaxPool); !pool || a == nil || b == nil {
						continue
					}
					if &a[0] == &b[0] {
						require.Equal(t, 1, threads)
						inPlace++
					} else {
						apart++
					}
				}
				requireOutputs(t, e, want, in, fmt.Sprintf("seed %d, %s, %d threads", seed, isa, threads))
				require.NoError(t, e.Close())
			}
		}
	}
	require.Greater(t, inPlace, 50)
	require.Greater(t, apart, 50)
}
