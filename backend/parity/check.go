package parity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// check returns nil if the device computes the case as the reference does.
// It calls ran for images that have been run.
func (c Case) check(ctx context.Context, dev *backend.Device, opts backend.Options, ran func(images int)) *Failure {
	plans, err := c.plans(ctx)
	if err != nil {
		return &Failure{Case: c.Name, Err: err}
	}
	var outputs [][]bcnn.Tensor
	for i, p := range plans {
		if err := c.checkPlan(ctx, dev, opts, c.kernels(i, dev, opts), p, ran); err != nil {
			return &Failure{Case: c.Name, Plan: p.label, Err: err}
		}
		outputs = append(outputs, p.out)
		if c.kept == nil { // so that one plan needs memory at a time
			p.in, p.want = nil, nil
		}
	}
	if err := agree(outputs); err != nil {
		return &Failure{Case: c.Name, Err: err}
	}
	return nil
}

// kernels returns the kinds of kernels with which a plan is checked. The fused plan, which
// comes first, is the one that users run.
func (c Case) kernels(plan int, dev *backend.Device, opts backend.Options) []string {
	kernels := []string{opts.Kernels}
	if plan == 0 && c.everyKernel && opts.Kernels == "" {
		kernels = append(kernels, dev.Info().Kernels...)
	}
	return kernels
}

// work returns how many images the case runs, those of the reference among them.
func (c Case) work(dev *backend.Device, opts backend.Options) int {
	each := c.Batch // with Tap
	for _, n := range sizes(c.Batch) {
		each += n
	}
	plans := 2
	if c.mutate != nil {
		plans = 1
	}
	work := 0
	for plan := range plans {
		work += c.Batch + each*len(c.kernels(plan, dev, opts))
	}
	return work
}

// agree compares the outputs of the fused plan, which comes first, and others.
func agree(outputs [][]bcnn.Tensor) error {
	for _, out := range outputs[1:] {
		if len(out) != len(outputs[0]) {
			return fmt.Errorf("the plans disagree on the number of outputs: %d and %d", len(outputs[0]), len(out))
		}
		for i, t := range out {
			if err := compare.Tensors(outputs[0][i], t); err != nil {
				return fmt.Errorf("the plans disagree in output %d; of the fused one as wanted and the unfused one as got: %w", i+1, err)
			}
		}
	}
	return nil
}

// checkPlan checks a plan with each kind of kernels.
func (c Case) checkPlan(ctx context.Context, dev *backend.Device, opts backend.Options, kernels []string, p *labelled, ran func(images int)) error {
	if err := checkMemory(p.Plan, c.Batch, opts.Limits.ArenaBytes); err != nil {
		return err
	}
	if err := p.reference(ctx, c); err != nil {
		return err
	}
	ran(c.Batch)
	for _, opts.Kernels = range kernels {
		r := &runner{ctx: ctx, dev: dev, opts: opts, plan: p.Plan, in: p.in, out: p.out, batch: c.Batch, ran: ran}
		if err := r.check(p.want); err != nil {
			if opts.Kernels != "" {
				err = fmt.Errorf("%s kernels: %w", opts.Kernels, err)
			}
			return err
		}
	}
	return nil
}

type runner struct {
	ctx     context.Context
	dev     *backend.Device
	opts    backend.Options
	plan    *plan.Plan
	in, out []bcnn.Tensor // out is what the reference makes of in
	batch   int
	ran     func(images int)
}

// check compares the output and every intermediate.
func (r *runner) check(want []bcnn.Tensor) error {
	if err := r.tapped(want); err != nil {
		return fmt.Errorf("with Tap: %w", err)
	}
	return r.plain()
}

func (r *runner) compile(opts backend.Options) (*backend.Executable, error) {
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
	opts := r.opts
	opts.Tap = func(step int, name string, t bcnn.Tensor) {
		if step != taps || step >= len(want) || name != r.plan.Steps[step].Name {
			found(fmt.Errorf("call %d of Tap is for step %d %q", taps, step, name))
		} else if err := compare.Tensors(want[step], t); err != nil {
			found(fmt.Errorf("step %d %q (%s): %w", step, name, r.plan.Steps[step].Kind(), err))
		}
		taps++
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
	return nil
}

// plain takes the way without Tap.
func (r *runner) plain() (err error) {
	exe, err := r.compile(r.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exe.Close()) }()
	for i, n := range sizes(r.batch) {
		// The second time its images are in another order, so that what a device keeps for batches
		// of one size shows.
		again := i > 0 && n == r.batch
		if again {
			r.rotate(1)
		}
		err := r.run(exe, n)
		if again {
			r.rotate(n - 1)
		}
		if err != nil {
			return fmt.Errorf("run %d, of a batch of %d: %w", i+1, n, err)
		}
	}
	return nil
}

// rotate moves the first images of the batch behind the others.
func (r *runner) rotate(images int) {
	for _, t := range slices.Concat(r.in, r.out) {
		n := images * t.Shape.Elements(t.DType)
		rotate(t.U8, n)
		rotate(t.Words, n)
		rotate(t.F32, n)
	}
}

// rotate needs no memory, which is accounted for (memory).
func rotate[T any](s []T, n int) {
	if n = min(n, len(s)); n > 0 { // a tensor has one slice
		slices.Reverse(s[:n])
		slices.Reverse(s[n:])
		slices.Reverse(s)
	}
}

// sizes are those of the runs of an executable: the largest batch first and last, so that
// each image finds what an earlier run has left, and smaller ones between, each of
// which follows one of another size.
func sizes(batch int) []int {
	if batch == 1 {
		return []int{1, 1}
	}
	return slices.Compact([]int{batch, 1, (batch + 1) / 2, batch})
}

// run executes the last n images of the batch, so that an image has another
// place in each batch size, and compares the outputs.
func (r *runner) run(exe *backend.Executable, n int) error {
	var in, out []bcnn.Tensor
	var guards []func() error
	for _, t := range r.in {
		g := compare.Guard(t.Images(r.batch-n, n))
		in, guards = append(in, g.Tensor), append(guards, func() error { return g.Check("in") })
	}
	for _, t := range r.out {
		g := compare.GuardOutput(n, t.Shape)
		out, guards = append(out, g.Tensor), append(guards, func() error { return g.Check("out") })
	}
	runErr := exe.Run(r.ctx, out, in)
	r.ran(n)
	for _, check := range guards[:len(in)] {
		if err := check(); err != nil {
			return err
		}
	}
	for i, t := range r.in {
		if err := compare.Tensors(t.Images(r.batch-n, n), in[i]); err != nil {
			return fmt.Errorf("Run modified its input: %w", err)
		}
	}
	for _, check := range guards[len(in):] {
		if err := check(); err != nil {
			return err
		}
	}
	if runErr != nil {
		return fmt.Errorf("run: %w", runErr)
	}
	for i, t := range r.out {
		if err := compare.Tensors(t.Images(r.batch-n, n), out[i]); err != nil {
			if i > 0 {
				return fmt.Errorf("output %d: %w", i+1, err)
			}
			return fmt.Errorf("output: %w", err)
		}
	}
	return nil
}
