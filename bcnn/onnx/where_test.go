package onnx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// Choices between values, and clips, quotients and extremes that other operators write out.
func TestChoices(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 84))
	for _, c := range []struct {
		name  string
		nodes []testNode // from x and z, which are results of convolutions, to y
		want  map[string]int
	}{
		{"limit below", []testNode{op("Less", "x half", "c"), op("Where", "c half x", "y")}, map[string]int{"clip": 1}},
		{"limit below, the other way", []testNode{op("Greater", "x half", "c"), op("Where", "c x half", "y")}, map[string]int{"clip": 1}},
		{"limit above", []testNode{op("Greater", "x half", "c"), op("Where", "c half x", "y")}, map[string]int{"clip": 1}},
		{"limits on both sides", []testNode{op("Greater", "x two", "c"), op("Where", "c two x", "a"), op("Less", "x half", "d"), op("Where", "d half a", "y")}, map[string]int{"clip": 1}},
		{"limits in the wrong order", []testNode{op("Greater", "x half", "c"), op("Where", "c half x", "a"), op("Less", "x two", "d"), op("Where", "d two a", "y")}, map[string]int{"clip": 1, "sign": 1, "mask": 1}},
		{"another number than the limit", []testNode{op("Less", "x half", "c"), op("Where", "c two x", "y")}, map[string]int{"sign": 1, "mask": 1}},
		{"of another value", []testNode{op("Less", "z half", "c"), op("Where", "c half x", "y")}, map[string]int{"sign": 1, "mask": 1}},
		{"limit of the other side", []testNode{op("Less", "x half", "c"), op("Where", "c x half", "y")}, map[string]int{"clip": 1}},
		{"two slopes", []testNode{op("Greater", "x zero", "c"), op("Mul", "x slopes", "a"), op("Mul", "x half", "b"), op("Where", "c a b", "y")}, map[string]int{"sign": 1, "mask": 2, "add": 1}},
		{"two values", []testNode{op("GreaterOrEqual", "x half", "c"), op("Where", "c x z", "y")}, map[string]int{"sign": 1, "mask": 2, "add": 1}},
		{"the larger of two values", []testNode{op("Greater", "x z", "c"), op("Where", "c x z", "y")}, map[string]int{"sign": 1, "mask": 2, "add": 2}},
		{"signs in two steps", []testNode{op("GreaterOrEqual", "x zero", "c"), op("Where", "c one x", "a"), op("Less", "x zero", "d"), op("Where", "d minus a", "y")}, map[string]int{"sign": 1, "mul": 0, "mask": 0}},
		{"signs in two steps in place", []testNode{op("Greater", "x half", "c"), op("Where", "c one x", "a"), op("LessOrEqual", "a half", "d"), op("Where", "d minus a", "y")}, map[string]int{"sign": 1, "mul": 0, "mask": 0}},
		{"the second step first", []testNode{op("Less", "x zero", "c"), op("Where", "c minus x", "a"), op("Less", "a zero", "d"), op("Where", "d a one", "y")}, map[string]int{"sign": 1, "mul": 0, "mask": 0}},
		{"three values in two steps", []testNode{op("Greater", "x zero", "c"), op("Where", "c one x", "a"), op("Less", "x zero", "d"), op("Where", "d minus a", "y")}, map[string]int{"quantize": 1, "mul": 0, "mask": 0}},
		{"two steps of different values", []testNode{op("GreaterOrEqual", "x zero", "c"), op("Where", "c one x", "a"), op("Less", "z zero", "d"), op("Where", "d minus a", "y")}, map[string]int{"mask": 2, "mul": 0}},
		{"two steps with a gap", []testNode{op("GreaterOrEqual", "x half", "c"), op("Where", "c one x", "a"), op("Less", "x zero", "d"), op("Where", "d minus a", "y")}, map[string]int{"mask": 1}},
		{"thresholds of each pixel", []testNode{op("Greater", "x pixels", "c"), op("Where", "c one minus", "a"), op("LessOrEqual", "pixels z", "d"), op("Where", "d one minus", "b"), op("Add", "a b", "y")}, map[string]int{"sign": 2}},
		{"round of a sigmoid", []testNode{op("Sigmoid", "x", "a"), op("Round", "a", "y")}, map[string]int{"quantize": 1}},
		{"equal values", []testNode{op("Less", "x z", "c"), op("Where", "c two half", "a"), op("Add", "a x", "y")}, map[string]int{"sign": 1}},
		{"nothing or a value", []testNode{op("Greater", "x thresholds", "c"), op("Where", "c z zero", "y")}, map[string]int{"sign": 1, "mask": 1}},
		{"elu", []testNode{op("Greater", "x zero", "c"), op("Exp", "x", "e"), op("Sub", "e one", "d"), op("Where", "c x d", "y")}, map[string]int{"elu": 1, "prelu": 0, "sign": 0}},
		{"elu of twice the slope", []testNode{op("Greater", "x zero", "c"), op("Exp", "x", "e"), op("Sub", "e one", "d"), op("Mul", "d two", "f"), op("Where", "c x f", "y")}, map[string]int{"elu": 1, "prelu": 1, "sign": 0}},
		{"elu of another alpha", []testNode{op("LessOrEqual", "x zero", "c"), op("Exp", "x", "e"), op("Sub", "e one", "d"), op("Mul", "d half", "f"), op("Where", "c f x", "y")}, map[string]int{"elu": 1, "prelu": 1, "sign": 0}},
		{"elu that is cut", []testNode{op("Greater", "x zero", "c"), op("Min", "x zero", "m"), op("Exp", "m", "e"), op("Sub", "e one", "d"), op("Where", "c x d", "y")}, map[string]int{"exp": 1, "sign": 1}},
		{"clip of absolute values", []testNode{op("Abs", "x", "a"), op("Sub", "x two", "b"), op("Abs", "b", "c"), op("Sub", "a c", "d"), op("Add", "d two", "e"), op("Mul", "e half", "y")}, map[string]int{"clip": 1, "prelu": 0}},
		{"absolute values of others", []testNode{op("Abs", "x", "a"), op("Sub", "z two", "b"), op("Abs", "b", "c"), op("Sub", "a c", "y")}, map[string]int{"clip": 0, "prelu": 2}},
		{"x/(1 + exp(−x))", []testNode{op("Neg", "x", "a"), op("Exp", "a", "b"), op("Add", "b one", "c"), op("Div", "x c", "y")}, map[string]int{"silu": 1, "affine": 0}},
		{"x/(1 + exp(z))", []testNode{op("Exp", "z", "b"), op("Add", "one b", "c"), op("Div", "x c", "y")}, map[string]int{"sigmoid": 1, "mul": 1}},
		{"2/(1 + exp(−x))", []testNode{op("Neg", "x", "a"), op("Exp", "a", "b"), op("Add", "b one", "c"), op("Div", "two c", "y")}, map[string]int{"sigmoid": 1, "affine": 1}},
		{"largest of the channels", []testNode{op("ReduceMax", "x", "y", "axes", []int{1})}, map[string]int{"topk": 1}},
		{"smallest of the channels", []testNode{op("ReduceMin", "x", "y", "axes", []int{1})}, map[string]int{"topk": 1}},
		{"mean of an image and its channels", []testNode{op("ReduceMean", "x", "y", "axes", []int{1, 2, 3}, "keepdims", 1)}, map[string]int{"avgpool": 1, "conv2d": 2}},
		{"smallest of an image and its channels", []testNode{op("ReduceMin", "x", "y", "axes", []int{1, 2, 3}, "keepdims", 0)}, map[string]int{"maxpool": 1, "topk": 1}},
		{"sum of rows and channels", []testNode{op("ReduceSum", "x", "y", "axes", []int{1, 2})}, map[string]int{"conv2d": 3}},
		{"softmax of pixels", []testNode{op("Softmax", "x", "y", "axis", 1)}, map[string]int{"softmax": 1, "flatten": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", rounds: true, inits: []testTensor{
				randomTensor(r, "w", []int{4, 3, 2, 2}, -1, -0.5, 0.25, 1), randomTensor(r, "v", []int{4, 3, 2, 2}, -1, -0.5, 0.25, 1),
				randomTensor(r, "pixels", []int{4, 4, 3}, -1, -0.5, 0.25, 1), floats("slopes", []int{4, 1, 1}, 0.5, -1.25, 0, 2), floats("thresholds", []int{1, 4, 1, 1}, 0.5, -1.25, 0, 2),
				number("zero", 0), number("half", 0.5), number("one", 1), number("minus", -1), number("two", 2)}}
			m.nodes = slices.Concat([]testNode{op("Conv", "x w", "cx"), op("Conv", "x v", "cz")}, renamed(c.nodes, map[string]string{"x": "cx", "z": "cz"}))
			net, _ := compare(t, r, m, Options{}, false)
			have := map[string]int{}
			for _, l := range net.Layers {
				have[l.Op.Kind()]++
			}
			for kind, n := range c.want {
				require.Equal(t, n, have[kind], "%s in %v", kind, have)
			}
		})
	}
}

// renamed gives the inputs of nodes other names.
func renamed(nodes []testNode, names map[string]string) []testNode {
	nodes = slices.Clone(nodes)
	for k, n := range nodes {
		n.in = slices.Clone(n.in)
		for i, in := range n.in {
			if to, ok := names[in]; ok {
				n.in[i] = to
			}
		}
		nodes[k] = n
	}
	return nodes
}

// The three values of a sign that is scaled and shifted are those of the source, also where
// their middle is rounded.
func TestScaledSigns(t *testing.T) {
	r := rand.New(rand.NewPCG(85, 86))
	for range 200 {
		scale, shift := float32(r.NormFloat64()), float32(r.NormFloat64())
		m := testModel{input: image(2, 3, 3), output: "y", nodes: []testNode{
			op("Floor", "x", "f"), op("Clip", "f minus one", "c"), op("Sign", "c", "s"), op("Mul", "s scale", "a"), op("Add", "a shift", "y"),
		}, inits: []testTensor{number("scale", float64(scale)), number("shift", float64(shift)), number("minus", -1), number("one", 1)}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err, "%v·sign + %v", scale, shift)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		for i := range x.F32 {
			x.F32[i] = float32(i%3) - 1
		}
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		got, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		for i, y := range got.F32 {
			require.Equal(t, math.Float32bits(float32(x.F32[i]*scale)+shift), math.Float32bits(y), "%v·%v + %v", x.F32[i], scale, shift)
		}
	}
}

func TestChoiceErrors(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []testNode
		want  string
	}{
		"of a value that is no comparison": {[]testNode{op("Cast", "x", "c", "to", 9), op("Where", "c x half", "y")}, "Cast of a computed tensor from FLOAT"},
		"of NaN":                           {[]testNode{op("Greater", "x half", "c"), op("Where", "c x nan", "y")}, "an operand holds NaN"},
		"joined with no comparison":        {[]testNode{op("Greater", "x half", "a"), op("Cast", "x", "b", "to", 9), op("And", "a b", "d"), op("Where", "d x half", "y")}, "Cast of a computed tensor from FLOAT"},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", nodes: c.nodes, inits: []testTensor{number("half", 0.5), number("one", 1), number("nan", math.NaN())}}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}
