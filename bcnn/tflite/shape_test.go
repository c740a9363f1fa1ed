package tflite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// counted is 0, 1, 2, …
func counted(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

// Slices take positions from the first on or, with SLICE, so many; negative ones count
// from the end, masks open an end, and steps leave positions out.
func TestSlices(t *testing.T) {
	image := []int32{1, 4, 5, 3} // value (20·row + 4·column … ) is its number
	for _, c := range []struct {
		name             string
		begin, end, step []int32 // of SLICE: begin, size
		masks            [2]int  // of begin, of end
		lo, hi, by       [3]int  // what is meant
	}{
		{"all", []int32{0, 0, 0, 0}, []int32{1, 4, 5, 3}, nil, [2]int{}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{1, 1, 1}},
		{"rest", []int32{0, 1, 2, 1}, []int32{-1, -1, -1, -1}, nil, [2]int{}, [3]int{1, 2, 1}, [3]int{4, 5, 3}, [3]int{1, 1, 1}},
		{"middle", []int32{0, 1, 1, 0}, []int32{1, 2, 3, 2}, nil, [2]int{}, [3]int{1, 1, 0}, [3]int{3, 4, 2}, [3]int{1, 1, 1}},
		{"last row", []int32{0, 3, 0, 0}, []int32{1, 1, 5, 3}, nil, [2]int{}, [3]int{3, 0, 0}, [3]int{4, 5, 3}, [3]int{1, 1, 1}},
		{"every second", []int32{0, 0, 0, 0}, []int32{1, 4, 5, 3}, []int32{1, 2, 2, 2}, [2]int{}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{2, 2, 2}},
		{"every third row", []int32{0, 0, 0, 0}, []int32{1, 4, 5, 3}, []int32{1, 3, 1, 1}, [2]int{}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{3, 1, 1}},
		{"every second of some", []int32{0, 1, 0, 0}, []int32{1, 4, 3, 3}, []int32{1, 2, 2, 1}, [2]int{}, [3]int{1, 0, 0}, [3]int{4, 3, 3}, [3]int{2, 2, 1}},
		{"as many as its stride gives", []int32{0, 0, 0, 0}, []int32{1, 3, 5, 3}, []int32{1, 2, 1, 1}, [2]int{}, [3]int{0, 0, 0}, [3]int{3, 5, 3}, [3]int{2, 1, 1}},
		{"a step as large as it", []int32{0, 0, 0, 0}, []int32{1, 4, 5, 3}, []int32{1, 4, 5, 3}, [2]int{}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{4, 5, 3}},
		{"from the end", []int32{0, -3, -2, -1}, []int32{1, -1, 5, 3}, []int32{1, 1, 1, 1}, [2]int{}, [3]int{1, 3, 2}, [3]int{3, 5, 3}, [3]int{1, 1, 1}},
		{"beyond both ends", []int32{0, -9, 0, 0}, []int32{9, 9, 9, 9}, []int32{1, 1, 1, 1}, [2]int{}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{1, 1, 1}},
		{"open at the front", []int32{0, 2, 2, 2}, []int32{1, 4, 4, 3}, []int32{1, 1, 1, 1}, [2]int{2 | 4, 0}, [3]int{0, 0, 2}, [3]int{4, 4, 3}, [3]int{1, 1, 1}},
		{"open at the back", []int32{0, 2, 2, 1}, []int32{1, 3, 1, 2}, []int32{1, 1, 1, 1}, [2]int{0, 1 | 4}, [3]int{2, 2, 1}, [3]int{3, 5, 2}, [3]int{1, 1, 1}},
		{"open all around", []int32{7, 7, 7, 7}, []int32{0, 0, 0, 0}, []int32{1, 1, 1, 1}, [2]int{15, 15}, [3]int{0, 0, 0}, [3]int{4, 5, 3}, [3]int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := []int32{1, 0, 0, 0}
			for d := range 3 {
				out[1+d] = int32((c.hi[d] - c.lo[d] + c.by[d] - 1) / c.by[d])
			}
			var want []float32
			for y := c.lo[0]; y < c.hi[0]; y += c.by[0] {
				for x := c.lo[1]; x < c.hi[1]; x += c.by[1] {
					for ch := c.lo[2]; ch < c.hi[2]; ch += c.by[2] {
						want = append(want, -float32(15*y+3*x+ch))
					}
				}
			}
			g := newGraph(image...)
			name, inputs := "SLICE", []int32{0, g.ints(c.begin...), g.ints(c.end...)}
			var options map[int]any
			if c.step != nil {
				name, inputs = "STRIDED_SLICE", append(inputs, g.ints(c.step...))
				options = map[int]any{0: c.masks[0], 1: c.masks[1]}
			}
			part := g.add(name, options, out, inputs...)
			g.outputs[0] = g.add("NEG", nil, out, part)
			net, y := runGraph(t, g, counted(60)...)
			require.Equal(t, want, y)
			// Every so many rows and columns from the first on are a pool of one pixel each.
			pools := slices.ContainsFunc(net.Layers, func(l bcnn.Layer) bool { return l.Op.Kind() == bcnn.MaxPool{}.Kind() })
			thin := false
			for d, n := range []int{4, 5} {
				thin = thin || c.by[d] > 1 && c.lo[d] == 0 && (c.hi[d]-1)/c.by[d] == (n-1)/c.by[d]
			}
			require.Equal(t, thin, pools)
		})
	}
	strided := func(begin, end, step []int32, options map[int]any) *testGraph {
		return with("STRIDED_SLICE", options, []int32{1, 4, 4, 2}, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(begin...), g.ints(end...), g.ints(step...))
		})
	}
	zero, end, ones := []int32{0, 0, 0, 0}, []int32{1, 4, 4, 2}, []int32{1, 1, 1, 1}
	for _, c := range []struct {
		g    *testGraph
		want string
	}{
		{strided(zero, end, []int32{1, 1, 5, 1}, nil), "a step of 5 is not supported, want 1 up to the size of the dimension"},
		{strided(zero, end, []int32{1, 1, 0, 1}, nil), "a step of 0 is not supported, want 1 up to the size of the dimension"},
		{strided(zero, end, ones, map[int]any{2: 1}), "ellipsis_mask, new_axis_mask and shrink_axis_mask"},
		{strided(zero, end, ones, map[int]any{3: 1}), "ellipsis_mask, new_axis_mask and shrink_axis_mask"},
		{strided(zero, end, ones, map[int]any{4: 1}), "ellipsis_mask, new_axis_mask and shrink_axis_mask"},
		{strided(zero, []int32{1, 0, 4, 2}, ones, nil), "positions 0 to 0 are not a slice of a dimension of 4"},
		{strided([]int32{0, 0, 0, 2}, end, ones, nil), "positions 2 to 2 are not a slice of a dimension of 2"},
		{strided(zero[1:], end, ones, nil), "a list of 3 positions for 4 dimensions, want one for each"},
		{strided(zero, end, ones[1:], nil), "a list of 3 positions for 4 dimensions, want one for each"},
	} {
		refused(t, c.g.encode(), c.want)
	}
	g := newGraph(2, 1, 1, 3)
	g.outputs[0] = g.add("SLICE", nil, []int32{1, 1, 1, 3}, 0, g.ints(1, 0, 0, 0), g.ints(1, 1, 1, 3))
	refused(t, g.encode(), "a slice of the batch is not supported")
	g = newGraph(1, 3)
	g.outputs[0] = g.add("SLICE", nil, []int32{1, 3}, g.floats([]int32{1, 3}, 1, 2, 3), g.ints(0, 0), 0)
	refused(t, g.encode(), "input 0 must be computed, not constant")
}

// Concatenations join values, and what is known of all parts is known of them.
func TestConcatenations(t *testing.T) {
	apply := func(f func(x float32) float32, list []float32) (y []float32) {
		for _, x := range list {
			y = append(y, f(x))
		}
		return y
	}
	for _, c := range []struct {
		name string
		axis int
		at   int // which dimension that is
		dims [][]int32
		out  []int32
	}{
		{"channels", 3, 3, [][]int32{{1, 2, 2, 1}, {1, 2, 2, 3}, {1, 2, 2, 2}}, []int32{1, 2, 2, 6}},
		{"channels, from the end", -1, 3, [][]int32{{1, 2, 2, 1}, {1, 2, 2, 3}}, []int32{1, 2, 2, 4}},
		{"rows", 1, 1, [][]int32{{1, 2, 3, 2}, {1, 1, 3, 2}, {1, 3, 3, 2}}, []int32{1, 6, 3, 2}},
		{"columns", 2, 2, [][]int32{{1, 2, 1, 2}, {1, 2, 4, 2}}, []int32{1, 2, 5, 2}},
		{"columns, from the end", -2, 2, [][]int32{{1, 3, 2, 1}, {1, 3, 2, 1}}, []int32{1, 3, 4, 1}},
		{"columns of one row", 1, 1, [][]int32{{1, 2, 2}, {1, 3, 2}}, []int32{1, 5, 2}},
		{"values", 1, 1, [][]int32{{1, 2}, {1, 3}}, []int32{1, 5}},
	} {
		for _, kinds := range [][]string{{"NEG"}, {"SIGN"}, {"RELU"}, {"SIGN", "NEG"}, {"NEG", "SIGN"}, {"RELU", "NEG"}, {"NEG", "RELU"}, {"bits", "SIGN"}, {"SIGN", "bits"}, {"bits"}} {
			for _, behind := range []string{"ABS", "SIGN", "bits", "NEG"} {
				t.Run(fmt.Sprint(c.name, " ", kinds, " ", behind), func(t *testing.T) {
					g := &testGraph{version: 3}
					var in, parts [][]float32
					var joined []int32
					for i, d := range c.dims {
						g.inputs = append(g.inputs, g.tensor(testTensor{name: "x", dims: d}))
						x := counted(sizeOf(d))
						for k := range x {
							x[k] = (x[k] + float32(10*i)) * float32(1-k%3)
						}
						in, parts = append(in, x), append(parts, apply(plain[kinds[i%len(kinds)]], x))
						joined = append(joined, g.put(kinds[i%len(kinds)], d, g.inputs[i]))
					}
					y := g.add("CONCATENATION", map[int]any{0: c.axis}, c.out, joined...)
					g.outputs = []int32{g.put(behind, c.out, y)}
					var want []float32
					outer := sizeOf(c.out[:c.at])
					for o := range outer {
						for _, p := range parts {
							n := len(p) / outer
							want = append(want, p[o*n:][:n]...)
						}
					}
					require.Equal(t, apply(plain[behind], want), runInputs(t, g, in...)[0])
				})
			}
		}
	}
}

// Concatenations of what does not go together.
func TestConcatenationsRefused(t *testing.T) {
	d := []int32{1, 1, 1, 4}
	quantised := func(scale float32, zero int64, axis int, act int) *testGraph {
		g := newGraph(d...)
		second := g.tensor(testTensor{name: "second", dims: d})
		g.quantised(0, 0.5, 3)
		g.quantised(second, scale, zero)
		g.inputs = append(g.inputs, second)
		g.outputs[0] = g.add("CONCATENATION", map[int]any{0: axis, 1: uint8(act)}, []int32{1, 1, 1, 8}, 0, second)
		g.quantised(g.outputs[0], 0.5, 3)
		return g
	}
	types := func() *testGraph {
		g := quantised(0.5, 3, 3, 0)
		g.tensors[2].typ = schema.Float32
		return g
	}
	packed := func(channels int32) *testGraph {
		g := newGraph(1, 1, 1, channels)
		x := g.add("LceQuantize", nil, []int32{1, 1, 1, (channels + 31) / 32}, 0)
		g.tensors[x].typ = schema.Int32
		y := g.add("CONCATENATION", map[int]any{0: 3}, []int32{1, 1, 1, (2*channels + 31) / 32}, x, x)
		g.tensors[y].typ = schema.Int32
		g.outputs[0] = g.add("LceDequantize", nil, []int32{1, 1, 1, 2 * channels}, y)
		return g
	}
	refused(t, quantised(0.5, 4, 3, 0).encode(), "8-bit inputs with different scales or zero points are not supported")
	refused(t, quantised(0.25, 3, 3, 0).encode(), "8-bit inputs with different scales or zero points are not supported")
	refused(t, quantised(0.5, 3, 3, 1).encode(), "a fused activation is supported only on FLOAT32, not on INT8")
	refused(t, types().encode(), "inputs of different types, INT8 and FLOAT32, are not supported")
	refused(t, packed(40).encode(), "packed bits are supported only if the channels of all inputs but the last fill whole words of 32 bits")
	for _, g := range []*testGraph{quantised(0.5, 3, 3, 0), packed(32), packed(64)} {
		_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
	}
}

// Parts of channels, with and without their sizes, of which some may not be read.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int32 // of SPLIT_V
		parts int
		axis  int32
		read  []int
		err   string
	}{
		{"SPLIT", nil, 3, 3, []int{0, 1, 2}, ""},
		{"SPLIT", nil, 2, -1, []int{1}, ""},
		{"SPLIT", nil, 1, 3, []int{0}, ""},
		{"SPLIT", nil, 6, 3, []int{5, 0}, ""},
		{"SPLIT_V", []int32{1, 3, 2}, 3, 3, []int{0, 1, 2}, ""},
		{"SPLIT_V", []int32{4, 2}, 2, 3, []int{1}, ""},
		{"SPLIT", nil, 4, 3, []int{0}, "a split into 4 outputs does not cover 6 channels exactly"},
		{"SPLIT", nil, 7, 3, []int{0}, "a split into sizes [0 0 0 0 0 0 0] does not fit 6 channels"},
		{"SPLIT_V", []int32{3, 2}, 2, 3, []int{0}, "a split into 2 outputs does not cover 6 channels exactly"},
		{"SPLIT_V", []int32{3, 3}, 3, 3, []int{0}, "a split into 3 outputs does not cover 6 channels exactly"},
		{"SPLIT_V", []int32{0, 6}, 2, 3, []int{0}, "a split into sizes [0 6] does not fit 6 channels"},
		{"SPLIT_V", []int32{5, 2}, 2, 3, []int{0}, "a split into sizes [5 2] does not fit 6 channels"},
		{"SPLIT", nil, 2, 2, []int{0}, "a split is supported only along the channels"},
		{"SPLIT", nil, 2, 4, []int{0}, "there is no dimension 4, its input has 4 dimensions"},
	} {
		g := newGraph(1, 2, 2, 6)
		sizes := slices.Repeat([]int32{int32(6 / c.parts)}, c.parts)
		inputs := []int32{g.ints(c.axis), 0}
		if c.sizes != nil {
			copy(sizes, c.sizes)
			inputs = []int32{0, g.ints(c.sizes...), g.ints(c.axis)}
		}
		var outputs []int32
		for _, s := range sizes {
			outputs = append(outputs, g.tensor(testTensor{name: "part", dims: []int32{1, 2, 2, max(s, 1)}}))
		}
		g.operators = []testOperator{{name: c.name, inputs: inputs, outputs: outputs}}
		g.outputs = nil
		var want [][]float32
		for _, k := range c.read {
			g.outputs = append(g.outputs, outputs[k])
			from := 0
			for _, s := range sizes[:k] {
				from += int(s)
			}
			var part []float32
			for p := range 4 {
				part = append(part, counted(24)[6*p+from:][:sizes[k]]...)
			}
			want = append(want, part)
		}
		if c.err != "" {
			refused(t, g.encode(), c.err)
			continue
		}
		require.Equal(t, want, runInputs(t, g, counted(24)), "%+v", c)
	}
}

// Reshapes and transpositions move no value.
func TestReshapes(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out []int32
		perm    []int32 // or the dimensions that are removed or inserted
		err     string
	}{
		{"RESHAPE", []int32{1, 2, 3, 4}, []int32{1, 24}, nil, ""},
		{"RESHAPE", []int32{1, 2, 3, 4}, []int32{1, 6, 4}, nil, ""},
		{"RESHAPE", []int32{1, 24}, []int32{1, 2, 3, 4}, nil, ""},
		{"RESHAPE", []int32{1, 2, 3, 4}, []int32{1, 2, 3, 4}, nil, ""},
		{"SQUEEZE", []int32{1, 1, 1, 4}, []int32{1, 4}, []int32{1, 2}, ""},
		{"SQUEEZE", []int32{1, 1, 2, 4}, []int32{1, 2, 4}, []int32{-3}, ""},
		{"EXPAND_DIMS", []int32{1, 2, 4}, []int32{1, 2, 1, 4}, []int32{2}, ""},
		{"EXPAND_DIMS", []int32{1, 2, 4}, []int32{1, 2, 4, 1}, []int32{-1}, ""},
		{"TRANSPOSE", []int32{1, 1, 3, 4}, []int32{1, 3, 1, 4}, []int32{0, 2, 1, 3}, ""},
		{"TRANSPOSE", []int32{1, 1, 1, 4}, []int32{1, 4, 1, 1}, []int32{0, 3, 1, 2}, ""},
		{"TRANSPOSE", []int32{1, 3, 1}, []int32{1, 1, 3}, []int32{0, 2, 1}, ""},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{1, 3, 4}, []int32{0, 1, 2}, ""},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{3, 4, 1}, []int32{1, 2, 0}, "its dimensions [3 4 1] do not begin with the batch size, 1"},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{4, 1, 3}, []int32{2, 0, 1}, "operator 1 (TRANSPOSE) makes a tensor of shape [4 1 3], whose first dimension is not the batch"},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{1, 3, 4}, []int32{0, 1}, "a permutation of 2 dimensions for an input of 3 dimensions"},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{1, 3, 4}, []int32{0, 1, 3}, "the permutation [0 1 3] must have each dimension once"},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{1, 3, 4}, []int32{0, -1, 2}, "the permutation [0 -1 2] must have each dimension once"},
		{"TRANSPOSE", []int32{1, 3, 4}, []int32{3, 1, 4}, []int32{1, 0, 2}, "its dimensions [3 1 4] do not begin with the batch size, 1"},
		{"RESHAPE", []int32{1, 2, 3, 4}, []int32{2, 12}, nil, "operator 1 (RESHAPE) makes a tensor of shape [2 12], whose first dimension is not the batch"},
	} {
		g := newGraph(c.in...)
		inputs := []int32{g.add("SIGN", nil, c.in, 0)}
		options := map[int]any(nil)
		switch {
		case c.name == "SQUEEZE":
			options = map[int]any{0: c.perm}
		case c.perm != nil:
			inputs = append(inputs, g.ints(c.perm...))
		}
		y := g.add(c.name, options, c.out, inputs...)
		g.outputs[0] = g.add("NEG", nil, c.out, y)
		if c.err != "" {
			refused(t, g.encode(), c.err)
			continue
		}
		n := sizeOf(c.in)
		x, want := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = float32(i%3 - 1)
			want[i] = -x[i]
		}
		require.Equal(t, want, runInputs(t, g, x)[0], "%+v", c)
	}
	// Packed bits of whole words may be reshaped, others not.
	packed := func(channels int32) *testGraph {
		g := newGraph(1, 2, 2, channels)
		words := (channels + 31) / 32
		x := g.add("LceQuantize", nil, []int32{1, 2, 2, words}, 0)
		y := g.add("RESHAPE", nil, []int32{1, 4 * words}, x)
		g.tensors[x].typ, g.tensors[y].typ = schema.Int32, schema.Int32
		g.outputs[0] = g.add("LceDequantize", nil, []int32{1, 4 * channels}, y)
		return g
	}
	x, want := make([]float32, 4*64), make([]float32, 4*64)
	for i := range x {
		x[i], want[i] = 1, 1
		if i%5 < 2 {
			x[i], want[i] = -3, -1
		}
	}
	require.Equal(t, want, runInputs(t, packed(64), x)[0])
	refused(t, packed(40).encode(), "packed bits are supported only if their channels fill whole words")
}
