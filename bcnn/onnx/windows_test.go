package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Pools whose taps lie apart, of sums, of signs and of turned images.
func TestDilatedPools(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	pads := func() []int { return []int{r.IntN(2), r.IntN(2), r.IntN(2), r.IntN(2)} }
	for trial := range 60 {
		k := []int{2 + r.IntN(2), 2 + r.IntN(2)}
		attrs := []any{"kernel_shape", k, "dilations", []int{1 + r.IntN(3), 2 + r.IntN(2)}, "strides", []int{1 + r.IntN(3), 1 + r.IntN(2)}}
		pool := "MaxPool"
		switch r.IntN(4) {
		case 0:
			attrs = append(attrs, "pads", pads(), "ceil_mode", r.IntN(2))
		case 1:
			attrs = append(attrs, "auto_pad", []string{"SAME_UPPER", "SAME_LOWER", "VALID"}[r.IntN(3)])
		case 2:
			pool = "AveragePool"
		}
		forms := [][]testNode{
			{op("Conv", "x w", "a"), op(pool, "a", "y", attrs...)},
			{op("Conv", "x w", "a"), op(pool, "a", "b", attrs...), op("Greater", "b zero", "c"), op("Where", "c one minus", "d"), op("Conv", "d v", "y")},
			{op("Greater", "x zero", "a"), op("Where", "a one minus", "b"), op(pool, "b", "c", attrs...), op("Conv", "c u", "y")},
			{op("Conv", "x w", "a"), op("Transpose", "a", "b", "perm", []int{0, 1, 3, 2}), op(pool, "b", "c", attrs...), op("Transpose", "c", "y", "perm", []int{0, 1, 3, 2})},
		}
		m := testModel{input: image(3, 11, 10), output: "y", rounds: pool == "AveragePool", nodes: forms[trial%len(forms)], inits: []testTensor{
			randomTensor(r, "w", []int{4, 3, 2, 1}, -1, 1), randomTensor(r, "v", []int{4, 4, 1, 1}, -1, 1), randomTensor(r, "u", []int{4, 3, 1, 1}, -1, 1),
			number("zero", 0), number("one", 1), number("minus", -1)}}
		t.Run(fmt.Sprint(trial), func(t *testing.T) { compare(t, r, m, Options{}, false) })
	}
}

// gatherND is GatherND with batch_dims of 0.
func gatherND(x, indices array) array {
	last := len(indices.dims) - 1
	k := indices.dims[last]
	out := newArray(slices.Concat(indices.dims[:last], x.dims[k:])...)
	i := 0
	each(out.dims, func(index []int) {
		var at []int
		for c := range k {
			p := int(indices.at(append(slices.Clone(index[:last]), c)...))
			if p < 0 {
				p += x.dims[c]
			}
			at = append(at, p)
		}
		out.v[i] = x.at(append(at, index[last:]...)...)
		i++
	})
	return out
}

// rowsAndColumns are indices of GatherND: of rows and columns, each in a list of two
// dimensions, in the order of PyTorch's adaptive pools, or with the columns first.
func rowsAndColumns(rows, cols [][]float64, columnsFirst bool) testTensor {
	first, second := rows, cols
	if columnsFirst {
		first, second = cols, rows
	}
	t := testTensor{name: "at", typ: pb.Int64, dims: []int{len(first), len(first[0]), len(second), len(second[0]), 2}}
	for _, a := range first {
		for _, p := range a {
			for _, b := range second {
				for _, q := range b {
					if columnsFirst {
						t.values = append(t.values, q, p)
					} else {
						t.values = append(t.values, p, q)
					}
				}
			}
		}
	}
	return t
}

// Adaptive pools as PyTorch writes them: windows whose taps GatherND picks, of which those
// beyond a smaller window are masked, and their taps one by one.
func TestGatheredWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(93, 94))
	threes := [][]float64{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}}
	uneven := [][]float64{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {4, 5, 6}, {5, 6, 6}}
	gather := []testNode{op("Conv", "x w", "a"), op("Transpose", "a", "b", "perm", []int{2, 3, 0, 1}), op("GatherND", "b at", "c"), op("Transpose", "c", "d", "perm", []int{4, 5, 0, 1, 2, 3})}
	masked := []testNode{op("Where", "beyond zero d", "e"), op("Where", "right zero e", "f")}
	taps := slices.Clone(masked)
	sum := ""
	for i := range 9 {
		ky, kx := fmt.Sprint("k", i/3), fmt.Sprint("k", i%3)
		taps = append(taps, op("Gather", "f "+ky, fmt.Sprint("r", i), "axis", 3), op("Gather", fmt.Sprint("r", i, " ", kx), fmt.Sprint("g", i), "axis", 4))
		if i == 0 {
			sum = "g0"
			continue
		}
		taps = append(taps, op("Add", fmt.Sprint(sum, " g", i), fmt.Sprint("s", i)))
		sum = fmt.Sprint("s", i)
	}
	taps = append(taps, op("Div", sum+" sizes", "y"))
	truths := func(name string, dims ...int) testTensor {
		t := testTensor{name: name, typ: pb.Bool, dims: dims, values: make([]float64, size(dims...))}
		for i := range t.values {
			t.values[i] = float64(i % 2)
		}
		return t
	}
	position := func(name string, v float64) testTensor {
		return testTensor{name: name, typ: pb.Int64, dims: []int{}, values: []float64{v}}
	}
	for _, c := range []struct {
		name       string
		rows, cols [][]float64
		turned     bool
		nodes      []testNode
	}{
		{"means", threes, threes, false, []testNode{op("ReduceMean", "d", "y", "axes", []int{-3, -1}, "keepdims", 0)}},
		{"maxima of other columns", threes, [][]float64{{0, 1}, {5, 6}}, false, []testNode{op("ReduceMax", "d", "y", "axes", []int{-3, -1}, "keepdims", 0)}},
		{"columns first", threes, [][]float64{{0, 1}, {5, -1}}, true, []testNode{op("ReduceMean", "d", "e", "axes", []int{-3, -1}, "keepdims", 0), op("Transpose", "e", "y", "perm", []int{0, 1, 3, 2})}},
		{"one row", [][]float64{{3}}, threes, false, []testNode{op("ReduceMean", "d", "y", "axes", []int{-3, -1}, "keepdims", 0)}},
		{"the same row again", [][]float64{{3, 3}, {3, 3}}, threes, false, []testNode{op("ReduceMean", "d", "y", "axes", []int{-3, -1}, "keepdims", 0)}},
		{"the same column again", threes, [][]float64{{2, 2}}, false, []testNode{op("ReduceMean", "d", "y", "axes", []int{-1}, "keepdims", 0)}},
		{"masks and single taps", uneven, uneven, false, taps},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 7, 7), output: "y", rounds: true, nodes: slices.Concat(gather, c.nodes), inits: []testTensor{
				randomTensor(r, "w", []int{4, 3, 1, 1}, -1, -0.5, 0.5, 1), rowsAndColumns(c.rows, c.cols, c.turned), number("zero", 0),
				truths("beyond", 5, 3, 1, 1), truths("right", 5, 3), randomTensor(r, "sizes", []int{5, 5}, 4, 6, 9), position("k0", 0), position("k1", 1), position("k2", 2)}}
			compare(t, r, m, Options{}, false)
		})
	}
	// A dimension of the indices along which rows and columns move is no window.
	m := testModel{input: image(3, 7, 7), output: "y", nodes: slices.Concat(gather[:3], []testNode{op("Identity", "c", "y")}), inits: []testTensor{
		randomTensor(r, "w", []int{4, 3, 1, 1}, -1, 1), {name: "at", typ: pb.Int64, dims: []int{2, 2}, values: []float64{0, 0, 1, 1}}}}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, "moves along rows and columns")
}
