package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// countdown is a context that ends when it has been looked at so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func endAfter(looks int64) *countdown {
	c := &countdown{Context: context.Background()}
	c.left.Store(looks)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	return context.Canceled
}

// ample is how many looks nothing in this file takes.
const ample = 1 << 40

// looks returns how often an ample context has been looked at.
func (c *countdown) looks() int64 { return ample - c.left.Load() }

// longNets have steps that take long, or whose rows do.
var longNets = []struct {
	name string
	net  func() *planner
	// least is how often one thread looks at the context at least: so that no more
	// than a few milliseconds pass in between with the slowest instruction set. Products of
	// matrices take a hundredth of its time.
	least int64
}{
	{"window of 4096 taps", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 64, 4096, 1))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 64, KW: 64}, out: 3, padValue: -1})
		return p
	}, 64},
	{"bytes", func() *planner {
		p := newPlanner(1, input(bcnn.Uint8, 40, 2048, 1))
		p.conv(convOptions{window: bcnn.Window{KH: 40, KW: 40}, out: 64, float: true})
		return p
	}, 30},
	{"floats", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 12, 2048, 1))
		p.conv(convOptions{window: bcnn.Window{KH: 12, KW: 12}, out: 64, float: true})
		return p
	}, 3},
	{"depthwise", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 7, 1024, 1024))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 7, KW: 7}, out: 1024, groups: 1024, padValue: -1})
		return p
	}, 1000},
	{"one row of many values", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 4096, 1024))
		s := p.last().Shape
		p.step("affine", &plan.Affine{}, bcnn.Float32, s)
		p.step("flatten", &plan.Flatten{}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: s.Values()})
		return p
	}, 4},
	{"wide pool", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 8192, 1))
		p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 4096, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 4097, C: 1})
		return p
	}, 3},
	{"wide mean", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 8192, 1))
		p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: 1, KW: 4096, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 4097, C: 1})
		return p
	}, 3},
	{"wide mean of bits", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 4096, 1))
		p.sign()
		p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: 1, KW: 2048, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 2049, C: 1})
		return p
	}, 3},
}

func TestLife(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) { backendtest.Life(t, Device(), opts) })
}

func TestLongStepsAreInterrupted(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) {
		for _, c := range longNets {
			t.Run(c.name, func(t *testing.T) {
				plan := c.net().done()
				exe, err := Device().Compile(t.Context(), plan, opts)
				require.NoError(t, err)
				defer exe.Close()
				in, out := c.net().input(1), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
				whole := endAfter(ample)
				require.NoError(t, exe.Run(whole, []bcnn.Tensor{out}, []bcnn.Tensor{in}))
				looks := whole.looks()
				least := c.least
				if opts.ISA == "avx512tiles" {
					least = min(least, 6)
				}
				require.GreaterOrEqual(t, looks, least)
				lefts := []int64{0, 1, 2}
				if opts.Threads == 1 { // several do not always look equally often
					lefts = append(lefts, looks/2, looks-1)
				}
				for _, left := range lefts {
					ctx := endAfter(left)
					require.ErrorIs(t, exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in}), context.Canceled)
					// Whoever has looked in vain stops: each thread, and the
					// submitter between steps.
					require.LessOrEqual(t, -ctx.left.Load(), int64(4*opts.Threads+4), "after %d of %d looks", left, looks)
				}
			})
		}
	})
}

func TestCompileIsInterruptedBetweenSteps(t *testing.T) {
	for name, net := range nets {
		t.Run(name, func(t *testing.T) {
			whole := endAfter(ample)
			plan := net(1).done()
			exe, err := Device().Compile(whole, plan, backend.Options{Threads: 3})
			require.NoError(t, err)
			require.NoError(t, exe.Close())
			looks := whole.looks()
			require.GreaterOrEqual(t, looks, int64(len(plan.Steps)))
			before := runtime.NumGoroutine() // those that Close has ended may be among them
			for left := range looks {
				_, err := Device().Compile(endAfter(left), alike(plan), backend.Options{Threads: 3})
				require.ErrorIs(t, err, context.Canceled, "after %d of %d looks", left, looks)
			}
			require.LessOrEqual(t, runtime.NumGoroutine(), before)
		})
	}
}

// TestTablesCountAsMemory compiles steps whose tables are much larger than their
// tensors and parameters, and makes sure that they are refused before they are made.
func TestTablesCountAsMemory(t *testing.T) {
	const limit = 64 << 20
	for name, net := range map[string]func() *plan.Plan{
		"taps of a pool": func() *plan.Plan { // of 1 to 1024 columns of 1024 rows
			p := newPlanner(1, input(bcnn.Float32, 1024, 1024, 1))
			w := bcnn.Window{KH: 1024, KW: 1024, StrideH: 1024, StrideW: 1, Pad: bcnn.Padding{Left: 1023, Right: 1023}}
			p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, bcnn.Shape{H: 1, W: 2047, C: 1})
			return p.done()
		},
		"taps of a mean": func() *plan.Plan {
			p := newPlanner(1, input(bcnn.Float32, 1024, 1024, 1))
			w := bcnn.Window{KH: 1024, KW: 1024, StrideH: 1024, StrideW: 1, Pad: bcnn.Padding{Left: 1023, Right: 1023}}
			p.step("mean", &plan.AvgPool{Window: w}, bcnn.Float32, bcnn.Shape{H: 1, W: 2047, C: 1})
			return p.done()
		},
		"border classes": func() *plan.Plan { // 40 times 1024 × 1024
			n := &bcnn.Network{Inputs: []bcnn.Input{input(bcnn.Float32, 1024, 1024, 1)}}
			w := bcnn.Window{KH: 1, KW: 3, Pad: bcnn.Padding{Left: 1, Right: 1}}
			for i := range 40 {
				n.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
				n.Append(fmt.Sprint("conv", i), bcnn.Conv2D{Window: w, Out: 1, Weights: bcnn.Weights{Bits: []uint64{1, 0, 1}}})
			}
			plan, err := lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
			return plan
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isa := range sets.Names() {
				if set, err := sets.Lookup(isa); err != nil || name == "border classes" && set.Wide == nil {
					continue // it needs no table
				}
				plan := net()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := Device().Compile(t.Context(), plan, backend.Options{ISA: isa, Limits: bcnn.Limits{ArenaBytes: limit}})
				runtime.ReadMemStats(&after)
				require.ErrorIs(t, err, backend.ErrTooLarge)
				require.ErrorContains(t, err, "the limit is 67108864")
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*limit))
			}
		})
	}
}

// TestPoolOfPadding has windows that cover little but padding: what a compilation
// takes grows with the output, not with the windows.
func TestPoolOfPadding(t *testing.T) {
	pool := func(side int) *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 1, 1))
		w := bcnn.Window{KH: side, KW: side, StrideH: 1, StrideW: 1, Pad: bcnn.Padding{Top: side - 1, Left: side - 1, Bottom: side - 1, Right: side - 1}}
		p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, bcnn.Shape{H: side, W: side, C: 1})
		return p
	}
	requireReference(t, pool(32), backend.Options{})

	const side = 2048
	plan := pool(side).done()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exe, err := Device().Compile(t.Context(), plan, backend.Options{Threads: 1})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.NoError(t, exe.Close())
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1000*side))
}

// TestRunAfterAnInterruption makes sure that nothing of a cut run stays behind.
func TestRunAfterAnInterruption(t *testing.T) {
	for name, net := range nets {
		for _, threads := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s/%d", name, threads), func(t *testing.T) {
				c := compileFor(t, net(1), backend.Options{Threads: threads}, 3)
				for left := range int64(60) {
					ctx := endAfter(left)
					if err := c.run(ctx); err != nil {
						require.ErrorIs(t, err, context.Canceled)
					}
					require.NoError(t, c.run(endAfter(ample)))
					requireSame(t, c.want, c.out, "output")
				}
			})
		}
	}
}
