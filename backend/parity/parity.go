// Package parity is the parity suite: one seeded table of cases that every
// device must compute to the bit as package ref does.
//
// Check runs it; package backendtest does so in tests. A case is a network, lowered both ways
// (fused and unfused), or a plan that lowering does not produce.
// Every plan is executed with Options.Tap, and every intermediate is compared
// with the reference executor: float32 values by their bits, packed words with
// their padding. It is then executed without Tap, several times, with several
// batch sizes, between guard words. No case can be skipped: a step that a device
// does not support is a failure.
//
// Two NaNs count as equal, because processors disagree on their payload.
package parity

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// Case is one entry of the table.
type Case struct {
	// Name lists the parameters, separated by slashes, so that levels of it
	// can be given to go test -run.
	Name string
	// Batch is the largest batch that the case runs.
	Batch int

	fill    fill
	build   func(b *builder) *bcnn.Network
	mutate  func(p *plan.Plan) // makes a plan that lowering does not produce
	lenient bool               // LowerUnfused may refuse the network
	// everyKernel asks for every variant of kernels of the device, unless one is
	// forced.
	everyKernel bool
	kept        *kept // nil: nothing is
}

// Network builds the network of the case: always the same.
func (c Case) Network() *bcnn.Network { return c.build(&builder{rng: c.rng("network"), c: c}) }

// Has reports whether f is true of a step of one of the plans of the case.
func (c Case) Has(ctx context.Context, f func(*plan.Plan, plan.Step) bool) (bool, error) {
	plans, err := c.plans(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range plans {
		if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return f(p.Plan, s) }) {
			return true, nil
		}
	}
	return false, nil
}

// Inputs makes a batch of n images for the inputs of a plan of the network: always
// the same, and the images of a smaller batch are the first of a larger one.
func (c Case) Inputs(plan *plan.Plan, n int) []bcnn.Tensor {
	in := make([]bcnn.Tensor, len(plan.Inputs))
	for i, input := range plan.Inputs {
		in[i] = c.fill.tensor(c.rng(fmt.Sprint("input ", i+1)), input, n)
	}
	return in
}

// rng returns a source of random numbers that depends on the name of the case
// and on what it is for.
func (c Case) rng(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(c.Name + "/" + purpose))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// labelled is a plan and the way it was made, with what the reference makes of it.
type labelled struct {
	label string
	*plan.Plan

	in, out []bcnn.Tensor
	want    []bcnn.Tensor // of every step
}

// reference has the reference executor run the plan, unless it has.
func (p *labelled) reference(ctx context.Context, c Case) error {
	if p.out != nil {
		return nil
	}
	in := c.Inputs(p.Plan, c.Batch)
	var want []bcnn.Tensor
	out, err := ref.RunAll(ctx, p.Plan, in, func(_ int, _ string, t bcnn.Tensor) { want = append(want, t) })
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	p.in, p.out, p.want = in, out, want
	return nil
}

// kept are the plans of a case that is checked again.
type kept struct{ plans []*labelled }

// Keep returns the cases so that they keep their plans and what the reference makes of
// them, for devices or options that are checked one after the other: not at the same
// time.
func Keep(cases []Case) []Case {
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].kept = &kept{}
	}
	return cases
}

func (c Case) plans(ctx context.Context) ([]*labelled, error) {
	if c.kept != nil && c.kept.plans != nil {
		return c.kept.plans, nil
	}
	plans, err := c.lower(ctx)
	if err == nil && c.kept != nil {
		c.kept.plans = plans
	}
	return plans, err
}

func (c Case) lower(ctx context.Context) ([]*labelled, error) {
	net := c.Network()
	fused, err := lower.Network(ctx, net, lower.Options{})
	if err != nil {
		return nil, fmt.Errorf("lower: %w", err)
	}
	if c.mutate != nil {
		c.mutate(fused)
		return []*labelled{{label: "changed", Plan: fused}}, nil
	}
	unfused, err := lower.Network(ctx, net, lower.Options{Unfused: true})
	if err != nil {
		if c.lenient {
			return []*labelled{{label: "fused", Plan: fused}}, nil
		}
		return nil, fmt.Errorf("lower unfused: %w", err)
	}
	return []*labelled{{label: "fused", Plan: fused}, {label: "unfused", Plan: unfused}}, nil
}

// Failure is a case that a device does not compute as the reference does.
type Failure struct {
	Case string
	Plan string // "fused", "unfused", "changed"; empty if there is no plan
	// Err says what is wrong: the first wrong step, image, row, column and
	// channel with the expected and the actual value, a write outside of the
	// output, or the error of the device.
	Err error
}

func (f Failure) Error() string {
	if f.Plan == "" {
		return f.Case + ": " + f.Err.Error()
	}
	return f.Case + ": " + f.Plan + " plan: " + f.Err.Error()
}

func (f Failure) Unwrap() error { return f.Err }

// Check runs the cases on the device and returns those that fail, at most one
// Failure per case. Of opts, Threads, ISA, Kernels and Limits count; the suite sets
// the rest. Whole networks run with every variant of kernels that the device has,
// unless opts forces one. progress, if not nil, is called as work is done, which is counted in
// images that have been run, of all that will be. The error is that
// of ctx, wraps ErrMemory, or is that of options which the device cannot honour.
func Check(ctx context.Context, dev *backend.Device, opts backend.Options, cases []Case, progress func(done, total int)) ([]Failure, error) {
	if dev == nil {
		return nil, errors.New("no device")
	}
	if err := opts.Check(dev.Info()); err != nil {
		return nil, fmt.Errorf("%s: %w", dev.Info().ID, err)
	}
	done, end, total := 0, 0, 0
	for _, c := range cases {
		total += c.work(dev, opts)
	}
	ran := func(images int) {
		if done = min(done+images, end); progress != nil {
			progress(done, total)
		}
	}
	var failures []Failure
	for _, c := range cases {
		end += c.work(dev, opts)
		if err := ctx.Err(); err != nil {
			return failures, err
		}
		if f := c.check(ctx, dev, opts, ran); f != nil {
			if err := ctx.Err(); err != nil { // not the device's fault
				return failures, err
			}
			if errors.Is(f, ErrMemory) { // nor this
				return failures, f
			}
			failures = append(failures, *f)
		}
		ran(end - done) // what a failure or a plan that there is not has left
	}
	return failures, nil
}
