package cpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// convAndPool draws a plan of a convolution of any type of input to float32 values, a pool behind it,
// and perhaps what reads its pixels. It reports whether something else reads those values.
func convAndPool(seed uint64) (p *planner, again bool) {
	if seed%20 == 0 { // large enough for tiles of rows
		p = newPlanner(seed, input(bcnn.Uint8, 80, 70, 3))
		p.conv(convOptions{window: bcnn.Window{KH: 7, KW: 7, StrideH: 2, StrideW: 2, Pad: pad(3)}, out: 64, float: true, int16: 1 << 10, end: p.anyActivation()})
		in, w := p.last().Shape, bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: pad(1)}
		p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, w.Output(in, in.C))
		return p, false
	}
	d := []bcnn.DType{bcnn.Float32, bcnn.Uint8, bcnn.Float32}[seed%3]
	channels := []int{1, 3, 8, 16, 64}[seed%5]
	p = newPlanner(seed, input(d, 20+int(seed%23), 9+int(seed%8), channels))
	if seed%3 == 2 {
		p.sign()
	}
	k := 1 + p.rng.IntN(4)
	o := convOptions{
		window: bcnn.Window{KH: k, KW: 1 + p.rng.IntN(4), StrideH: 1 + p.rng.IntN(2), StrideW: 1 + p.rng.IntN(2), Pad: pad(p.rng.IntN(k))},
		out:    []int{1, 16, 24, 64, 130}[p.rng.IntN(5)], float: true, raw: p.rng.IntN(2) == 0, end: p.anyActivation(),
	}
	if p.rng.IntN(4) == 0 {
		o.out, o.groups = channels, channels
	}
	if d == bcnn.Uint8 && p.rng.IntN(2) == 0 {
		o.int16 = 1 << 10
	}
	p.conv(o)
	in := p.last().Shape
	w := bcnn.Window{KH: 1 + p.rng.IntN(3), KW: 1 + p.rng.IntN(3), StrideH: 1 + p.rng.IntN(4), StrideW: 1 + p.rng.IntN(3)}
	w.KH, w.KW = min(w.KH, in.H), min(w.KW, in.W)
	w.Pad = bcnn.Padding{Top: p.rng.IntN(w.KH), Left: p.rng.IntN(w.KW), Bottom: p.rng.IntN(w.KH), Right: p.rng.IntN(w.KW)}
	out := w.Output(in, in.C)
	p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, out)
	if p.rng.IntN(2) == 0 {
		p.affine(p.anyActivation())
	}
	if again = p.rng.IntN(4) == 0; again {
		p.plan.Outputs = append(p.plan.Outputs, len(p.plan.Tensors)-1)
		p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: in.H, KW: in.W, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: in.C})
		for i, s := range p.plan.Steps {
			if _, ok := s.Op.(*plan.Conv); ok {
				p.plan.Steps[len(p.plan.Steps)-1].In = []int{p.plan.Steps[i].Out}
			}
		}
	}
	return p, again
}

// TestPooled: rows of a convolution that only a pool reads lie in the memory of workers, and give what
// those of a tensor do.
func TestPooled(t *testing.T) {
	pooledSteps, tiled, apart, seeds := 0, 0, 0, uint64(120)
	if raceEnabled || testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		p, again := convAndPool(seed)
		made, in := p.done(), p.input(3)
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		for _, isa := range sets.Names() {
			for _, threads := range []int{1, 2, 3} {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 3, Threads: threads, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				for _, s := range e.steps {
					if p, ok := s.(*windowed); ok {
						require.False(t, again)
						pooledSteps++
						if p.each > 1 && p.each < p.made.H {
							tiled++
						}
					} else {
						apart++
					}
				}
				requireOutputs(t, e, want, in, fmt.Sprintf("seed %d, %s, %d threads", seed, isa, threads))
				require.NoError(t, e.Close())
			}
		}
	}
	require.Greater(t, pooledSteps, int(seeds)/2)
	if set, err := sets.Lookup("avx512tiles"); err == nil && set.Matrix != nil {
		require.Greater(t, tiled, 1) // rows that come in tiles
	}
	require.Greater(t, apart, int(seeds))
}

// TestPooledMemory: the tensor between a convolution and a pool has no memory, unless there is too little
// for the rows that a worker needs.
func TestPooledMemory(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 64, 64, 3))
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}, out: 16, float: true})
	p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 8, KW: 8, StrideH: 8, StrideW: 8}}, bcnn.Float32, bcnn.Shape{H: 8, W: 8, C: 16})
	p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}}, bcnn.Float32, p.last().Shape)
	made := p.done()
	set, err := sets.Lookup("generic")
	require.NoError(t, err)
	const threads = 16 // which need more than the tensor takes
	compile := func(arena int64) (*executable, error) {
		return newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 1, Threads: threads, ISA: set.ISA, ArenaBytes: arena})
	}
	e, err := compile(1 << 30)
	require.NoError(t, err)
	require.Nil(t, e.full[1].F32)
	require.NoError(t, e.Close())
	const least = 64 * 64 * 16 * 4 // the tensor
	for arena := int64(least); ; arena += 1024 {
		if e, err = compile(arena); err == nil {
			break
		}
	}
	require.NotNil(t, e.full[1].F32)
	require.NoError(t, e.Close())
}

// convAndWindows draws a plan of two convolutions, the first of which makes more float32 values than the
// second-level cache holds, and perhaps what reads the pixels of the second one. It reports whether
// something else reads those values.
func convAndWindows(seed uint64) (p *planner, again bool) {
	d := []bcnn.DType{bcnn.Float32, bcnn.Uint8, bcnn.Float32}[seed%3]
	channels := []int{16, 24, 40}[seed/3%3]
	rows := schedule.L2()/4/48/channels + 1
	p = newPlanner(seed, input(d, rows, 48, 3))
	if seed%3 == 2 {
		p.sign()
	}
	k := 1 + 2*p.rng.IntN(2)
	p.conv(convOptions{window: bcnn.Window{KH: k, KW: k, Pad: pad(k / 2)}, out: channels, float: true, int16: 1 << 10, end: p.anyActivation()})
	made := len(p.plan.Tensors) - 1
	o := convOptions{
		window: bcnn.Window{KH: 1 + p.rng.IntN(5), KW: 1 + p.rng.IntN(5), StrideH: 1 + p.rng.IntN(3), StrideW: 1 + p.rng.IntN(3), DilationH: 1 + p.rng.IntN(2)},
		out:    channels, groups: channels, float: p.rng.IntN(2) == 0, end: p.anyActivation(),
	}
	if p.rng.IntN(3) == 0 {
		o.window = three(1) // has a kernel that goes down columns
	}
	// Perhaps more than a window has rows, so that some read padding alone.
	o.window.Pad = bcnn.Padding{Top: p.rng.IntN(o.window.KH + 2), Left: p.rng.IntN(o.window.KW), Bottom: p.rng.IntN(o.window.KH + 2), Right: p.rng.IntN(o.window.KW)}
	switch p.rng.IntN(6) {
	case 0:
		o.groups, o.out = 1, 5
	case 1:
		o.groups, o.out = channels/8, channels
	case 2:
		o.pool = &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
		o.float = false
	}
	if o.float {
		o.pool = nil
	}
	p.conv(o)
	if o.float && p.rng.IntN(2) == 0 {
		p.affine(p.anyActivation())
	}
	if again = p.rng.IntN(4) == 0; again {
		in := p.plan.Tensors[made].Shape
		p.plan.Outputs = append(p.plan.Outputs, len(p.plan.Tensors)-1)
		p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: in.H, KW: in.W, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: in.C})
		p.plan.Steps[len(p.plan.Steps)-1].In = []int{made}
	}
	return p, again
}

// TestWindowedConvs: rows of a convolution that only another one reads lie in the memory of workers, and
// give what those of a tensor do.
func TestWindowedConvs(t *testing.T) {
	windowedSteps, seeds := 0, uint64(24)
	if raceEnabled || testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		p, again := convAndWindows(seed)
		made, in := p.done(), p.input(2)
		want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
		require.NoError(t, err)
		for _, isa := range sets.Names() {
			for _, threads := range []int{1, 3} {
				set, err := sets.Lookup(isa)
				require.NoError(t, err)
				e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: 2, Threads: threads, ISA: isa, ArenaBytes: 1 << 30})
				require.NoError(t, err)
				for _, s := range e.steps {
					if _, ok := s.(*windowed); ok {
						require.False(t, again)
						windowedSteps++
					}
				}
				requireOutputs(t, e, want, in, fmt.Sprintf("seed %d, %s, %d threads", seed, isa, threads))
				require.NoError(t, e.Close())
			}
		}
	}
	require.Greater(t, windowedSteps, int(seeds)*len(sets.Names()))
}
