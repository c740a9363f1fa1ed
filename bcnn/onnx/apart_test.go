package onnx

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestBases has weights that are sums of binary bases: four values of two, and up to four
// that reach as far below 0 as above it.
func TestBases(t *testing.T) {
	r := rand.New(rand.NewPCG(107, 108))
	around := []int{1, 0, 1, 2}
	sign := []testNode{op("GreaterOrEqual", "x zero", "a"), op("Where", "a one minus", "s")}
	scaled := []testNode{op("GreaterOrEqual", "x zero", "a"), op("Where", "a half low", "s")}
	step := []testNode{op("Greater", "x zero", "a"), op("Cast", "a", "s", "to", int(pb.Float))}
	ternary := []testNode{op("Clip", "x minus one", "a"), op("Round", "a", "s")}
	bits := []testNode{op("Clip", "x zero seven", "a"), op("Round", "a", "s")}
	offset := []testNode{op("GreaterOrEqual", "x zero", "a"), op("Where", "a half minus", "s")}
	sum := append(append([]testNode{}, offset...), op("Clip", "x minus one", "a2"), op("Round", "a2", "t"), op("Mul", "t third", "u"), op("Add", "s u", "v"))
	pair := []float64{-0.7137, -0.2211, 0.2211, 0.7137}
	steps := []float64{-0.7137, -0.3, 0.2511, 0.7137}
	for _, c := range []struct {
		name     string
		nodes    []testNode
		values   []float64
		products string // of bits by layer
	}{
		{"two bases", append(sign, op("Conv", "s w", "y")), pair, "1 1"},
		{"a base for each step", append(sign, op("Conv", "s w bias", "y")), steps, "1 1 1"},
		{"three values", append(sign, op("Conv", "s w bias", "y")), []float64{-0.7137, 0.2, 0.7137}, "1 1"},
		{"padded", append(sign, op("Conv", "s w bias", "y", "pads", around, "strides", []int{2, 1})), pair, "1 1"},
		{"padded with −1", append(sign, op("Pad", "s pads minus", "p"), op("Conv", "p w", "y")), pair, "1 1"},
		{"of ±½", append(scaled, op("Conv", "s w bias", "y", "pads", around)), pair, "1 1"},
		{"of {0, 1}", append(step, op("Conv", "s w bias", "y", "pads", around)), steps, "1 1 1"},
		{"of three values", append(ternary, op("Conv", "s w bias", "y", "pads", around)), pair, "2 2"},
		{"of three bits", append(bits, op("Conv", "s w bias", "y", "pads", around)), pair, ""},
		{"of an offset", append(offset, op("Conv", "s w bias", "y")), pair, "1 1"},
		{"of an offset, padded", append(offset, op("Conv", "s w bias", "y", "pads", around)), pair, ""},
		{"in groups", append(sign, op("Conv", "s group", "y", "group", 3)), pair, "1 1"},
		{"dense", append(sign, op("Flatten", "s", "f"), op("MatMul", "f dense", "y")), steps, "1 1 1"},
		{"a sum of signs", append(scaled, op("Clip", "x minus one", "a2"), op("Round", "a2", "t"), op("Mul", "t third", "u"), op("Add", "s u", "v"), op("Conv", "v w bias", "y", "pads", around)), pair, "1 1 2 2"},
		{"a sum with an offset", append(sum, op("Conv", "v w bias", "y", "pads", around)), pair, ""},
		{"five values", append(sign, op("Conv", "s w", "y")), []float64{-0.7137, -0.3, 0.11, 0.2511, 0.7137}, ""},
		{"lopsided", append(sign, op("Conv", "s w", "y")), []float64{-0.7, -0.3, 0.2511, 0.7137}, ""},
		{"real input", []testNode{op("Conv", "x w", "y")}, pair, ""},
		{"of {0, 1}, nearly 0", append(step, op("Conv", "s w", "y")), []float64{-1, -1e-5, 1e-5, 1}, ""},
		{"of {0, 1}, a step nearly 0", append(step, op("Conv", "s w", "y")), []float64{-1, 1e-5, 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := randomTensor(r, "w", []int{4, 3, 3, 3}, c.values...)
			copy(w.values, c.values) // each occurs
			for i := range 27 {
				w.values[27+i] = 0.5 * pair[3*(i%2)] // a filter of two values
			}
			dense, group := randomTensor(r, "dense", []int{90, 5}, c.values...), randomTensor(r, "group", []int{3, 1, 3, 3}, c.values...)
			for i := range c.values {
				for k := range 3 {
					group.values[9*k+i] = c.values[i]
				}
			}
			m := testModel{input: image(3, 5, 6), output: "y", rounds: true, nodes: c.nodes, inits: []testTensor{w, dense, group,
				ints("pads", 0, 0, 1, 0, 0, 0, 1, 1), floats("bias", []int{4}, 0.5, -1, 0, 2), number("low", -0.5), number("half", 0.5), number("third", 1./3),
				number("zero", 0), number("one", 1), number("minus", -1), number("seven", 7)}}
			net, _ := compare(t, r, m, Options{}, false)
			requireProducts(t, c.products, summarize(t, net))
		})
	}
}

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
		{"a difference", []testNode{op("Sub", "signs two", "q"), op("Conv", "q pm3", "y")}, 2},
		{"a sum with a number", []testNode{op("Mul", "x half", "r"), op("Add", "signs r", "q"), op("Conv", "q pm3", "y")}, 0},
		{"a sum, repeated", []testNode{op("GlobalMaxPool", "two", "u"), op("Add", "signs u", "q"), op("Conv", "q pm3", "y")}, 2},
		{"vectors", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Flatten", "q", "f"), op("MatMul", "f dense", "y")}, 2},
		{"real weights", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q real", "y")}, 0},
		{"real in one part", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q mixed", "y")}, 0},
		{"a real part", []testNode{op("Concat", "levels x", "q", "axis", 1), op("Conv", "q pm6", "y")}, 0},
		{"groups", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Conv", "q groups", "y", "group", 2)}, 0},
		{"padded with a number", []testNode{op("Concat", "levels ternary", "q", "axis", 1), op("Add", "q one", "a"), op("Conv", "a pm6", "y", "pads", around)}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			mixed := randomTensor(r, "mixed", []int{4, 6, 3, 3}, -1, 1)
			for i := range 20 {
				mixed.values[len(mixed.values)-1-i] = 0.3137 * float64(i)
			}
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
				if l.small {
					binary++
				}
			}
			require.Equal(t, strconv.Itoa(c.binary), strconv.Itoa(binary))
		})
	}
}
