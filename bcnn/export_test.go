package bcnn

import (
	"context"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// WorkPerByte is what lowering may spend for each byte of a network's size.
const WorkPerByte = workPerByte

// Size returns the size of a network that is well formed, in the terms of its
// cost.
func Size(n *Network) (int64, error) {
	b := budget.New(context.Background(), 0)
	_, err := n.infer(b)
	return b.Used(), err // the check spends the size, once
}

// LowerCounted is Lower, and says what has been spent.
func LowerCounted(ctx context.Context, n *Network, opts LowerOptions) (*Plan, int64, error) {
	plan, b, err := lower(ctx, n, opts)
	if b == nil {
		return nil, 0, err
	}
	return plan, b.Used(), err
}

// ArenaCounted is Arena, and returns the pairs that it looked at.
func ArenaCounted(items []Lifetime) (offsets []int64, total, pairs int64) { return arena(items) }
