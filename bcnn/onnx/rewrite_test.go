package onnx

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// TestStraightThrough checks that sums which only serve a gradient vanish, with
// whatever they add and subtract.
func TestStraightThrough(t *testing.T) {
	constants := []testTensor{number("zero", 0), number("one", 1), number("minus", -1), number("two", 2)}
	sign := []testNode{op("Greater", "x zero", "c"), op("Where", "c one minus", "s")}
	clip := op("Clip", "x minus one", "p")
	// The polynomial of the authors of ReActNet.
	polynomial := []testNode{
		op("Less", "x minus", "m"), op("Cast", "m", "n", "to", 1), op("Mul", "x x", "q"), op("Mul", "x two", "u"), op("Add", "q u", "r"),
		op("Sub", "one n", "v"), op("Mul", "r v", "w1"), op("Sub", "w1 n", "p"),
	}
	tests := []struct {
		name  string
		nodes []testNode
	}{
		{"x + (s - x)", []testNode{op("Sub", "s x", "a"), op("Add", "x a", "b")}},
		{"(s - x) + x", []testNode{op("Sub", "s x", "a"), op("Add", "a x", "b")}},
		{"x - (x - s)", []testNode{op("Sub", "x s", "a"), op("Sub", "x a", "b")}},
		{"(x + s) - x", []testNode{op("Add", "x s", "a"), op("Sub", "a x", "b")}},
		{"(s - p) + p, a clip", []testNode{clip, op("Sub", "s p", "a"), op("Add", "a p", "b")}},
		{"(s + p) - p, a clip", []testNode{clip, op("Add", "s p", "a"), op("Sub", "a p", "b")}},
		{"s + (p - p), a clip", []testNode{clip, op("Sub", "p p", "a"), op("Add", "s a", "b")}},
		{"s + (p - q), two clips", []testNode{clip, op("Clip", "x minus one", "q"), op("Sub", "p q", "a"), op("Add", "a s", "b")}},
		{"p + (s - p), tanh", []testNode{op("Tanh", "x", "p"), op("Sub", "s p", "a"), op("Add", "p a", "b")}},
		{"(s - p) + p, a polynomial", append(polynomial, op("Sub", "s p", "a"), op("Add", "a p", "b"))},
		{"x + (-x + s)", []testNode{op("Neg", "x", "i"), op("Add", "i s", "a"), op("Add", "x a", "b")}},
		{"(s + -x) + x", []testNode{op("Neg", "x", "i"), op("Add", "s i", "a"), op("Add", "a x", "b")}},
		{"(x + -x) + s", []testNode{op("Neg", "x", "i"), op("Add", "x i", "a"), op("Add", "a s", "b")}},
		{"x - (x + -s)", []testNode{op("Neg", "s", "i"), op("Add", "x i", "a"), op("Sub", "x a", "b")}},
		{"-(x - s) + x", []testNode{op("Sub", "x s", "i"), op("Neg", "i", "a"), op("Add", "a x", "b")}},
		{"x + (x·-1 + s)", []testNode{op("Mul", "x minus", "i"), op("Add", "i s", "a"), op("Add", "x a", "b")}},
		{"x + (-1·x + s)", []testNode{op("Mul", "minus x", "i"), op("Sum", "i s", "a"), op("Sum", "x a", "b")}},
		{"x + (x/-1 + s)", []testNode{op("Div", "x minus", "i"), op("Add", "i s", "a"), op("Add", "x a", "b")}},
		{"x + ((0 - x) + s)", []testNode{op("Sub", "zero x", "i"), op("Add", "i s", "a"), op("Add", "x a", "b")}},
		{"x + (s - --x)", []testNode{op("Neg", "x", "j"), op("Neg", "j", "i"), op("Sub", "s i", "a"), op("Add", "x a", "b")}},
		{"Sum(x, s, -x)", []testNode{op("Neg", "x", "i"), op("Sum", "x s i", "b")}},
		{"Sum(-x, x, s)", []testNode{op("Neg", "x", "i"), op("Sum", "i x s", "b")}},
		{"behind an Identity", []testNode{op("Sub", "s x", "i"), op("Identity", "i", "a"), op("Identity", "x", "z"), op("Add", "z a", "b")}},
	}
	r := rand.New(rand.NewPCG(1, 2))
	w := randomTensor(r, "w", []int{2, 3, 3, 3}, -1, 1)
	plain := testModel{
		input: image(3, 4, 4), inits: append(constants, w), output: "y",
		nodes: append(append([]testNode{}, sign...), op("Conv", "s w", "y")),
	}
	want, _, err := Load(t.Context(), write(t, plain.encode()), Options{})
	require.NoError(t, err)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := plain
			m.nodes = append(append(append([]testNode{}, sign...), test.nodes...), op("Conv", "b w", "y"))
			net, report, err := Load(t.Context(), write(t, m.encode()), Options{})
			require.NoError(t, err)
			want.Absorbed, net.Absorbed = nil, nil // names of other graphs
			require.Equal(t, want, net)
			require.Equal(t, []string{"n_b"}, report.Cancelled)
		})
		t.Run(test.name+", weights", func(t *testing.T) {
			if test.name == "(s - p) + p, a polynomial" || test.name == "p + (s - p), tanh" {
				return // as values; on constants both are evaluated
			}
			m := plain
			// In float32, 0.3 + (1 − 0.3) is not 1 for all such numbers.
			rough := randomTensor(r, "v", []int{2, 3, 3, 3}, -0.3, 0.7, 0.1, -1e-3, 12345.678, -0.9)
			m.inits = append(constants, rough)
			m.nodes = []testNode{op("Greater", "x zero", "g"), op("Where", "g one minus", "h"), op("Conv", "h b", "y")}
			var weights []testNode
			for _, n := range append(append([]testNode{}, sign...), test.nodes...) {
				n.in = append([]string{}, n.in...)
				for i, name := range n.in {
					if name == "x" {
						n.in[i] = "v"
					}
				}
				weights = append(weights, n)
			}
			m.nodes = append(weights, m.nodes...)
			net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
			require.NoError(t, err)
			require.True(t, summarize(t, net)[0].small)
		})
	}
	// A sum of which nothing cancels stays one.
	m := plain
	m.nodes = append(append([]testNode{}, sign...), op("Relu", "x", "z"), op("Sub", "s x", "a"), op("Add", "z a", "b"), op("Conv", "b w", "y"))
	net, report := compare(t, r, m, Options{}, false)
	require.Empty(t, report.Cancelled)
	require.False(t, summarize(t, net)[0].small)
}

// TestZeros checks when a Sign is exact without a rule, when a rule is enough, and
// when it takes the option that makes another network.
func TestZeros(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	constants := []testTensor{number("zero", 0), number("one", 1), number("minus", -1), number("half", 0.5), number("third", 1.0/3)}
	bits := func(in, out string) []testNode {
		return []testNode{op("Greater", in+" zero", out+"0"), op("Where", out+"0 one minus", out)}
	}
	w := func(name string, dims ...int) testTensor { return randomTensor(r, name, dims, -1, 1) }
	norm := func(in, out string) testNode { return op("BatchNormalization", in+" g b m v", out) }
	list := func(name string, v ...float64) testTensor { return floats(name, []int{len(v)}, v...) }
	const (
		exact = iota
		seldom
		often
	)
	tests := []struct {
		name  string
		c     int
		nodes []testNode // from x to y, which the Sign reads
		inits []testTensor
		want  int
	}{
		{"real input", 3, nil, nil, seldom},
		{"real weights", 3, []testNode{op("Conv", "x w", "y")}, []testTensor{randomTensor(r, "w", []int{3, 3, 1, 1}, 0.25, 0.5)}, seldom},
		{"odd sums", 3, append(bits("x", "s"), op("Conv", "s w", "y")), []testTensor{w("w", 3, 3, 3, 3)}, exact},
		{"even sums", 2, append(bits("x", "s"), op("Conv", "s w", "y")), []testTensor{w("w", 3, 2, 3, 3)}, often},
		{"odd sums with zeros around", 3, append(bits("x", "s"), op("Conv", "s w", "y", "pads", []int{1, 1, 1, 1})), []testTensor{w("w", 3, 3, 3, 3)}, often},
		{"odd sums, pooled and scaled", 3, append(bits("x", "s"), op("Conv", "s w", "a"), op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}), op("Mul", "b third", "y")),
			[]testTensor{w("w", 3, 3, 3, 3)}, exact},
		{"even sums, cut off and scaled", 2, append(bits("x", "s"), op("Conv", "s w", "a"), op("Relu", "a", "relu"), norm("relu", "y")),
			[]testTensor{w("w", 3, 2, 3, 3), list("g", 1, 1, 2), list("b", 0, 0.5, 0), list("m", 0.3, 2.2, 2), list("v", 1, 1, 1)}, often},
		{"what a ReLU has cut off, moved", 3, []testNode{op("Relu", "x", "a"), op("Sub", "a half", "b"), op("Add", "b half", "y")}, nil, exact},
		{"a batch norm between the sums", 2, append(bits("x", "s"), op("Conv", "s w", "a"), norm("a", "y")),
			[]testTensor{w("w", 3, 2, 3, 3), list("g", 1, -1, 2), list("b", 0.3, 0.5, 0), list("m", 0.1, 2.2, 1), list("v", 1, 2, 3)}, exact},
		{"a batch norm on a sum", 2, append(bits("x", "s"), op("Conv", "s w", "a"), norm("a", "y")),
			[]testTensor{w("w", 3, 2, 3, 3), list("g", 1, -1, 2), list("b", 0.3, 0.5, 0), list("m", 0.1, 2.2, 4), list("v", 1, 2, 3)}, often},
		{"a batch norm beyond the sums", 2, append(bits("x", "s"), op("Conv", "s w", "a"), norm("a", "y")),
			[]testTensor{w("w", 3, 2, 3, 3), list("g", 1, -1, 2), list("b", 0.3, 0.5, 0), list("m", 0.1, 2.2, 20), list("v", 1, 2, 3)}, exact},
		{"a batch norm next to a sum", 2, append(bits("x", "s"), op("Conv", "s w", "a"), norm("a", "y")),
			[]testTensor{w("w", 3, 2, 3, 3), list("g", 1, -1, 2), list("b", 0.3, 0.5, 0), list("m", 0.1, 2.2, 4.000001), list("v", 1, 2, 3)}, seldom},
		{"the sum of two signs", 3, append(append(bits("x", "s"), op("Conv", "x w", "a")), append(bits("a", "b"), op("Add", "s b", "y"))...),
			[]testTensor{randomTensor(r, "w", []int{3, 3, 1, 1}, 0.25, 0.5)}, often},
		{"the sum of three signs", 3, append(append(bits("x", "s"), op("Conv", "x w", "a")), append(bits("a", "b"), op("Neg", "x", "c"), op("Sub", "c half", "d"),
			op("Greater", "d zero", "e"), op("Where", "e one minus", "f"), op("Add", "s b", "g"), op("Add", "f g", "y"))...),
			[]testTensor{randomTensor(r, "w", []int{3, 3, 1, 1}, 0.25, 0.5)}, exact},
		{"means of signs", 3, append(bits("x", "s"), op("AveragePool", "s", "y", "kernel_shape", []int{2, 2})), nil, often},
		{"means of an odd number of signs", 3, append(bits("x", "s"), op("AveragePool", "s", "y", "kernel_shape", []int{3, 3})), nil, exact},
		{"means of the signs inside", 3, append(bits("x", "s"), op("AveragePool", "s", "y", "kernel_shape", []int{3, 3}, "pads", []int{1, 1, 1, 1})), nil, often},
		{"means of signs, moved by a third", 3, append(bits("x", "s"), op("AveragePool", "s", "a", "kernel_shape", []int{3, 3}), op("Sub", "a third", "y")), nil, often},
		{"means of four signs, moved by a third", 3, append(bits("x", "s"), op("AveragePool", "s", "a", "kernel_shape", []int{2, 2}), op("Sub", "a third", "y")), nil, exact},
		{"means of the signs inside, moved by a third", 3, append(bits("x", "s"), op("AveragePool", "s", "a", "kernel_shape", []int{2, 3}, "pads", []int{0, 1, 0, 1}), op("Sub", "a third", "y")), nil, often},
		{"means behind a ReLU", 3, []testNode{op("Relu", "x", "a"), op("AveragePool", "a", "y", "kernel_shape", []int{3, 3})}, nil, exact},
		{"means behind a ReLU, moved", 3, []testNode{op("Relu", "x", "a"), op("Sub", "a half", "b"), op("AveragePool", "b", "c", "kernel_shape", []int{3, 3}), op("Add", "c half", "y")}, nil, often},
		{"means of real numbers", 3, []testNode{op("AveragePool", "x", "y", "kernel_shape", []int{2, 2})}, nil, seldom},
		{"slopes of 0", 3, []testNode{op("PRelu", "x sl", "y")}, []testTensor{floats("sl", []int{3, 1, 1}, 0.25, 0, 0.5)}, often},
		{"slopes of 0, moved", 3, []testNode{op("PRelu", "x sl", "a"), op("Add", "a half", "y")}, []testTensor{floats("sl", []int{3, 1, 1}, 0.25, 0, 0.5)}, seldom},
		{"slopes, moved", 3, []testNode{op("PRelu", "x sl", "y")}, []testTensor{floats("sl", []int{3, 1, 1}, 0.25, 0.1, 0.5)}, seldom},
		{"even sums and slopes", 2, append(bits("x", "s"), op("Conv", "s w", "a"), op("PRelu", "a sl", "y")), []testTensor{w("w", 3, 2, 3, 3), floats("sl", []int{3, 1, 1}, 0.25, 0.1, 0.5)}, often},
		{"odd sums and slopes, moved", 3, append(bits("x", "s"), op("Conv", "s w", "a"), op("PRelu", "a sl", "b"), op("Add", "b half", "y")),
			[]testTensor{w("w", 3, 3, 3, 3), floats("sl", []int{3, 1, 1}, 0.25, 0.5, 0.75)}, often},
		{"odd sums and other slopes, moved", 3, append(bits("x", "s"), op("Conv", "s w", "a"), op("PRelu", "a sl", "b"), op("Add", "b half", "y")),
			[]testTensor{w("w", 3, 3, 3, 3), floats("sl", []int{3, 1, 1}, 0.25, 0.75, 0.75)}, exact},
		{"at a limit", 3, []testNode{op("Clip", "x half one", "a"), op("Sub", "a sl", "y")}, []testTensor{floats("sl", []int{3, 1, 1}, 0.75, 0.5, 0.75)}, often},
		{"between limits", 3, []testNode{op("Clip", "x half one", "a"), op("Sub", "a sl", "y")}, []testTensor{floats("sl", []int{3, 1, 1}, 0.75, 0.625, 0.75)}, seldom},
		{"concat of even and odd sums", 3, append(append(bits("x", "s"), op("Conv", "s w", "a"), op("Concat", "s s", "b", "axis", 1), op("Conv", "b u", "c")), op("Concat", "a c", "y", "axis", 1)),
			[]testTensor{w("w", 2, 3, 1, 1), w("u", 1, 6, 1, 1)}, often},
		{"concat of odd sums", 3, append(bits("x", "s"), op("Conv", "s w", "a"), op("Conv", "s u", "b"), op("Concat", "a b", "y", "axis", 1)),
			[]testTensor{w("w", 2, 3, 1, 1), w("u", 1, 3, 1, 1)}, exact},
		{"concat of odd sums and real numbers", 3, append(bits("x", "s"), op("Conv", "s w", "a"), op("Conv", "x u", "b"), op("Concat", "a b", "y", "axis", 1)),
			[]testTensor{w("w", 2, 3, 1, 1), floats("u", []int{1, 3, 1, 1}, 0.5, 0.25, 1)}, seldom},
		{"concat behind a ReLU", 2, []testNode{op("Relu", "x", "a"), op("Conv", "x w", "b"), op("Concat", "a b", "y", "axis", 1)},
			[]testTensor{floats("w", []int{1, 2, 1, 1}, 0.5, 0.25)}, often},
		{"channels of zeros", 2, []testNode{op("Pad", "x pads", "y")}, []testTensor{ints("pads", 0, 0, 0, 0, 0, 1, 0, 0)}, often},
		{"sums of {0, 1}", 2, append([]testNode{op("Greater", "x zero", "s0"), op("Cast", "s0", "s", "to", 1)}, op("Conv", "s w", "y")),
			[]testTensor{w("w", 3, 2, 3, 3)}, often},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := testModel{
				input: image(test.c, 5, 5), output: "z",
				nodes: append(append([]testNode{}, test.nodes...), op("Sign", "y", "q"), op("Conv", "q k", "z")),
				inits: append(append([]testTensor{}, constants...), append(test.inits, w("k", 2, 3, 1, 1))...),
			}
			if test.nodes == nil {
				m.nodes[0].in[0] = "x"
			}
			path := write(t, m.encode())
			if test.want == exact {
				_, report := compare(t, r, m, Options{}, false)
				require.Empty(t, report.Zeros)
				return
			}
			_, report, err := Load(t.Context(), path, Options{})
			require.NoError(t, err)
			require.Equal(t, []Zero{{"n_q", test.want == often}}, report.Ternary)
			require.Empty(t, report.Zeros)
			if !strings.Contains(test.name, "third") { // which is 0 in float32 alone
				compare(t, r, m, Options{}, false)
			}
			_, report, err = Load(t.Context(), path, Options{SignOfZero: bcnn.ZeroIsMinus})
			require.NoError(t, err)
			if test.want == seldom {
				require.Equal(t, []Zero{{"n_q", false}}, report.Zeros)
				require.Empty(t, report.Ternary)
				return
			}
			require.Equal(t, []Zero{{"n_q", true}}, report.Ternary)
			require.Empty(t, report.Zeros)
			_, report, err = Load(t.Context(), path, Options{SignOfZero: bcnn.ZeroIsMinus, OverrideZeros: true})
			require.Empty(t, report.Ternary)
			require.NoError(t, err)
			require.Equal(t, []Zero{{"n_q", true}}, report.Zeros)
		})
	}
}

// TestObstacles checks that one run finds everything that stands in the way, and
// nothing that the output does not depend on.
func TestObstacles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := testModel{
		input: image(3, 4, 4), output: "y",
		nodes: []testNode{
			op("LSTM", "x", "unused"),
			op("Log", "x", "a"),                            // of the same dimensions
			op("Conv", "a w", "b"),                         //
			op("Sign", "b", "c"),                           // three values
			op("Conv", "c v", "d"), op("Conv", "c u", "e"), // which two nodes read
			op("Add", "d e", "f"),
			op("Mul", "f f", "g"),
			op("Tanh", "g", "h"), op("Sub", "f h", "i"), op("Add", "h i", "j"), // cancels
			op("com.example/Twist", "j", "k"), // of unknown dimensions
			op("Relu", "k", "l"),
			op("Clip", "l zero one", "n"),
			op("NonZero", "n", "o"),
			op("Cos", "j", "p"),
			op("Pow", "p p", "q"), op("Conv", "q one1", "s"),
			op("Add", "o s", "t"),
			op("Hardmax", "t", "y"),
		},
		inits: []testTensor{
			number("zero", 0), number("one", 1), randomTensor(r, "w", []int{3, 3, 1, 1}, 0.25, 0.5),
			randomTensor(r, "v", []int{2, 3, 1, 1}, -1, 1), randomTensor(r, "u", []int{2, 3, 1, 1}, -1, 1), randomTensor(r, "one1", []int{2, 2, 1, 1}, 0.5, 1),
		},
	}
	_, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	type found struct{ node, op, option string }
	var list []found
	for _, o := range obstacles.Obstacles {
		require.Error(t, o.Err)
		require.ErrorContains(t, err, o.String())
		list = append(list, found{o.Node, o.Op, o.Option})
	}
	require.Equal(t, []found{
		{"n_a", "Log", ""}, {"n_k", "com.example.Twist", ""}, {"n_o", "NonZero", ""},
		{"n_p", "Cos", ""}, {"n_q", "Pow", ""}, {"n_y", "Hardmax", ""},
	}, list)
	require.ErrorContains(t, err, "model.onnx: 6 nodes stand in the way")
	require.Contains(t, obstacles.Obstacles[5].Advice, "compute it from the output")
	require.True(t, errors.Is(err, errUnsupported))
}
