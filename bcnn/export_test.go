package bcnn

import (
	"context"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// What lowering may spend for each byte of a network's size.
const (
	WorkPerByte      = workPerByte
	ConstantsPerByte = constantsPerByte
)

// Size returns the size of a network that is well formed, in the terms of its
// cost.
func Size(n *Network) (int64, error) {
	b := budget.New(context.Background(), 0)
	_, err := n.infer(b)
	return b.Used(), err // the check spends the size, once
}

// LowerCounted is Lower, and says what has been spent: the constants of the plan
// in bytes, and everything else in units.
func LowerCounted(ctx context.Context, n *Network, opts LowerOptions) (plan *Plan, constants, units int64, err error) {
	plan, s, err := lower(ctx, n, opts)
	if s.Budget != nil {
		constants, units = s.constants, s.Used()-s.constants
	}
	return plan, constants, units, err
}

// PlaceCounted returns the number of pairs of tensors that Place looks at.
func (p *Plan) PlaceCounted(n int, uses []Use) (pairs int64) {
	_, _, pairs = place(p.lifetimes(n, uses))
	return pairs
}
