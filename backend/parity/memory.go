package parity

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/host"
)

// ErrMemory is wrapped by the error of Check where comparing a case with the
// reference needs more memory than Options.Limits.ArenaBytes, or by default than is
// free.
var ErrMemory = errors.New("not enough memory to compare with the reference")

// checkMemory refuses a plan for whose results there is no memory. A limit of 0
// means what is free.
func checkMemory(plan *plan.Plan, batch int, limit int64) error {
	need, err := memory(plan, batch)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	need *= 2 // the garbage collector lets memory grow to twice of what is in use
	if limit == 0 {
		limit = host.Available()
	}
	if limit > 0 && need > limit {
		return fmt.Errorf("%w: a batch of %d takes %d bytes, and the limit is %d", ErrMemory, batch, need, limit)
	}
	return nil
}

// memory returns the bytes that checking a plan takes at the most, weights apart:
// the results of all steps, the tensors of a device that has them in the same memory,
// the outputs of the plan before, and whatever is more, what the reference
// needs while it runs, or the tensors that Run is called with.
func memory(plan *plan.Plan, batch int) (int64, error) {
	running, err := ref.Memory(plan, batch)
	if err != nil {
		return 0, err
	}
	var results int64
	largest := make(map[bcnn.DType]int64) // Tap gets memory for each type
	for _, s := range plan.Steps {
		t := plan.Tensors[s.Out]
		results += t.Bytes(batch)
		largest[t.DType] = max(largest[t.DType], t.Bytes(batch))
	}
	var in, out int64
	for _, t := range plan.InputTensors() {
		in += t.Bytes(batch)
	}
	for _, t := range plan.Outputs {
		out += plan.Tensors[t].Bytes(batch)
	}
	// The reference's output, what Run and Tap get, and what is small.
	calling := 2*out + in + largest[bcnn.Bits] + largest[bcnn.Float32] + 64<<10
	return results + plan.Place(batch, plan.InnerUses()).Bytes + out + in + max(running, calling), nil
}
