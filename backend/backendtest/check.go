package backendtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// check returns nil if the device computes the case as the reference does.
func (c Case) check(ctx context.Context, dev backend.Device, opts backend.Options) *Failure {
	plans, err := c.plans(ctx)
	if err != nil {
		return &Failure{Case: c.Name, Err: err}
	}
	var outputs []bcnn.Tensor
	for i, p := range plans {
		variants := []string{opts.Variant}
		// The fused plan, which comes first, is the one that users run.
		if i == 0 && c.everyVariant && opts.Variant == "" {
			variants = append(variants, dev.Info().Variants...)
		}
		out, err := c.checkPlan(ctx, dev, opts, variants, p.Plan)
		if err != nil {
			return &Failure{Case: c.Name, Plan: p.label, Err: err}
		}
		outputs = append(outputs, out)
	}
	if err := agree(outputs); err != nil {
		return &Failure{Case: c.Name, Err: err}
	}
	return nil
}

// agree compares the outputs of the fused plan, which comes first, and others.
func agree(outputs []bcnn.Tensor) error {
	for _, out := range outputs[1:] {
		if err := compare(outputs[0], out); err != nil {
			return fmt.Errorf("the plans disagree; of the fused one as wanted and the unfused one as got: %w", err)
		}
	}
	return nil
}

// checkPlan returns the output that the device has been found to compute.
func (c Case) checkPlan(ctx context.Context, dev backend.Device, opts backend.Options, variants []string, plan *bcnn.Plan) (bcnn.Tensor, error) {
	if err := checkMemory(plan, c.Batch, opts.Limits.ArenaBytes); err != nil {
		return bcnn.Tensor{}, err
	}
	in := c.Input(plan.Input, c.Batch)
	var want []bcnn.Tensor // of every step
	out, err := ref.Run(ctx, plan, in, func(_ int, _ string, t bcnn.Tensor) { want = append(want, t) })
	if err != nil {
		return out, fmt.Errorf("reference: %w", err)
	}
	for _, opts.Variant = range variants {
		r := &runner{ctx: ctx, dev: dev, opts: opts, plan: plan, in: in, out: out, batch: c.Batch}
		if err := r.check(want); err != nil {
			if opts.Variant != "" {
				err = fmt.Errorf("variant %s: %w", opts.Variant, err)
			}
			return out, err
		}
	}
	return out, nil
}

type runner struct {
	ctx     context.Context
	dev     backend.Device
	opts    backend.Options
	plan    *bcnn.Plan
	in, out bcnn.Tensor // out is what the reference makes of in
	batch   int
}

// check compares the output and every intermediate.
func (r *runner) check(want []bcnn.Tensor) error {
	if err := r.tapped(want); err != nil {
		return fmt.Errorf("with Tap: %w", err)
	}
	return r.plain()
}

func (r *runner) compile(opts backend.Options) (backend.Executable, error) {
	opts.MaxBatch = r.batch
	exe, err := r.dev.Compile(r.ctx, r.plan, opts)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return exe, nil
}

// tapped compares every intermediate.
func (r *runner) tapped(want []bcnn.Tensor) (err error) {
	var first error // that a callback has found
	found := func(err error) {
		if first == nil {
			first = err
		}
	}
	taps, times := 0, 0
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	cancelling := false
	opts := r.opts
	opts.Tap = func(step int, name string, t bcnn.Tensor) {
		if step != taps || step >= len(want) || name != r.plan.Steps[step].Name {
			found(fmt.Errorf("call %d of Tap is for step %d %q", taps, step, name))
		} else if err := compare(want[step], t); err != nil {
			found(fmt.Errorf("step %d %q (%s): %w", step, name, r.plan.Steps[step].Kind(), err))
		}
		if taps++; cancelling {
			cancel()
		}
	}
	opts.Timed = func(step int, name string, d time.Duration) {
		if step != times || step >= len(want) || name != r.plan.Steps[step].Name || d < 0 {
			found(fmt.Errorf("call %d of Timed is for step %d %q: %v", times, step, name, d))
		}
		times++
	}
	exe, err := r.compile(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exe.Close()) }()
	if err := r.run(exe, r.batch); err != nil || first != nil {
		return errors.Join(first, err)
	}
	if taps != len(want) || times != len(want) {
		return fmt.Errorf("%d calls of Tap and %d of Timed for %d steps", taps, times, len(want))
	}
	if len(want) == 1 {
		return nil
	}
	taps, times, cancelling = 0, 0, true
	in, out := guard(r.in), guardOutput(r.batch, r.out.Shape)
	if err := exe.Run(ctx, out.tensor, in.tensor); !errors.Is(err, context.Canceled) || taps != 1 {
		return fmt.Errorf("cancelled in the first of %d steps, Run went on to step %d and returned %v", len(want), taps-1, err)
	}
	return first
}

// plain takes the way without Tap, and holds the device to the interface.
func (r *runner) plain() (err error) {
	exe, err := r.compile(r.opts)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, exe.Close())
		}
	}()
	if err := r.wrongTensors(exe); err != nil {
		return err
	}
	for round := range 2 {
		for _, n := range []int{r.batch, 1, (r.batch + 1) / 2} {
			if err := r.run(exe, n); err != nil {
				return fmt.Errorf("batch of %d, round %d: %w", n, round, err)
			}
		}
	}
	cancelled, cancel := context.WithCancel(r.ctx)
	cancel()
	if err := exe.Run(cancelled, bcnn.NewTensor(bcnn.Float32, r.batch, r.out.Shape), r.in); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Run with a cancelled context returned %v", err)
	}
	if err := r.run(exe, r.batch); err != nil {
		return fmt.Errorf("after a cancelled Run: %w", err)
	}
	closed = true
	if err := exe.Close(); err != nil {
		return fmt.Errorf("Close: %w", err)
	}
	if err := exe.Run(r.ctx, bcnn.NewTensor(bcnn.Float32, r.batch, r.out.Shape), r.in); !errors.Is(err, backend.ErrClosed) {
		return fmt.Errorf("Run after Close returned %v", err)
	}
	if err := exe.Close(); err != nil {
		return fmt.Errorf("second Close: %w", err)
	}
	return nil
}

// run executes the last n images of the batch, so that an image has another
// place in each batch size, and compares the output.
func (r *runner) run(exe backend.Executable, n int) error {
	in := guard(r.in.Images(r.batch-n, n))
	out := guardOutput(n, r.out.Shape)
	runErr := exe.Run(r.ctx, out.tensor, in.tensor)
	if err := in.check("in"); err != nil {
		return err
	}
	if err := compare(r.in.Images(r.batch-n, n), in.tensor); err != nil {
		return fmt.Errorf("Run modified its input: %w", err)
	}
	if err := out.check("out"); err != nil {
		return err
	}
	if runErr != nil {
		return fmt.Errorf("run: %w", runErr)
	}
	if err := compare(r.out.Images(r.batch-n, n), out.tensor); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// wrongTensors makes sure that tensors that do not fit the plan are refused. They
// are made one by one, as they may be large.
func (r *runner) wrongTensors(exe backend.Executable) error {
	input, n := r.plan.Input, r.batch
	out := func(n int, s bcnn.Shape) bcnn.Tensor { return bcnn.NewTensor(bcnn.Float32, n, s) }
	taller := func(s bcnn.Shape) bcnn.Shape { s.H++; return s }
	other := bcnn.Uint8
	if input.DType == bcnn.Uint8 {
		other = bcnn.Float32
	}
	short := func(t bcnn.Tensor) bcnn.Tensor {
		t.U8, t.F32 = t.U8[:max(len(t.U8)-1, 0)], t.F32[:max(len(t.F32)-1, 0)]
		return t
	}
	goodIn, goodOut := r.in, out(n, r.out.Shape)
	negative := goodIn
	negative.N = -1
	for _, test := range []struct {
		what    string
		tensors func() (out, in bcnn.Tensor)
	}{
		{"an empty input", func() (_, _ bcnn.Tensor) { return goodOut, bcnn.Tensor{} }},
		{"an empty output", func() (_, _ bcnn.Tensor) { return bcnn.Tensor{}, goodIn }},
		{"an input of another type", func() (_, _ bcnn.Tensor) { return goodOut, bcnn.NewTensor(other, n, input.Shape) }},
		{"an input of another shape", func() (_, _ bcnn.Tensor) { return goodOut, bcnn.NewTensor(input.DType, n, taller(input.Shape)) }},
		{"an input that is too short", func() (_, _ bcnn.Tensor) { return goodOut, short(goodIn) }},
		{"a batch of 0", func() (_, _ bcnn.Tensor) { return out(0, r.out.Shape), bcnn.NewTensor(input.DType, 0, input.Shape) }},
		{"a batch of −1", func() (_, _ bcnn.Tensor) { return goodOut, negative }},
		{"a batch beyond MaxBatch", func() (_, _ bcnn.Tensor) { return out(n+1, r.out.Shape), bcnn.NewTensor(input.DType, n+1, input.Shape) }},
		{"different batch sizes", func() (_, _ bcnn.Tensor) { return out(n+1, r.out.Shape), goodIn }},
		{"an output of another type", func() (_, _ bcnn.Tensor) { return bcnn.NewTensor(bcnn.Bits, n, r.out.Shape), goodIn }},
		{"an output of another shape", func() (_, _ bcnn.Tensor) { return out(n, taller(r.out.Shape)), goodIn }},
		{"an output that is too short", func() (_, _ bcnn.Tensor) { return short(goodOut), goodIn }},
	} {
		out, in := test.tensors()
		if err := exe.Run(r.ctx, out, in); !errors.Is(err, backend.ErrShape) {
			return fmt.Errorf("Run with %s returned %v, want ErrShape", test.what, err)
		}
	}
	return nil
}
