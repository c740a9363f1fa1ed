package openvino

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Comparisons give one of two numbers, also where values are the threshold itself.
func TestComparisons(t *testing.T) {
	input := []float32{-2, -1, -0.5, 0, 0.5, 1, 2, 3}
	kinds := map[string]func(a, b float32) bool{
		"Greater":      func(a, b float32) bool { return a > b },
		"GreaterEqual": func(a, b float32) bool { return a >= b },
		"Less":         func(a, b float32) bool { return a < b },
		"LessEqual":    func(a, b float32) bool { return a <= b },
	}
	for kind, holds := range kinds {
		for _, swapped := range []bool{false, true} {
			for _, pair := range [][2]float32{{1, -1}, {-1, 1}, {1, 0}, {0, 2}, {3, -2}} {
				name := fmt.Sprint(kind, swapped, pair)
				w := newWriter()
				x := w.parameter(1, 2, 2, 2)
				c := w.floats([]int{2, 1, 1}, 0, 0.5)
				at := []int{x, c}
				if swapped {
					at = []int{c, x}
				}
				b := w.op(kind, `auto_broadcast="numpy"`, []int{1, 2, 2, 2}, at...)
				w.result(w.op("Select", `auto_broadcast="numpy"`, nil, b, w.number(pair[0]), w.number(pair[1])))
				w.result(w.op("Convert", `destination_type="f32"`, nil, b))
				f := w.files()
				net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
				require.NoError(t, err, name)
				var chosen, truth []float32
				for i, v := range input {
					a, b := v, []float32{0, 0.5}[i/4]
					if swapped {
						a, b = b, a
					}
					if holds(a, b) {
						chosen, truth = append(chosen, pair[0]), append(truth, 1)
					} else {
						chosen, truth = append(chosen, pair[1]), append(truth, 0)
					}
				}
				got := run(t, net, input)
				require.Len(t, got, 2, name)
				for tensor, y := range got {
					if tensor[:3] == "sel" {
						require.Equal(t, chosen, y, name)
					} else {
						require.Equal(t, truth, y, name)
					}
				}
			}
		}
	}
}

// The binary layers of an export from PyTorch: a Select of 1 and −1, and weights of ±1.
func TestSelectedSigns(t *testing.T) {
	w := newWriter()
	x := w.parameter(1, 2, 2, 2)
	b := w.op("GreaterEqual", "", nil, x, w.number(0))
	s := w.op("Select", "", nil, b, w.number(1), w.number(-1))
	w.op("Convolution", explicit(1, 0), nil, s, w.floats([]int{2, 2, 1, 1}, 1, -1, -1, -1))
	f := w.last()
	net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	conv := net.Layers[len(net.Layers)-1]
	require.Equal(t, "conv2d", conv.Op.Kind())
	require.Contains(t, fmt.Sprintf("%+v", conv.Op), "F32:[]")
	require.Equal(t, map[string][]float32{"convolution_7": {0, 2, -2, 0, -2, 0, 0, 2}},
		run(t, net, []float32{0, 1, -1, -1, 2, -3, 0, -1}))
	w = newWriter()
	w.op("Sign", "", nil, w.parameter(1, 3))
	f = w.last()
	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	require.Equal(t, []float32{-1, 0, 1}, run(t, net, []float32{-0.25, 0, 7})["sign_1"])
}

func TestComparisonsRefuse(t *testing.T) {
	for want, write := range map[string]func(w *writer, x int){
		"a comparison of two values":          func(w *writer, x int) { w.op("Less", "", nil, x, x) },
		"its input is boolean: want a Select": func(w *writer, x int) { w.op("ReLU", "", nil, w.op("Less", "", nil, x, w.number(1))) },
		"has elements of u8 or boolean":       func(w *writer, x int) { w.op("Less", "", nil, x, w.number(1)) },
		"its condition must be a comparison":  func(w *writer, x int) { w.op("Select", "", nil, x, w.number(1), w.number(2)) },
		"its input 1 has shape [2], want one n": func(w *writer, x int) {
			w.op("Select", "", nil, w.op("Less", "", nil, x, w.number(1)), w.floats([]int{2}, 1, 2), w.number(2))
		},
	} {
		w := newWriter()
		write(w, w.parameter(1, 2, 5, 5))
		f := w.last()
		_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.ErrorContains(t, err, want)
	}
}
