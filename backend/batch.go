package backend

import (
	"cmp"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Batch is the tensors of a run, which have been checked. The zero value is none.
type Batch struct {
	out, in []bcnn.Tensor
	plan    *plan.Plan // that they fit
}

// Images is the number of images.
func (b Batch) Images() int {
	if len(b.in) == 0 {
		return 0
	}
	return b.in[0].N
}

// Check makes a batch of the tensors that Run takes, for RunBatch of this executable or of another of
// the same plan. The slices stay the caller's, and must not be changed before the batch has run. The
// error wraps ErrShape and names the tensor. Check may be called at any time, by several goroutines
// at once, and after Close.
func (e *Executable) Check(out, in []bcnn.Tensor) (Batch, error) {
	if e == nil || e.engine == nil {
		return Batch{}, ErrClosed
	}
	if len(in) != len(e.inputs) || len(out) != len(e.outputs) {
		return Batch{}, fmt.Errorf("%w: inputs: got %d, want %d; outputs: got %d, want %d",
			ErrShape, len(in), len(e.inputs), len(out), len(e.outputs))
	}
	n := in[0].N
	if n > e.maxBatch {
		return Batch{}, e.tooLarge(n)
	}
	if err := cmp.Or(checkTensors("input", e.inputs, in, n), checkTensors("output", e.outputs, out, n)); err != nil {
		return Batch{}, err
	}
	return Batch{out, in, e.plan}, nil
}

func (e *Executable) tooLarge(images int) error {
	return fmt.Errorf("%w: batch of %d images exceeds MaxBatch (%d)", ErrShape, images, e.maxBatch)
}

// checkTensors makes sure that tensors are n images of those of a plan.
func checkTensors(what string, want []plan.Tensor, tensors []bcnn.Tensor, n int) error {
	for i, t := range tensors {
		err := t.Check(want[i].DType, want[i].Shape)
		switch {
		case err != nil:
		case t.N != n:
			err = fmt.Errorf("%d images, and the first input has %d", t.N, n)
		case t.DType == bcnn.Bits && what == "input":
			err = bits.CheckPadding(t.Words, t.Shape.C)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrShape, cmp.Or(want[i].Name, fmt.Sprintf("%s %d", what, i)), err)
		}
	}
	return nil
}
