package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// stepConstants are on the grid of the values that they are compared with.
func stepConstants(r *rand.Rand) []testTensor {
	return []testTensor{
		randomTensor(r, "w", []int{4, 3, 1, 1}, -1, -0.5, 0.5, 1), randomTensor(r, "v", []int{4, 3, 1, 1}, -1, -0.5, 0.5, 1),
		randomTensor(r, "ones", []int{2, 4, 2, 2}, -1, 1), randomTensor(r, "pixels", []int{4, 4, 3}, -1, -0.5, 0.25, 1),
		number("zero", 0), number("half", 0.5), number("one", 1), number("minus", -1), number("two", 2), number("third", 1.0/4),
		floats("low", []int{4, 1, 1}, -1, -0.5, 0, -2), floats("high", []int{4, 1, 1}, 0.5, 0, 0.5, 2), floats("alpha", []int{4, 1, 1}, 0.5, 2, 1, 0.25),
	}
}

// Truth values of comparisons that And, Or, Xor and Not join, and what sums, products and
// choices make of them: levels, signs, or masks of values.
func TestJoinedComparisons(t *testing.T) {
	r := rand.New(rand.NewPCG(87, 88))
	window := []testNode{op("GreaterOrEqual", "x zero", "a"), op("Less", "x one", "b"), op("And", "a b", "c")}
	ternary := []testNode{op("Greater", "x half", "a"), op("Less", "x minus", "b"), op("Cast", "a", "c", "to", int(pb.Float)), op("Cast", "b", "d", "to", int(pb.Float)), op("Sub", "c d", "s")}
	conv := op("Conv", "s ones", "y")
	for _, c := range []struct {
		name  string
		nodes []testNode // from x and z, which are results of convolutions, to y
		want  map[string]int
		// products is what the convolution behind takes; 0 for one of real numbers, −1 where there is none.
		products int
	}{
		{"window of 0 and 1", append(slices.Clip(window), op("Cast", "c", "s", "to", int(pb.Float)), conv), map[string]int{"mul": 0, "mask": 0}, 1},
		{"window of ±1", append(slices.Clip(window), op("Where", "c one minus", "s"), conv), map[string]int{"mul": 0, "mask": 0}, 1},
		{"outside of a window", append(slices.Clip(window), op("Not", "c", "d"), op("Where", "d one minus", "s"), conv), map[string]int{"mul": 0, "mask": 0}, 1},
		{"mask of a value", append(slices.Clip(window), op("Cast", "c", "s", "to", int(pb.Float)), op("Mul", "s x", "y")), map[string]int{"mul": 1}, -1},
		{"choice by a window", append(slices.Clip(window), op("Where", "c x z", "y")), map[string]int{"mask": 2}, -1},
		{"three values", append(slices.Clip(ternary), conv), map[string]int{"quantize": 1, "add": 0}, 2},
		{"three values of each channel", []testNode{op("Greater", "x high", "a"), op("LessOrEqual", "x low", "b"), op("Where", "b minus zero", "c"), op("Where", "a one c", "s"), conv}, map[string]int{"quantize": 1}, 2},
		{"three values of each channel, scaled", []testNode{op("Greater", "x high", "a"), op("LessOrEqual", "x low", "b"), op("Where", "b minus zero", "c"), op("Where", "a one c", "d"), op("Mul", "d alpha", "s"), conv}, map[string]int{"quantize": 1}, 0},
		{"three values that fall", append(slices.Clip(ternary), op("Neg", "s", "e"), op("Conv", "e ones", "y")), map[string]int{"quantize": 1}, 2},
		{"four values", []testNode{op("Greater", "x zero", "a"), op("GreaterOrEqual", "x one", "b"), op("Less", "minus x", "c"), op("Cast", "a", "d", "to", 1), op("Cast", "b", "e", "to", 1), op("Cast", "c", "f", "to", 1), op("Add", "d e", "g"), op("Add", "g f", "h"), op("Mul", "h half", "s"), conv}, map[string]int{"quantize": 1, "add": 0}, 2},
		{"values at any distance", []testNode{op("Greater", "x one", "a"), op("Less", "x zero", "b"), op("Where", "b third half", "c"), op("Where", "a two c", "s"), conv}, map[string]int{"quantize": 1}, 3},
		{"rises and falls by turns", []testNode{op("Greater", "x one", "a"), op("Less", "x zero", "b"), op("Where", "b two minus", "c"), op("Where", "a half c", "y")}, map[string]int{"quantize": 0, "sign": 2}, -1},
		{"four pieces of two values", []testNode{op("Greater", "x one", "a"), op("Greater", "x zero", "b"), op("Xor", "a b", "c"), op("Greater", "x minus", "d"), op("Xor", "c d", "e"), op("Where", "e one minus", "s"), conv}, map[string]int{"mul": 0, "mask": 0}, 1},
		{"dead zone of |x|", []testNode{op("Abs", "x", "a"), op("Greater", "a half", "b"), op("Greater", "x zero", "c"), op("Where", "c one minus", "d"), op("Where", "b d zero", "s"), conv}, map[string]int{"quantize": 1, "prelu": 0}, 2},
		{"dead zones of each channel", []testNode{op("Abs", "x", "a"), op("GreaterOrEqual", "a alpha", "b"), op("Sign", "x", "d"), op("Where", "b d zero", "s"), conv}, map[string]int{"quantize": 1, "prelu": 0}, 2},
		{"equal", []testNode{op("Equal", "x half", "a"), op("Where", "a one minus", "s"), conv}, map[string]int{"mul": 0, "mask": 0}, 1},
		{"equal for each channel", []testNode{op("Equal", "x high", "a"), op("Where", "a z zero", "y")}, map[string]int{"mask": 1}, -1},
		{"equal values of two tensors", []testNode{op("Equal", "x z", "a"), op("Not", "a", "b"), op("Where", "b one minus", "s"), conv}, nil, 1},
		{"and of two values", []testNode{op("Greater", "x half", "a"), op("Less", "z zero", "b"), op("And", "a b", "c"), op("Where", "c one minus", "s"), conv}, map[string]int{"min": 1, "add": 0}, 1},
		{"or of two values", []testNode{op("Greater", "x high", "a"), op("Less", "z zero", "b"), op("Or", "a b", "c"), op("Where", "c minus one", "s"), conv}, map[string]int{"max": 1}, 1},
		{"xor of two values", []testNode{op("Greater", "x high", "a"), op("Less", "z zero", "b"), op("Xor", "a b", "c"), op("Cast", "c", "s", "to", 1), conv}, map[string]int{"mul": 1}, 1},
		{"of three values", []testNode{op("Greater", "x z", "a"), op("Less", "z zero", "b"), op("And", "a b", "c"), op("LessOrEqual", "x half", "d"), op("Or", "d c", "e"), op("Not", "e", "f"), op("Where", "f one minus", "s"), conv}, map[string]int{"min": 1, "max": 1}, 1},
		{"with the windows of another", append(slices.Clip(window), op("Less", "z zero", "d"), op("And", "c d", "e"), op("Where", "e x zero", "y")), map[string]int{"min": 1, "mask": 1}, -1},
		{"values of each pixel", []testNode{op("Greater", "x zero", "a"), op("Where", "a pixels minus", "y")}, map[string]int{"sign": 1}, -1},
		{"pieces of each pixel", append(slices.Clip(ternary), op("Mul", "s pixels", "y")), nil, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 3), output: "y", inits: stepConstants(r)}
			m.nodes = slices.Concat([]testNode{op("Conv", "x w", "cx"), op("Conv", "x v", "cz")}, renamed(c.nodes, map[string]string{"x": "cx", "z": "cz"}))
			net, _ := compare(t, r, m, Options{}, false)
			have := map[string]int{}
			for _, l := range net.Layers {
				have[l.Op.Kind()]++
			}
			for kind, n := range c.want {
				require.Equal(t, n, have[kind], "%s in %v", kind, have)
			}
			if c.products >= 0 {
				layers := summarize(t, net)
				last := layers[len(layers)-1]
				require.Equal(t, c.products > 0, last.small, last.WhyFloat)
				if !last.Bytes { // its products are of bits
					require.Equal(t, max(c.products, 1), last.Planes)
				}
			}
		})
	}
}

// A step that rises in unequal steps is a sum of signs, of which a layer behind takes products
// of bits, unless a value of it would be lost in the roundings of that sum.
func TestRisingSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(109, 110))
	for _, c := range []struct {
		values [3]float64
		binary int
	}{
		{[3]float64{-1, 0.25, 3}, 2},
		{[3]float64{-1, 0, 0.3}, 2},
		{[3]float64{-1e10, 1, 3}, 0},
		{[3]float64{-1, 1e-6, 1}, 0},
	} {
		t.Run(fmt.Sprint(c.values), func(t *testing.T) {
			m := testModel{input: image(3, 4, 3), output: "y", rounds: true, inits: []testTensor{
				number("zero", 0), number("one", 1), number("a", c.values[0]), number("b", c.values[1]), number("c", c.values[2]),
				randomTensor(r, "w", []int{5, 3, 1, 1}, -0x1p-10, 0x1p-10),
			}, nodes: []testNode{
				op("GreaterOrEqual", "x zero", "d"), op("Where", "d b a", "e"), op("GreaterOrEqual", "x one", "f"), op("Where", "f c e", "s"), op("Conv", "s w", "y"),
			}}
			if c.binary == 0 { // the first value does not occur
				m.inits[0] = number("zero", -1)
				m.nodes = append([]testNode{op("Abs", "x", "z")}, renamed(m.nodes, map[string]string{"x": "z"})...)
			}
			net, _ := compare(t, r, m, Options{}, false)
			binary := 0
			for _, l := range summarize(t, net) {
				if l.small {
					binary++
				}
			}
			require.Equal(t, c.binary, binary)
		})
	}
}

// What a step gives at its threshold is not taken for the middle of what it gives around it.
func TestUnevenZero(t *testing.T) {
	for _, at := range []float64{0.15, 0.4, 0.0751} {
		m := testModel{input: image(3, 4, 3), output: "y", inits: []testTensor{number("zero", 0), number("at", at)}, nodes: []testNode{
			op("Sign", "x", "a"), op("GreaterOrEqual", "x zero", "b"), op("Where", "b at zero", "c"), op("Add", "a c", "y"),
		}}
		_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
		require.ErrorContains(t, err, "not in the middle")
		r := rand.New(rand.NewPCG(111, 112))
		net, _, err := Load(t.Context(), write(t, m.encode()), Options{SignOfZero: bcnn.ZeroIsPlus, OverrideZeros: true})
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		for i := range x.F32 {
			x.F32[i] = float32(r.IntN(3) - 1)
		}
		y, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		for i, v := range x.F32 {
			want := -1.0
			if v >= 0 {
				want = 1 + at
			}
			require.InDelta(t, want, y.F32[i], 1e-6)
		}
	}
}

// Random expressions of comparisons of one value and of two.
func TestRandomSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(89, 90))
	for trial := range 150 {
		m := testModel{input: image(3, 4, 3), output: "y", inits: stepConstants(r)}
		m.nodes = []testNode{op("Conv", "x w", "cx"), op("Conv", "x v", "cz"), op("Abs", "cx", "ax")}
		one := func(list ...string) string { return list[r.IntN(len(list))] }
		count := 0
		add := func(opType string, in ...string) string {
			count++
			out := fmt.Sprintf("t%d", count)
			m.nodes = append(m.nodes, op(opType, strings.Join(in, " "), out))
			return out
		}
		conditions, values := []string{}, []string{"one", "minus", "zero", "half", "third"}
		for range 2 + r.IntN(4) {
			of := one("cx", "cx", "cx", "cx", "ax", "cz")
			with := one("zero", "half", "one", "minus", "third", "low", "high")
			c := add(one("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"), of, with)
			if len(conditions) > 0 && r.IntN(2) == 0 {
				c = add(one("And", "Or", "Xor"), c, one(conditions...))
			}
			if r.IntN(4) == 0 {
				c = add("Not", c)
			}
			conditions = append(conditions, c)
			v := add("Where", c, one(values...), one(values...))
			if r.IntN(2) == 0 {
				v = add(one("Add", "Sub", "Mul"), v, one(values...))
			}
			values = append(values, v)
		}
		if r.IntN(3) == 0 {
			values = append(values, add("Mul", values[len(values)-1], "cz"))
		}
		m.nodes = append(m.nodes, op("Where", conditions[len(conditions)-1]+" "+values[len(values)-1]+" cx", "s"), op("Conv", "s ones", "y"))
		if r.IntN(2) == 0 {
			m.nodes = append(m.nodes[:len(m.nodes)-2], op("Add", values[len(values)-1]+" cx", "p"), op("Sub", "p cx", "s"), op("Conv", "s ones", "y"))
		}
		t.Run(fmt.Sprint(trial), func(t *testing.T) { compare(t, r, m, Options{}, false) })
	}
}
