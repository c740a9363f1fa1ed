package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/host"
)

// Runner is a plan that is ready to be timed on a device, with its tensors. In and Out are
// its first input and output.
type Runner struct {
	In, Out bcnn.Tensor
	in, out []bcnn.Tensor
	exe     *backend.Executable
}

// NewRunner compiles a plan for batches of up to opts.MaxBatch images and runs
// it once, so that one-time costs of the device are not taken for the time of
// the first image. What does not fit into the memory that is free is an error.
func NewRunner(ctx context.Context, dev *backend.Device, plan *plan.Plan, opts backend.Options) (*Runner, error) {
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	n := max(1, opts.MaxBatch)
	if err := checkMemory(plan, n); err != nil {
		exe.Close()
		return nil, err
	}
	r := &Runner{exe: exe}
	for _, t := range exe.Inputs() {
		r.in = append(r.in, bcnn.NewTensor(t.DType, n, t.Shape))
	}
	for _, t := range exe.Outputs() {
		r.out = append(r.out, bcnn.NewTensor(t.DType, n, t.Shape))
	}
	r.In, r.Out = r.in[0], r.out[0]
	if err := exe.Run(ctx, r.out, r.in); err != nil {
		exe.Close()
		return nil, err
	}
	return r, nil
}

// checkMemory refuses a batch of images that does not fit into the memory that is
// free. The device has been asked before, but it holds neither images nor results.
func checkMemory(plan *plan.Plan, n int) error {
	var need int64
	for _, t := range plan.InputTensors() {
		need += t.Bytes(n)
	}
	for _, t := range plan.Outputs {
		need += plan.Tensors[t].Bytes(n)
	}
	if free := host.Available(); free > 0 && need > free {
		return fmt.Errorf("a batch of %d: images and results take %d bytes of memory, and %d are free", n, need, free)
	}
	return nil
}

// Close frees what the device holds.
func (r *Runner) Close() { r.exe.Close() }

// Run computes Out of In and returns the time it took, transfers to the device
// and back included.
func (r *Runner) Run(ctx context.Context) (time.Duration, error) {
	start := clock.Now()
	err := r.exe.Run(ctx, r.out, r.in)
	return clock.Since(start), err
}

// fill makes all inputs random, a share of them 0.
func (r *Runner) fill(rng *rand.ChaCha8, zeros float64) {
	for _, t := range r.in {
		RandomImages(t, rng)
		thin(t, zeros, rng)
	}
}

// timeRuns runs a batch of random images a number of times. With fresh images
// every run gets new ones; making them is not part of the time.
func timeRuns(ctx context.Context, r *Runner, opts Options, progress func(done, total int)) (times, error) {
	rng, runs := NewRand(Seed), opts.Runs
	r.fill(rng, opts.Zeros)
	result := make(times, runs)
	for i := range result {
		if opts.Fresh && i > 0 {
			r.fill(rng, opts.Zeros)
		}
		took, err := r.Run(ctx)
		if err != nil {
			return nil, err
		}
		result[i] = took
		progress(i+1, runs)
	}
	return result, nil
}
