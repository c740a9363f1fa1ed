package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// heavyNets have a step with many weights, in each order that there is.
var heavyNets = map[string]func() *planner{
	"dense": func() *planner {
		p := newPlanner(1, input(bcnn.Uint8, 4, 4, 256))
		p.sign()
		p.conv(convOptions{dense: true, window: bcnn.Window{KH: 4, KW: 4}, out: 2000})
		return p
	},
	"bits": func() *planner {
		p := newPlanner(2, input(bcnn.Uint8, 4, 4, 512))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 500})
		return p
	},
	"bits, dense runs": func() *planner {
		p := newPlanner(3, input(bcnn.Uint8, 5, 5, 36))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 5, KW: 5}, out: 3000})
		return p
	},
	"bits, joined rows": func() *planner {
		p := newPlanner(4, input(bcnn.Uint8, 9, 9, 16))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 9, KW: 9}, out: 3000})
		return p
	},
	"bits, groups": func() *planner {
		p := newPlanner(5, input(bcnn.Uint8, 3, 3, 1000))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 1000, groups: 4})
		return p
	},
	"depthwise": func() *planner {
		p := newPlanner(6, input(bcnn.Uint8, 9, 9, 4000))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: 9, KW: 9}, out: 4000, groups: 4000})
		return p
	},
	"bytes": func() *planner {
		p := newPlanner(7, input(bcnn.Uint8, 9, 9, 12))
		p.conv(convOptions{window: bcnn.Window{KH: 9, KW: 9}, out: 2000})
		return p
	},
	"bytes, groups": func() *planner {
		p := newPlanner(8, input(bcnn.Uint8, 9, 9, 40))
		p.conv(convOptions{window: bcnn.Window{KH: 9, KW: 9}, out: 2000, groups: 2})
		return p
	},
	"floats": func() *planner {
		p := newPlanner(9, input(bcnn.Float32, 3, 3, 64))
		p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 500, float: true})
		return p
	},
	"floats, depthwise": func() *planner {
		p := newPlanner(10, input(bcnn.Float32, 9, 9, 1000))
		p.conv(convOptions{window: bcnn.Window{KH: 9, KW: 9}, out: 1000, groups: 1000, float: true})
		return p
	},
}

// alike returns a plan with the same steps, which shares no weights with the first.
func alike(plan *plan.Plan) *plan.Plan {
	p := *plan
	return &p
}

// held returns the bytes that an executable holds: those that are there after it has
// been compiled, and were not before.
func held(t *testing.T, plan *plan.Plan, opts backend.Options) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	exe, err := Device().Compile(t.Context(), plan, opts)
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Cleanup(func() { require.NoError(t, exe.Close()) })
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// TestExecutablesShareWeights compiles plans whose weights an executable has already,
// and makes sure that this takes as many bytes less as the weights have.
func TestExecutablesShareWeights(t *testing.T) {
	isas := sets.Names()
	if testing.Short() {
		isas = ends(isas)
	}
	for name, net := range heavyNets {
		p := net().done()
		size := 0
		for _, s := range p.Steps {
			if op, ok := s.Op.(*plan.Conv); ok {
				size += 4 * len(op.F32)
				if op.Bits != nil {
					size += op.Out * op.KH * op.KW * p.Tensors[s.In[0]].Shape.C / op.Groups / 8
				}
			}
		}
		for _, isa := range isas {
			t.Run(name+"/"+isa, func(t *testing.T) {
				held(t, p, backend.Options{ISA: isa, Threads: 1})
				for _, threads := range []int{1, 3} {
					if threads > 1 && testing.Short() {
						break
					}
					opts := backend.Options{ISA: isa, Threads: threads}
					alone, shared := held(t, alike(p), opts), held(t, p, opts)
					require.GreaterOrEqual(t, 10*(alone-shared), 9*size, "%d threads, %d bytes, %d of one that shares them", threads, alone, shared)
				}
			})
		}
	}
}

// TestManyExecutablesOfAPlan compiles a plan, runs it and closes it in many goroutines.
func TestManyExecutablesOfAPlan(t *testing.T) {
	for _, isa := range sets.Names() {
		for name, net := range nets {
			t.Run(isa+"/"+name, func(t *testing.T) {
				p := net(1)
				plan, in := p.done(), p.input(1)
				want, err := ref.Run(t.Context(), plan, in, nil)
				require.NoError(t, err)
				var wg sync.WaitGroup
				for threads := range 4 {
					wg.Go(func() {
						for range 5 {
							exe, err := Device().Compile(t.Context(), plan, backend.Options{ISA: isa, Threads: 1 + threads})
							if err != nil {
								t.Error(err)
								return
							}
							out := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
							if err := exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}); err != nil {
								t.Error(err)
							}
							if fmt.Sprint(out.F32) != fmt.Sprint(want.F32) {
								t.Errorf("%d threads: %v, want %v", 1+threads, out.F32, want.F32)
							}
							exe.Close()
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// TestInterruptedCompileSharesNothingIncomplete ends a compilation anywhere, and has
// another one go on with what it has left.
func TestInterruptedCompileSharesNothingIncomplete(t *testing.T) {
	for _, isa := range sets.Names() {
		for name, net := range nets {
			t.Run(isa+"/"+name, func(t *testing.T) {
				p := net(1)
				plan, in := p.done(), p.input(1)
				opts := backend.Options{ISA: isa, Threads: 1}
				want, err := ref.Run(t.Context(), plan, in, nil)
				require.NoError(t, err)
				whole := endAfter(ample)
				exe, err := Device().Compile(whole, plan, opts)
				require.NoError(t, err)
				require.NoError(t, exe.Close())
				for left := int64(0); left < whole.looks(); left += 1 + whole.looks()/50 {
					plan := alike(plan)
					shared := weights.Of(plan, isa) // keeps them
					_, err := Device().Compile(endAfter(left), plan, opts)
					require.ErrorIs(t, err, context.Canceled)
					exe, err := Device().Compile(t.Context(), plan, opts)
					require.NoError(t, err)
					out := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
					require.NoError(t, exe.Run(t.Context(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
					requireSame(t, want, out, "output")
					require.NoError(t, exe.Close())
					runtime.KeepAlive(shared)
				}
			})
		}
	}
}
