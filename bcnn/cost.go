package bcnn

import (
	"fmt"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// The cost of a network. Checking and lowering take time and memory linear in
// its size: its parameters, names and labels in bytes, a constant for every
// layer, and the rows, columns and channels of the largest tensor that it
// declares.
const (
	// workPerByte is what may be spent for each byte of the size, in bytes that
	// are allocated and iterations alike. Most is for thresholds that are searched
	// behind maxMixed functions, of which one has a value of 4 bytes per channel.
	workPerByte = 192
	// constantsPerByte is how large the constants of a plan may be for each byte of
	// the size. Most is for a word of weights that becomes 64 words where a dense
	// layer reads pixels of one channel.
	constantsPerByte = 96
	// constantsAlways is how large they may be in any case: tables for each row of
	// large images, scales for each channel of long vectors, without weights that
	// would explain them.
	constantsAlways = 64 << 20
	bytesOfLayer    = 64 // of a layer without parameters
)

// size is what a layer holds, in bytes.
func (l Layer) size() int64 {
	sum, _ := parameters(l.Op)
	return bytesOfLayer + int64(len(l.Name)) + 8*int64(len(l.Inputs)) + l.Source.size() + sum
}

// sides is the share of a tensor in the size of a network.
func (s Shape) sides() int64 { return int64(s.H) + int64(s.W) + int64(s.C) }

// parameters returns the bytes of an operation's parameters together, and those
// of the largest tensor of them.
func parameters(op Op) (sum, largest int64) {
	add := func(bytes int) {
		sum += int64(bytes)
		largest = max(largest, int64(bytes))
	}
	weights := func(w Weights, bias []float32) {
		add(8 * len(w.Bits))
		add(len(w.Int8))
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
	case Quantize:
		add(4 * len(op.Thresholds))
	case PReLU:
		add(4 * len(op.Slope))
	case Pixels:
		add(4 * len(op.Rows))
		add(4 * len(op.Cols))
	case Resample:
		for _, t := range []Taps{op.Rows, op.Cols} {
			add(4 * len(t.Index))
			add(4 * len(t.Weight))
		}
	case Channels:
		add(4 * len(op.Index))
	}
	return sum, largest
}

// spending is what lowering has spent and may still spend.
type spending struct {
	*budget.Budget
	limits    Limits
	constants int64 // bytes of the constants of the plan so far
	explained int64 // bytes of constants that the size of the network explains
}

func newSpending(b *budget.Budget, size int64, limits Limits) spending {
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
