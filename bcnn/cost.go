package bcnn

import (
	"fmt"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// The cost of a network. Checking and lowering take time and memory linear in
// its size: for every byte of it at most workPerByte units, which are bytes
// allocated and iterations alike. The size is that of the parameters, names and
// labels, a constant for every layer, and for every layer the rows, columns and
// channels of the tensor that it declares, since lowering makes tables of them.
//
// The factor leaves room for what is largest: a word of weights for one channel
// that becomes 64 words where a dense layer reads single channels (64 a byte),
// and thresholds that are searched behind maxMixed functions of which one has a
// value per channel.
const (
	workPerByte  = 128
	bytesOfLayer = 64 // of a layer without parameters
	bytesOfSide  = 8  // of a row, a column or a channel
)

// size is what a layer holds, in bytes, apart from the tensor it declares.
func (l Layer) size() int64 {
	sum, _ := parameters(l.Op)
	return bytesOfLayer + int64(len(l.Name)) + 8*int64(len(l.Inputs)) + sum
}

// declared is the size that stands for the tensor that a layer makes.
func (s Shape) declared() int64 { return bytesOfSide * (int64(s.H) + int64(s.W) + int64(s.C)) }

// parameters returns the bytes of an operation's parameters together, and those
// of the largest tensor of them.
func parameters(op Op) (sum, largest int64) {
	add := func(bytes int) {
		sum += int64(bytes)
		largest = max(largest, int64(bytes))
	}
	weights := func(w Weights, bias []float32) {
		add(8 * len(w.Bits))
		add(4 * len(w.F32))
		add(4 * len(bias))
	}
	switch op := op.(type) {
	case Binarize:
		add(4 * len(op.Thresholds))
	case Conv2D:
		weights(op.Weights, op.Bias)
	case Dense:
		weights(op.Weights, op.Bias)
	case BatchNorm:
		for _, v := range [][]float32{op.Gamma, op.Beta, op.Mean, op.Var} {
			add(4 * len(v))
		}
	case Affine:
		add(4 * len(op.Scale))
		add(4 * len(op.Bias))
	}
	return sum, largest
}

// spending is what lowering has spent and may still spend.
type spending struct {
	*budget.Budget
	limits    Limits
	constants int64 // bytes of the constants of the plan so far
}

// hold charges constants of a plan that are about to be made.
func (s *spending) hold(bytes int64) error {
	if bytes > s.limits.TensorBytes-s.constants {
		return fmt.Errorf("the plan's constants take more than %d bytes; Limits.TensorBytes allows more", s.limits.TensorBytes)
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
