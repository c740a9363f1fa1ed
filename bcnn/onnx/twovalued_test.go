package onnx

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Activations of two values under zero padding, weights of two values, and both, as AdaBin
// has them: binary layers, of the values that the source has.
func TestTwoValues(t *testing.T) {
	r := rand.New(rand.NewPCG(95, 96))
	for i, c := range []struct {
		attrs   []any
		weights []int
		bias    bool
	}{
		{[]any{"pads", []int{1, 1, 1, 1}}, []int{5, 4, 3, 3}, false},
		{[]any{"pads", []int{1, 1, 1, 1}, "strides", []int{2, 2}}, []int{5, 4, 3, 3}, true},
		{[]any{"pads", []int{2, 2, 2, 2}, "dilations", []int{2, 2}}, []int{4, 4, 3, 3}, true},
		{[]any{"pads", []int{0, 2, 1, 0}}, []int{3, 4, 2, 3}, false},
		{[]any{"pads", []int{1, 1, 1, 1}, "group", 2}, []int{6, 2, 3, 3}, true},
		{[]any{"pads", []int{3, 3, 3, 3}, "group", 4}, []int{4, 1, 5, 5}, false},
		{nil, []int{3, 4, 3, 3}, true},
		{nil, []int{5, 80}, true}, // MatMul
	} {
		for _, values := range [][2]float64{{-1, 1}, {-0.75, 1}, {-0.625, 0.9375}, {0, 1}, {1, -2.5}} {
			for _, kind := range []string{"one", "scaled", "two"} {
				t.Run(fmt.Sprint(i, values, kind), func(t *testing.T) {
					w := randomTensor(r, "w", c.weights, -1, 1)
					size := len(w.values) / c.weights[0]
					for k := range w.values {
						o := float64(k / size)
						if kind != "one" {
							w.values[k] *= 0.25 + o/8
						}
						if kind == "two" {
							w.values[k] += o/16 - 0.125
						}
					}
					m := testModel{input: image(4, 5, 4), output: "y", rounds: true,
						inits: []testTensor{w, number("low", values[0]), number("high", values[1]), number("zero", 0), floats("b", []int{c.weights[0]}, make([]float64, c.weights[0])...)},
						nodes: []testNode{op("GreaterOrEqual", "x zero", "c"), op("Where", "c high low", "s")}}
					if len(c.weights) == 2 {
						m.nodes = append(m.nodes, op("Flatten", "s", "f"), op("Gemm", "f w b", "y", "transB", 1))
					} else {
						in := "s w"
						if c.bias {
							in += " b"
						}
						m.nodes = append(m.nodes, op("Conv", in, "y", c.attrs...))
					}
					for k := range c.weights[0] {
						m.inits[4].values[k] = r.Float64() - 0.5
					}
					net, _ := compare(t, r, m, Options{}, false)
					binary := 0
					for _, l := range net.Layers {
						switch op := l.Op.(type) {
						case bcnn.Conv2D:
							require.Empty(t, op.Weights.F32)
							binary++
						case bcnn.Dense:
							require.Empty(t, op.Weights.F32)
							binary++
						}
					}
					require.Equal(t, 1, binary)
				})
			}
		}
	}
}
