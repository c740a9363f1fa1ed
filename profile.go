package bitcnn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
)

// Step is a step of a network as a device executes it: some layers become one step.
type Step struct {
	Name string // of its layers
	Kind string // "conv"
	Choice
}

// Steps returns the steps with what the device has chosen for each, and why; nothing
// after Close.
func (s *Session) Steps() []Step {
	var steps []Step
	for i, c := range s.engines.explain() {
		step := s.engines.plan.Steps[i]
		steps = append(steps, Step{step.Name, step.Kind(), c})
	}
	return steps
}

// StepTime is the time that a step took on the device, over a number of runs.
type StepTime struct {
	Name        string
	Median, Min time.Duration
}

// maxProfile bounds the runs of Profile: more make no figure better.
const maxProfile = 1_000_000

// Profile runs a batch a number of times, and once before, on an engine of its own, and
// returns the time of each step. Steps are waited for one by one: their sum may exceed
// the time of Run.
func (s *Session) Profile(ctx context.Context, runs int, in ...Tensor) ([]StepTime, error) {
	if runs < 1 || runs > maxProfile {
		return nil, fmt.Errorf("%d runs, want 1 to %d", runs, maxProfile)
	}
	n := 0
	if len(in) > 0 {
		n = max(0, min(in[0].N, s.maxBatch)) // check refuses others
	}
	out := tensors(s.outputs, n)
	batch, err := s.check(ctx, out, in)
	if err != nil {
		return nil, err
	}
	took := make([][]time.Duration, len(s.engines.plan.Steps))
	exe, err := s.engines.timed(ctx, n, func(step int, _ string, d time.Duration) { took[step] = append(took[step], d) })
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	for range 1 + runs {
		if err := exe.RunBatch(ctx, batch); err != nil {
			return nil, err
		}
	}
	times := make([]StepTime, len(took))
	for i, t := range took {
		t = t[1:]
		slices.Sort(t)
		times[i] = StepTime{s.engines.plan.Steps[i].Name, t[len(t)/2], t[0]}
	}
	return times, nil
}

// timed compiles the engine for one caller once more, for n images, with times of its steps.
func (p *engines) timed(ctx context.Context, n int, timed func(int, string, time.Duration)) (*backend.Executable, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	opts := p.opts
	opts.MaxBatch, opts.Threads, opts.Timed = n, p.levels[0], timed
	return p.device.Compile(ctx, p.plan, opts)
}
