package lower

import (
	"context"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// ConstantsPerByte is the bound on what lowering may hold for each byte of the size of a
// network.
const ConstantsPerByte = constantsPerByte

// MaxMixed is the largest length of a chain in which some function has a value per channel.
const MaxMixed = maxMixed

// Size returns the size of a network, in which these bounds are.
func Size(n *bcnn.Network) (int64, error) {
	b := budget.New(context.Background(), 0)
	_, err := n.Types(b)
	return b.Used(), err // the check spends the size, once
}

// Counted is Network, and returns the bytes of the constants of the plan and the
// units of work, too.
func Counted(ctx context.Context, n *bcnn.Network, opts Options) (p *plan.Plan, constants, units int64, err error) {
	p, s, err := lower(ctx, n, opts)
	if s.Budget != nil {
		constants, units = s.constants, s.Used()-s.constants
	}
	return p, constants, units, err
}
