package onnx

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Networks that NNCF has quantised, in ONNX: FakeQuantize in front of activations and weights.
func TestFakeQuantize(t *testing.T) {
	const name = "org.openvinotoolkit/FakeQuantize"
	r := rand.New(rand.NewPCG(305, 306))
	weights := randomTensor(r, "w", []int{8, 16, 3, 3}, -0.75, -0.25, 0.25, 0.5)
	constants := []testTensor{
		weights, number("zero", 0), number("one", 1), number("minus", -1), number("wide", 4), number("most", 127./32), number("least", -4),
		randomTensor(r, "at", []int{1, 16, 1, 1}, -0.5, 0, 0.25), floats("low", []int{8, 1, 1, 1}, -0.5, -0.25, -1, -2, -0.5, -1, -1, -4), floats("high", []int{8, 1, 1, 1}, 0.5, 0.25, 1, 2, 0.5, 1, 1, 4),
	}
	for _, c := range []struct {
		name  string
		nodes []testNode
		want  plan.Precision
	}{
		{"signs", []testNode{op(name, "x at at minus one", "a", "levels", 2), op(name, "w zero zero low high", "v", "levels", 2)}, plan.Binary},
		{"0 and 1", []testNode{op(name, "x at at zero one", "a", "levels", 2), op(name, "w low high low high", "v", "levels", 2)}, plan.Binary},
		{"eight bits", []testNode{op(name, "x least most least most", "a", "levels", 256), op(name, "w minus one minus one", "v", "levels", 17)}, 8},
	} {
		m := testModel{input: image(16, 5, 6), output: "y", inits: constants, nodes: append(c.nodes, op("Conv", "a v", "y"))}
		net, _ := compare(t, r, m, Options{}, false)
		l := summarize(t, net)[0]
		require.Equal(t, c.want, l.Precision, "%s: %s", c.name, l.WhyFloat)
	}
	for want, nodes := range map[string][]testNode{
		"levels must be 2 or more":                      {op(name, "x zero one zero one", "y")},
		"257 levels are not supported, at most 256 are": {op(name, "x zero one zero one", "y", "levels", 257)},
		"input_low, 1, is above input_high, 0":          {op(name, "x one zero zero one", "y", "levels", 4)},
		"input 1 must be a FLOAT constant":              {op(name, "x x one zero one", "y", "levels", 4)},
		"it has 4 inputs, want 5":                       {op(name, "x zero one zero", "y", "levels", 4)},
		"are equal for some channels only":              {op(name, "x at zero zero one", "y", "levels", 4)},
		"narrow":                                        {op(name, "x zero one zero one", "y", "levels", 4, "narrow", 1)},
	} {
		inits := slices.Clone(constants)
		if want == "are equal for some channels only" {
			inits[7] = floats("at", []int{1, 16, 1, 1}, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)
		}
		m := testModel{input: image(16, 5, 6), output: "y", inits: inits, nodes: nodes}
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		require.ErrorContains(t, err, want)
	}
}
