package lower

import (
	"context"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// Program is a network as devices execute it.
type Program struct {
	Plan *plan.Plan
	// Network is what the plan computes: Step.Layers are its layers. It is the given one if no
	// rule of package simplify has found anything.
	Network *bcnn.Network
	// Findings are those of package simplify.
	Findings []simplify.Finding
}

// Compile simplifies a network and lowers it: the one way from a network to a plan for a device,
// which bitcnn.Open takes, too. Network alone would compute in float32 what package simplify
// finds to be binary. n is not changed. The errors are those of simplify.Network and of Network.
func Compile(ctx context.Context, n *bcnn.Network, opts Options) (*Program, error) {
	net, findings, err := simplify.Network(ctx, n, simplify.Options{Limits: opts.Limits})
	if err != nil {
		return nil, err
	}
	p, err := Network(ctx, net, opts)
	if err != nil {
		return nil, err
	}
	return &Program{Plan: p, Network: net, Findings: findings}, nil
}
