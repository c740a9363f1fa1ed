package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A vector that a Reshape made of an image really becomes one where constants vary along it:
// what reads it then sees it as such.
func TestFlattenedThresholds(t *testing.T) {
	r := rand.New(rand.NewPCG(133, 134))
	for _, c := range []struct {
		name string
		add  func(c *series)
	}{
		{"product", func(c *series) {
			c.add("Less", c.each(1, 0), "@")
			c.add("Cast", "@", "=to", int(pb.Float))
			c.add("Einsum", "@", c.constant([]int{24, 3}, -1, 1), "=equation", "na,ak->nk")
		}},
		{"turned product", func(c *series) {
			c.add("Less", c.each(1, 0), "@")
			c.add("Cast", "@", "=to", int(pb.Float))
			c.add("Einsum", "@", c.constant([]int{3, 24}, -1, 1), "=equation", "na,ka->nk")
		}},
		{"choice of what a Transpose leaves", func(c *series) {
			c.add("Equal", "@", c.each(-1, 0, 1))
			v := c.add("Where", "@", c.constant(nil, 0.5), c.constant(nil, 0.25))
			w := c.add("Transpose", "@", "=perm", []int{0, 1})
			c.add("GreaterOrEqual", "@", c.constant(nil, 0.5))
			c.add("Where", "@", v, w)
		}},
		{"there and back", func(c *series) {
			c.add("Equal", "@", c.each(-1, 0, 1))
			c.add("Where", "@", c.each(0.5, 2), c.constant(nil, 0.25))
			c.add("Transpose", "@", "=perm", []int{1, 0})
			c.add("Transpose", "@", "=perm", []int{1, 0})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeries(r, []int{0, 24})
			c.add(s)
			s.m.output = s.last
			compare(t, r, s.m, Options{}, false)
		})
	}
}

// A constant of one number may have more dimensions than the tensor beside it. Then so has
// the result, with the batch in another place, which is an obstacle.
func TestConstantsOfMoreDimensions(t *testing.T) {
	r := rand.New(rand.NewPCG(139, 140))
	for _, c := range []struct {
		name string
		add  func(c *series, one string)
	}{
		{"maximum", func(c *series, one string) { c.add("Max", "@", one) }},
		{"limits", func(c *series, one string) { c.add("Min", one, "@"); c.add("Max", "@", c.constant(nil, -1)) }},
		{"power", func(c *series, one string) { c.add("Pow", "@", one) }},
		{"sum", func(c *series, one string) { c.add("Add", "@", one) }},
		{"comparison", func(c *series, one string) {
			v := c.last
			c.add("Greater", v, one)
			c.add("Where", "@", c.constant(nil, 1), v)
		}},
		{"choice", func(c *series, one string) {
			v := c.last
			c.add("Greater", v, c.constant(nil, 1))
			c.add("Where", "@", one, v)
		}},
		{"step", func(c *series, one string) {
			c.add("Greater", "@", c.constant(nil, 1))
			c.add("Where", "@", one, c.constant(nil, -1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, dims := range [][]int{{1, 1}, {1, 1, 1}, {1, 1, 1, 1}} {
				s := newSeries(r, []int{0, 24})
				c.add(s, s.constant(dims, 1))
				s.m.output = s.last
				if len(dims) <= 2 {
					compare(t, r, s.m, Options{}, false)
					continue
				}
				_, _, err := Decode(t.Context(), s.m.encode(), Options{})
				require.ErrorContains(t, err, "more dimensions than the computed tensor, which has 2")
			}
		})
	}
}

// What is known of a layer holds for the tensor that it was, not for what has been made of
// that by a Transpose, or by windows that are yet to be taken.
func TestLayersSeenInAnotherWay(t *testing.T) {
	r := rand.New(rand.NewPCG(141, 142))
	for _, c := range []struct {
		name string
		add  func(c *series)
	}{
		{"divisor that is repeated and turned", func(c *series) {
			x := c.add("Slice", "@", c.list(0), c.list(3), c.list(2))
			c.add("Abs", x)
			c.add("ReduceMax", "@", "=axes", []int{2, 3})
			c.add("Add", "@", c.constant(nil, 1))
			c.add("Expand", "@", c.list(1, 3, 3, 4))
			c.add("Transpose", "@", "=perm", []int{0, 2, 1, 3})
			c.add("Div", x, "@")
		}},
		{"sum of windows", func(c *series) {
			x := c.last
			next := c.add("Gather", x, c.taps(0, 1, 1, 2), "=axis", 2)
			z := c.add("Mul", next, c.constant(nil, 2))
			after := c.add("Gather", x, c.taps(0, 1, 2, 3), "=axis", 2)
			c.add("Sub", c.add("Add", z, next), after)
		}},
		{"choice of windows", func(c *series) {
			x := c.last
			c.add("Gather", x, c.taps(0, 2, 1, 3), "=axis", 2)
			windows := c.add("Reshape", "@", c.list(0, 3, 4, 4))
			c.add("Greater", x, c.constant(nil, 0))
			c.add("Where", "@", windows, c.constant(nil, 0))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeries(r, nil)
			s.add("Concat", "@", "@", "=axis", 2) // four rows
			c.add(s)
			s.m.output, s.m.rounds = s.last, true
			compare(t, r, s.m, Options{}, false)
		})
	}
}

// The softmax of a vector has the dimensions of its input, and is in their order.
func TestSoftmaxOfVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(135, 136))
	for _, dims := range [][]int{{0, 24}, {0, 24, 1}, {0, 1, 24}, {0, 1, 24, 1}} {
		for _, op := range []string{"Softmax", "LogSoftmax"} {
			t.Run(fmt.Sprint(op, dims), func(t *testing.T) {
				s := newSeries(r, dims)
				s.add("GreaterOrEqual", "@", s.each(-1, 0, 0.5))
				s.add("Where", "@", s.constant(nil, 1), s.constant(nil, -1))
				s.m.output = s.add(op, "@", "=axis", slices.Index(dims, 24))
				m := s.m
				if op == "LogSoftmax" { // of which compare takes what is in front of it
					net, _, err := Decode(t.Context(), m.encode(), Options{})
					require.NoError(t, err)
					last := net.Layers[len(net.Layers)-1]
					require.Equal(t, bcnn.Softmax{Log: true}, last.Op)
					require.Equal(t, dims[1:], last.Source.Dims)
					return
				}
				net, _ := compare(t, r, m, Options{}, false)
				require.Equal(t, bcnn.Softmax{}, net.Layers[len(net.Layers)-1].Op)
			})
		}
	}
}

// The softmax of an image's channels keeps the image.
func TestSoftmaxOfChannels(t *testing.T) {
	for _, name := range []string{"Softmax", "LogSoftmax"} {
		s := newSeries(rand.New(rand.NewPCG(145, 146)), nil)
		s.m.output = s.add(name, "@", "=axis", 1)
		net, _, err := Decode(t.Context(), s.m.encode(), Options{})
		require.NoError(t, err)
		last := net.Layers[len(net.Layers)-1]
		require.Equal(t, bcnn.Softmax{Log: name == "LogSoftmax"}, last.Op)
		require.Equal(t, []int{3, 2, 4}, last.Source.Dims)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, bcnn.Shape{H: 2, W: 4, C: 3}, plan.Tensors[plan.Outputs[0]].Shape)
	}
}

// The largest values of a softmax are those of its input, if they are of the same dimension.
func TestLargestOfSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(137, 138))
	s := newSeries(r, nil)
	s.add("Softmax", "@", "=axis", 1)
	same := s.m
	same.nodes = append(slices.Clip(s.m.nodes), op("ArgMax", s.last, "i", "axis", 1), op("Cast", "i", "y", "to", int(pb.Float)))
	same.output = "y"
	compare(t, r, same, Options{}, false)
	s.add("Flatten", "@")
	s.m.output = s.add("ArgMax", "@", "=axis", 1)
	_, _, err := Decode(t.Context(), s.m.encode(), Options{})
	require.ErrorContains(t, err, "the largest values of a softmax over other dimensions")
}

// The dimensions of attention and of patches: a first dimension of three parts that is split and
// dropped, as timm's unbind(0) leaves it, and normalisations over the last one of patches, as an
// operator and written out.
func TestPartsAndPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(557, 558))
	heads := []testNode{op("Conv", "x thrice", "qkv"), op("Reshape", "qkv sequence", "positions"), op("Transpose", "positions", "turned", "perm", []int{0, 2, 1}), op("Reshape", "turned five", "a"), op("Transpose", "a", "b", "perm", []int{2, 0, 3, 1, 4})}
	patches := []testNode{op("Reshape", "x six", "a"), op("Transpose", "a", "b", "perm", []int{0, 2, 4, 3, 5, 1}), op("Reshape", "b rows", "p")}
	product := []testNode{op("Transpose", "k", "l", "perm", []int{0, 1, 3, 2}), op("MatMul", "q l", "m"), op("MatMul", "m v", "o"), op("Flatten", "o", "y")}
	for _, c := range []struct {
		name  string
		nodes []testNode
	}{
		{"Split and Squeeze", slices.Concat(heads, []testNode{op("Split", "b", "c d e", "axis", 0), op("Squeeze", "c first", "q"), op("Squeeze", "d first", "k"), op("Squeeze", "e first", "v")}, product)},
		{"Slice and Squeeze", slices.Concat(heads, []testNode{op("Slice", "b first one first", "c"), op("Slice", "b one two first", "d"), op("Slice", "b two three first", "e"),
			op("Squeeze", "c first", "q"), op("Squeeze", "d first", "k"), op("Squeeze", "e first", "v")}, product)},
		{"Gather", slices.Concat(heads, []testNode{op("Gather", "b zeroth", "q", "axis", 0), op("Gather", "b second", "k", "axis", 0), op("Gather", "b third", "v", "axis", 0)}, product)},
		{"Unsqueeze and Squeeze", []testNode{op("Neg", "x", "h"), op("Transpose", "h", "a", "perm", []int{1, 0, 2, 3}), op("Unsqueeze", "a two", "b"), op("Squeeze", "b two", "c"), op("Transpose", "c", "y", "perm", []int{1, 0, 2, 3})}},
		{"LayerNormalization of patches", slices.Concat(patches, []testNode{op("LayerNormalization", "p scale shift", "n"), op("MatMul", "n w", "y")})},
		{"written out", slices.Concat(patches, []testNode{op("ReduceMean", "p", "mean", "axes", []int{-1}), op("Sub", "p mean", "d"), op("Mul", "d d", "square"), op("ReduceMean", "square", "variance", "axes", []int{-1}),
			op("Add", "variance epsilon", "e"), op("Sqrt", "e", "f"), op("Div", "d f", "g"), op("Mul", "g scale", "h"), op("Add", "h shift", "n"), op("MatMul", "n w", "y")})},
		{"written out with Pow", slices.Concat(patches, []testNode{op("ReduceMean", "p", "mean", "axes", []int{2}), op("Sub", "p mean", "d"), op("Pow", "d square", "s"), op("ReduceMean", "s", "variance", "axes", []int{2}),
			op("Add", "variance epsilon", "e"), op("Sqrt", "e", "f"), op("Div", "d f", "g"), op("Mul", "g scale", "h"), op("Add", "h shift", "n"), op("MatMul", "n w", "y")})},
		{"less the maximum", slices.Concat(patches, []testNode{op("ReduceMax", "p", "m", "axes", []int{2}), op("Sub", "p m", "d"), op("MatMul", "d w", "y")})},
		{"Resize with the channels behind", []testNode{op("Transpose", "x", "a", "perm", []int{0, 2, 3, 1}), op("Resize", "a _ scales", "b", "mode", "nearest", "coordinate_transformation_mode", "asymmetric", "nearest_mode", "floor"),
			op("Transpose", "b", "y", "perm", []int{0, 3, 1, 2})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 4), output: "y", nodes: c.nodes, rounds: true, regrouped: true, opset: 17, inits: []testTensor{
				randomTensor(r, "thrice", []int{12, 3, 1, 1}, -1, 1), ints("sequence", -1, 12, 16), ints("five", -1, 16, 3, 2, 2), ints("six", -1, 3, 2, 2, 2, 2), ints("rows", -1, 4, 12), ints("first", 0), ints("one", 1), ints("two", 2), ints("three", 3),
				{name: "zeroth", typ: pb.Int64, dims: []int{}, values: []float64{0}}, {name: "second", typ: pb.Int64, dims: []int{}, values: []float64{1}}, {name: "third", typ: pb.Int64, dims: []int{}, values: []float64{2}},
				randomTensor(r, "scale", []int{12}, 0.5, 1, 2), randomTensor(r, "shift", []int{12}, -1, 0, 0.5), number("epsilon", 1e-5), number("square", 2),
				randomTensor(r, "w", []int{12, 5}, -1, 1), floats("scales", []int{4}, 1, 2, 3, 1)}}
			compare(t, r, m, Options{}, false)
		})
	}
}
