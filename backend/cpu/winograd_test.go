package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestWinograd has 3×3 convolutions of levels that are computed in squares of outputs, with everything that
// may end them, and some that must not be.
func TestWinograd(t *testing.T) {
	for i, c := range []struct {
		name          string
		height, width int
		channels, out int
		levels        int
		zeroPoint     uint8
		o             convOptions
		more          func(p *planner)
		squares       bool
	}{
		{"4 levels", 6, 8, 64, 64, 4, 0, convOptions{int8: 3}, nil, true},
		{"16 levels", 14, 14, 128, 192, 16, 7, convOptions{int8: 8}, nil, true},
		{"as many as fit", 4, 8, 64, 64, 64, 63, convOptions{int8: 14}, nil, true},
		{"weights of 1", 2, 8, 64, 64, 64, 1, convOptions{int8: 1}, nil, true},
		{"a chunk of rows more than the last", 26, 10, 64, 128, 8, 3, convOptions{int8: 7, end: plan.ActivationPReLU}, nil, true},
		{"no padding", 10, 10, 64, 64, 4, 2, convOptions{int8: 3, window: bcnn.Window{KH: 3, KW: 3}, end: plan.ActivationClip}, nil, true},
		{"padding on one side", 9, 9, 64, 64, 4, 2, convOptions{int8: 3, window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1}}}, nil, true},
		{"more padding than image", 2, 2, 64, 64, 4, 2, convOptions{int8: 3, window: bcnn.Window{KH: 3, KW: 3, Pad: pad(4)}}, nil, true},
		{"odd", 7, 9, 64, 128, 4, 1, convOptions{int8: 3, end: plan.ActivationReLU}, nil, true},
		{"an odd width", 6, 7, 64, 64, 4, 1, convOptions{int8: 3}, nil, true},
		{"an odd height", 31, 8, 64, 64, 4, 1, convOptions{int8: 3}, nil, true},
		{"levels of odd rows", 7, 7, 64, 128, 4, 2, convOptions{int8: 3, end: plan.ActivationReLU}, func(p *planner) { p.evenLevels(16, 0, false, true) }, true},
		{"an odd shortcut", 7, 7, 64, 64, 4, 2, convOptions{int8: 3}, func(p *planner) {
			p.step("shortcut", &plan.Affine{}, bcnn.Float32, p.last().Shape, 1)
			p.link(1)
			p.step("add", &plan.Add{}, bcnn.Float32, p.last().Shape, 2)
		}, true},
		{"a shortcut", 6, 8, 64, 64, 4, 2, convOptions{int8: 3}, func(p *planner) {
			p.step("shortcut", &plan.Affine{}, bcnn.Float32, p.last().Shape, 1)
			p.link(1)
			p.step("add", &plan.Add{Activation: p.activation(plan.ActivationReLU, 64)}, bcnn.Float32, p.last().Shape, 2)
		}, true},
		{"its levels", 6, 8, 64, 128, 4, 2, convOptions{int8: 3, end: plan.ActivationReLU}, func(p *planner) { p.evenLevels(16, 0, false, true) }, true},
		{"uneven levels", 6, 8, 64, 64, 4, 2, convOptions{int8: 3}, func(p *planner) {
			p.step("levels", &plan.Quantize{Levels: 4, Thresholds: []float32{-100, 3, 3.5}}, bcnn.Uint8, p.last().Shape)
		}, true},
		{"a sign", 6, 8, 64, 64, 4, 2, convOptions{int8: 3}, (*planner).sign, true},
		{"one level too many", 8, 8, 64, 64, 65, 0, convOptions{int8: 3}, nil, false},
		{"a zero point too large", 8, 8, 64, 64, 4, 64, convOptions{int8: 3}, nil, false},
		{"weights too large", 8, 8, 64, 64, 4, 0, convOptions{int8: 127}, nil, false},
		{"few squares", 8, 6, 64, 64, 4, 0, convOptions{int8: 3}, nil, false},
		{"few channels", 8, 8, 32, 64, 4, 0, convOptions{int8: 3}, nil, false},
		{"few outputs", 8, 8, 64, 65, 4, 0, convOptions{int8: 3}, nil, false},
		{"a stride", 8, 16, 64, 64, 4, 0, convOptions{int8: 3, window: bcnn.Window{KH: 3, KW: 3, StrideW: 2, Pad: pad(1)}}, nil, false},
	} {
		plan := func() *planner {
			p := newPlanner(uint64(i), input(bcnn.Float32, c.height, c.width, c.channels))
			p.levels(c.levels, bcnn.Uint8)
			o := c.o
			if o.out, o.float = c.out, true; o.window.KH == 0 {
				o.window = three(1)
			}
			p.conv(o)
			p.plan.Steps[1].Op.(*plan.Conv).ZeroPoint = c.zeroPoint
			if c.more != nil {
				c.more(p)
			}
			return p
		}
		t.Run(c.name, func(t *testing.T) {
			for _, isa := range sets.Names() {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				if set.Wide == nil || set.Wide.Winograd == nil || set.Matrix != nil {
					continue
				}
				for _, threads := range []int{1, 3} {
					requireReference(t, plan(), backend.Options{ISA: isa, Threads: threads})
				}
				e, err := newExecutable(t.Context(), plan().done(), set, driver.Config{MaxBatch: 1, Threads: 1, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				require.Equal(t, c.squares, strings.HasPrefix(e.Explain()[1].Kernel, "squares"), fmt.Sprint(isa, e.Explain()))
				require.NoError(t, e.Close())
			}
		})
	}
}
