package vision

import (
	"context"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// engine is a network that is ready to run on a device: all that Classifier
// knows of backends.
type engine struct {
	input    bcnn.Input
	output   bcnn.Shape
	labels   []string
	maxBatch int

	exe  *backend.Executable
	turn chan struct{} // holds an element while the executable runs
}

// newEngine compiles a network and runs it once, so that one-time costs of the
// device are not taken for the time of the first image.
func newEngine(ctx context.Context, dev *backend.Device, net *bcnn.Network, opts backend.Options) (*engine, error) {
	plan, err := bcnn.Lower(ctx, net, bcnn.LowerOptions{})
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	e := &engine{
		input: plan.Input, output: plan.OutputShape(), labels: plan.Labels, maxBatch: exe.MaxBatch(),
		exe: exe, turn: make(chan struct{}, 1),
	}
	in := bcnn.NewTensor(e.input.DType, e.maxBatch, e.input.Shape)
	if _, err := e.run(ctx, e.outputs(in.N), in); err != nil {
		exe.Close()
		return nil, err
	}
	return e, nil
}

// outputs returns a tensor for the outputs of n images.
func (e *engine) outputs(n int) bcnn.Tensor { return bcnn.NewTensor(bcnn.Float32, n, e.output) }

// run computes the outputs of a batch of at most maxBatch images and returns the
// time that it took, without waiting for others.
func (e *engine) run(ctx context.Context, out, in bcnn.Tensor) (time.Duration, error) {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-e.turn }()
	start := time.Now()
	err := e.exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in})
	return time.Since(start), err
}

func (e *engine) close() error { return e.exe.Close() }
