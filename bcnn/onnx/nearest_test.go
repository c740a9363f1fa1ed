package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestNearest imports levels that are the nearest to values, of batches of any size and of 1, and
// compares with the executor of the tests.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	nearest := func(sub ...testNode) []testNode {
		nodes := append([]testNode{op("Conv", "x mix", "v"), op("Clip", "v zero one", "c"), op("Reshape", "c flat", "f"), op("Unsqueeze", "f first", "u")}, sub...)
		return append(nodes, op("Abs", "s", "a"), op("ArgMin", "a", "i", "axis", 0, "keepdims", 0), op("Gather", "levels i", "g"), op("Reshape", "g image", "q"))
	}
	behind := op("Conv", "q w", "y", "pads", []int{1, 1, 1, 1})
	column, turned := op("Sub", "u column", "s"), op("Sub", "column u", "s")
	replaced := func(at int, node testNode) []testNode {
		nodes := append(nearest(column), behind)
		nodes[at] = node
		return nodes
	}
	powers := []float64{0, 0.25, 0.0625, 0.015625, 0.5, 0.75, 0.5625, 0.515625, 0.125, 0.375, 0.1875, 0.140625, 0.03125, 0.28125, 0.09375, 0.046875}
	apot := make([]float64, len(powers)) // as it makes them: the largest is 1
	for i, x := range powers {
		apot[i] = float64(float32(x) * float32(1/0.75))
	}
	for _, c := range []struct {
		name   string
		levels []float64
		nodes  []testNode
		exact  bool // the convolution sums integers
		err    string
	}{
		{"APoT of 4 bits", apot, append(nearest(column), behind), true, ""},
		{"in order", []float64{0, 0.25, 0.5, 1}, append(nearest(column), behind), true, ""},
		{"in no order, twice the same", []float64{1, 0.25, 0.25, 0, 0.5}, append(nearest(column), behind), true, ""},
		{"differences from levels", []float64{0.5, 0, 1}, append(nearest(turned), behind), true, ""},
		{"beyond the values", []float64{0, 0.5, 3}, append(nearest(column), behind), true, ""},
		{"the numbers of levels", []float64{0.75, 0, 0.5}, replaced(7, op("Cast", "i", "g", "to", 1)), true, ""},
		{"as far from two", []float64{1, 0.25, 0, 0.5, 0.75}, append(nearest(column), behind), true, ""},
		{"as it is", []float64{0, 0.25, 0.5, 1}, nearest(column)[:9], false, ""},

		{"of any size", apot, replaced(1, op("Identity", "v", "c")), false, "limit them by a Clip"},
		{"one level", []float64{0.5}, append(nearest(column), behind), false, "compared with one level"},
		{"one level twice", []float64{0.5, 0.5}, append(nearest(column), behind), false, "compared with one level"},
		{"the farthest", apot, replaced(6, op("ArgMax", "a", "i", "axis", 0, "keepdims", 0)), false, "only the nearest can be taken"},
		{"over values", apot, replaced(6, op("ArgMin", "a", "i", "axis", 1, "keepdims", 0)), false, "only the nearest can be taken"},
		{"kept", apot, replaced(6, op("ArgMin", "a", "i", "axis", 0)), false, "only the nearest can be taken"},
		{"the last of equals", apot, replaced(6, op("ArgMin", "a", "i", "axis", 0, "keepdims", 0, "select_last_index", 1)), false, "only the nearest can be taken"},
		{"of differences", apot, replaced(5, op("Neg", "s", "a")), false, "only the nearest can be taken"},
		{"twice", apot, replaced(5, op("Sub", "s column", "a")), false, "only the nearest can be taken"},
		{"a row of levels", apot, replaced(4, op("Sub", "u levels", "s")), false, "want FLOAT levels in a column"},
		{"as axes", apot, replaced(7, op("ReduceSum", "levels i", "g")), false, "joins the batch with positions"},
		{"as outputs", apot, nearest(column)[:5], false, "the batch"},
	} {
		for _, batch := range []any{"n", 1} {
			t.Run(c.name, func(t *testing.T) {
				m := testModel{opset: 13, rounds: c.levels[0] == 0 && len(c.levels) == len(apot), input: testInput{"x", pb.Float, []any{batch, 3, 4, 5}}, nodes: c.nodes, output: c.nodes[len(c.nodes)-1].out[0], inits: []testTensor{
					number("zero", 0), number("one", 1), randomTensor(r, "mix", []int{3, 3, 1, 1}, 0.03125, 0.09375, 0.125, 0.25, -0.03125), ints("flat", -1), ints("first", 0), ints("image", -1, 3, 4, 5), randomTensor(r, "w", []int{4, 3, 3, 3}, 0.5, -0.5),
					floats("levels", []int{len(c.levels)}, c.levels...), floats("column", []int{len(c.levels), 1}, c.levels...)}}
				if c.err != "" {
					_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
					require.ErrorContains(t, err, c.err)
					return
				}
				net, _ := compare(t, r, m, Options{}, false)
				moved := 0
				for _, l := range net.Layers {
					switch l.Op.(type) {
					case bcnn.Channels, bcnn.Pixels, bcnn.Flatten:
						moved++
					}
				}
				require.Zero(t, moved, "layers that put values in another order")
				if list := summarize(t, net); c.exact {
					require.Empty(t, list[len(list)-1].WhyFloat)
				}
			})
		}
	}
}
