package simplify

import (
	"context"

	"github.com/bitcnn/bitcnn/bcnn"
)

// WorkPerByte is what may be spent for each byte of a network.
const WorkPerByte = workPerByte

// Counted applies the rules once, and returns the size of the network and what was spent.
func Counted(ctx context.Context, n *bcnn.Network) (m *bcnn.Network, bytes, used int64, err error) {
	p, err := begin(ctx, n, Options{}, bcnn.DefaultLayers)
	if err != nil {
		return nil, 0, 0, err
	}
	m, _, err = p.run()
	return m, size(n, p.shapes), p.budget.Used(), err
}
