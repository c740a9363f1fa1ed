package cpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// evenLevels makes bytes of n levels that are values divided by a power of 2, rounded to the
// nearest, or the even one of two, with zero added, after rounding or before; for each
// channel or for all.
func (p *planner) evenLevels(n, zero int, after, each bool) {
	q := &plan.Quantize{Levels: n}
	lists := 1
	if each {
		lists = p.last().Shape.C
	}
	for range lists {
		step := float32(int32(16) << p.rng.IntN(4))
		for k := range n - 1 {
			t := (float32(k-zero) + 0.5) * step
			if after && (k-zero)%2 == 0 || !after && k%2 == 0 {
				t = math.Nextafter32(t, float32(math.Inf(1)))
			}
			q.Thresholds = append(q.Thresholds, t)
		}
	}
	p.step("levels", q, bcnn.Uint8, p.last().Shape)
}

// TestLevelsInKernels has convolutions whose kernels make levels of sums, with everything
// that may end those, and some that must not: whose values something else reads, or whose
// levels are no product and sum.
func TestLevelsInKernels(t *testing.T) {
	three := bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}
	for i, c := range []struct {
		name  string
		out   int
		o     convOptions
		more  func(p *planner)
		fused bool
	}{
		{"plain", 64, convOptions{raw: true}, func(p *planner) { p.evenLevels(256, 128, false, false) }, true},
		{"4 bits", 128, convOptions{end: plan.ActivationReLU}, func(p *planner) { p.evenLevels(16, 0, false, true) }, true},
		{"relu above the least level", 64, convOptions{end: plan.ActivationReLU}, func(p *planner) { p.evenLevels(200, 100, false, true) }, true},
		{"prelu", 192, convOptions{end: plan.ActivationPReLU}, func(p *planner) { p.evenLevels(256, 101, true, true) }, true},
		{"clip", 64, convOptions{end: plan.ActivationClip}, func(p *planner) { p.evenLevels(256, 3, true, false) }, true},
		{"signs", 64, convOptions{raw: true, int8: -1}, func(p *planner) { p.evenLevels(256, 128, false, false) }, true},
		{"a part of a block", 65, convOptions{raw: true}, func(p *planner) { p.evenLevels(256, 128, false, false) }, false},
		{"read twice", 64, convOptions{raw: true}, func(p *planner) {
			sums := len(p.plan.Tensors) - 1
			p.evenLevels(256, 128, false, false)
			p.affine(plan.ActivationNone)
			p.step("add", &plan.Add{}, bcnn.Float32, p.last().Shape, sums)
		}, false},
		{"looked up", 64, convOptions{raw: true}, func(p *planner) {
			q := &plan.Quantize{Levels: 16}
			for k := range 15 {
				q.Thresholds = append(q.Thresholds, float32(100*k)+30*p.rng.Float32())
			}
			p.step("levels", q, bcnn.Uint8, p.last().Shape)
		}, false},
		{"uneven", 64, convOptions{raw: true}, func(p *planner) {
			p.step("levels", &plan.Quantize{Levels: 4, Thresholds: []float32{-100, 3, 3.5}}, bcnn.Uint8, p.last().Shape)
		}, false},
	} {
		plan := func() *planner {
			p := newPlanner(uint64(i), input(bcnn.Float32, 7, 9, 20))
			p.levels(16, bcnn.Uint8)
			c.o.window, c.o.out, c.o.float = three, c.out, true
			if c.o.int8 == 0 {
				c.o.int8 = 7 + 120*(i%2)
			}
			p.conv(c.o)
			conv := p.plan.Steps[1].Op.(*plan.Conv)
			conv.ZeroPoint = min(conv.ZeroPoint, 15)
			c.more(p)
			return p
		}
		t.Run(c.name, func(t *testing.T) {
			forEach(t, func(t *testing.T, opts backend.Options) { requireReference(t, plan(), opts) })
			for _, isa := range sets.Names() {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				e, err := newExecutable(t.Context(), plan().done(), set, driver.Config{MaxBatch: 1, Threads: 1, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				fused := strings.HasPrefix(e.Explain()[2].Kernel, "in that of ")
				require.Equal(t, c.fused && strings.HasPrefix(isa, "avx"), fused, fmt.Sprint(isa, e.Explain()))
				require.NoError(t, e.Close())
			}
		})
	}
}
