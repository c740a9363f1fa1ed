package backend

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

var errNoContext = errors.New("no context")

// CheckCompile checks the arguments of Device.Compile and returns the options with
// their defaults in place: a batch of 1, and memory for the tensors as Limits say or
// else memory bytes, where 0 means unknown. maxBatch is the largest batch that the
// device can count.
func CheckCompile(ctx context.Context, plan *bcnn.Plan, opts Options, maxBatch int, memory int64) (Options, error) {
	if ctx == nil {
		return opts, errNoContext
	}
	if err := ctx.Err(); err != nil {
		return opts, err
	}
	var err error
	if opts.Limits, err = opts.Limits.WithDefaults(); err != nil {
		return opts, err
	}
	if opts.Limits.ArenaBytes == 0 {
		opts.Limits.ArenaBytes = memory
	}
	if opts.Limits.ArenaBytes == 0 {
		opts.Limits.ArenaBytes = unknownMemory
	}
	opts.Limits.ArenaBytes = min(opts.Limits.ArenaBytes, maxMemory)
	if opts.MaxBatch == 0 {
		opts.MaxBatch = 1
	}
	if opts.MaxBatch < 0 || opts.MaxBatch > maxBatch {
		return opts, fmt.Errorf("a batch of %d images, want 1 to %d", opts.MaxBatch, maxBatch)
	}
	if err := plan.Check(); err != nil {
		return opts, err
	}
	return opts, nil
}

const (
	// unknownMemory is what a device may have that does not say how much it has.
	unknownMemory = 8 << 30
	// maxMemory bounds any limit: no address space is larger.
	maxMemory = min(1<<42, math.MaxInt/2)
)

// CheckMemory refuses to reserve bytes of memory for the tensors of an executable
// and all else that grows with the images, where opts, which CheckCompile has
// returned, allow less. The error wraps ErrTooLarge.
func (o Options) CheckMemory(bytes int64) error {
	if bytes <= o.Limits.ArenaBytes {
		return nil
	}
	return fmt.Errorf("%w: the tensors of a batch of %d need at least %d bytes of memory, and the limit is %d",
		ErrTooLarge, o.MaxBatch, bytes, o.Limits.ArenaBytes)
}

// CheckRun checks the arguments of Executable.Run against a plan that
// Plan.Check has passed. The error wraps ErrShape, or is that of ctx.
func CheckRun(ctx context.Context, plan *bcnn.Plan, maxBatch int, out, in bcnn.Tensor) error {
	if ctx == nil {
		return errNoContext
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	input, output := plan.Tensors[0], plan.Tensors[plan.Output]
	if in.N > maxBatch {
		return fmt.Errorf("%w: a batch of %d images, at most %d", ErrShape, in.N, maxBatch)
	}
	if err := in.Check(input.DType, input.Shape); err != nil {
		return fmt.Errorf("%w: input: %w", ErrShape, err)
	}
	if out.N != in.N {
		return fmt.Errorf("%w: %d images in, %d out", ErrShape, in.N, out.N)
	}
	if err := out.Check(output.DType, output.Shape); err != nil {
		return fmt.Errorf("%w: output: %w", ErrShape, err)
	}
	if in.DType == bcnn.Bits {
		if err := bits.CheckPadding(in.Words, in.Shape.C); err != nil {
			return fmt.Errorf("%w: input: %w", ErrShape, err)
		}
	}
	return nil
}
