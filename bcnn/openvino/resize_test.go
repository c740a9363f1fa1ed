package openvino

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Pixels that are picked or put around an image of two channels, 1 to 6 and their negatives.
func TestPixels(t *testing.T) {
	input := []float32{1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6}
	both := func(dims []int, list ...float32) []float32 {
		require.Len(t, list, dims[2]*dims[3])
		for _, v := range slices.Clone(list) {
			list = append(list, -v)
		}
		return list
	}
	for name, c := range map[string]struct {
		dims  []int
		want  []float32
		write func(w *writer, x int, dims []int)
	}{
		"nearest": {[]int{1, 2, 4, 6}, []float32{
			1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 4, 4, 5, 5, 6, 6,
		}, func(w *writer, x int, dims []int) {
			w.op("Interpolate opset11", `mode="nearest" shape_calculation_mode="sizes" coordinate_transformation_mode="asymmetric" nearest_mode="floor"`, dims,
				x, w.ints(4, 6), w.ints(2, 3))
		}},
		"scales of opset 4": {[]int{1, 2, 2, 6}, []float32{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}, func(w *writer, x int, dims []int) {
			w.op("Interpolate opset4", `mode="nearest" shape_calculation_mode="scales" pads_begin="0,0,0,0" pads_end="0" nearest_mode="simple" coordinate_transformation_mode="asymmetric" cube_coeff="-0.75" antialias="false"`, dims,
				x, w.ints(9), w.floats([]int{1}, 2), w.ints(3))
		}},
		"linear": {[]int{1, 2, 2, 6}, []float32{1, 1.25, 1.75, 2.25, 2.75, 3, 4, 4.25, 4.75, 5.25, 5.75, 6}, func(w *writer, x int, dims []int) {
			w.op("Interpolate opset11", `mode="linear_onnx" shape_calculation_mode="sizes"`, dims, x, w.ints(2, 6), w.ints(2, -1))
		}},
		"all dimensions": {[]int{1, 2, 1, 3}, []float32{4, 5, 6}, func(w *writer, x int, dims []int) {
			w.op("Interpolate opset11", `mode="nearest" shape_calculation_mode="scales" coordinate_transformation_mode="tf_half_pixel_for_nn" nearest_mode="ceil"`, dims,
				x, w.floats([]int{4}, 1, 1, 0.5, 1))
		}},
		"pad": {[]int{1, 2, 3, 5}, []float32{0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0}, func(w *writer, x int, dims []int) {
			w.op("Pad", `pad_mode="constant"`, dims, x, w.ints(0, 0, 0, 1), w.ints(0, 0, 1, 1))
		}},
		"crop": {[]int{1, 2, 1, 4}, []float32{3, 3, 3, 3}, func(w *writer, x int, dims []int) {
			w.op("Pad opset12", `pad_mode="edge"`, dims, x, w.ints(0, 0, 0, -2), w.ints(0, 0, -1, 3))
		}},
		"reflect": {[]int{1, 2, 2, 5}, []float32{2, 1, 2, 3, 2, 5, 4, 5, 6, 5}, func(w *writer, x int, dims []int) {
			w.op("Pad", `pad_mode="reflect"`, dims, x, w.ints(0, 0, 0, 1), w.ints(0, 0, 0, 1))
		}},
		"symmetric": {[]int{1, 2, 2, 5}, []float32{1, 1, 2, 3, 3, 4, 4, 5, 6, 6}, func(w *writer, x int, dims []int) {
			w.op("Pad", `pad_mode="symmetric"`, dims, x, w.ints(0, 0, 0, 1), w.ints(0, 0, 0, 1))
		}},
	} {
		w := newWriter()
		c.write(w, w.parameter(1, 2, 2, 3), c.dims)
		f := w.last()
		net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.NoError(t, err, name)
		for _, got := range run(t, net, input) {
			require.Equal(t, both(c.dims, slices.Clone(c.want)...), got, name)
		}
	}
	// Padding with a number of channels behind it is a layer for rows of channels, too.
	w := newWriter()
	w.op("Pad", `pad_mode="constant"`, []int{1, 4, 2, 3}, w.parameter(1, 2, 2, 3), w.ints(0, 1, 0, 0), w.ints(0, 1, 0, 0), w.number(7))
	f := w.last()
	net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	for _, got := range run(t, net, input) {
		require.Equal(t, slices.Concat(slices.Repeat([]float32{7}, 6), input, slices.Repeat([]float32{7}, 6)), got)
	}
}

// A convolution behind zeros that are put around signs stays binary, as the ONNX importer has it.
func TestPadInFrontOfConvolution(t *testing.T) {
	w := newWriter()
	x := w.parameter(1, 16, 6, 6)
	signs := w.quantize(x, 2, 0, 0, -1, 1)
	padded := w.op("Pad", `pad_mode="constant"`, []int{1, 16, 8, 8}, signs, w.ints(0, 0, 1, 1), w.ints(0, 0, 1, 1), w.number(-1))
	weights := make([]float32, 4*16*9)
	for i := range weights {
		weights[i] = float32(1 - 2*(i*7%5%2))
	}
	w.op("Convolution", explicit(1, 0), []int{1, 4, 6, 6}, padded, w.floats([]int{4, 16, 3, 3}, weights...))
	f := w.last()
	net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	binary := 0
	for _, l := range net.Layers {
		if c, ok := l.Op.(bcnn.Conv2D); ok && c.Weights.F32 == nil {
			binary++
		}
	}
	require.Equal(t, 1, binary)
}

func TestPixelsRefused(t *testing.T) {
	interpolate := func(attrs string, list func(w *writer) int, axes ...int64) func(w *writer, x int) {
		return func(w *writer, x int) {
			w.op("Interpolate opset11", attrs, nil, x, list(w), w.ints(axes...))
		}
	}
	sizes := func(list ...int64) func(w *writer) int { return func(w *writer) int { return w.ints(list...) } }
	scales := func(list ...float32) func(w *writer) int {
		return func(w *writer) int { return w.floats([]int{len(list)}, list...) }
	}
	pad := func(version, mode string, begin, end []int64, more ...float32) func(w *writer, x int) {
		return func(w *writer, x int) {
			inputs := []int{x, w.ints(begin...), w.ints(end...)}
			if len(more) > 0 {
				inputs = append(inputs, w.floats([]int{len(more)}, more...))
			}
			w.op("Pad "+version, "pad_mode="+strconv.Quote(mode), nil, inputs...)
		}
	}
	const bySize, byScale = `mode="nearest" shape_calculation_mode="sizes"`, `mode="nearest" shape_calculation_mode="scales"`
	for want, write := range map[string]func(w *writer, x int){
		`its attribute mode is "bilinear_pillow", want nearest, linear, linear_onnx or cubic`: interpolate(`mode="bilinear_pillow" shape_calculation_mode="sizes"`, sizes(2, 2), 2, 3),
		`its attribute antialias is "true", want false`:                                       interpolate(`mode="linear" antialias="true" shape_calculation_mode="sizes"`, sizes(2, 2), 2, 3),
		`its attribute pads_begin is "0,1", want zeros`:                                       interpolate(bySize+` pads_begin="0,1"`, sizes(2, 2), 2, 3),
		`its attribute shape_calculation_mode is "x", want sizes or scales`:                   interpolate(`mode="nearest" shape_calculation_mode="x"`, sizes(2, 2), 2, 3),
		`its attribute coordinate_transformation_mode is "x"`:                                 interpolate(bySize+` coordinate_transformation_mode="x"`, sizes(2, 2), 2, 3),
		`its attribute nearest_mode is "x"`:                                                   interpolate(bySize+` nearest_mode="x"`, sizes(2, 2), 2, 3),
		"it has 3 sizes or scales for 2 axes":                                                 interpolate(bySize, sizes(2, 2, 2), 2, 3),
		"it resizes the batch, which is not supported":                                        interpolate(bySize, sizes(2, 5), 0, 3),
		"it changes dimensions [1 2 3]: more than two are not supported":                      interpolate(bySize, sizes(2, 2, 2), 1, 2, 3),
		"its axes are not some of 4 dimensions":                                               interpolate(bySize, sizes(2, 2), 2, 2),
		"dimension 3, of size 5, becomes empty":                                               interpolate(byScale, scales(1, 0.1), 2, 3),
		"a scale is 0, want one above 0":                                                      interpolate(byScale, scales(1, 0), 2, 3),
		"rows, columns or":                                                                    interpolate(bySize, sizes(1<<40, 5), 2, 3),
		`its attribute pad_mode is "x", want constant, edge, reflect or symmetric`:            pad("opset1", "x", []int64{0, 0, 1, 1}, []int64{0, 0, 1, 1}),
		"it has 3 and 4 pads for 4 dimensions":                                                pad("opset1", "edge", []int64{0, 1, 1}, []int64{0, 0, 1, 1}),
		"it pads the batch, which is not supported":                                           pad("opset1", "edge", []int64{1, 0, 1, 1}, []int64{0, 0, 1, 1}),
		"it changes dimensions [1 2 3]":                                                       pad("opset1", "edge", []int64{0, 1, 1, 0}, []int64{0, 0, 1, 1}),
		"want numbers from 0 to 65536":                                                        pad("opset1", "edge", []int64{0, 0, -1, 0}, []int64{0, 0, 1, 1}),
		"pads of -3 and -2 leave nothing of a size of 5":                                      pad("opset12", "edge", []int64{0, 0, -3, 0}, []int64{0, 0, -2, 1}),
		`pads of 5 and 0 of a size of 5, mode "reflect": want 0 to 4`:                         pad("opset1", "reflect", []int64{0, 0, 5, 0}, []int64{0, 0, 0, 1}),
		`pads of 6 and 0 of a size of 5, mode "symmetric": want 0 to 5`:                       pad("opset1", "symmetric", []int64{0, 0, 6, 0}, []int64{0, 0, 0, 1}),
		"its value has shape [2], want one number":                                            pad("opset1", "constant", []int64{0, 0, 1, 0}, []int64{0, 0, 0, 1}, 1, 2),
	} {
		w := newWriter()
		write(w, w.parameter(1, 4, 5, 5))
		f := w.last()
		_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.ErrorContains(t, err, want)
	}
}
