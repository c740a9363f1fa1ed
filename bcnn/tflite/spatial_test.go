package tflite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestPixels imports operators on an image of one row, 0 1 2 3, or on one of two rows.
func TestPixels(t *testing.T) {
	for _, c := range []struct {
		name    string
		options map[int]any
		in, out []int32
		ints    []int32
		want    []float32
	}{
		{"RESIZE_NEAREST_NEIGHBOR", nil, []int32{1, 1, 4, 1}, []int32{1, 2, 6, 1}, []int32{2, 6}, []float32{0, 0, 1, 2, 2, 3, 0, 0, 1, 2, 2, 3}},
		{"RESIZE_NEAREST_NEIGHBOR", map[int]any{1: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 6, 1}, []int32{1, 6}, []float32{0, 1, 1, 2, 3, 3}},
		{"RESIZE_NEAREST_NEIGHBOR", map[int]any{0: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 3, 1}, []int32{1, 3}, []float32{0, 2, 3}},
		{"RESIZE_NEAREST_NEIGHBOR", map[int]any{0: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 2, 1}, []int32{1, 2}, []float32{0, 3}},
		{"RESIZE_NEAREST_NEIGHBOR", map[int]any{0: uint8(1)}, []int32{1, 4, 1, 1}, []int32{1, 1, 2, 1}, []int32{1, 2}, []float32{0, 0}},
		{"RESIZE_NEAREST_NEIGHBOR", map[int]any{0: uint8(1), 1: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 3, 1}, []int32{1, 3}, []float32{1, 2, 3}},
		{"RESIZE_BILINEAR", map[int]any{2: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 2, 1}, []int32{1, 2}, []float32{0, 3}},
		{"RESIZE_BILINEAR", map[int]any{2: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 1, 1}, []int32{1, 1}, []float32{0}},
		{"RESIZE_BILINEAR", nil, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{1, 8}, []float32{0, 0.5, 1, 1.5, 2, 2.5, 3, 3}},
		{"RESIZE_BILINEAR", map[int]any{3: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{1, 8}, []float32{0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3}},
		{"RESIZE_BILINEAR", map[int]any{2: uint8(1)}, []int32{1, 2, 2, 1}, []int32{1, 3, 3, 1}, []int32{3, 3}, []float32{0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3}},
		{"RESIZE_BILINEAR", map[int]any{3: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 2, 1}, []int32{1, 2}, []float32{0.5, 2.5}},
		{"MIRROR_PAD", nil, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{0, 0, 0, 0, 1, 3, 0, 0}, []float32{1, 0, 1, 2, 3, 2, 1, 0}},
		{"MIRROR_PAD", map[int]any{0: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{0, 0, 0, 0, 2, 2, 0, 0}, []float32{1, 0, 0, 1, 2, 3, 3, 2}},
		{"MIRROR_PAD", nil, []int32{1, 2, 2, 1}, []int32{1, 3, 2, 1}, []int32{0, 0, 1, 0, 0, 0, 0, 0}, []float32{2, 3, 0, 1, 2, 3}},
		{"MIRROR_PAD", nil, []int32{1, 4, 1}, []int32{1, 7, 1}, []int32{0, 0, 3, 0, 0, 0}, []float32{3, 2, 1, 0, 1, 2, 3}},
		{"MIRROR_PAD", map[int]any{0: uint8(1)}, []int32{1, 2, 1, 2}, []int32{1, 6, 1, 2}, []int32{0, 0, 2, 2, 0, 0, 0, 0}, []float32{2, 3, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1}},
		{"RESHAPE", nil, []int32{1, 1, 4, 1}, []int32{1, 4, 1, 1}, []int32{1, 4, 1, 1}, []float32{0, 1, 2, 3}},
		{"RESHAPE", nil, []int32{1, 2, 2, 3}, []int32{1, 3, 2, 2}, []int32{1, 3, 2, 2}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"SLICE", nil, []int32{1, 3, 3, 1}, []int32{1, 2, 1, 1}, []int32{0, 1, 1, 0}, []float32{4, 7}},
		{"DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 1, 1, 4}, []int32{1, 2, 2, 1}, nil, []float32{0, 1, 2, 3}},
		{"DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 1, 2, 4}, []int32{1, 2, 4, 1}, nil, []float32{0, 1, 4, 5, 2, 3, 6, 7}},
		{"DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 2, 1, 8}, []int32{1, 4, 2, 2}, nil, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{"DEPTH_TO_SPACE", map[int]any{0: 1}, []int32{1, 1, 2, 2}, []int32{1, 1, 2, 2}, nil, []float32{0, 1, 2, 3}},
	} {
		g := newGraph(c.in...)
		g.tensors[1].dims = c.out
		g.operators = []testOperator{{name: c.name, inputs: []int32{0}, outputs: []int32{1}, options: c.options}}
		if c.ints != nil {
			g.operators[0].inputs = append(g.operators[0].inputs, g.ints(c.ints...))
		}
		if c.name == "SLICE" {
			g.operators[0].inputs = append(g.operators[0].inputs, g.ints(c.out...))
		}
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err, "%+v", c)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		for i := range x.F32 {
			x.F32[i] = float32(i)
		}
		y, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, y.F32, "%+v", c)
	}
}

// Sizes of images that there cannot be.
func TestSizesRefused(t *testing.T) {
	for name, sizes := range map[string][][]int32{"RESIZE_BILINEAR": {{4}, {4, 4, 1}, {0, 4}, {4, 0}, {-1, 4}, {65537, 4}, {4, 65537}}} {
		for _, size := range sizes {
			refused(t, with(name, nil, []int32{1, 4, 4, 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(size...)) }).encode(), "the new size [")
		}
	}
	for pads, want := range map[[8]int32]string{
		{0, 0, 3, 3, 3, 3, 0, 0}: "", {0, 0, 0, 0, 0, 0, 0, 0}: "", {0, 0, 4, 0, 0, 0, 0, 0}: "padding of 4 before and 0 after does not fit a dimension of 4", {0, 0, 0, 4, 0, 0, 0, 0}: "padding of 0 before and 4 after does not fit a dimension of 4",
		{0, 0, -1, 0, 0, 0, 0, 0}: "padding of -1 before and 0 after", {0, 0, 0, 0, 0, -1, 0, 0}: "padding of 0 before and -1 after", {1, 0, 0, 0, 0, 0, 0, 0}: "padding of dimension 0", {0, 1, 0, 0, 0, 0, 0, 0}: "padding of dimension 0",
		{0, 0, 0, 0, 0, 0, 1, 0}: "padding of dimension 3", {0, 0, 0, 0, 0, 0, 0, 1}: "padding of dimension 3",
	} {
		g := with("MIRROR_PAD", nil, []int32{1, 4 + pads[2] + pads[3], max(4+pads[4]+pads[5], 1), 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(pads[:]...)) })
		if want == "" && pads != [8]int32{} {
			_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
			require.NoError(t, err)
		} else if want != "" {
			refused(t, g.encode(), want)
		}
	}
	refused(t, with("MIRROR_PAD", nil, []int32{1, 4, 4, 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 0, 0)) }).encode(), "3 amounts of padding for 4 dimensions, want two for each")
	for edge, want := range map[uint8]string{1: "", 2: "padding of 4 before and 4 after does not fit a dimension of 4"} {
		g := with("MIRROR_PAD", map[int]any{0: edge}, []int32{1, 12, 4, 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(0, 0, 4, 4, 0, 0, 0, 0)) })
		if want == "" {
			_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
			require.NoError(t, err)
		} else {
			refused(t, g.encode(), want)
		}
	}
	for block, ok := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 65537: false} {
		g := with("DEPTH_TO_SPACE", map[int]any{0: block}, []int32{1, 4, 4, 2}, nil)
		if ok {
			_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
			require.NoError(t, err)
		} else {
			refused(t, g.encode(), "a block size of")
		}
	}
}

// TestBorders imports padding with any number, and padding that a slice takes away again.
func TestBorders(t *testing.T) {
	for _, c := range []struct {
		pads, from []int32
		fill       float32
		out        []int32
		want       []float32
	}{
		{[]int32{0, 0, 1, 0, 0, 2, 0, 0}, nil, 5, []int32{1, 2, 4, 1}, []float32{5, 5, 5, 5, 1, 2, 5, 5}},
		{[]int32{0, 0, 1, 1, 1, 1, 0, 0}, []int32{0, 1, 0, 0}, 0, []int32{1, 2, 3, 1}, []float32{0, 1, 2, 0, 0, 0}},
	} {
		g := newGraph(1, 1, 2, 1)
		padded := []int32{1, 1 + c.pads[2] + c.pads[3], 2 + c.pads[4] + c.pads[5], 1}
		name, inputs := "PAD", []int32{0, g.ints(c.pads...)}
		if c.fill != 0 {
			name, inputs = "PADV2", append(inputs, g.floats([]int32{1}, c.fill))
		}
		g.tensors[1].dims = c.out
		g.operators = []testOperator{{name: name, inputs: inputs, outputs: []int32{1}}}
		if c.from != nil {
			y := g.tensor(testTensor{dims: padded})
			g.operators[0].outputs = []int32{y}
			g.operators = append(g.operators, testOperator{name: "SLICE", inputs: []int32{y, g.ints(c.from...), g.ints(c.out...)}, outputs: []int32{1}})
		}
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err, "%+v", c)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		copy(x.F32, []float32{1, 2})
		y, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, y.F32, "%+v", c)
	}
}

// TestIntegerWeights imports multiples of an α of each filter behind a sign: sums of bits,
// exactly.
func TestIntegerWeights(t *testing.T) {
	for _, c := range []struct {
		weights []float32
		binary  bool
		want    []float32
	}{
		{[]float32{0.5, 0, -0.5, 0, 3, 3, 0, 0, 0}, true, []float32{1, -6, 0}},
		{[]float32{1, 0, -1, 0, 1, -1, 1, 0, 1}, true, []float32{2, 0, 0}},
		{[]float32{1, 0, -2, 0, 1, -1, 1, 0, 1}, true, []float32{3, 0, 0}},
		{[]float32{1, 0, -2, 0, 1, -1, 1, 0, 1.375}, false, []float32{3, 0, -0.375}},
	} {
		g := newGraph(1, 1, 1, 3)
		s := g.add("SIGN", nil, []int32{1, 1, 1, 3}, 0)
		g.tensors[1].dims = []int32{1, 1, 1, 3}
		g.operators = append(g.operators, testOperator{
			name: "CONV_2D", outputs: []int32{1}, options: map[int]any{0: uint8(1), 1: 1, 2: 1},
			inputs: []int32{s, g.floats([]int32{3, 1, 1, 3}, c.weights...), g.floats([]int32{3}, 0, 0, 0)},
		})
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, c.binary, plan.Summarize(net, p)[0].Precision <= 4)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		copy(x.F32, []float32{0.3, -4, -7}) // signs 1, −1, −1
		y, err := ref.Run(t.Context(), p, x, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, y.F32, "%+v", c)
	}
}
