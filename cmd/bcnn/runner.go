package main

import (
	"context"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// runner is a plan that is ready to be timed on a device, with its tensors.
type runner struct {
	exe     backend.Executable
	in, out bcnn.Tensor
}

// newRunner compiles a plan for batches of up to opts.MaxBatch images and runs
// it once, so that one-time costs of the device are not taken for the time of
// the first image.
func newRunner(ctx context.Context, dev backend.Device, plan *bcnn.Plan, opts backend.Options) (*runner, error) {
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	n := max(1, opts.MaxBatch)
	r := &runner{
		exe: exe,
		in:  bcnn.NewTensor(plan.Input.DType, n, plan.Input.Shape),
		out: bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape()),
	}
	if err := exe.Run(ctx, r.out, r.in); err != nil {
		exe.Close()
		return nil, err
	}
	return r, nil
}

func (r *runner) Close() { r.exe.Close() }

// run computes the outputs of the whole batch and returns the time it took,
// transfers to the device and back included.
func (r *runner) run(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	err := r.exe.Run(ctx, r.out, r.in)
	return time.Since(start), err
}
