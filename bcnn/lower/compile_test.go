package lower_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// halves is a network of signs and weights of ±0.5, as training frameworks write it.
func halves() *bcnn.Network {
	net := &bcnn.Network{Name: "halves", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 4}, DType: bcnn.Float32}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: []float32{0.5, -0.5, 0.5, 0.5, -0.5, -0.5, 0.5, -0.5}}})
	return net
}

func TestCompile(t *testing.T) {
	net := halves()
	before := len(net.Layers)
	for _, unfused := range []bool{false, true} {
		opts := lower.Options{Unfused: unfused}
		p, err := lower.Compile(t.Context(), net, opts)
		require.NoError(t, err)
		require.NotEmpty(t, p.Findings)
		require.Equal(t, simplify.Weights, p.Findings[0].Rule)
		require.Equal(t, plan.Binary, plan.Summarize(p.Network, p.Plan)[0].Precision)
		want, err := lower.Network(t.Context(), p.Network, opts)
		require.NoError(t, err)
		require.Equal(t, want, p.Plan)

		// Once is enough.
		again, err := lower.Compile(t.Context(), p.Network, opts)
		require.NoError(t, err)
		require.Same(t, p.Network, again.Network)
		require.Empty(t, again.Findings)
		require.Equal(t, p.Plan, again.Plan)
	}
	require.Len(t, net.Layers, before)

	asWritten, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.NotEqual(t, plan.Binary, plan.Summarize(net, asWritten)[0].Precision)
}

func TestCompileErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx  context.Context
		net  *bcnn.Network
		opts lower.Options
		want string
	}{
		{t.Context(), nil, lower.Options{}, "no network"},
		{t.Context(), &bcnn.Network{Name: "empty"}, lower.Options{}, "no inputs"},
		{t.Context(), halves(), lower.Options{Limits: bcnn.Limits{Layers: 1}}, "Limits.Layers allows more"},
		{t.Context(), halves(), lower.Options{Limits: bcnn.Limits{Layers: -1}}, "Layers"},
		{ended, halves(), lower.Options{}, "context canceled"},
	} {
		p, err := lower.Compile(c.ctx, c.net, c.opts)
		require.ErrorContains(t, err, c.want)
		require.Nil(t, p)
	}
}
