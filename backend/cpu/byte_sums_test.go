package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// byteSums draws a plan of residual blocks of levels: convolutions of bytes, to whose outputs those bytes
// are added, scaled or not, before the sums become bytes again. The outputs may be quantised, and values again,
// before. It returns the steps that make levels, −1 for none and bytes, of those blocks that nothing keeps from
// being one step.
func byteSums(seed uint64) (p *planner, whole [][2]int) {
	channels := []int{64, 128, 80, 65}[seed%4]
	p = newPlanner(seed, input(bcnn.Float32, 2+int(seed%5), 3+int(seed%4), channels))
	p.levels(16, bcnn.Uint8)
	last := func() int { return len(p.plan.Tensors) - 1 }
	for range 1 + p.rng.IntN(3) {
		codes, shape := last(), p.last().Shape
		k := 1 + 2*p.rng.IntN(2)
		p.conv(convOptions{window: bcnn.Window{KH: k, KW: k, Pad: pad(k / 2)}, out: channels, float: true,
			int8: []int{7, -1}[p.rng.IntN(2)], raw: p.rng.IntN(2) == 0, end: p.anyActivation()})
		alone, fake := channels%16 == 0, -1
		if p.rng.IntN(2) == 0 { // a quantisation and its inverse
			p.evenLevels(2+p.rng.IntN(254), p.rng.IntN(2), p.rng.IntN(2) == 0, p.rng.IntN(2) == 0)
			fake = len(p.plan.Steps) - 1
			p.plan.Tensors[last()].DType = bcnn.Float32
			p.plan.Steps[fake].Op.(*plan.Quantize).Low = -p.rng.IntN(128)
			end := plan.ActivationNone
			if p.rng.IntN(6) == 0 {
				end, alone = plan.ActivationReLU, false
			}
			p.affine(end)
		}
		made := last()
		values := &plan.Affine{}
		if p.rng.IntN(4) > 0 {
			values.Scale, values.Shift = p.floats(channels), p.floats(channels)
		}
		if p.rng.IntN(6) == 0 {
			values.Activation, alone = p.activation(plan.ActivationReLU, channels), false
		}
		p.step("values", values, bcnn.Float32, shape)
		p.link(codes)
		in := []int{made, last()}
		end := p.anyActivation()
		alone = alone && end != plan.ActivationPReLU
		first := p.rng.IntN(2)
		p.step("add", &plan.Add{Activation: p.activation(end, channels)}, bcnn.Float32, shape)
		p.link(in[first], in[1-first])
		p.evenLevels(2+p.rng.IntN(254), p.rng.IntN(2), p.rng.IntN(2) == 0, p.rng.IntN(2) == 0)
		bytes, levels := last(), len(p.plan.Steps)-1
		if p.rng.IntN(5) == 0 { // something else reads what is in between
			inner := []int{made, in[1], last() - 1}
			if fake >= 0 {
				inner = append(inner, p.plan.Steps[fake].In[0], p.plan.Steps[fake].Out)
			}
			read := inner[p.rng.IntN(len(inner))]
			p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: shape.H, KW: shape.W, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: channels})
			p.link(read)
			p.plan.Outputs = append(p.plan.Outputs, last())
			p.step("bytes", &plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}}, bcnn.Uint8, shape)
			p.link(bytes)
			alone = false
		}
		if alone {
			whole = append(whole, [2]int{fake, levels})
		}
	}
	p.affine(plan.ActivationNone)
	return p, whole
}

// TestByteSums: sums of what convolutions make and of bytes become bytes in the kernels of the convolution,
// and give what their steps give.
func TestByteSums(t *testing.T) {
	fused, seeds := 0, uint64(60)
	if raceEnabled || testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		p, whole := byteSums(seed)
		made, in := p.done(), p.input(3)
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		for i, isa := range sets.Names() {
			set, err := sets.Lookup(isa)
			require.NoError(t, err)
			e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 3, Threads: 1 + (i+int(seed))%3, ISA: isa, ArenaBytes: 1 << 30})
			require.NoError(t, err)
			here, most := 0, 0
			for _, steps := range whole {
				usual := true
				for _, i := range steps {
					if i < 0 {
						continue
					}
					s := made.Steps[i]
					known := &schedule.Context{Ctx: t.Context(), Room: 1 << 30}
					l := pixelwise.Levels(known, s.Op.(*plan.Quantize), made.Tensors[s.Out].Shape.C)
					usual = usual && l != nil && l.Usual()
				}
				if usual {
					most++
				}
			}
			for _, s := range made.Steps {
				if _, sum := s.Op.(*plan.Add); sum && e.full[s.Out].F32 == nil {
					here++
				}
			}
			require.LessOrEqual(t, here, most, "seed %d, %s", seed, isa)
			if set.Matrix != nil && set.Matrix.Always {
				require.Equal(t, most, here, "seed %d, %s", seed, isa)
			}
			if here == 0 && most > 0 {
				told := slices.ContainsFunc(e.Explain(), func(c driver.Choice) bool { return strings.Contains(c.Why, "; not in that of conv") })
				require.True(t, told, "seed %d, %s", seed, isa)
			}
			fused += here
			requireOutputs(t, e, want, in, fmt.Sprintf("seed %d, %s", seed, isa))
			require.NoError(t, e.Close())
		}
	}
	if set, err := sets.Lookup("avx512tiles"); err == nil && set.Matrix != nil {
		require.Greater(t, fused, 10)
	}
}
