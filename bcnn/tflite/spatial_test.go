package tflite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
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
		{"RESIZE_BILINEAR", nil, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{1, 8}, []float32{0, 0.5, 1, 1.5, 2, 2.5, 3, 3}},
		{"RESIZE_BILINEAR", map[int]any{3: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{1, 8}, []float32{0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3}},
		{"RESIZE_BILINEAR", map[int]any{2: uint8(1)}, []int32{1, 2, 2, 1}, []int32{1, 3, 3, 1}, []int32{3, 3}, []float32{0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3}},
		{"RESIZE_BILINEAR", map[int]any{3: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 2, 1}, []int32{1, 2}, []float32{0.5, 2.5}},
		{"MIRROR_PAD", nil, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{0, 0, 0, 0, 1, 3, 0, 0}, []float32{1, 0, 1, 2, 3, 2, 1, 0}},
		{"MIRROR_PAD", map[int]any{0: uint8(1)}, []int32{1, 1, 4, 1}, []int32{1, 1, 8, 1}, []int32{0, 0, 0, 0, 2, 2, 0, 0}, []float32{1, 0, 0, 1, 2, 3, 3, 2}},
		{"MIRROR_PAD", nil, []int32{1, 2, 2, 1}, []int32{1, 3, 2, 1}, []int32{0, 0, 1, 0, 0, 0, 0, 0}, []float32{2, 3, 0, 1, 2, 3}},
		{"DEPTH_TO_SPACE", map[int]any{0: 2}, []int32{1, 1, 1, 4}, []int32{1, 2, 2, 1}, nil, []float32{0, 1, 2, 3}},
	} {
		g := newGraph(c.in[0], c.in[1], c.in[2], c.in[3])
		g.tensors[1].dims = c.out
		g.operators = []testOperator{{name: c.name, inputs: []int32{0}, outputs: []int32{1}, options: c.options}}
		if c.ints != nil {
			g.operators[0].inputs = append(g.operators[0].inputs, g.ints(c.ints...))
		}
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err, "%+v", c)
		plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
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
