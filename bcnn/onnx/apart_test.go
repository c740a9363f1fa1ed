package onnx

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnlikeParts concatenates signs and levels of several factors, or adds them: layers
// behind keep them apart where all parts are such and the weights are few multiples.
func TestUnlikeParts(t *testing.T) {
	r := rand.New(rand.NewPCG(105, 106))
	around := []int{1, 0, 1, 2}
	parts := []testNode{
		op("Clip", "x zero one", "a0"), op("Mul", "a0 three", "b0"), op("Round", "b0", "c0"), op("Mul", "c0 third", "levels"),
		op("Clip", "x minus one", "a1"), op("Round", "a1", "c1"), op("Mul", "c1 half", "ternary"),
		op("GreaterOrEqual", "x zero", "a2"), op("Where", "a2 half minus", "two"),
		op("GreaterOrEqual", "x half", "a3"), op("Where", "a3 half low", "signs"),
	}
	for _, c := range []struct {
		name   string
		nodes  []testNode
		binary int
	}{
		{"levels of two scales", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q pm6 bias", "y")}, 2},
		{"padded", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q pm6 bias", "y", "pads", around, "strides", []int{2, 1})}, 2},
		{"padded before", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Pad", "q pads", "p"), op("Conv", "p pm6", "y")}, 2},
		{"signs of another scale", []testNode{op("Concat", "signs levels", "q", "axis", 1), op("Conv", "q pm6 bias", "y", "pads", around)}, 2},
		{"an offset", []testNode{op("Concat", "two levels", "q", "axis", 1), op("Conv", "q pm6", "y", "pads", around)}, 2},
		{"three parts", []testNode{op("Concat", "levels two ternary", "q", "axis", 1), op("Conv", "q pm9 bias", "y", "pads", around)}, 3},
		{"multiples", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q few bias", "y", "pads", around)}, 2},
		{"two layers and a sum", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q pm6", "y0"), op("Conv", "q few", "y1"), op("Add", "y0 y1", "y2"), op("Relu", "y2", "y")}, 4},
		{"a sign behind", []testNode{op("Concat", "two ternary", "q", "axis", 1), op("Conv", "q pm6 bias", "z"), op("Sign", "z", "s"), op("Conv", "s pm4", "y")}, 3},
		{"pooled", []testNode{op("Concat", "two ternary signs", "q", "axis", 1), op("MaxPool", "q", "p", "kernel_shape", []int{2, 2}, "strides", []int{1, 1}), op("Conv", "p pm9 bias", "y", "pads", around)}, 3},
		{"a sum", []testNode{op("Add", "signs two", "q"), op("Conv", "q pm3", "y", "pads", around)}, 2},
		{"a sum of three", []testNode{op("Add", "signs ternary", "q0"), op("Add", "levels q0", "q"), op("Conv", "q pm3 bias", "y", "pads", around)}, 3},
		{"a sum, scaled", []testNode{op("Add", "signs two", "q0"), op("Mul", "q0 half", "q1"), op("Add", "q1 ternary", "q"), op("Conv", "q few3 bias", "y", "pads", around)}, 3},
		{"a sum in groups", []testNode{op("Add", "signs ternary", "q"), op("Conv", "q single", "y", "group", 3)}, 2},
		{"a sum, flattened", []testNode{op("Add", "signs two", "q"), op("Flatten", "q", "f"), op("MatMul", "f dense90", "y")}, 2},
		{"a sum, pooled", []testNode{op("Add", "signs two", "q"), op("MaxPool", "q", "p", "kernel_shape", []int{2, 2}), op("Conv", "p pm3", "y")}, 0},
		{"a sum that is moved", []testNode{op("Add", "signs two", "q0"), op("Add", "q0 third", "q"), op("Conv", "q pm3", "y")}, 2},
		{"a difference", []testNode{op("Sub", "signs two", "q"), op("Conv", "q pm3", "y")}, 0},
		{"a sum with a number", []testNode{op("Mul", "x half", "r"), op("Add", "signs r", "q"), op("Conv", "q pm3", "y")}, 0},
		{"a sum, repeated", []testNode{op("GlobalMaxPool", "two", "u"), op("Add", "signs u", "q"), op("Conv", "q pm3", "y")}, 0},
		{"vectors", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Flatten", "q", "f"), op("MatMul", "f dense", "y")}, 2},
		{"real weights", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q real", "y")}, 0},
		{"real in one part", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q mixed", "y")}, 0},
		{"a real part", []testNode{op("Concat", "levels x", "q", "axis", 1), op("Conv", "q pm6", "y")}, 0},
		{"groups", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q groups", "y", "group", 2)}, 0},
		{"padded with a number", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Add", "q one", "a"), op("Conv", "a pm6", "y", "pads", around)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			mixed := randomTensor(r, "mixed", []int{4, 6, 3, 3}, -1, 1)
			mixed.values[len(mixed.values)-1] = 0.3137
			m := testModel{input: image(3, 5, 6), output: "y", rounds: true, nodes: append(append([]testNode{}, parts...), c.nodes...), inits: []testTensor{
				randomTensor(r, "pm6", []int{4, 6, 3, 3}, -0.5, 0.5), randomTensor(r, "pm9", []int{4, 9, 3, 3}, -1, 1), randomTensor(r, "pm4", []int{2, 4, 2, 2}, -1, 1),
				randomTensor(r, "few", []int{4, 6, 3, 3}, -0.75, -0.25, 0, 0.25, 0.75), randomTensor(r, "real", []int{4, 6, 3, 3}, -1, 0.3, 0.7),
				randomTensor(r, "groups", []int{4, 3, 3, 3}, -1, 1), randomTensor(r, "dense", []int{6, 5}, -1, 1), mixed,
				randomTensor(r, "pm3", []int{4, 3, 2, 2}, -0.5, 0.5), randomTensor(r, "few3", []int{4, 3, 2, 2}, -1.5, -0.5, 0, 0.5, 1.5),
				randomTensor(r, "single", []int{3, 1, 2, 2}, -1, 1), randomTensor(r, "dense90", []int{90, 5}, -1, 1),
				ints("pads", 0, 0, 1, 0, 0, 0, 1, 1), floats("bias", []int{4}, 0.5, -1, 0, 2), number("low", -0.5),
				number("half", 0.5), number("third", 1./3), number("three", 3), number("zero", 0), number("one", 1), number("minus", -1)}}
			if c.name == "vectors" {
				m.input = image(3, 1, 1)
			}
			net, _ := compare(t, r, m, Options{}, false)
			binary := 0
			for _, l := range summarize(t, net) {
				if l.Binary {
					binary++
				}
			}
			require.Equal(t, strconv.Itoa(c.binary), strconv.Itoa(binary))
		})
	}
}
