package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// lifeChecks are the whole contract of a device and its executables but for the
// values that they compute: those are compared with the first run of their kind.
var lifeChecks = []struct {
	name  string
	check func(l *life) error
}{
	{"what it is", (*life).describes},
	{"no allocation", (*life).doesNotAllocate},
	{"batches", (*life).batches},
	{"tensors that do not fit", (*life).wrongTensors},
	{"arguments", (*life).arguments},
	{"options", (*life).options},
	{"timed and tapped", (*life).watched},
	{"cancelled before", (*life).cancelledBefore},
	{"cancelled between steps", (*life).cancelledBetween},
	{"compile interrupted", func(l *life) error { return interruptCompile(l.ctx, l.dev, lifeNet(3), l.opts) }},
	{"run interrupted", (*life).interrupted},
	{"concurrent runs", (*life).runConcurrently},
	{"executables at the same time", (*life).runTogether},
	{"close", (*life).closes},
	{"close waits", (*life).closeWaits},
	{"close during runs", (*life).closeDuringRuns},
	{"memory", (*life).memoryLimit},
}

// Life tests what does not depend on the arithmetic of a device, with the Threads,
// the ISA and the Kernels of opts.
func Life(t *testing.T, dev *backend.Device, opts backend.Options) {
	for _, c := range lifeChecks {
		t.Run(c.name, func(t *testing.T) {
			l := &life{ctx: t.Context(), dev: dev, opts: opts}
			if err := errors.Join(c.check(l), l.close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// lifeBatch is the MaxBatch of most executables.
const lifeBatch = 3

// lifeNet has convolutions and dense layers; what it computes depends on the seed.
func lifeNet(seed uint64) *bcnn.Network { return VehicleNet(seed, 16) }

// floatNet has steps on float32 values, and one that reads two tensors.
func floatNet() *bcnn.Network {
	rng := rand.New(rand.NewPCG(7, 1))
	floats := func(n int) bcnn.Weights {
		w := make([]float32, n)
		for i := range w {
			w[i] = float32(rng.IntN(17)-8) / 8
		}
		return bcnn.Weights{F32: w}
	}
	net := &bcnn.Network{Name: "life", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 6, W: 5, C: 7}}}}
	same := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	net.Append("conv1", bcnn.Conv2D{Window: same, Out: 40, Weights: floats(40 * 3 * 3 * 7)})
	first := net.Append("relu", bcnn.ReLU{})
	second := net.Append("conv2", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 40, Weights: floats(40 * 40)})
	net.Append("add", bcnn.Add{}, first, second)
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("conv3", bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 3}, Out: 33, Weights: bcnn.Weights{Bits: RandomBits(rng, 33*2*3, 40)}})
	net.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}})
	net.Append("flatten", bcnn.Flatten{})
	net.Append("dense", bcnn.Dense{Out: 4, Weights: bcnn.Weights{Bits: RandomBits(rng, 4, 4*2*33)}})
	return net
}

// life is a run of one check.
type life struct {
	ctx  context.Context
	dev  *backend.Device
	opts backend.Options
	made []*backend.Executable // to be closed
}

func (l *life) close() error {
	var all error
	for _, e := range l.made {
		all = errors.Join(all, e.Close())
	}
	return all
}

// ready is an executable with tensors for a whole batch.
type ready struct {
	*backend.Executable
	plan    *plan.Plan
	out, in []bcnn.Tensor
}

func (l *life) lower(net *bcnn.Network) (*plan.Plan, error) {
	return lower.Network(l.ctx, net, lower.Options{})
}

// compile compiles a network, with what change makes of the options.
func (l *life) compile(net *bcnn.Network, change func(o *backend.Options)) (*ready, error) {
	plan, err := l.lower(net)
	if err != nil {
		return nil, err
	}
	opts := l.opts
	opts.MaxBatch = lifeBatch
	if change != nil {
		change(&opts)
	}
	exe, err := l.dev.Compile(l.ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	l.made = append(l.made, exe)
	return &ready{
		Executable: exe, plan: plan,
		out: []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, opts.MaxBatch, plan.OutputShape())},
		in:  []bcnn.Tensor{RandomImages(5, opts.MaxBatch, plan.Inputs[0])},
	}, nil
}

func (r *ready) run(ctx context.Context) error { return r.Run(ctx, r.out, r.in) }

// fresh runs the executable and returns a copy of what it computes.
func (r *ready) fresh(ctx context.Context) (bcnn.Tensor, error) {
	for i := range r.out[0].F32 {
		r.out[0].F32[i] = math.Pi
	}
	err := r.run(ctx)
	want := r.out[0]
	want.F32 = slices.Clone(want.F32)
	return want, err
}

// again makes sure that the executable is usable and computes what it did.
func (r *ready) again(ctx context.Context, want bcnn.Tensor, when string) error {
	got, err := r.fresh(ctx)
	if err == nil {
		err = compare.Tensors(want, got)
	}
	if err != nil {
		return fmt.Errorf("Run %s: %w", when, err)
	}
	return nil
}

func (l *life) describes() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	in, out := r.Inputs(), r.Outputs()
	if len(in) != 1 || in[0].DType != r.plan.Inputs[0].DType || in[0].Shape != r.plan.Inputs[0].Shape ||
		len(out) != 1 || out[0].DType != bcnn.Float32 || out[0].Shape != r.plan.OutputShape() {
		return fmt.Errorf("inputs %v, outputs %v", in, out)
	}
	if r.MaxBatch() != lifeBatch {
		return fmt.Errorf("MaxBatch %d, want %d", r.MaxBatch(), lifeBatch)
	}
	if choices := r.Explain(); len(choices) != len(r.plan.Steps) {
		return fmt.Errorf("Explain has %d choices for %d steps", len(choices), len(r.plan.Steps))
	}
	info := l.dev.Info()
	if info.ID == "" || info.MaxBatch < lifeBatch {
		return fmt.Errorf("info %+v", info)
	}
	return nil
}

// everyKernel calls f with every variant of kernels that is to be tested.
func (l *life) everyKernel(f func(kernels string) error) error {
	all := []string{l.opts.Kernels}
	if l.opts.Kernels == "" {
		all = append(all, l.dev.Info().Kernels...)
	}
	for _, k := range all {
		if err := f(k); err != nil {
			return fmt.Errorf("kernels %q: %w", k, err)
		}
	}
	return nil
}

func (l *life) doesNotAllocate() error {
	return l.everyKernel(func(kernels string) error {
		for _, net := range []*bcnn.Network{lifeNet(3), floatNet(), OneConv(9, 3, 3, 40)} {
			r, err := l.compile(net, func(o *backend.Options) { o.Kernels = kernels })
			if err != nil {
				return err
			}
			for _, n := range []int{1, lifeBatch} {
				out, in := r.out[0].Images(0, n), r.in[0].Images(0, n)
				var failed error
				allocations := testing.AllocsPerRun(5, func() {
					if err := r.Run(l.ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in}); err != nil {
						failed = err
					}
				})
				if failed != nil {
					return failed
				}
				if allocations > 0 {
					return fmt.Errorf("network %s, %d images: %v allocations", net.Name, n, allocations)
				}
			}
		}
		return nil
	})
}

// batches runs every number of images up to MaxBatch, in a changing order. What an
// image gives does not depend on the others.
func (l *life) batches() error {
	const most = 5
	r, err := l.compile(lifeNet(3), func(o *backend.Options) { o.MaxBatch = most })
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	for _, n := range []int{1, 4, 2, 5, 3, 1, 5} {
		from := most - n
		out := compare.GuardOutput(n, want.Shape)
		if err := r.Run(l.ctx, []bcnn.Tensor{out.Tensor}, []bcnn.Tensor{r.in[0].Images(from, n)}); err != nil {
			return fmt.Errorf("%d images: %w", n, err)
		}
		if err := errors.Join(compare.Tensors(want.Images(from, n), out.Tensor), out.Check("out")); err != nil {
			return fmt.Errorf("%d images: %w", n, err)
		}
	}
	return nil
}

// watched runs with Timed, with Tap, and with both.
func (l *life) watched() error {
	plain, err := l.compile(floatNet(), nil)
	if err != nil {
		return err
	}
	want, err := plain.fresh(l.ctx)
	if err != nil {
		return err
	}
	for _, w := range []struct{ timed, tapped bool }{{true, false}, {false, true}, {true, true}} {
		var times, taps []int
		var last bcnn.Tensor
		var wrong error
		r, err := l.compile(floatNet(), func(o *backend.Options) {
			if w.timed {
				o.Timed = func(step int, name string, d time.Duration) {
					if times = append(times, step); name != plain.plan.Steps[step].Name || d < 0 {
						wrong = fmt.Errorf("Timed got step %d, %q, %v", step, name, d)
					}
				}
			}
			if w.tapped {
				o.Tap = func(step int, name string, t bcnn.Tensor) {
					of := plain.plan.Tensors[plain.plan.Steps[step].Out]
					if taps = append(taps, step); name != plain.plan.Steps[step].Name || t.Check(of.DType, of.Shape) != nil {
						wrong = fmt.Errorf("Tap got step %d, %q, %v %v", step, name, t.DType, t.Shape)
					}
					last = t
					last.F32 = slices.Clone(t.F32)
				}
			}
		})
		if err != nil {
			return err
		}
		for _, n := range []int{lifeBatch, 1, 2} {
			times, taps = nil, nil
			out := compare.GuardOutput(n, want.Shape)
			if err := errors.Join(r.Run(l.ctx, []bcnn.Tensor{out.Tensor}, []bcnn.Tensor{r.in[0].Images(0, n)}), wrong); err != nil {
				return err
			}
			var all []int
			for i := range plain.plan.Steps {
				all = append(all, i)
			}
			if w.timed && !slices.Equal(times, all) || w.tapped && !slices.Equal(taps, all) {
				return fmt.Errorf("of %d steps, Timed got %v and Tap %v", len(all), times, taps)
			}
			err := errors.Join(compare.Tensors(want.Images(0, n), out.Tensor), out.Check("out"))
			if err == nil && w.tapped {
				err = compare.Tensors(out.Tensor, last)
			}
			if err != nil {
				return fmt.Errorf("Timed %v, Tap %v, %d images: %w", w.timed, w.tapped, n, err)
			}
		}
	}
	return nil
}
