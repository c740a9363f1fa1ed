package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// einsum sums over the labels that the result lacks.
func (n testNode) einsum(in []array) array {
	equation := n.attrs["equation"].(string)
	labels := [3]string{}
	at := 0
	for i := 0; i < len(equation); i++ {
		switch equation[i] {
		case ',', '>':
			at++
		case '-', ' ':
		default:
			labels[at] += string(equation[i])
		}
	}
	sizes := map[byte]int{}
	for i, a := range in {
		for k, d := range a.dims {
			sizes[labels[i][k]] = d
		}
	}
	var all []byte
	var dims []int
	for c, d := range sizes {
		all, dims = append(all, c), append(dims, d)
	}
	out := array{}
	size := 1
	for i := range len(labels[2]) {
		out.dims = append(out.dims, sizes[labels[2][i]])
		size *= sizes[labels[2][i]]
	}
	out.v = make([]float64, size)
	each(dims, func(index []int) {
		place := func(a array, labels string) int {
			at := 0
			for i := range len(labels) {
				for k, c := range all {
					if c == labels[i] {
						at = at*a.dims[i] + index[k]
					}
				}
			}
			return at
		}
		out.v[place(out, labels[2])] += in[0].v[place(in[0], labels[0])] * in[1].v[place(in[1], labels[1])]
	})
	return out
}

// Tensors whose dimensions lie in memory in another way than a layer takes them: they are
// put in order, and ±1 stays ±1.
func TestRearranged(t *testing.T) {
	r := rand.New(rand.NewPCG(97, 98))
	sign := func(in, out string) []testNode {
		return []testNode{op("GreaterOrEqual", in+" zero", "c"+out), op("Where", "c"+out+" one minus", out)}
	}
	with := func(nodes []testNode, more ...testNode) []testNode { return append(nodes, more...) }
	for _, c := range []struct {
		name   string
		input  testInput
		nodes  []testNode
		binary int
	}{
		{"image of a dense layer", testInput{"x", pb.Float, []any{1, 5}}, with([]testNode{op("MatMul", "x v", "f")}, with(sign("f", "s"), op("Reshape", "s image", "a"), op("Conv", "a w6", "y", "pads", []int{1, 1, 1, 1}))...), 1},
		{"channels and rows in one", image(3, 4, 4), []testNode{op("Reshape", "x cut", "a"), op("Conv", "a w3", "y")}, 0},
		{"turned image", image(3, 4, 2), with(sign("x", "s"), op("Transpose", "s", "a", "perm", []int{0, 1, 3, 2}), op("Conv", "a w3b", "y")), 1},
		{"sum of an image and its transpose", image(3, 4, 4), []testNode{op("Transpose", "x", "a", "perm", []int{0, 1, 3, 2}), op("Add", "a x", "y")}, 0},
		{"tokens", image(6, 4, 2), with(append([]testNode{op("Reshape", "x tokens", "t")}, sign("t", "s")...), op("MatMul", "s w8", "m"), op("Add", "m t", "y")), 1},
		{"matrix product of an image", image(3, 4, 4), []testNode{op("MatMul", "x w4", "y")}, 0},
		{"product from the left", image(6, 4, 2), with(append([]testNode{op("Reshape", "x tokens", "t")}, sign("t", "s")...), op("MatMul", "left s", "y")), 1},
		{"product of constants", image(6, 4, 2), []testNode{op("Reshape", "x tokens", "t"), op("MatMul", "left w66", "m"), op("MatMul", "m t", "y")}, 0},
		{"flattened", image(3, 4, 4), []testNode{op("Flatten", "x", "a"), op("Relu", "a", "y")}, 0},
		{"einsum of channels", image(6, 4, 2), with(sign("x", "s"), op("Einsum", "left s", "y", "equation", "oc,nchw->nohw")), 1},
		{"einsum of columns", image(6, 4, 2), []testNode{op("Einsum", "x w28", "y", "equation", "nchw,wo -> nohc")}, 0},
		{"einsum with broadcasting", image(6, 4, 2), []testNode{op("Einsum", "x six", "y", "equation", "bchw,c->bchw")}, 0},
		{"concatenation of groups", image(6, 4, 2), []testNode{op("Reshape", "x boxes", "b"), op("Transpose", "b", "p", "perm", []int{0, 1, 3, 4, 2}),
			op("Slice", "p i0 i1 i4", "q"), op("Slice", "p i1 i3 i4", "z"), op("Exp", "q", "e"), op("Concat", "z e", "j", "axis", 4), op("Reshape", "j lines", "y")}, 0},
		{"boxes of two sizes", image(6, 4, 2), []testNode{op("Transpose", "x", "p", "perm", []int{0, 2, 3, 1}), op("Reshape", "p lines", "a"),
			op("Conv", "x w6", "c", "pads", []int{1, 1, 1, 1}, "strides", []int{2, 2}), op("Conv", "c w25", "d"), op("Reshape", "d boxes2", "e"), op("Transpose", "e", "f", "perm", []int{0, 1, 3, 4, 2}),
			op("Reshape", "f lines2", "b"), op("Concat", "a b", "y", "axis", 1)}, 0},
		{"channels of boxes of two sizes", image(6, 4, 2), []testNode{op("Reshape", "x flat8", "a"), op("Conv", "x w6", "c", "pads", []int{1, 1, 1, 1}, "strides", []int{2, 2}), op("Conv", "c w25", "d"),
			op("Reshape", "d flat8", "b"), op("Concat", "a b", "j", "axis", 2), op("Transpose", "j", "k", "perm", []int{0, 2, 1}),
			op("Slice", "k i0 i1 i2", "q"), op("Slice", "k i1 i6 i2", "z"), op("Add", "q grid", "g"), op("Mul", "g stride", "h"), op("Exp", "z", "e"), op("Concat", "h e", "y", "axis", -1)}, 0},
		{"distances of boxes of two sizes", image(6, 4, 2), []testNode{op("Reshape", "x flat8", "a"), op("Conv", "x w6", "c", "pads", []int{1, 1, 1, 1}, "strides", []int{2, 2}), op("Conv", "c w25", "d"),
			op("Reshape", "d flat8", "b"), op("Concat", "a b", "j", "axis", -1), op("Reshape", "j sides", "r"), op("Transpose", "r", "k", "perm", []int{0, 2, 1, 3}),
			op("Conv", "k w31", "v"), op("Reshape", "v distances", "y")}, 0},
		{"lists of two lengths, stacked", image(6, 4, 2), []testNode{op("Reshape", "x apart", "a"), op("Slice", "a i0 i1 i3", "b"), op("Concat", "a b", "y", "axis", 3)}, 0},
		{"normalised heads of attention", image(6, 4, 2), []testNode{op("Reshape", "x heads", "h"), op("Transpose", "h", "q", "perm", []int{0, 2, 1, 3}), op("Transpose", "q", "k", "perm", []int{0, 1, 3, 2}),
			op("MatMul", "q k", "p"), op("MatMul", "p q", "c"), op("Transpose", "c", "d", "perm", []int{0, 2, 1, 3}), op("Reshape", "d tokens", "e"), op("Transpose", "e", "f", "perm", []int{0, 2, 1}),
			op("BatchNormalization", "f eight eight eight eight", "n"), op("PRelu", "n slopes", "r"), op("Transpose", "r", "y", "perm", []int{0, 2, 1})}, 0},
		{"the only position", image(3, 4, 4), []testNode{op("GlobalAveragePool", "x", "a"), op("Gather", "a i0s", "b", "axis", 3), op("Gather", "b last", "y", "axis", 2)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: c.input, nodes: c.nodes, output: "y", rounds: true, inits: []testTensor{
				number("zero", 0), number("one", 1), number("minus", -1), ints("image", -1, 6, 2, 2), ints("cut", -1, 6, 4, 2), ints("tokens", -1, 6, 8),
				ints("boxes", -1, 2, 3, 4, 2), ints("heads", -1, 6, 2, 4), floats("eight", []int{8}, 0.5, 1.25, 1, 2, 1.5, 0.75, 0.25, 3), floats("slopes", []int{8, 1}, 0.5, -1.25, 1, 2, 1.5, 0.75, 0.25, 3), ints("lines", -1, 16, 3), ints("i0", 0), {name: "i0s", typ: pb.Int64, dims: []int{}, values: []float64{0}}, {name: "last", typ: pb.Int64, dims: []int{}, values: []float64{-1}},
				ints("flat8", 0, 6, -1), ints("i2", 2), ints("i6", 6), floats("grid", []int{1, 10, 1}, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5), floats("stride", []int{10, 1}, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8),
				ints("sides", -1, 2, 3, 10), ints("distances", -1, 2, 10), ints("apart", -1, 3, 2, 8), randomTensor(r, "w31", []int{1, 3, 1, 1}, 0.5, 1, -1),
				ints("boxes2", -1, 2, 3, 2, 1), ints("lines2", -1, 4, 3), randomTensor(r, "w25", []int{6, 5, 1, 1}, -1, 1), ints("i1", 1), ints("i3", 3), ints("i4", 4),
				randomTensor(r, "w6", []int{5, 6, 3, 3}, -1, 1), randomTensor(r, "w3", []int{2, 6, 1, 1}, 0.5, 1, -1), randomTensor(r, "w3b", []int{2, 3, 1, 2}, -1, 1),
				randomTensor(r, "v", []int{5, 24}, 0.5, -1), randomTensor(r, "w8", []int{8, 8}, -1, 1), randomTensor(r, "w4", []int{4, 2}, 0.5, -1), randomTensor(r, "left", []int{5, 6}, -1, 1),
				randomTensor(r, "w66", []int{6, 6}, 0.5, -1), randomTensor(r, "w28", []int{2, 3}, 0.5, -1), floats("six", []int{6}, 0.5, -1.25, 1, 2, 1.5, 0.75)}}
			net, _ := compare(t, r, m, Options{}, false)
			binary := 0
			for _, l := range summarize(t, net) {
				if l.small {
					binary++
				}
			}
			require.Equal(t, c.binary, binary)
		})
	}
}

// What fits as it is, is not put in order.
func TestNotRearranged(t *testing.T) {
	r := rand.New(rand.NewPCG(99, 100))
	for _, d := range [][]int{{3, 4, 4}, {3, 4, 5}, {2, 6, 3}} {
		m := testModel{input: testInput{"x", pb.Float, []any{1, size(d...)}}, output: "y", nodes: []testNode{op("Reshape", "x image", "a"), op("Conv", "a w", "y")},
			inits: []testTensor{ints("image", -1, float64(d[0]), float64(d[1]), float64(d[2])), randomTensor(r, "w", []int{2, d[0], 3, 3}, 0.5, -1)}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err)
		require.Len(t, net.Layers, 1)
		require.Equal(t, bcnn.Shape{H: d[1], W: d[2], C: d[0]}, net.Inputs[0].Shape)
		// With the channels last they are the last dimension.
		m.nodes = []testNode{op("Reshape", "x image", "b"), op("Transpose", "b", "a", perm(0, 3, 1, 2)...), op("Conv", "a w", "y")}
		m.inits[1] = randomTensor(r, "w", []int{2, d[2], 3, 3}, 0.5, -1)
		m.inits[0].values[1] += 2 // rows for the window
		m.input.dims[1] = (d[0] + 2) * d[1] * d[2]
		net, _, err = Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err)
		require.Len(t, net.Layers, 1)
		require.Equal(t, bcnn.Shape{H: d[0] + 2, W: d[1], C: d[2]}, net.Inputs[0].Shape)
	}
}

// A batch of 1 that joins the other dimensions and comes back, as PyTorch's as_strided has it,
// is as if it had stayed.
func TestStrided(t *testing.T) {
	r := rand.New(rand.NewPCG(101, 102))
	w := randomTensor(r, "w", []int{6, 3}, 0.5, -1)
	ops := func(batch any, positions []float64, dims []int, nodes ...testNode) (list []bcnn.Op, err error) {
		m := testModel{input: testInput{"x", pb.Float, []any{batch, 6, 4, 2}}, output: "y", nodes: append([]testNode{op("GlobalAveragePool", "x", "a")}, nodes...),
			inits: []testTensor{w, ints("line", -1), ints("vector", -1, 6), ints("back", 5, 4, 3, 2, 1, 0), {name: "at", typ: pb.Int64, dims: dims, values: positions}}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		if err != nil {
			return nil, err
		}
		for _, l := range net.Layers {
			list = append(list, l.Op)
		}
		return list, nil
	}
	strided := []testNode{op("Reshape", "a line", "l"), op("Gather", "l at", "g"), op("Reshape", "g vector", "f"), op("MatMul", "f w", "y")}
	all := []float64{0, 1, 2, 3, 4, 5}
	want, err := ops(1, all, []int{6}, op("Flatten", "a", "f"), op("MatMul", "f w", "y"))
	require.NoError(t, err)
	have, err := ops(1, all, []int{1, 6, 1, 1}, strided...)
	require.NoError(t, err)
	require.Equal(t, want, have)

	for _, dims := range [][]int{{1, 6}, {1, 2, 3}} {
		have, err = ops(1, all, dims, strided...)
		require.NoError(t, err)
		require.Equal(t, want, have)
	}

	want, err = ops(1, []float64{5, 4, 3, 2, 1, 0}, []int{6}, op("Flatten", "a", "f"), op("Gather", "f at", "g", "axis", 1), op("MatMul", "g w", "y"))
	require.NoError(t, err)
	have, err = ops(1, []float64{5, 4, 3, 2, 1, 0}, []int{6}, strided...)
	require.NoError(t, err)
	require.Equal(t, want, have)

	// With a batch again, its dimensions count from that on.
	have, err = ops(1, all, []int{1, 6}, op("Reshape", "a line", "l"), op("Gather", "l at", "g"), op("Gather", "g back", "h", "axis", 1), op("MatMul", "h w", "y"))
	require.NoError(t, err)
	require.Equal(t, want, have)

	_, err = ops("batch", all, []int{1, 6, 1, 1}, strided...)
	require.ErrorContains(t, err, "joins the batch with positions")
	_, err = ops(1, []float64{6}, []int{1, 1}, strided...)
	require.ErrorContains(t, err, "index 6 lies outside a dimension of 6")
}
