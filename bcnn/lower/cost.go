package lower

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// The cost of a network. Checking and lowering take time and memory linear in
// its size: its parameters, names and labels in bytes, a constant for every
// layer, and the rows, columns and channels of the largest tensor that it
// declares.
const (
	// constantsPerByte is how large the constants of a plan may be for each byte of
	// the size. Most is for a word of weights that becomes 64 words where a dense
	// layer reads pixels of one channel.
	constantsPerByte = 96
	// constantsAlways is how large they may be in any case: tables for each row of
	// large images, scales for each channel of long vectors, without weights that
	// would explain them.
	constantsAlways = 64 << 20
)

// spending is what lowering has spent and may still spend.
type spending struct {
	*budget.Budget
	limits    bcnn.Limits
	constants int64 // bytes of the constants of the plan so far
	explained int64 // bytes of constants that the size of the network explains
}

func newSpending(b *budget.Budget, size int64, limits bcnn.Limits) spending {
	b.Grow(constantsAlways)
	return spending{Budget: b, limits: limits, explained: constantsAlways + constantsPerByte*size}
}

// hold charges constants of a plan that are about to be made.
func (s *spending) hold(bytes int64) error {
	switch {
	case bytes > s.limits.TensorBytes-s.constants:
		return fmt.Errorf("the plan's constants take more than %d bytes; Limits.TensorBytes allows more", s.limits.TensorBytes)
	case bytes > s.explained-s.constants:
		return fmt.Errorf("the plan's constants take more than %d bytes, far more than the size of the network explains", s.explained)
	}
	s.constants += bytes
	return s.Charge(bytes)
}

// fits checks the size of one tensor in memory.
func (s *spending) fits(what string, bytes int64) error {
	if bytes > s.limits.TensorBytes {
		return fmt.Errorf("%s of %d bytes, at most %d are allowed; Limits.TensorBytes allows more", what, bytes, s.limits.TensorBytes)
	}
	return nil
}
