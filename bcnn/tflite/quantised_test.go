package tflite

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// runInt8 imports a graph that takes INT8, executes it, and returns the first output.
func runInt8(t *testing.T, g *testGraph, q ...int8) (*Report, []float32) {
	t.Helper()
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	x := bcnn.NewTensor(bcnn.Uint8, 1, net.Inputs[0].Shape)
	copy(x.U8, report.Inputs[0].Bytes(q))
	require.Len(t, x.U8, len(q))
	y, err := ref.RunAll(t.Context(), plan, []bcnn.Tensor{x}, nil)
	require.NoError(t, err)
	return report, y[0].F32
}

// quantised makes a tensor one of INT8.
func (g *testGraph) quantised(index int32, scale float32, zero int64) {
	t := &g.tensors[index]
	t.typ, t.scale, t.zero = schema.Int8, []float32{scale}, []int64{zero}
}

// What LCE's interpreter gave: it has another kernel for dimensions that are counted from the last.
func TestMeanOfInt8CountsDimensions(t *testing.T) {
	for _, c := range []struct {
		h, w int32
		zero int64
		q    []int8
		axes [2]int32
		want float32
	}{
		{2, 2, -82, []int8{79, -107, -83, -68}, [2]int32{-3, -2}, -44},
		{2, 2, -82, []int8{79, -107, -83, -68}, [2]int32{1, 2}, -45},
		{1, 3, 115, []int8{-7, 3, 65}, [2]int32{-3, -2}, 20},
		{1, 3, 115, []int8{-7, 3, 65}, [2]int32{2, 1}, 21},
	} {
		g := newGraph(1, c.h, c.w, 1)
		g.quantised(0, 0.2, c.zero)
		g.outputs[0] = g.add("MEAN", map[int]any{0: uint8(1)}, []int32{1, 1, 1, 1}, 0, g.ints(c.axes[:]...))
		g.quantised(g.outputs[0], 0.2, c.zero)
		report, y := runInt8(t, g, c.q...)
		require.Equal(t, []float32{c.want}, y, "%+v", c)
		require.Empty(t, report.Deviations)
	}
}

// LCE divides 1 by the scale in float32: 42.5, where it is 42.49999998.
func TestSignsAsInt8(t *testing.T) {
	g := newGraph(1, 1, 1, 3)
	bits := g.add("LceQuantize", nil, []int32{1, 1, 1, 1}, 0)
	g.tensors[bits].typ = schema.Int32
	g.outputs[0] = g.add("LceDequantize", nil, []int32{1, 1, 1, 3}, bits)
	g.quantised(g.outputs[0], 0.0235294122248888, 0)
	_, y := runGraph(t, g, -1, 0, -2)
	require.Equal(t, []float32{-43, 43, -43}, y)
}

// (q − zero)·scale is 0 where q is the zero point, and so its sign is +1, whoever else reads the number.
func TestDequantizeOfZeroPoint(t *testing.T) {
	const scale, zero = 0.01, 3
	q := make([]int8, 256)
	for i := range q {
		q[i] = int8(i - 128)
	}
	g := newGraph(1, 1, 1, 256)
	g.quantised(0, scale, zero)
	x := g.add("DEQUANTIZE", nil, []int32{1, 1, 1, 256}, 0)
	g.outputs = []int32{g.add("ABS", nil, []int32{1, 1, 1, 256}, x)}
	_, y := runInt8(t, g, q...)
	for i, v := range q {
		require.Equal(t, float32(math.Abs(float64(float32(int(v)-zero)*scale))), y[i], v)
	}
}

// What LCE's interpreter gave: it takes eight numbers at once and rounds their halves to even, and those of the rest away from 0.
func TestQuantizeRoundsTheRestOtherwise(t *testing.T) {
	x := []float32{0.5, -0.5, 0.1, -0.1, 0.02, 0.06, 0.5, -0.5, 0.1, -0.1, 0.02}
	for n, want := range map[int32][]float32{
		2:  {13, -13},
		8:  {12, -12, 2, -2, 0, 2, 12, -12},
		11: {12, -12, 2, -2, 0, 2, 12, -12, 3, -3, 1},
	} {
		g := newGraph(1, n)
		g.outputs[0] = g.add("QUANTIZE", nil, []int32{1, n}, 0)
		g.quantised(g.outputs[0], 0.04, 0)
		_, y := runGraph(t, g, x[:n]...)
		require.Equal(t, want, y)
	}
	g := newGraph(1, 1)
	g.outputs[0] = g.add("QUANTIZE", nil, []int32{1, 1}, 0)
	g.quantised(g.outputs[0], 0.1, -41)
	_, y := runGraph(t, g, -4.75) // −47.5 in float32, −47.4999993 in float64
	require.Equal(t, []float32{-88}, y)

	g = newGraph(1, 11, 1, 1) // one level for each integer, whichever pixel it is of
	g.outputs[0] = g.add("QUANTIZE", nil, []int32{1, 11, 1, 1}, 0)
	g.quantised(g.outputs[0], 0.04, 0)
	_, report, err := Decode(t.Context(), g.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"operator 0 (QUANTIZE): the last 3 of 11 values may differ by at most 1, if they are halfway between two integers"}, report.Deviations)
}

// The interpreter takes the values of all images of a batch at once: what is left behind its blocks is left of them all.
func TestBlocksOfBatches(t *testing.T) {
	g := newGraph(2, 4)
	g.outputs[0] = g.add("QUANTIZE", nil, []int32{2, 4}, 0)
	g.quantised(g.outputs[0], 0.02, -57)
	_, y := runGraph(t, g, -0.25, 0.25, 0.25, -0.25)
	require.Equal(t, []float32{-69, -45, -45, -69}, y) // 12.5 is rounded to 12

	g = newGraph(2, 17)
	g.quantised(0, 117.58818054199219, 101)
	g.outputs[0] = g.add("QUANTIZE", nil, []int32{2, 17}, 0)
	g.quantised(g.outputs[0], 256, 86)
	report, _ := runInt8(t, g, make([]int8, 17)...)
	require.Equal(t, []string{"operator 0 (QUANTIZE): the last 2 of 34 values may differ by at most 1, if they are halfway between two integers"}, report.Deviations)
}

// What LCE's interpreter gave for −27.5 and a zero point of −100: −128 in a block, −127 behind.
func TestSumsWithConstantsOfInt8InBlocks(t *testing.T) {
	for _, c := range []struct {
		dims, constant []int32
		whole          int // values of blocks
		deviation      string
	}{
		{[]int32{1, 1, 1, 31}, nil, 24, ""},
		{[]int32{1, 1, 1, 16}, []int32{16}, 16, ""},
		{[]int32{1, 1, 1, 15}, []int32{15}, 0, ""},
		{[]int32{1, 2, 2, 2}, []int32{1}, 8, ""},
		{[]int32{1, 2, 2, 4}, []int32{1}, 16, ""},
		{[]int32{1, 3, 2, 1}, []int32{1}, 0, ""},
		{[]int32{1, 5, 5, 1}, []int32{1}, 25, "operator 0 (ADD): the last 1 of 25 values may differ by at most 1, if they are almost halfway between two integers"},
		{[]int32{1, 1, 1, 24}, []int32{24}, 16, ""},
		{[]int32{1, 2, 3, 8}, []int32{8}, 0, ""},
		{[]int32{1, 2, 3, 8}, []int32{1, 2, 3, 8}, 48, ""},
		{[]int32{2, 1, 1, 24}, []int32{1, 1, 1, 24}, 16, ""},
		{[]int32{2, 1, 1, 24}, []int32{2, 1, 1, 24}, 24, ""},
	} {
		g := newGraph(c.dims...)
		g.quantised(0, 1.0/3, -128)
		n := int32(1)
		for _, d := range c.constant {
			n *= d
		}
		minus77 := int8(-77)
		data := bytes.Repeat([]byte{byte(minus77)}, int(n))
		k := g.tensor(testTensor{name: "c", dims: c.constant, data: data})
		g.quantised(k, 1, 3)
		g.outputs[0] = g.add("ADD", nil, c.dims, 0, k)
		g.quantised(g.outputs[0], 2, -100)
		x := make([]int8, c.dims[1]*c.dims[2]*c.dims[3])
		want := make([]float32, len(x))
		for i := range x {
			x[i], want[i] = -53, -127
			if i < c.whole {
				want[i] = -128
			}
		}
		report, y := runInt8(t, g, x...)
		require.Equal(t, want, y, "%+v", c)
		if c.deviation == "" {
			require.Empty(t, report.Deviations, "%+v", c)
		} else {
			require.Equal(t, []string{c.deviation}, report.Deviations)
		}
	}
}

// Behind an obstacle nothing else is named than what would be without it.
func TestObstacleOfInt8(t *testing.T) {
	g := newGraph(1, 4)
	g.quantised(0, 1, 107)
	x := g.add("LOG_SOFTMAX", nil, []int32{1, 4}, 0)
	g.quantised(x, 0.0625, 127)
	y := g.add("SUB", nil, []int32{1, 4}, x, x)
	g.quantised(y, 0.25, 56)
	g.outputs[0] = g.add("CONCATENATION", nil, []int32{2, 4}, y, y)
	g.quantised(g.outputs[0], 0.25, 56)
	_, _, err := Decode(t.Context(), g.encode(), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 2, "%v", err)
	require.ErrorContains(t, obstacles.Obstacles[0].Err, "a softmax is supported only as an output")
	require.ErrorContains(t, obstacles.Obstacles[1].Err, "a concatenation along the batch")
}

// Packed bits that the file takes have the dimensions of the file.
func TestConcatenationOfPackedInputs(t *testing.T) {
	g := newGraph(1, 1, 2, 1)
	g.tensors[0].typ = schema.Int32
	g.outputs[0] = g.add("CONCATENATION", map[int]any{0: 2}, []int32{1, 1, 4, 1}, 0, 0)
	g.tensors[g.outputs[0]].typ = schema.Int32
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
	words := []int32{0x12345678, -7}
	copy(x.F32, report.Inputs[0].Signs(words))
	y, err := ref.RunAll(t.Context(), plan, []bcnn.Tensor{x}, nil)
	require.NoError(t, err)
	require.Equal(t, append(words, words...), report.Outputs[0].Words(y[0].F32))
}
