package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestLevelsBeforeGroups has convolutions in groups on float32 levels, which are bytes in the executable:
// from whatever level on, of whatever window, some without a tap inside the image, and of rows that do
// not all fit into the memory of a tile.
func TestLevelsBeforeGroups(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) {
		seed := uint64(0)
		for _, c := range []struct {
			h, w, in, groups, out int
			window                bcnn.Window
			pool                  *bcnn.Window
		}{
			{9, 13, 64, 64, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, nil},
			{9, 13, 64, 64, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1), StrideH: 2, StrideW: 2}, nil},
			{11, 7, 40, 40, 40, bcnn.Window{KH: 5, KW: 5, Pad: pad(2)}, nil},
			{11, 7, 24, 24, 48, bcnn.Window{KH: 3, KW: 3, Pad: pad(2), DilationH: 2, DilationW: 2}, nil},
			{6, 21, 64, 16, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, nil},
			{6, 5, 12, 3, 6, bcnn.Window{KH: 2, KW: 3, Pad: bcnn.Padding{Bottom: 1, Left: 2}}, nil},
			{3, 3, 16, 16, 16, bcnn.Window{KH: 1, KW: 1, Pad: pad(2), StrideH: 3, StrideW: 2}, nil},
			{8, 8, 32, 8, 32, bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}},
			{18, 120, 64, 64, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, nil},
		} {
			seeds := 3
			if c.w > 100 {
				seeds = 1
			}
			for range seeds {
				seed++
				p := newPlanner(seed, input(bcnn.Float32, c.h, c.w, c.in))
				p.affine(plan.ActivationNone)
				p.quantize(bcnn.Float32)
				p.conv(convOptions{window: c.window, out: c.out, groups: c.groups, float: c.pool == nil, pool: c.pool, end: p.anyActivation()})
				requireReference(t, p, opts)
			}
		}
	})
}

// TestNarrow asks which levels are bytes.
func TestNarrow(t *testing.T) {
	conv := func(groups int) func(p *planner) {
		return func(p *planner) {
			p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, out: 8, groups: groups, float: true})
		}
	}
	for _, c := range []struct {
		name     string
		levels   int
		more     []func(p *planner)
		stepwise bool
		want     bcnn.DType
	}{
		{"a filter for each channel", 256, []func(p *planner){conv(8)}, false, bcnn.Uint8},
		{"groups", 2, []func(p *planner){conv(2)}, false, bcnn.Uint8},
		{"two readers", 9, []func(p *planner){conv(8), func(p *planner) { conv(4)(p); p.link(2) }}, false, bcnn.Uint8},
		{"more than a byte", 257, []func(p *planner){conv(8)}, false, bcnn.Float32},
		{"all channels", 16, []func(p *planner){conv(1)}, false, bcnn.Float32},
		{"another reader", 16, []func(p *planner){conv(8), func(p *planner) { p.affine(plan.ActivationNone); p.link(2) }}, false, bcnn.Float32},
		{"an output", 16, []func(p *planner){conv(8), func(p *planner) { p.plan.Outputs = []int{2, 3} }}, false, bcnn.Float32},
		{"step by step", 16, []func(p *planner){conv(8)}, true, bcnn.Float32},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(1, input(bcnn.Float32, 6, 5, 8))
			p.affine(plan.ActivationNone)
			p.levels(c.levels, bcnn.Float32)
			for _, more := range c.more {
				more(p)
			}
			outputs := p.plan.Outputs
			made := p.done()
			if len(outputs) > 0 {
				made.Outputs = outputs
			}
			e := compileWith(t, made, driver.Config{MaxBatch: 1, Stepwise: c.stepwise})
			require.Equal(t, c.want, e.plan.Tensors[2].DType)
			require.Equal(t, bcnn.Float32, made.Tensors[2].DType, "the plan is that of others, too")
		})
	}
}
