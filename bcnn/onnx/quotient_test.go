package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// distances are the reductions that are sums of something else.
func (n testNode) distances(in []array) array {
	sum := testNode{op: "ReduceSum", attrs: n.attrs}
	in = slices.Clone(in)
	in[0] = broadcastArrays(in[:1], func(x []float64) float64 {
		if n.op == "ReduceL1" {
			return math.Abs(x[0])
		}
		return x[0] * x[0]
	})
	out := sum.reduce(in)
	if n.op == "ReduceL2" {
		out = broadcastArrays([]array{out}, func(x []float64) float64 { return math.Sqrt(x[0]) })
	}
	return out
}

// normalised is what the operators make that divide by a mean of squares, a sum or a norm
// of the values that belong together.
func (n testNode) normalised(in []array) array {
	x := in[0]
	axis := (n.int("axis", -1) + len(x.dims)) % len(x.dims)
	groups := n.int("num_groups", x.dims[1])
	key := func(index []int) string {
		switch n.op {
		case "LayerNormalization", "RMSNormalization":
			return fmt.Sprint(index[:axis])
		case "InstanceNormalization", "GroupNormalization":
			return fmt.Sprint(index[0], index[1]/(x.dims[1]/groups))
		}
		axes := n.list("oracle.axes", n.list("axes", axis)...)
		rest := slices.Clone(index)
		for _, a := range axes {
			rest[a] = 0
		}
		return fmt.Sprint(rest)
	}
	members := map[string][]float64{}
	i := 0
	each(x.dims, func(index []int) {
		members[key(index)] = append(members[key(index)], x.v[i])
		i++
	})
	mean := func(list []float64, f func(x float64) float64) float64 {
		sum := 0.0
		for _, v := range list {
			sum += f(v)
		}
		return sum / float64(len(list))
	}
	out := newArray(x.dims...)
	i = 0
	each(x.dims, func(index []int) {
		list := members[key(index)]
		m := 0.0
		if n.op != "RMSNormalization" && n.op != "LpNormalization" && n.op != "Softmax" {
			m = mean(list, func(v float64) float64 { return v })
		}
		square := mean(list, func(v float64) float64 { return (v - m) * (v - m) })
		y := 0.0
		switch n.op {
		case "Softmax":
			y = math.Exp(x.v[i]) / (mean(list, math.Exp) * float64(len(list)))
		case "LpNormalization":
			y = x.v[i] / math.Sqrt(square*float64(len(list)))
			if n.int("p", 2) == 1 {
				y = x.v[i] / (mean(list, math.Abs) * float64(len(list)))
			}
		default:
			y = (x.v[i] - m) / math.Sqrt(square+n.float("epsilon", 1e-5))
		}
		for k, t := range in[1:] {
			at := index[axis:]
			switch n.op {
			case "InstanceNormalization":
				at = index[1:2]
			case "GroupNormalization":
				at = []int{index[1] * t.dims[0] / x.dims[1]}
			}
			if k == 0 {
				y *= t.at(at...)
			} else {
				y += t.at(at...)
			}
		}
		out.v[i] = y
		i++
	})
	return out
}

// Quotients, roots and norms of images, of what convolutions give.
func TestQuotients(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	for _, c := range []struct {
		name  string
		nodes []testNode // from x and z, which have 6 channels, to y
	}{
		{"quotient", []testNode{op("Div", "x z", "y")}},
		{"negative divisor", []testNode{op("Neg", "z", "a"), op("Div", "x a", "y")}},
		{"of a number", []testNode{op("Div", "two z", "y")}},
		{"of channels", []testNode{op("Div", "six z", "y")}},
		{"of the sum of the channels", []testNode{op("ReduceSum", "z", "s", "axes", []int{1}), op("Div", "x s", "y")}},
		{"of the mean of the image", []testNode{op("GlobalAveragePool", "z", "s"), op("Div", "x s", "y")}},
		{"softsign by hand", []testNode{op("Abs", "x", "a"), op("Add", "a one", "b"), op("Div", "x b", "y")}},
		{"softsign", []testNode{op("Softsign", "x", "y")}},
		{"root", []testNode{op("Sqrt", "z", "y")}},
		{"root of zero", []testNode{op("Relu", "x", "a"), op("Sqrt", "a", "y")}},
		{"reciprocal", []testNode{op("Reciprocal", "z", "y")}},
		{"of a root", []testNode{op("Sqrt", "z", "a"), op("Div", "x a", "y")}},
		{"reciprocal of a root", []testNode{op("Sqrt", "z", "a"), op("Reciprocal", "a", "b"), op("Mul", "b x", "y")}},
		{"powers", []testNode{op("Pow", "z half", "a"), op("Pow", "a minus", "b"), op("Pow", "z minusHalf", "c"), op("Sub", "b c", "d"), op("Add", "d c", "y")}},
		{"divisor that is repeated", []testNode{op("ReduceSum", "z", "s", "axes", []int{1}), op("Expand", "s shape", "e"), op("Div", "x e", "y")}},
		{"L1", []testNode{op("ReduceL1", "x", "y", "axes", []int{1})}},
		{"L2", []testNode{op("ReduceL2", "x", "y", "axes", []int{1}, "keepdims", 0)}},
		{"sum of squares", []testNode{op("ReduceSumSquare", "x", "y", "axes", []int{2, 3})}},
		{"vectors of length 1", []testNode{op("ReduceL2", "x", "n", "axes", []int{1}), op("Clip", "n least", "c"), op("Div", "x c", "y")}},
		{"LpNormalization", []testNode{op("LpNormalization", "x", "y", "axis", 1)}},
		{"LpNormalization of order 1", []testNode{op("LpNormalization", "x", "y", "axis", 1, "p", 1)}},
		{"InstanceNormalization", []testNode{op("InstanceNormalization", "x six shift", "y", "epsilon", 1e-3)}},
		{"groups by hand", []testNode{op("Reshape", "x grouped", "a"), op("InstanceNormalization", "a ones zeros", "b"), op("Reshape", "b back", "c"), op("Mul", "c sixes", "y")}},
		{"groups of reductions", []testNode{op("Reshape", "x grouped", "a"), op("ReduceMean", "a", "m", "axes", []int{2}), op("Sub", "a m", "d"), op("Mul", "d d", "q"),
			op("ReduceMean", "q", "v", "axes", []int{2}), op("Add", "v half", "e"), op("Sqrt", "e", "s"), op("Div", "d s", "b"), op("Reshape", "b back", "y")}},
		{"GroupNormalization", []testNode{op("GroupNormalization", "x six shift", "y", "num_groups", 2)}},
		{"GroupNormalization, numbers of groups", []testNode{op("GroupNormalization", "x pair ones", "y", "num_groups", 2)}},
		{"GroupNormalization of a constant", []testNode{op("GroupNormalization", "weights six shift", "k", "num_groups", 3), op("Add", "x k", "y")}},
		{"GroupNormalization of a constant, numbers of groups", []testNode{op("GroupNormalization", "weights pair ones", "k", "num_groups", 2), op("Add", "x k", "y")}},
		{"LayerNormalization of a constant", []testNode{op("LayerNormalization", "weights whole", "k", "axis", 1), op("Add", "x k", "y")}},
		{"RMSNormalization of a constant", []testNode{op("RMSNormalization", "weights whole", "k", "axis", 1), op("Add", "x k", "y")}},
		{"one group", []testNode{op("GroupNormalization", "x six shift", "y", "num_groups", 1)}},
		{"LayerNormalization of images", []testNode{op("LayerNormalization", "x whole", "y", "axis", 1)}},
		{"LayerNormalization of pixels", []testNode{op("Transpose", "x", "a", "perm", []int{0, 2, 3, 1}), op("LayerNormalization", "a six shift", "b"), op("Transpose", "b", "y", "perm", []int{0, 3, 1, 2})}},
		{"RMSNormalization", []testNode{op("Transpose", "x", "a", "perm", []int{0, 2, 3, 1}), op("RMSNormalization", "a six", "b"), op("Transpose", "b", "y", "perm", []int{0, 3, 1, 2})}},
		{"MeanVarianceNormalization", []testNode{op("MeanVarianceNormalization", "x", "y", "axes", []int{1, 2, 3})}},
		{"softmax inside", []testNode{op("Softmax", "x", "a", "axis", 1, "oracle.inside", 1), op("Mul", "a z", "y")}},
		{"softmax inside that is moved", []testNode{op("Softmax", "x", "a", "axis", 1, "oracle.inside", 1), op("Identity", "a", "b"), op("Mul", "b z", "y")}},
		{"softmax of two that are stacked", []testNode{op("Unsqueeze", "x", "a", "axes", []int{1}), op("Unsqueeze", "z", "b", "axes", []int{1}), op("Concat", "a b", "s", "axis", 1),
			op("Softmax", "s", "p", "axis", 1, "oracle.inside", 1), op("Gather", "p second", "q", "axis", 1), op("Squeeze", "q", "o", "axes", []int{1}), op("Mul", "o x", "y")}},
		{"sum of groups", []testNode{op("Reshape", "x split", "a"), op("ReduceSum", "a", "y", "axes", []int{1}, "keepdims", 0)}},
		{"smallest of groups", []testNode{op("Reshape", "x split", "a"), op("ReduceMin", "a", "y", "axes", []int{2}, "keepdims", 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", rounds: true, inits: []testTensor{
				randomTensor(r, "w", []int{6, 3, 2, 2}, -1, -0.5, 0.25, 1), randomTensor(r, "v", []int{6, 3, 2, 2}, -1, -0.5, 0.25, 1),
				floats("six", []int{6}, 0.5, -1.25, 1, 2, 1.5, 0.75), floats("sixes", []int{6, 1, 1}, 0.5, -1.25, 1, 2, 1.5, 0.75),
				floats("shift", []int{6}, 0, 1, -1, 0.5, 2, 3), floats("pair", []int{2}, 0.5, 2), floats("ones", []int{2}, 1, 1), floats("zeros", []int{2}, 0, 0),
				randomTensor(r, "whole", []int{6, 4, 3}, 0.5, 1, 2), randomTensor(r, "weights", []int{1, 6, 4, 3}, -1, 0.5, 1, 2), ints("shape", 1, 6, 4, 3), ints("grouped", 0, 2, -1), ints("back", 0, 6, 4, 3),
				ints("split", 0, 2, 3, 4, 3), ints("second", 1),
				number("one", 1), number("two", 2), number("half", 0.5), number("minus", -1), number("minusHalf", -0.5), number("least", 1e-12)}}
			if c.name == "of channels" {
				c.nodes[0].in[0] = "sixes"
			}
			m.nodes = slices.Concat([]testNode{op("Conv", "x w", "cx"), op("Conv", "x v", "cv"), op("Mul", "cv cv", "sq"), op("Add", "sq one", "cz")},
				renamed(c.nodes, map[string]string{"x": "cx", "z": "cz"}))
			net, _ := compare(t, r, m, Options{}, false)
			require.NoError(t, net.Check())
		})
	}
}
