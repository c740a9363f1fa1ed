package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// functionsOf returns the functions of a plan, in the order of its steps.
func functionsOf(t *testing.T, net *bcnn.Network) (names []bcnn.FunctionName) {
	p, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	for _, s := range p.Steps {
		if op, ok := s.Op.(*plan.Affine); ok && op.Activation.Kind == plan.ActivationFunction {
			names = append(names, op.Activation.Function)
		}
	}
	return names
}

// Functions of one value, by their operators and as products of a value and a function of
// it. Each is of the result of a convolution.
func TestFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 82))
	type functions = []bcnn.FunctionName
	for _, c := range []struct {
		name  string
		nodes []testNode // from x to y
		want  functions
	}{
		{"Sigmoid", []testNode{op("Sigmoid", "x", "y")}, functions{bcnn.Sigmoid}},
		{"Tanh", []testNode{op("Tanh", "x", "y")}, functions{bcnn.Tanh}},
		{"Exp", []testNode{op("Exp", "x", "y")}, functions{bcnn.Exp}},
		{"Erf", []testNode{op("Erf", "x", "y")}, functions{bcnn.Erf}},
		{"Softplus", []testNode{op("Softplus", "x", "y")}, functions{bcnn.Softplus}},
		{"Elu", []testNode{op("Elu", "x", "y")}, functions{bcnn.ELU}},
		{"Elu of another alpha", []testNode{op("Elu", "x", "y", "alpha", 0.7)}, functions{bcnn.ELU}},
		{"Selu", []testNode{op("Selu", "x", "y")}, functions{bcnn.ELU}},
		{"Celu", []testNode{op("Celu", "x", "y", "alpha", 2.0)}, functions{bcnn.ELU}},
		{"Celu of alpha 1", []testNode{op("Celu", "x", "y")}, functions{bcnn.ELU}},
		{"Celu of alpha ½", []testNode{op("Celu", "x", "y", "alpha", 0.5)}, functions{bcnn.ELU}},
		{"Elu of alpha 2", []testNode{op("Elu", "x", "y", "alpha", 2.0)}, functions{bcnn.ELU}},
		{"Selu of gamma 2", []testNode{op("Selu", "x", "y", "alpha", 1.0, "gamma", 2.0)}, functions{bcnn.ELU}},
		{"Selu of gamma 1", []testNode{op("Selu", "x", "y", "gamma", 1.0)}, functions{bcnn.ELU}},
		{"Gelu", []testNode{op("Gelu", "x", "y")}, functions{bcnn.GELU}},
		{"Gelu by tanh", []testNode{op("Gelu", "x", "y", "approximate", "tanh")}, functions{bcnn.GELUTanh}},
		{"HardSwish", []testNode{op("HardSwish", "x", "y")}, functions{bcnn.HardSwish}},
		{"Mish", []testNode{op("Mish", "x", "y")}, functions{bcnn.Mish}},
		{"Swish", []testNode{op("Swish", "x", "y", "alpha", 1.5)}, functions{bcnn.SiLU}},
		{"ThresholdedRelu", []testNode{op("ThresholdedRelu", "x", "y")}, nil},
		{"ThresholdedRelu of a negative alpha", []testNode{op("ThresholdedRelu", "x", "y", "alpha", -0.75)}, nil},
		{"Shrink", []testNode{op("Shrink", "x", "y")}, nil},
		{"soft Shrink", []testNode{op("Shrink", "x", "y", "lambd", 1.5, "bias", 1.5)}, nil},
		{"Shrink to both sides", []testNode{op("Shrink", "x", "y", "lambd", -0.5, "bias", 0.25)}, nil},
		{"Mean", []testNode{op("Tanh", "x", "a"), op("Mean", "x a x", "y")}, functions{bcnn.Tanh}},
		{"Swish of alpha 0", []testNode{op("Swish", "x", "y", "alpha", 0.0)}, nil},

		{"x·sigmoid(x)", []testNode{op("Sigmoid", "x", "s"), op("Mul", "x s", "y")}, functions{bcnn.SiLU}},
		{"sigmoid(x)·x", []testNode{op("Sigmoid", "x", "s"), op("Mul", "s x", "y")}, functions{bcnn.SiLU}},
		{"x·sigmoid(1.7x)", []testNode{op("Mul", "x factor", "a"), op("Sigmoid", "a", "s"), op("Mul", "x s", "y")}, functions{bcnn.SiLU}},
		{"1.7x·sigmoid(x)", []testNode{op("Mul", "x factor", "a"), op("Sigmoid", "x", "s"), op("Mul", "a s", "y")}, functions{bcnn.SiLU}},
		{"GELU", []testNode{op("Div", "x root", "a"), op("Erf", "a", "b"), op("Add", "b one", "c"), op("Mul", "x half", "d"), op("Mul", "d c", "y")}, functions{bcnn.GELU}},
		{"GELU, half last", []testNode{op("Mul", "x inverse", "a"), op("Erf", "a", "b"), op("Add", "b one", "c"), op("Mul", "c x", "d"), op("Mul", "d half", "y")}, functions{bcnn.GELU}},
		{"GELU, half of the function", []testNode{op("Mul", "x inverse", "a"), op("Erf", "a", "b"), op("Add", "b one", "c"), op("Mul", "c half", "d"), op("Mul", "x d", "y")}, functions{bcnn.GELU}},
		{"x·tanh(softplus(x))", []testNode{op("Softplus", "x", "a"), op("Tanh", "a", "b"), op("Mul", "x b", "y")}, functions{bcnn.Mish}},
		// What looks like one of them.
		{"x·sigmoid(x + ½)", []testNode{op("Add", "x half", "a"), op("Sigmoid", "a", "s"), op("Mul", "x s", "y")}, functions{bcnn.Sigmoid}},
		{"x·(sigmoid(x) + ½)", []testNode{op("Sigmoid", "x", "s"), op("Add", "s half", "a"), op("Mul", "x a", "y")}, functions{bcnn.Sigmoid}},
		{"x·tanh(x)", []testNode{op("Tanh", "x", "s"), op("Mul", "x s", "y")}, functions{bcnn.Tanh}},
		{"x·(½ + erf(x/√2))", []testNode{op("Div", "x root", "a"), op("Erf", "a", "b"), op("Add", "b half", "c"), op("Mul", "x c", "y")}, functions{bcnn.Erf}},
		{"x·(1 + erf(x))", []testNode{op("Erf", "x", "b"), op("Add", "b one", "c"), op("Mul", "x c", "y")}, functions{bcnn.Erf}},
		{"relu(x)·sigmoid(x)", []testNode{op("Relu", "x", "a"), op("Sigmoid", "x", "s"), op("Mul", "a s", "y")}, functions{bcnn.Sigmoid}},

		{"softplus, linear from 20 on", []testNode{op("Greater", "x twenty", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, functions{bcnn.Softplus}},
		{"softplus of 2x, linear from 20 on", []testNode{op("Mul", "x two", "b"), op("Greater", "b twenty", "a"), op("Softplus", "b", "s"), op("Div", "s two", "c"),
			op("Where", "a x c", "y")}, functions{bcnn.Softplus}},
		{"softplus, linear from 10 on", []testNode{op("Greater", "x ten", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, functions{bcnn.Softplus}},
		{"softplus of another", []testNode{op("Greater", "x twenty", "a"), op("Neg", "x", "b"), op("Softplus", "b", "s"), op("Where", "a x s", "y")}, functions{bcnn.Softplus}},
		{"squares", []testNode{op("Pow", "x two", "y")}, nil},
		{"cubes", []testNode{op("Pow", "x three", "y")}, nil},
	} {
		for _, first := range []bool{false, true} { // of what the network gets, too
			t.Run(fmt.Sprint(c.name, first), func(t *testing.T) {
				m := testModel{input: image(3, 5, 4), output: "y", rounds: true, inits: []testTensor{randomTensor(r, "w", []int{4, 3, 2, 2}, -1, -0.5, 0.25, 1),
					number("factor", 1.75), number("half", 0.5), number("one", 1), number("two", 2), number("three", 3), number("ten", 10), number("twenty", 20),
					number("root", float64(float32(math.Sqrt2))), number("inverse", float64(float32(1/math.Sqrt2)))}}
				if m.nodes = c.nodes; !first {
					m.nodes = append([]testNode{op("Conv", "x w", "z")}, renamed(c.nodes, map[string]string{"x": "z"})...)
				}
				net, _ := compare(t, r, m, Options{}, false)
				names := functionsOf(t, net)
				require.Equal(t, c.want, names)
			})
		}
	}
}

func TestFunctionErrors(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []testNode
		want  string
	}{
		"form of GELU":    {[]testNode{op("Gelu", "x", "y", "approximate", "sine")}, `approximate is "sine", want none or tanh`},
		"Celu of alpha 0": {[]testNode{op("Celu", "x", "y", "alpha", 0.0)}, "alpha is 0, which is not supported, want a number above 0"},
		"Celu that falls": {[]testNode{op("Celu", "x", "y", "alpha", -2.0)}, "alpha is -2, which is not supported"},
		"Selu that falls": {[]testNode{op("Selu", "x", "y", "gamma", -1.0)}, "gamma is -1, which is not supported"},
		"other powers":    {[]testNode{op("Pow", "x ten", "y")}, "multiples of ¼ from −4 to 4"},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", nodes: c.nodes, inits: []testTensor{number("ten", 10), number("twenty", 20)}}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A softplus that is written out with its linear part is one layer.
func TestLinearSoftplus(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []testNode // from x to y
		want  map[string]int
	}{
		{"from 20 on", []testNode{op("Greater", "x twenty", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1}},
		{"from 18 on", []testNode{op("Greater", "x eighteen", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1}},
		{"of 2x", []testNode{op("Mul", "x two", "b"), op("Greater", "b twenty", "a"), op("Softplus", "b", "s"), op("Div", "s two", "c"), op("Where", "a x c", "y")},
			map[string]int{"softplus": 1, "affine": 2}},
		{"from 10 on", []testNode{op("Greater", "x ten", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1, "sign": 1, "mask": 2, "add": 1}},
		{"below 20", []testNode{op("Less", "x twenty", "a"), op("Softplus", "x", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1, "sign": 1, "mask": 2, "add": 1}},
		{"of 2x, not halved", []testNode{op("Mul", "x two", "b"), op("Greater", "b twenty", "a"), op("Softplus", "b", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1, "mask": 2, "sign": 1}},
		{"of a square", []testNode{op("Mul", "x x", "b"), op("Greater", "b twenty", "a"), op("Softplus", "b", "s"), op("Where", "a x s", "y")}, map[string]int{"softplus": 1, "mul": 1, "mask": 2, "sign": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", rounds: true, nodes: c.nodes, inits: []testTensor{number("two", 2), number("ten", 10), number("eighteen", 18), number("twenty", 20)}}
			net, _ := compare(t, rand.New(rand.NewPCG(1, 2)), m, Options{}, false)
			have := layersOf(net)
			for kind, n := range c.want {
				require.Equal(t, n, have[kind], "%s in %v", kind, have)
			}
			require.Equal(t, c.want["sign"], have["sign"], have)
		})
	}
}

// Factors of 1 are no layers.
func TestFactorsOfFunctions(t *testing.T) {
	for _, c := range []struct {
		node testNode
		want map[string]int
	}{
		{op("Elu", "x", "y"), map[string]int{"elu": 1}},
		{op("Elu", "x", "y", "alpha", 2.0), map[string]int{"elu": 1, "prelu": 1}},
		{op("Selu", "x", "y"), map[string]int{"elu": 1, "affine": 1, "prelu": 1}},
		{op("Selu", "x", "y", "gamma", 1.0), map[string]int{"elu": 1, "prelu": 1}},
		{op("Celu", "x", "y"), map[string]int{"elu": 1}},
		{op("Celu", "x", "y", "alpha", 2.0), map[string]int{"elu": 1, "affine": 2}},
		{op("Swish", "x", "y"), map[string]int{"silu": 1}},
		{op("Swish", "x", "y", "alpha", 0.5), map[string]int{"silu": 1, "affine": 2}},
		{op("Swish", "x", "y", "alpha", 0.0), map[string]int{"affine": 1}},
	} {
		m := testModel{input: image(3, 5, 4), output: "y", nodes: []testNode{c.node}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, layersOf(net), "%v", c.node)
	}
}
