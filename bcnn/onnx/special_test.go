package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// special are the numbers that IEEE 754 treats apart, and those at the ends of what float32 holds.
var special = func() (list []float32) {
	for _, x := range []float64{
		0, math.SmallestNonzeroFloat32, 0x1p-140, 0x1.fffp-129, 0x1p-128, 0x1.8p-127, 0x1.fffffcp-127, 0x1p-126, 0x1.7p-125, 1e-30, 0.3,
		0.99999994, 1, 1.01, 2, 4, 1e30, 0x1p126, 0x1.4p127, math.MaxFloat32, math.Inf(1),
	} {
		list = append(list, float32(x), float32(-x))
	}
	return append(list, float32(math.NaN()))
}()

// results imports a graph and returns what it makes of tensors, in the order of memory.
func results(t *testing.T, m testModel, in ...[]float32) []float32 {
	t.Helper()
	net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	x := make([]bcnn.Tensor, len(in))
	for i, list := range in {
		x[i] = bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[i].Shape)
		require.Len(t, x[i].F32, len(list))
		copy(x[i].F32, list)
	}
	out, err := ref.RunAll(t.Context(), plan, x, nil)
	require.NoError(t, err)
	return out[0].F32
}

// requireIEEE asks for NaN, infinities and zeros where they are wanted, with their signs, and for
// other numbers within so many units in the last place.
func requireIEEE(t *testing.T, want float64, got float32, units float64, of string) {
	t.Helper()
	const most = math.MaxFloat32 * (1 - 0x1p-20)
	if math.IsNaN(want) {
		require.True(t, got != got, "%v instead of NaN: %s", got, of)
		return
	}
	require.Equal(t, math.Signbit(want), math.Signbit(float64(got)), "%v instead of %v: %s", got, want, of)
	if math.Abs(want) > most { // roundings may make it infinite
		require.Greater(t, math.Abs(float64(got)), most, of)
		require.True(t, !math.IsInf(want, 0) || math.IsInf(float64(got), 0), "%v is finite: %s", got, of)
		return
	}
	near := float32(max(math.Abs(want), 0x1p-125))
	unit := float64(math.Nextafter32(near, float32(math.Inf(1))) - near)
	require.InDelta(t, want, got, units*unit, of)
	require.True(t, want != 0 || got == 0, "%v instead of 0: %s", got, of)
}

// pairs are all pairs of special numbers.
func pairs() (x, z []float32) {
	for _, a := range special {
		for _, b := range special {
			x, z = append(x, a), append(z, b)
		}
	}
	return x, z
}

// requireSpecial compares what a graph of single numbers makes of pairs with what float64 gives,
// or of that what exact makes.
func requireSpecial(t *testing.T, inputs string, nodes []testNode, constant float64, units float64, exact func(x, want float64) float64) {
	t.Helper()
	x, z := pairs()
	all := map[string][]float32{"x": x, "z": z}
	var in [][]float32
	var of []testInput
	var arrays []array
	for _, name := range strings.Fields(inputs) {
		a := newArray(1, 1, len(special), len(special))
		for i, v := range all[name] {
			a.v[i] = float64(v)
		}
		of = append(of, testInput{name, pb.Float, []any{"batch", 1, len(special), len(special)}})
		in, arrays = append(in, all[name]), append(arrays, a)
	}
	m := testModel{input: of[0], extra: of[1:], output: "y", nodes: nodes}
	if slices.ContainsFunc(nodes, func(n testNode) bool { return slices.Contains(n.in, "c") }) {
		m.inits = []testTensor{number("c", constant)}
	}
	got := results(t, m, in...)
	for i, v := range m.tensors(arrays[0], arrays[1:]...)["y"].v {
		requireIEEE(t, exact(arrays[0].v[i], v), got[i], units, fmt.Sprintf("of %v and %v", x[i], z[i]))
	}
}

// same leaves what float64 gives.
func same(_, want float64) float64 { return want }

// Quotients and roots of all pairs of special numbers are those of float64.
func TestSpecialQuotients(t *testing.T) {
	for _, c := range []struct {
		name, inputs string
		nodes        []testNode
	}{
		{"quotient", "x z", []testNode{op("Div", "x z", "y")}},
		{"root", "x", []testNode{op("Sqrt", "x", "y")}},
		{"reciprocal", "x", []testNode{op("Reciprocal", "x", "y")}},
		{"by a root", "x z", []testNode{op("Sqrt", "z", "a"), op("Div", "x a", "y")}},
		{"reciprocal of a root", "x", []testNode{op("Sqrt", "x", "a"), op("Reciprocal", "a", "y")}},
	} {
		t.Run(c.name, func(t *testing.T) { requireSpecial(t, c.inputs, c.nodes, 0, 2.5, same) })
	}
	for _, c := range []float64{1, -3, 1e-30, 1e30, 0, 0x1p-140} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			requireSpecial(t, "x", []testNode{op("Div", "c x", "y")}, float64(float32(c)), 2.5, same)
			requireSpecial(t, "x", []testNode{op("Sqrt", "x", "a"), op("Div", "c a", "y")}, float64(float32(c)), 2.5, same)
		})
	}
}

// Limits leave NaN and −0 as ONNX Runtime does.
func TestSpecialLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		node     testNode
		constant float64
	}{
		{"relu", op("Relu", "x", "y"), 0},
		{"least", op("Max", "x c", "y"), -1.01},
		{"least of 0", op("Max", "x c", "y"), 0},
		{"most", op("Min", "x c", "y"), 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireSpecial(t, "x", []testNode{c.node}, float64(float32(c.constant)), 0, func(x, want float64) float64 {
				if x == 0 && want == 0 {
					return x
				}
				return want
			})
		})
	}
}

// Powers are those of C, but for the signs of what −0 to a fraction gives, and for −∞ to a fraction.
func TestSpecialPowers(t *testing.T) {
	for quarters := -16; quarters <= 16; quarters++ {
		exponent := float64(quarters) / 4
		if quarters == 0 || quarters == 4 { // which is x itself
			continue
		}
		t.Run(fmt.Sprint(exponent), func(t *testing.T) {
			requireSpecial(t, "x", []testNode{op("Pow", "x c", "y")}, exponent, 12, func(x, want float64) float64 {
				whole := math.Trunc(exponent)
				switch {
				case whole == exponent:
				case math.IsInf(x, -1):
					return math.NaN()
				case x == 0 && math.Signbit(x): // a factor of each whole, one for ½ and ¼ and two for ¾
					if int(math.Abs(whole))%2 == 0 == (quarters%4 != 3 && quarters%4 != -3) {
						return math.Copysign(want, -1)
					}
				}
				return want
			})
		})
	}
}

// Norms of zeros, of what is too small or too large to be squared, and of what is no number, as
// ONNX Runtime 1.32 computes them.
func TestSpecialNorms(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	rows := [][4]float32{{}, {1e-30, 2e-30}, {1e-40, 2e-40}, {float32(inf), 1, 2, 3}, {float32(nan), 1, 2, 3}, {1e30, 1, 2, 3}, {3, -4}}
	nans := [4]float64{nan, nan, nan, nan}
	ln := []testTensor{floats("ones", []int{4}, 1, 1, 1, 1)}
	for _, c := range []struct {
		name string
		node testNode
		want [][4]float64
	}{
		{"LpNormalization", op("LpNormalization", "x", "y", "axis", 1),
			[][4]float64{{}, {}, {}, {nan}, nans, {}, {0.6, -0.8}}},
		{"LpNormalization of order 1", op("LpNormalization", "x", "y", "axis", 1, "p", 1),
			[][4]float64{{}, {1. / 3, 2. / 3}, {float64(rows[2][0]) / (float64(rows[2][0]) + float64(rows[2][1])), float64(rows[2][1]) / (float64(rows[2][0]) + float64(rows[2][1]))},
				{nan}, nans, {1, 1e-30, 2e-30, 3e-30}, {3. / 7, -4. / 7}}},
		{"ReduceL2", op("ReduceL2", "x", "y", "axes", []int{1}), [][4]float64{{}, {}, {}, {inf}, {nan}, {inf}, {5}}},
		{"LayerNormalization without epsilon", op("LayerNormalization", "x ones", "y", "epsilon", 0.0),
			[][4]float64{nans, {inf, inf, -inf, -inf}, {inf, inf, -inf, -inf}, nans, nans, {0, 0, 0, 0}, {3.25 / math.Sqrt(6.1875), -3.75 / math.Sqrt(6.1875), 0.25 / math.Sqrt(6.1875), 0.25 / math.Sqrt(6.1875)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: testInput{"x", pb.Float, []any{"batch", 4}}, output: "y", nodes: []testNode{c.node}}
			if slices.Contains(c.node.in, "ones") {
				m.inits = ln
			}
			for i, row := range rows {
				got := results(t, m, row[:])
				for k, v := range got {
					want := c.want[i][k]
					if want == 0 && v == 0 { // of either sign
						continue
					}
					requireIEEE(t, want, v, 6, fmt.Sprintf("value %d of %v", k, row))
				}
			}
		})
	}
}
