package main

import (
	"context"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/host"
)

// runner is a plan that is ready to be timed on a device, with its tensors.
type runner struct {
	exe     *backend.Executable
	in, out bcnn.Tensor
}

// newRunner compiles a plan for batches of up to opts.MaxBatch images and runs
// it once, so that one-time costs of the device are not taken for the time of
// the first image.
func newRunner(ctx context.Context, dev *backend.Device, plan *bcnn.Plan, opts backend.Options) (*runner, error) {
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	n := max(1, opts.MaxBatch)
	if err := checkMemory(plan, n); err != nil {
		exe.Close()
		return nil, err
	}
	r := &runner{
		exe: exe,
		in:  bcnn.NewTensor(plan.Input.DType, n, plan.Input.Shape),
		out: bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape()),
	}
	if err := exe.Run(ctx, []bcnn.Tensor{r.out}, []bcnn.Tensor{r.in}); err != nil {
		exe.Close()
		return nil, err
	}
	return r, nil
}

// checkMemory refuses a batch of images that does not fit into the memory that is
// free. The device has been asked before, but it holds neither images nor results.
func checkMemory(plan *bcnn.Plan, n int) error {
	need := int64(n) * (plan.Input.Shape.Bytes(plan.Input.DType) + plan.OutputShape().Bytes(bcnn.Float32))
	if free := host.Available(); free > 0 && need > free {
		return fmt.Errorf("%s and their results take %d bytes of memory, and %d are free", quantity(n, "image", "images"), need, free)
	}
	return nil
}

func (r *runner) Close() { r.exe.Close() }

// run computes the outputs of the whole batch and returns the time it took,
// transfers to the device and back included.
func (r *runner) run(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	err := r.exe.Run(ctx, []bcnn.Tensor{r.out}, []bcnn.Tensor{r.in})
	return time.Since(start), err
}
