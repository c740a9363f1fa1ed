package onnx

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// scatterND is ScatterND without a reduction, where indices of a first dimension that are all 0 stand
// for each image.
func scatterND(data, indices, updates array) array {
	if data.dims[0] == 1 { // a constant for a batch of any size
		data = array{slices.Concat(updates.dims[:1], data.dims[1:]), slices.Repeat(data.v, updates.dims[0])}
	}
	out := array{data.dims, slices.Clone(data.v)}
	k := indices.dims[len(indices.dims)-1]
	run := size(data.dims[k:]...)
	images := data.dims[0]
	for i := 0; i < len(indices.v); i += k {
		if indices.v[i] != 0 {
			images = 1
		}
	}
	n := len(indices.v) / k
	for b := range images {
		for i := range n {
			to := 0
			for d, size := range data.dims[:k] {
				at := int(indices.v[i*k+d])
				if at < 0 {
					at += size
				}
				if d == 0 && images > 1 {
					at = b
				}
				to = to*size + at
			}
			from := i
			if len(updates.v) == n*run*images {
				from += b * n
			}
			copy(out.v[to*run:][:run], updates.v[from*run:])
		}
	}
	return out
}

// scatterElements is ScatterElements, for indices of one image.
func scatterElements(data, indices, updates array, axis int) array {
	out := array{data.dims, slices.Clone(data.v)}
	each := size(indices.dims[1:]...)
	for b := range data.dims[0] {
		for i := range each {
			at, rest := make([]int, len(data.dims)), i
			for d := len(data.dims) - 1; d > 0; d-- {
				at[d], rest = rest%indices.dims[d], rest/indices.dims[d]
			}
			at[0] = b
			if at[axis] = int(indices.v[i]); at[axis] < 0 {
				at[axis] += data.dims[axis]
			}
			to := 0
			for d, size := range data.dims {
				to = to*size + at[d]
			}
			out.v[to] = updates.v[(b*each+i)%len(updates.v)]
		}
	}
	return out
}

// TestAssign imports assignments to slices.
func TestAssign(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	pairs := func(name string, dims []int, values ...float64) testTensor {
		return testTensor{name: name, typ: pb.Int64, dims: dims, values: values}
	}
	turn := func(in, out string) testNode { return op("Transpose", in, out, "perm", []int{1, 0, 2, 3}) }
	for _, c := range []struct {
		name   string
		nodes  []testNode
		inits  []testTensor
		binary int
	}{
		{"a channel to 0", []testNode{op("ScatterND", "x i u", "y")},
			[]testTensor{pairs("i", []int{1, 1, 2}, 0, 1), floats("u", []int{1, 1, 4, 5}, make([]float64, 20)...)}, 0},
		{"signs by others", []testNode{op("Greater", "x zero", "g"), op("Where", "g one minus", "s"), op("Slice", "s c1 c3 c1", "p"), op("ScatterND", "s i p", "b"), op("Conv", "b w", "y")},
			[]testTensor{pairs("i", []int{1, 2, 2}, 0, 4, 0, -6), ints("c1", 1), ints("c3", 3), randomTensor(r, "w", []int{2, 6, 3, 3}, -1, 1)}, 1},
		{"channels by others", []testNode{op("Slice", "x c1 c3 c1", "p"), op("Exp", "p", "e"), op("ScatterND", "x i e", "y")},
			[]testTensor{pairs("i", []int{1, 2, 2}, 0, 5, 0, 2), ints("c1", 1), ints("c3", 3)}, 0},
		{"rows of channels that were the first dimension", []testNode{turn("x", "a"), op("Slice", "a c1 c3 c0", "p"), op("Neg", "p", "q"), op("ScatterND", "a i q", "b"), turn("b", "y")},
			[]testTensor{pairs("i", []int{2, 1}, 0, 3), ints("c0", 0), ints("c1", 1), ints("c3", 3)}, 0},
		{"a patch", []testNode{op("ScatterND", "x i u", "y")},
			[]testTensor{pairs("i", []int{1, 1, 2, 2, 4}, 0, 2, 1, 3, 0, 2, 1, 4, 0, 2, 3, 3, 0, 2, 3, 4), randomTensor(r, "u", []int{1, 1, 2, 2}, 1, 2, 3, 0.5)}, 0},
		{"all", []testNode{op("Neg", "x", "n"), op("ScatterND", "x i n", "y")}, []testTensor{pairs("i", []int{1, 1}, 0)}, 0},
		{"a shift into zeros", []testNode{op("Slice", "x c0 c3 c3", "p"), op("ScatterND", "zeros i p", "y")},
			[]testTensor{pairs("i", []int{1, 6, 4, 3, 4}, shifted()...), ints("c0", 0), ints("c3", 3), floats("zeros", []int{1, 6, 4, 5}, make([]float64, 120)...)}, 0},
		{"columns", []testNode{op("ScatterElements", "x i u", "y", "axis", 3)},
			[]testTensor{pairs("i", []int{1, 6, 4, 2}, slices.Repeat([]float64{3, -5}, 24)...), randomTensor(r, "u", []int{1, 6, 4, 2}, 1, 2, 3, 0.5)}, 0},
		{"rows of the first channels", []testNode{op("ScatterElements", "x i u", "y", "axis", 2)},
			[]testTensor{pairs("i", []int{1, 2, 1, 5}, slices.Repeat([]float64{2}, 10)...), randomTensor(r, "u", []int{1, 2, 1, 5}, 1, 2, 3, 0.5)}, 0},
		{"boxes", []testNode{op("Reshape", "x flat", "a"), op("Transpose", "a", "b", "perm", []int{0, 2, 1}), op("Slice", "b c0 c2 c2", "p"), op("Add", "p grid", "q"), op("ScatterND", "b i q", "y")},
			[]testTensor{ints("flat", 0, 6, -1), ints("c0", 0), ints("c2", 2), randomTensor(r, "grid", []int{1, 20, 2}, 1, 2, 3, 0.5), pairs("i", []int{1, 20, 2, 3}, boxes()...)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: testInput{"x", pb.Float, []any{1, 6, 4, 5}}, nodes: c.nodes, output: "y", rounds: true,
				inits: append(c.inits, number("zero", 0), number("one", 1), number("minus", -1))}
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

// shifted returns the indices of x[:, :, :, 1:4].
func shifted() (list []float64) {
	for i := range 6 * 4 * 3 {
		list = append(list, 0, float64(i/12), float64(i/3%4), float64(1+i%3))
	}
	return list
}

// boxes returns the indices of x[..., :2] of 20 boxes.
func boxes() (list []float64) {
	for i := range 40 {
		list = append(list, 0, float64(i/2), float64(i%2))
	}
	return list
}

func TestAssignRefused(t *testing.T) {
	u := floats("u", []int{1, 2, 4, 5}, make([]float64, 40)...)
	for _, c := range []struct {
		indices []float64
		dims    []int
		op      testNode
		want    string
	}{
		{[]float64{0, 1, 0, 1}, []int{1, 2, 2}, op("ScatterND", "x i u", "y"), "not all combinations"},
		{[]float64{0, 1, 0, 2, 0, 2}, []int{1, 3, 2}, op("ScatterND", "x i three", "y"), "position 2 of dimension 1 is assigned twice"},
		{[]float64{0, 1, 0, 2, 0, 1}, []int{3, 2}, op("ScatterND", "x i u", "y"), "not all combinations"},
		{[]float64{0, 1, 0, 6}, []int{1, 2, 2}, op("ScatterND", "x i u", "y"), "index 6 lies outside a dimension of 6"},
		{[]float64{1, 1, 1, 2}, []int{1, 2, 2}, op("ScatterND", "x i u", "y"), "index 1 lies outside a dimension of 1"},
		{[]float64{0, 1}, []int{1, 1, 2}, op("ScatterND", "x i u", "y"), "updates of shape [1 2 4 5] do not fit indices of shape [1 1 2] and a tensor of shape [1 6 4 5]"},
		{[]float64{0, 1, 0, 2}, []int{1, 2, 2}, op("ScatterND", "x i u", "y", "reduction", "add"), "want reduction none"},
		{nil, []int{0, 2}, op("ScatterND", "x i u", "y"), "do not fit a tensor of 4 dimensions"},
		{[]float64{0, 0, 0, 0, 0}, []int{1, 5}, op("ScatterND", "x i u", "y"), "do not fit a tensor of 4 dimensions"},
		{[]float64{0, 1}, []int{1, 2}, op("ScatterElements", "x i u", "y", "axis", 1), "do not fit a tensor of 4 dimensions"},
		{make([]float64, 7), []int{1, 7, 1, 1}, op("ScatterElements", "x i u", "y", "axis", 3), "are larger than the tensor"},
		{[]float64{0, 1}, []int{1, 1, 1, 2}, op("ScatterElements", "x i u", "y", "axis", 1), "not all combinations"},
	} {
		m := testModel{input: testInput{"x", pb.Float, []any{1, 6, 4, 5}}, nodes: []testNode{c.op}, output: "y",
			inits: []testTensor{u, floats("three", []int{1, 3, 4, 5}, make([]float64, 60)...), {name: "i", typ: pb.Int64, dims: c.dims, values: c.indices}}}
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		require.ErrorContains(t, err, c.want)
	}
}
