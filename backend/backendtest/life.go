package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
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
	return Case{Name: "life", build: func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 6, 5, 7)
		b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, Out: 40}, true)
		first := b.add(bcnn.ReLU{})
		b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 40}, true)
		b.add(bcnn.Add{}, first, len(b.net.Layers)-1)
		b.binarySource(bcnn.ZeroIsPlus)
		b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 3}, Out: 33}, false)
		b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}})
		b.add(bcnn.Flatten{})
		b.dense(4, false)
		return b.net
	}}.Network()
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
	plan    *bcnn.Plan
	out, in []bcnn.Tensor
}

func (l *life) lower(net *bcnn.Network) (*bcnn.Plan, error) {
	return bcnn.Lower(l.ctx, net, bcnn.LowerOptions{})
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
		in:  []bcnn.Tensor{RandomImages(5, opts.MaxBatch, plan.Input)},
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
		err = compare(want, got)
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
	if len(in) != 1 || in[0].DType != r.plan.Input.DType || in[0].Shape != r.plan.Input.Shape ||
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
		out := guardOutput(n, want.Shape)
		if err := r.Run(l.ctx, []bcnn.Tensor{out.tensor}, []bcnn.Tensor{r.in[0].Images(from, n)}); err != nil {
			return fmt.Errorf("%d images: %w", n, err)
		}
		if err := errors.Join(compare(want.Images(from, n), out.tensor), out.check("out")); err != nil {
			return fmt.Errorf("%d images: %w", n, err)
		}
	}
	return nil
}

func (l *life) wrongTensors() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	const n = lifeBatch
	goodIn, goodOut, input, shape := r.in[0], r.out[0], r.plan.Input, r.plan.OutputShape()
	taller := func(s bcnn.Shape) bcnn.Shape { s.H++; return s }
	short := func(t bcnn.Tensor) bcnn.Tensor {
		t.U8, t.F32 = t.U8[:max(len(t.U8)-1, 0)], t.F32[:max(len(t.F32)-1, 0)]
		return t
	}
	negative := goodIn
	negative.N = -1
	one := func(t bcnn.Tensor) []bcnn.Tensor { return []bcnn.Tensor{t} }
	for what, tensors := range map[string]struct{ out, in []bcnn.Tensor }{
		"no tensors":                    {nil, nil},
		"no input":                      {one(goodOut), nil},
		"no output":                     {nil, one(goodIn)},
		"two inputs":                    {one(goodOut), []bcnn.Tensor{goodIn, goodIn}},
		"two outputs":                   {[]bcnn.Tensor{goodOut, goodOut}, one(goodIn)},
		"an empty input":                {one(goodOut), one(bcnn.Tensor{})},
		"an empty output":               {one(bcnn.Tensor{}), one(goodIn)},
		"an input of another type":      {one(goodOut), one(bcnn.NewTensor(bcnn.Float32, n, input.Shape))},
		"an input of another shape":     {one(goodOut), one(bcnn.NewTensor(input.DType, n, taller(input.Shape)))},
		"an input that is too short":    {one(goodOut), one(short(goodIn))},
		"an input without values":       {one(goodOut), one(bcnn.Tensor{DType: input.DType, N: n, Shape: input.Shape})},
		"a batch of 0":                  {one(bcnn.NewTensor(bcnn.Float32, 0, shape)), one(bcnn.NewTensor(input.DType, 0, input.Shape))},
		"a batch of −1":                 {one(goodOut), one(negative)},
		"a batch beyond MaxBatch":       {one(bcnn.NewTensor(bcnn.Float32, n+1, shape)), one(bcnn.NewTensor(input.DType, n+1, input.Shape))},
		"different batches":             {one(bcnn.NewTensor(bcnn.Float32, n-1, shape)), one(goodIn)},
		"an output of another type":     {one(bcnn.NewTensor(bcnn.Bits, n, shape)), one(goodIn)},
		"an output of another shape":    {one(bcnn.NewTensor(bcnn.Float32, n, taller(shape))), one(goodIn)},
		"an output that is too short":   {one(short(goodOut)), one(goodIn)},
		"an output without any values":  {one(bcnn.Tensor{DType: bcnn.Float32, N: n, Shape: shape}), one(goodIn)},
		"the input as output and so on": {one(goodIn), one(goodOut)},
	} {
		if err := r.Run(l.ctx, tensors.out, tensors.in); !errors.Is(err, backend.ErrShape) || !named(err) {
			return fmt.Errorf("Run with %s returned %v, want ErrShape", what, err)
		}
	}
	return r.again(l.ctx, want, "after wrong tensors")
}

// named reports whether an error names the device.
func named(err error) bool {
	var e *backend.Error
	return errors.As(err, &e) && e.Device != "" && e.Op != ""
}

// refused makes sure that Compile refuses arguments.
func (l *life) refused(what string, ctx context.Context, plan *bcnn.Plan, opts backend.Options) error {
	made, err := l.dev.Compile(ctx, plan, opts)
	if err == nil {
		return fmt.Errorf("Compile with %s did not fail: %w", what, made.Close())
	}
	if !named(err) {
		return fmt.Errorf("Compile with %s: %w", what, err)
	}
	return nil
}

func (l *life) arguments() error {
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	var none context.Context
	if err := r.run(none); !named(err) {
		return fmt.Errorf("Run without a context returned %v", err)
	}
	broken := *plan
	broken.Steps = slices.Clone(plan.Steps)
	broken.Steps[0].Op, broken.Steps[2].Op = nil, nil
	_, err = l.dev.Compile(l.ctx, &broken, l.opts)
	var unsupported *bcnn.UnsupportedError
	if !errors.As(err, &unsupported) || !errors.Is(err, errors.ErrUnsupported) || len(unsupported.Steps) != 2 ||
		unsupported.Steps[1].Step != 2 || unsupported.Steps[1].Name != plan.Steps[2].Name || unsupported.Steps[1].Reason == "" {
		return fmt.Errorf("Compile of two steps without an operation returned %v", err)
	}
	return errors.Join(
		l.refused("no context", none, plan, l.opts),
		l.refused("no plan", l.ctx, nil, l.opts),
		l.refused("an empty plan", l.ctx, &bcnn.Plan{}, l.opts),
	)
}

func (l *life) options() error {
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	info := l.dev.Info()
	for what, change := range map[string]func(o *backend.Options){
		"a huge batch":       func(o *backend.Options) { o.MaxBatch = math.MaxInt },
		"too large a batch":  func(o *backend.Options) { o.MaxBatch = info.MaxBatch + 1 },
		"a negative batch":   func(o *backend.Options) { o.MaxBatch = -1 },
		"a negative limit":   func(o *backend.Options) { o.Limits.ArenaBytes = -1 },
		"too many threads":   func(o *backend.Options) { o.Threads = info.MaxThreads + 1 },
		"a negative thread":  func(o *backend.Options) { o.Threads = -1 },
		"an unknown ISA":     func(o *backend.Options) { o.ISA = "8080" },
		"unknown kernels":    func(o *backend.Options) { o.Kernels = "fastest" },
		"kernels by letters": func(o *backend.Options) { o.Kernels = "a" },
	} {
		opts := l.opts
		change(&opts)
		if err := l.refused(what, l.ctx, plan, opts); err != nil {
			return err
		}
	}
	for what, none := range map[string]struct {
		opts  backend.Options
		there bool
	}{
		"an instruction set": {backend.Options{ISA: "avx2"}, info.ISAs != nil},
		"kernels":            {backend.Options{Kernels: "direct"}, info.Kernels != nil},
		"threads":            {backend.Options{Threads: 1}, info.MaxThreads > 0},
	} {
		if none.there {
			continue
		}
		if _, err := l.dev.Compile(l.ctx, plan, none.opts); !errors.Is(err, errors.ErrUnsupported) || !named(err) {
			return fmt.Errorf("Compile with %s, of which the device has no choice, returned %v", what, err)
		}
	}
	for _, isa := range info.ISAs {
		if _, err := l.compile(lifeNet(3), func(o *backend.Options) { o.ISA = isa }); err != nil {
			return fmt.Errorf("instruction set %s: %w", isa, err)
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
			out := guardOutput(n, want.Shape)
			if err := errors.Join(r.Run(l.ctx, []bcnn.Tensor{out.tensor}, []bcnn.Tensor{r.in[0].Images(0, n)}), wrong); err != nil {
				return err
			}
			var all []int
			for i := range plain.plan.Steps {
				all = append(all, i)
			}
			if w.timed && !slices.Equal(times, all) || w.tapped && !slices.Equal(taps, all) {
				return fmt.Errorf("of %d steps, Timed got %v and Tap %v", len(all), times, taps)
			}
			err := errors.Join(compare(want.Images(0, n), out.tensor), out.check("out"))
			if err == nil && w.tapped {
				err = compare(out.tensor, last)
			}
			if err != nil {
				return fmt.Errorf("Timed %v, Tap %v, %d images: %w", w.timed, w.tapped, n, err)
			}
		}
	}
	return nil
}

func (l *life) cancelledBefore() error {
	ctx, cancel := context.WithCancel(l.ctx)
	cancel()
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	if _, err := l.dev.Compile(ctx, plan, l.opts); !errors.Is(err, context.Canceled) || !named(err) {
		return fmt.Errorf("Compile with a cancelled context returned %v", err)
	}
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	if err := r.run(ctx); !errors.Is(err, context.Canceled) || !named(err) {
		return fmt.Errorf("Run with a cancelled context returned %v", err)
	}
	return r.again(l.ctx, want, "after a cancelled one")
}

func (l *life) cancelledBetween() error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	steps := 0
	r, err := l.compile(lifeNet(3), func(o *backend.Options) {
		o.Tap = func(int, string, bcnn.Tensor) {
			if steps++; steps == 2 {
				cancel()
			}
		}
	})
	if err != nil {
		return err
	}
	if err := r.run(ctx); !errors.Is(err, context.Canceled) || steps != 2 {
		return fmt.Errorf("cancelled in the second step, Run went on to step %d and returned %v", steps, err)
	}
	return r.run(l.ctx)
}

// countdown is a context that ends when it has been looked at so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func endAfter(ctx context.Context, looks int64) *countdown {
	c := &countdown{Context: context.WithoutCancel(ctx)}
	c.left.Store(looks)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	return context.Canceled
}

// InterruptCompile compiles a network with contexts that end at every point at which
// Compile looks at them, until one does not end. Callers make sure that nothing is
// left behind.
func InterruptCompile(t *testing.T, dev *backend.Device, net *bcnn.Network, opts backend.Options) {
	t.Helper()
	if err := interruptCompile(t.Context(), dev, net, opts); err != nil {
		t.Error(err)
	}
}

func interruptCompile(ctx context.Context, dev *backend.Device, net *bcnn.Network, opts backend.Options) error {
	plan, err := bcnn.Lower(ctx, net, bcnn.LowerOptions{})
	if err != nil {
		return err
	}
	for looks := int64(0); ; looks++ {
		exe, err := dev.Compile(endAfter(ctx, looks), plan, opts)
		if err == nil {
			if looks <= int64(len(plan.Steps)) {
				err = fmt.Errorf("Compile has looked at the context %d times for %d steps", looks, len(plan.Steps))
			}
			return errors.Join(err, exe.Close())
		}
		if !errors.Is(err, context.Canceled) || !named(err) {
			return fmt.Errorf("interrupted after %d looks: %w", looks, err)
		}
	}
}

// interrupted ends Run where it looks at its context. It stays usable.
func (l *life) interrupted() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	for looks := range int64(50) {
		err := r.run(endAfter(l.ctx, looks))
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d looks: %w", looks, err)
		}
		// Package backend looks once, before the engine does.
		if err == nil && looks < 2 {
			return fmt.Errorf("Run has looked at its context %d times only", looks)
		}
		if err := r.again(l.ctx, want, "after an interruption"); err != nil {
			return err
		}
	}
	return nil
}

// goAll calls f in several goroutines and joins their errors.
func goAll(n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			errs[i] = f(i)
		}()
	}
	group.Wait()
	return errors.Join(errs...)
}

// runConcurrently runs one executable from several goroutines, each with images and
// a batch of its own.
func (l *life) runConcurrently() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	const callers, rounds = 4, 10
	ins, wants := make([]bcnn.Tensor, callers), make([]bcnn.Tensor, callers)
	for i := range callers {
		n := 1 + i%lifeBatch
		ins[i], wants[i] = RandomImages(uint64(i), n, r.plan.Input), bcnn.NewTensor(bcnn.Float32, n, r.plan.OutputShape())
		if err := r.Run(l.ctx, wants[i:][:1], ins[i:][:1]); err != nil {
			return err
		}
	}
	return goAll(callers, func(i int) error {
		out := bcnn.NewTensor(bcnn.Float32, ins[i].N, r.plan.OutputShape())
		for range rounds {
			clear(out.F32)
			if err := r.Run(l.ctx, []bcnn.Tensor{out}, ins[i:][:1]); err != nil {
				return err
			}
			if err := compare(wants[i], out); err != nil {
				return fmt.Errorf("caller %d: %w", i, err)
			}
		}
		return nil
	})
}

// runTogether runs several executables of the device at the same time.
func (l *life) runTogether() error {
	const executables, rounds = 4, 10
	all, wants := make([]*ready, executables), make([]bcnn.Tensor, executables)
	for i := range all {
		var err error
		if all[i], err = l.compile(lifeNet(uint64(i)), nil); err != nil {
			return err
		}
		if wants[i], err = all[i].fresh(l.ctx); err != nil {
			return err
		}
	}
	return goAll(executables, func(i int) error {
		for range rounds {
			if err := all[i].again(l.ctx, wants[i], "beside others"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *life) closes() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	if err := r.run(l.ctx); err != nil {
		return err
	}
	for range 2 {
		if err := r.Close(); err != nil {
			return err
		}
		if err := r.run(l.ctx); !errors.Is(err, backend.ErrClosed) || !named(err) {
			return fmt.Errorf("Run after Close returned %v", err)
		}
	}
	if len(r.Inputs()) != 1 || len(r.Outputs()) != 1 || len(r.Explain()) != len(r.plan.Steps) {
		return errors.New("a closed executable does not know what it was")
	}
	return nil
}

func (l *life) closeWaits() error {
	started, release := make(chan struct{}), make(chan struct{})
	first := true
	r, err := l.compile(lifeNet(3), func(o *backend.Options) {
		o.Tap = func(int, string, bcnn.Tensor) {
			if first {
				first = false
				close(started)
				<-release
			}
		}
	})
	if err != nil {
		return err
	}
	ran, closed := make(chan error, 1), make(chan error, 1)
	go func() { ran <- r.run(l.ctx) }()
	<-started
	go func() { closed <- r.Close() }()
	select {
	case <-closed:
		err = errors.New("Close returned while a step was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if err != nil {
		return err
	}
	return errors.Join(<-ran, <-closed)
}

func (l *life) closeDuringRuns() error {
	for range 10 {
		r, err := l.compile(lifeNet(3), nil)
		if err != nil {
			return err
		}
		err = goAll(3, func(i int) error {
			if i > 0 {
				time.Sleep(5 * time.Millisecond)
				return r.Close()
			}
			for {
				if err := r.run(l.ctx); errors.Is(err, backend.ErrClosed) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// memoryLimit finds the memory that an executable needs, by what the refusals of less
// say, and makes sure that it grows with the batch.
func (l *life) memoryLimit() error {
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	need := func(batch int) (limit int64, err error) {
		limit = 1
		for {
			opts := l.opts
			opts.MaxBatch, opts.Limits = batch, bcnn.Limits{ArenaBytes: limit}
			exe, err := l.dev.Compile(l.ctx, plan, opts)
			if err == nil {
				return limit, exe.Close()
			}
			if !errors.Is(err, backend.ErrTooLarge) || !named(err) {
				return 0, err
			}
			message := err.Error()
			at := max(strings.Index(message, "need at least "), 0)
			var bytes, had int64
			if _, err := fmt.Sscanf(message[at:], "need at least %d bytes of memory, and the limit is %d", &bytes, &had); err != nil {
				return 0, fmt.Errorf("%q: %w", message, err)
			}
			if had != limit || bytes <= limit {
				return 0, fmt.Errorf("with a limit of %d: %q", limit, message)
			}
			limit = bytes
		}
	}
	one, err := need(1)
	if err != nil {
		return err
	}
	four, err := need(4)
	if err != nil {
		return err
	}
	image := plan.Tensors[1].Shape.Bytes(plan.Tensors[1].DType)
	if one < image || four < one+3*image {
		return fmt.Errorf("%d bytes for an image and %d for four, of which the first tensor takes %d each", one, four, image)
	}
	return nil
}
