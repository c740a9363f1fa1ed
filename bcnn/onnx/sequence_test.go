package onnx

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// sequence executes an operator of lists of arrays; ok is false for others.
func (n testNode) sequence(env map[string]array, lists map[string][]array) (ok bool) {
	var out, list []array
	if len(n.in) > 0 {
		list = slices.Clone(lists[n.in[0]])
	}
	read := func(i, fallback int) int {
		if i < len(n.in) {
			fallback = int(env[n.in[i]].v[0])
		}
		if size := len(list); fallback < 0 {
			fallback += size
		}
		return fallback
	}
	switch n.op {
	case "SplitToSequence":
		x := env[n.in[0]]
		axis := (n.int("axis", 0) + len(x.dims)) % len(x.dims)
		for at := 0; at < x.dims[axis]; {
			size := 1
			if len(n.in) > 1 {
				if sizes := env[n.in[1]]; len(sizes.dims) == 0 {
					size = int(sizes.v[0])
				} else {
					size = int(sizes.v[len(out)])
				}
			}
			part := x.take(axis, span(at, min(at+size, x.dims[axis]), 1))
			if len(n.in) < 2 && n.int("keepdims", 1) == 0 {
				part.dims = slices.Delete(slices.Clone(part.dims), axis, axis+1)
			}
			at += size
			out = append(out, part)
		}
	case "SequenceEmpty":
	case "SequenceConstruct":
		for _, name := range n.in {
			out = append(out, env[name])
		}
	case "SequenceInsert":
		out = slices.Insert(list, read(2, len(list)), env[n.in[1]])
	case "SequenceErase":
		at := read(1, len(list)-1)
		out = slices.Delete(list, at, at+1)
	case "SequenceAt":
		env[n.out[0]] = list[read(1, 0)]
		return true
	case "SequenceLength":
		env[n.out[0]] = array{[]int{}, []float64{float64(len(list))}}
		return true
	case "ConcatFromSequence":
		if n.int("new_axis", 0) != 0 {
			for i, a := range list {
				axis := n.int("axis", 0)
				if axis < 0 {
					axis += len(a.dims) + 1
				}
				list[i].dims = slices.Insert(slices.Clone(a.dims), axis, 1)
			}
		}
		env[n.out[0]] = n.concat(list)
		return true
	default:
		return false
	}
	lists[n.out[0]] = out
	return true
}

// Lists of the parts of tensors, of channels, rows and columns, and of constants.
func TestLists(t *testing.T) {
	r := rand.New(rand.NewPCG(95, 96))
	position := func(name string, v float64) testTensor {
		return testTensor{name: name, typ: pb.Int64, dims: []int{}, values: []float64{v}}
	}
	for name, nodes := range map[string][]testNode{
		"parts of given sizes":   {op("SplitToSequence", "a sizes", "l", "axis", 1), op("SequenceAt", "l two", "p"), op("SequenceAt", "l zero", "q"), op("Concat", "p q", "y", "axis", 1)},
		"chunks":                 {op("SplitToSequence", "a three", "l", "axis", -3), op("SequenceAt", "l minus", "p"), op("SequenceAt", "l zero", "q"), op("Concat", "p q", "y", "axis", 1)},
		"rows one by one":        {op("SplitToSequence", "a", "l", "axis", 2), op("SequenceAt", "l two", "p"), op("SequenceAt", "l minus", "q"), op("Add", "p q", "y")},
		"unbound and stacked":    {op("SplitToSequence", "a", "l", "axis", 2, "keepdims", 0), op("ConcatFromSequence", "l", "y", "axis", 2, "new_axis", 1)},
		"unbound channels":       {op("SplitToSequence", "a", "l", "axis", 1, "keepdims", 0), op("ConcatFromSequence", "l", "y", "axis", -3, "new_axis", 1)},
		"the first from the end": {op("SplitToSequence", "a", "l", "axis", 1), op("SequenceAt", "l fifth", "p"), op("SequenceErase", "l fifth", "k"), op("ConcatFromSequence", "k", "q", "axis", 1), op("Concat", "q p", "y", "axis", 1)},
		"at the end":             {op("SplitToSequence", "a three", "l", "axis", 1), op("SequenceInsert", "l a two", "k"), op("ConcatFromSequence", "k", "y", "axis", 1)},
		"joined":                 {op("Relu", "a", "b"), op("SequenceConstruct", "a b a", "l"), op("ConcatFromSequence", "l", "y", "axis", 1)},
		"put together":           {op("SequenceEmpty", "", "e"), op("Relu", "a", "b"), op("SequenceInsert", "e a", "f"), op("SequenceInsert", "f b zero", "g"), op("Neg", "a", "c"), op("SequenceInsert", "g c minus", "h"), op("SequenceErase", "h two", "l"), op("ConcatFromSequence", "l", "y", "axis", 1)},
		"as many as there are":   {op("SplitToSequence", "a three", "l", "axis", 1), op("SequenceLength", "l", "k"), op("Cast", "k", "f", "to", int(pb.Float)), op("Mul", "a f", "y")},
		"weights":                {op("SplitToSequence", "v", "l", "axis", 0), op("SequenceAt", "l minus", "p"), op("SequenceAt", "l zero", "q"), op("Concat", "p q", "w2", "axis", 0), op("Conv", "a w2", "y")},
		"signs of parts":         {op("Greater", "a half", "c"), op("Where", "c one none", "s"), op("SplitToSequence", "s three", "l", "axis", 1), op("SequenceAt", "l one1", "p"), op("Conv", "p u", "y")},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 3), output: "y", nodes: append([]testNode{op("Conv", "x w", "a")}, nodes...), inits: []testTensor{
				randomTensor(r, "w", []int{5, 3, 1, 1}, -1, -0.5, 0.5, 1), randomTensor(r, "v", []int{4, 5, 2, 2}, -1, 1), randomTensor(r, "u", []int{2, 2, 2, 2}, -1, 1),
				ints("sizes", 2, 1, 2), position("three", 3), position("two", 2), position("zero", 0), position("minus", -1), position("one1", 1), position("fifth", -5),
				number("half", 0.5), number("one", 1), number("none", -1)}}
			net, _ := compare(t, r, m, Options{}, false)
			if name == "signs of parts" {
				layers := summarize(t, net)
				require.True(t, layers[len(layers)-1].small)
			}
		})
	}
	for name, c := range map[string]struct {
		nodes []testNode
		want  string
	}{
		"a position that is not there": {[]testNode{op("SplitToSequence", "x", "l", "axis", 1), op("SequenceAt", "l three", "y")}, "position [3] is not one that exists in a sequence of 3 tensors"},
		"a position before the first":  {[]testNode{op("SplitToSequence", "x", "l", "axis", 1), op("SequenceAt", "l fourth", "y")}, "position [-4] is not one that exists in a sequence of 3 tensors"},
		"no list":                      {[]testNode{op("SequenceAt", "x three", "y")}, "is not a sequence"},
		"a list as a tensor":           {[]testNode{op("SplitToSequence", "x", "l", "axis", 1), op("Relu", "l", "y")}, "is a sequence"},
		"a list as the output":         {[]testNode{op("SplitToSequence", "x", "y", "axis", 1)}, "a sequence of tensors"},
		"an empty list":                {[]testNode{op("SequenceEmpty", "", "l"), op("ConcatFromSequence", "l", "y", "axis", 1)}, "empty"},
		"parts of nothing":             {[]testNode{op("SplitToSequence", "x none", "l", "axis", 1), op("SequenceAt", "l three", "y")}, "parts of size 0"},
		"parts that do not fit":        {[]testNode{op("SplitToSequence", "x sizes", "l", "axis", 1), op("SequenceAt", "l none", "y")}, "parts [2 2] do not add up to a dimension of 3"},
		"images of the batch":          {[]testNode{op("SplitToSequence", "x", "l"), op("SequenceAt", "l none", "y")}, ""},
		"behind an obstacle":           {[]testNode{op("Twist", "x", "a"), op("SplitToSequence", "a", "l", "axis", 1), op("SequenceAt", "l none", "y")}, "(Twist, index 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 3), output: "y", nodes: c.nodes, inits: []testTensor{position("three", 3), position("none", 0), position("fourth", -4), ints("sizes", 2, 2)}}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			require.Error(t, err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Tensors of a file may have any names: none is that of what a node is made of.
func TestLentNames(t *testing.T) {
	r := rand.New(rand.NewPCG(113, 114))
	for name, nodes := range map[string][]testNode{
		"s, part 0":   {op("SequenceConstruct", "x x", "s"), op("ConcatFromSequence", "s", "c", "axis", 1)},
		"s as a part": {op("SequenceConstruct", "x x", "s"), op("ConcatFromSequence", "s", "d", "axis", 1, "new_axis", 1), op("ReduceMax", "d", "c", "axes", []int{1}, "keepdims", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			relu, last := op("Relu", "x", "r"), op("Concat", "c", "y", "axis", 1)
			relu.out[0], last.in = name, []string{"c", name}
			m := testModel{input: image(3, 2, 4), output: "y", nodes: slices.Concat([]testNode{relu}, nodes, []testNode{last})}
			compare(t, r, m, Options{}, false)
		})
	}
	m := testModel{input: image(3, 2, 4), output: "y", nodes: []testNode{op("Relu", "x", "a"+pb.Forbidden+"b"), op("Relu", "a"+pb.Forbidden+"b", "y")}}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, `a name with the character "\x00"`)
}
