package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestByteDepthwise has depthwise convolutions between levels that are bytes, and some that integer sums
// are not enough for.
func TestByteDepthwise(t *testing.T) {
	three := bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}
	window := func(strideH, strideW int, p bcnn.Padding) bcnn.Window {
		return bcnn.Window{KH: 3, KW: 3, StrideH: strideH, StrideW: strideW, Pad: p}
	}
	even := func(p *planner) { p.evenLevels(256, 128, false, false) }
	for i, c := range []struct {
		name     string
		h, w     int
		channels int
		low      int
		window   bcnn.Window
		end      plan.ActivationKind
		raw      bool
		change   func(op *plan.Conv)
		more     func(p *planner)
		bytes    bool
	}{
		{"same", 9, 13, 64, 0, three, plan.ActivationNone, false, nil, even, true},
		{"same, raw", 9, 13, 64, 0, three, plan.ActivationNone, true, nil, even, true},
		{"stride 2, a part of a block", 9, 15, 96, -122, window(2, 2, pad(1)), plan.ActivationReLU, false, nil, even, true},
		{"strides that differ", 12, 9, 130, -255, window(3, 1, bcnn.Padding{Top: 1, Right: 2}), plan.ActivationClip, false, nil, even, true},
		{"strides that differ, turned", 9, 12, 17, -3, window(1, 2, bcnn.Padding{Bottom: 1, Left: 2}), plan.ActivationPReLU, false, nil, even, true},
		{"more border than image", 2, 1, 24, -7, window(1, 1, bcnn.Padding{Top: 2, Left: 3, Bottom: 3, Right: 4}), plan.ActivationReLU, false, nil, even, true},
		{"four pixels", 3, 6, 8, 1, window(1, 1, bcnn.Padding{}), plan.ActivationNone, false, nil, even, true},
		{"three pixels", 3, 5, 8, 1, window(1, 1, bcnn.Padding{}), plan.ActivationNone, false, nil, even, false},
		{"levels without 0", 9, 13, 64, 1, three, plan.ActivationNone, false, nil, even, false},
		{"levels without 0, below", 9, 13, 64, -256, three, plan.ActivationNone, false, nil, even, false},
		{"stride 3", 9, 19, 64, 0, window(1, 3, pad(1)), plan.ActivationNone, false, nil, even, false},
		{"dilation", 9, 13, 64, 0, bcnn.Window{KH: 3, KW: 3, DilationW: 2, Pad: pad(1)}, plan.ActivationNone, false, nil, even, false},
		{"five taps", 9, 13, 64, 0, bcnn.Window{KH: 5, KW: 5, Pad: pad(2)}, plan.ActivationNone, false, nil, even, false},
		{"a half", 9, 13, 64, 0, three, plan.ActivationNone, false, func(op *plan.Conv) { op.F32[17] = 0.5 }, even, false},
		{"128", 9, 13, 64, 0, three, plan.ActivationNone, false, func(op *plan.Conv) { op.F32[17] = 128 }, even, false},
		{"half a bias", 9, 13, 64, 0, three, plan.ActivationNone, false, func(op *plan.Conv) { op.Bias[3] = -2.5 }, even, false},
		{"a bias of −0", 9, 13, 64, 0, three, plan.ActivationNone, false, func(op *plan.Conv) { op.Bias[3] = float32(math.Copysign(0, -1)) }, even, false},
		{"levels that are looked up", 9, 13, 64, 0, three, plan.ActivationNone, false, nil, func(p *planner) {
			p.step("levels", &plan.Quantize{Levels: 4, Thresholds: []float32{-100, 3, 3.5}}, bcnn.Uint8, p.last().Shape)
		}, false},
		{"values", 9, 13, 64, 0, three, plan.ActivationNone, false, nil, func(p *planner) { p.affine(plan.ActivationNone) }, false},
		{"large", 24, 57, 144, 0, three, plan.ActivationReLU, false, nil, even, true},
	} {
		made := func() *planner {
			p := newPlanner(uint64(i), input(bcnn.Float32, c.h, c.w, c.channels))
			p.affine(plan.ActivationNone)
			q := &plan.Quantize{Low: c.low, Levels: 256}
			for k := range 255 {
				q.Thresholds = append(q.Thresholds, float32(k-127)/64)
			}
			p.step("quantize", q, bcnn.Float32, p.last().Shape)
			p.conv(convOptions{window: c.window, out: c.channels, groups: c.channels, float: true, raw: c.raw, end: c.end})
			op := p.plan.Steps[2].Op.(*plan.Conv)
			for k := range op.F32 {
				op.F32[k] = float32(p.rng.IntN(256) - 128)
			}
			for o := range op.Bias {
				op.Bias[o] = float32(p.rng.IntN(2001) - 1000)
			}
			if c.change != nil {
				c.change(op)
			}
			c.more(p)
			return p
		}
		t.Run(c.name, func(t *testing.T) {
			forEach(t, func(t *testing.T, opts backend.Options) { requireReference(t, made(), opts) })
			for _, isa := range sets.Names() {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				e, err := newExecutable(t.Context(), made().done(), set, driver.Config{MaxBatch: 1, Threads: 1, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				require.Equal(t, c.bytes && set.Depthwise != nil, e.Explain()[2].Kernel == "depthwise, bytes", fmt.Sprint(isa, e.Explain()))
				require.NoError(t, e.Close())
			}
		})
	}
}
