package onnx

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/resize"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// TestNearestPixels compares with ONNX Runtime: train/onnx_resize.py.
func TestNearestPixels(t *testing.T) {
	file, err := os.Open("testdata/resize.npz")
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := npy.Open(file, info.Size())
	require.NoError(t, err)
	require.Len(t, f.Names(), 6*4)
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err)
		values := make([]float64, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		coordinates, nearest, _ := strings.Cut(name, " ")
		r := resize.Method{Mode: "nearest", Coordinates: coordinates, Nearest: nearest, Tie: tie}
		for from := 1; from <= a.Shape[0]; from++ {
			for to := 1; to <= a.Shape[1]; to++ {
				want := make([]int32, to)
				for i := range want {
					want[i] = int32(values[i])
				}
				require.Equal(t, want, r.Positions(from, to, float32(to)/float32(from)), "%s, %d to %d", name, from, to)
				values = values[a.Shape[2]:]
			}
		}
	}
}

// A filter that grows with what is left out weighs all pixels, by definition: each by its
// distance to the middle of the new one. What lies outside counts as the pixel at the border,
// or not at all.
func TestFilteredPixels(t *testing.T) {
	triangle := func(d float64) float64 { return max(0, 1-d) }
	cubic := func(d float64) float64 { // of Keys, with a = −½
		switch {
		case d <= 1:
			return 1.5*d*d*d - 2.5*d*d + 1
		case d < 2:
			return -0.5*d*d*d + 2.5*d*d - 4*d + 2
		}
		return 0
	}
	for mode, f := range map[string]func(float64) float64{"linear": triangle, "cubic": cubic} {
		for _, exclude := range []bool{false, true} {
			for from := 1; from < 9; from++ {
				for to := 1; to < 12; to++ {
					r := resize.Method{Mode: mode, Coordinates: "half_pixel", Cubic: -0.5, Exclude: exclude}
					scale := float64(to) / float64(from)
					taps := r.Filtered(from, to, float32(scale))
					require.Len(t, taps.Index, taps.N*to)
					require.LessOrEqual(t, taps.N, from)
					for i := range to {
						want, sum := make([]float64, from), 0.0
						for at := -40; at < 60; at++ {
							w := f(math.Abs(float64(at)+0.5-(float64(i)+0.5)/scale) * min(scale, 1))
							if exclude && (at < 0 || at >= from) {
								continue
							}
							want[max(0, min(at, from-1))] += w
							sum += w
						}
						got := make([]float64, from)
						for k := range taps.N {
							got[taps.Index[i*taps.N+k]] += float64(taps.Weight[i*taps.N+k])
						}
						for k := range want {
							require.InDelta(t, want[k]/sum, got[k], 1e-5, fmt.Sprint(mode, exclude, from, to, i, k))
						}
					}
				}
			}
		}
	}
}

// Which dimensions are resized: rows and columns, counted from either end, of images and of
// sequences.
func TestResizedAxes(t *testing.T) {
	every := func(size, times int) (list []int32) {
		for i := range size * times {
			list = append(list, int32(i/times))
		}
		return list
	}
	sequence := testInput{"x", pb.Float, []any{"n", 3, 7}}
	for _, c := range []struct {
		input      testInput
		axes       []int
		scales     []float64
		rows, cols []int32
		want       string
	}{
		{image(3, 4, 5), []int{2, 3}, []float64{2, 3}, every(4, 2), every(5, 3), ""},
		{image(3, 4, 5), []int{3, 2}, []float64{2, 3}, every(4, 3), every(5, 2), ""},
		{image(3, 4, 5), []int{-1}, []float64{2}, every(4, 1), every(5, 2), ""},
		{image(3, 4, 5), []int{-2}, []float64{2}, every(4, 2), every(5, 1), ""},
		{image(3, 4, 5), []int{1}, []float64{2}, nil, nil, "more than height and width"},
		{image(3, 4, 5), []int{0}, []float64{2}, nil, nil, "more than height and width"},
		{image(3, 4, 5), []int{4}, []float64{2}, nil, nil, "an axis lies outside"},
		{sequence, []int{2}, []float64{2}, every(1, 1), every(7, 2), ""},
		{sequence, []int{-1}, []float64{3}, every(1, 1), every(7, 3), ""},
		{sequence, []int{0, 1, 2}, []float64{1, 1, 2}, every(1, 1), every(7, 2), ""},
		{sequence, []int{-3, -2, -1}, []float64{1, 1, 2}, every(1, 1), every(7, 2), ""},
		{sequence, []int{1}, []float64{2}, nil, nil, "more than height and width"},
		{sequence, []int{-3}, []float64{2}, nil, nil, "more than height and width"},
		{sequence, []int{-2}, []float64{2}, nil, nil, "more than height and width"},
		{sequence, []int{-4}, []float64{2}, nil, nil, "more than height and width"},
		{sequence, []int{3}, []float64{2}, nil, nil, "an axis lies outside"},
	} {
		m := testModel{input: c.input, opset: 18, output: "y", nodes: []testNode{op("Resize", "x _ s", "y", "axes", c.axes)}, inits: []testTensor{floats("s", []int{len(c.scales)}, c.scales...)}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%v", c.axes)
			continue
		}
		require.NoError(t, err, "%v", c.axes)
		require.Len(t, net.Layers, 1)
		op := net.Layers[0].Op.(bcnn.Pixels)
		require.Equal(t, c.rows, op.Rows)
		require.Equal(t, c.cols, op.Cols)
	}
}

// Before operator set 11 ONNX does not say which pixels a smaller image has between others,
// of rows or of columns.
func TestResizeOfOldModels(t *testing.T) {
	for _, c := range []struct {
		scales []float64
		ok     bool
	}{
		{[]float64{1, 1, 0.5, 0.5}, true}, {[]float64{1, 1, 2, 1.5}, true},
		{[]float64{1, 1, 0.75, 0.5}, false}, {[]float64{1, 1, 0.5, 0.75}, false},
	} {
		m := testModel{input: image(1, 8, 8), opset: 10, output: "y",
			nodes: []testNode{op("Resize", "x s", "y", "mode", "nearest")}, inits: []testTensor{floats("s", []int{4}, c.scales...)}}
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		if c.ok {
			require.NoError(t, err, "%v", c.scales)
			continue
		}
		require.ErrorContains(t, err, "which pixels of a larger image are picked", "%v", c.scales)
	}
}
