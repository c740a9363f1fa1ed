package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// grid returns the multiples of 1/8 from −6 to 6.
func grid() []float64 {
	var list []float64
	for k := -48; k <= 48; k++ {
		list = append(list, float64(k)/8)
	}
	return list
}

// onGrid compares a model, of one value after another, with the evaluator of the tests for all
// numbers of the grid, fused and not. err is that of the import.
func onGrid(t *testing.T, m testModel) (net *bcnn.Network, err error) {
	t.Helper()
	net, _, err = Decode(t.Context(), m.encode(), Options{})
	if err != nil {
		return nil, err
	}
	x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
	a := array{dims: []int{1, 1, 1, len(x.F32)}, v: grid()}
	for i, v := range a.v {
		x.F32[i] = float32(v)
	}
	want := m.tensors(a)[m.output].v
	for _, unfused := range []bool{false, true} {
		plan, err := lower.Network(t.Context(), net, lower.Options{Unfused: unfused})
		require.NoError(t, err)
		got, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		for i, v := range got.F32 {
			require.Equal(t, want[i]+0, float64(v)+0, "of %v, in %v", a.v[i], m.nodes)
		}
	}
	return net, nil
}

// Quantisers as exporters write them out, and what becomes of them.
func TestFunctionsWrittenOut(t *testing.T) {
	n := len(grid())
	sevens, zeros := floats("sevens", []int{1, 1, 1, n}), floats("zeros", []int{1, 1, 1, n})
	for range n {
		sevens.values, zeros.values = append(sevens.values, 7), append(zeros.values, 0)
	}
	for _, c := range []struct {
		name  string
		nodes []testNode
		want  map[string]int
	}{
		{"clamp behind Round", []testNode{op("Mul", "x two", "a"), op("Round", "a", "b"), op("Greater", "b seven", "c"), op("Where", "c seven b", "d"), op("Less", "d zero", "e"), op("Where", "e zero d", "f"), op("Mul", "f half", "y")}, map[string]int{"quantize": 1, "sign": 0}},
		{"clamp of all numbers", []testNode{op("Round", "x", "b"), op("Less", "b zeros", "c"), op("Where", "c zeros b", "d"), op("Greater", "d sevens", "e"), op("Where", "e sevens d", "y")}, map[string]int{"quantize": 1, "sign": 0}},
		{"clamp in front of Round", []testNode{op("Greater", "x one", "c"), op("Where", "c one x", "d"), op("Less", "d minus", "e"), op("Where", "e minus d", "f"), op("Mul", "f two", "g"), op("Round", "g", "y")}, map[string]int{"quantize": 1, "sign": 0}},
		{"two values behind Round", []testNode{op("Round", "x", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")}, map[string]int{"sign": 1, "quantize": 0}},
		{"thermometer", []testNode{op("Mul", "x two", "a"), op("Round", "a", "b"), op("LessOrEqual", "b seven", "c"), op("Cast", "c", "d", "to", 1), op("Less", "b one", "e"), op("Cast", "e", "f", "to", 1), op("Add", "d f", "y")}, map[string]int{"quantize": 1, "sign": 0}},
		{"a limit between integers", []testNode{op("Floor", "x", "b"), op("Clip", "b half seven", "y")}, map[string]int{"clip": 0}},
		{"rounded twice", []testNode{op("Round", "x", "b"), op("Mul", "b half", "c"), op("Round", "c", "d"), op("Clip", "d minus one", "y")}, map[string]int{"quantize": 1}},
		{"a gap", []testNode{op("Less", "x half", "c"), op("Where", "c zero x", "d"), op("Greater", "x one", "e"), op("Where", "e two d", "y")}, map[string]int{"mask": 1, "clip": 0}},
		{"nothing of the value", []testNode{op("Less", "x zero", "c"), op("Where", "c one x", "d"), op("GreaterOrEqual", "x zero", "e"), op("Where", "e two d", "y")}, map[string]int{"mul": 0, "sign": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(1, 1, n), output: "y", nodes: c.nodes, inits: []testTensor{sevens, zeros,
				number("zero", 0), number("half", 0.5), number("one", 1), number("minus", -1), number("two", 2), number("seven", 7)}}
			net, err := onGrid(t, m)
			require.NoError(t, err)
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

// A rounded value without bounds is compared with several numbers at once: with each it is a
// comparison of the value itself.
func TestSeveralThresholds(t *testing.T) {
	numbers := []float64{-3, -0.5, 0, 1, 2.25}
	compare := map[string]func(x, t float64) bool{
		"Less": func(x, t float64) bool { return x < t }, "LessOrEqual": func(x, t float64) bool { return x <= t },
		"Greater": func(x, t float64) bool { return x > t }, "GreaterOrEqual": func(x, t float64) bool { return x >= t },
	}
	round := map[string]func(x float64) float64{"Round": math.RoundToEven, "Floor": math.Floor, "Ceil": math.Ceil}
	n := len(grid())
	for name, is := range compare {
		for rounding, f := range round {
			for _, expanded := range []bool{false, true} {
				thresholds := floats("t", []int{1, len(numbers), 1, 1}, numbers...)
				if expanded {
					thresholds = floats("t", []int{1, len(numbers), 1, n})
					for _, x := range numbers {
						thresholds.values = append(thresholds.values, slices.Repeat([]float64{x}, n)...)
					}
				}
				m := testModel{input: image(1, 1, n), output: "y", inits: []testTensor{thresholds},
					nodes: []testNode{op(rounding, "x", "a"), op(name, "a t", "b"), op(name, "t a", "c"), op("Cast", "b", "d", "to", 1), op("Cast", "c", "e", "to", 1), op("Sub", "d e", "y")}}
				net, _, err := Decode(t.Context(), m.encode(), Options{})
				require.NoError(t, err)
				x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
				for i, v := range grid() {
					x.F32[i] = float32(v)
				}
				plan, err := lower.Network(t.Context(), net, lower.Options{})
				require.NoError(t, err)
				got, err := ref.Run(t.Context(), plan, x, nil)
				require.NoError(t, err)
				one := map[bool]float32{true: 1}
				for i, v := range grid() {
					for k, at := range numbers {
						want := one[is(f(v), at)] - one[is(at, f(v))]
						require.Equal(t, want, got.F32[i*len(numbers)+k], "%s(%v) %s %v", rounding, v, name, at)
					}
				}
			}
		}
	}
}

// A value at the threshold that is the middle of the others up to a rounding is that.
func TestRoundedMiddle(t *testing.T) {
	for at, ok := range map[float64]bool{-0.25417823: true, -0.25417817: true, -0.254: false} {
		low, high := float32(-1.1), float32(0.59164363)
		m := testModel{input: image(1, 1, len(grid())), output: "y", inits: []testTensor{number("zero", 0), number("at", at), number("low", float64(low)), number("high", float64(high))},
			nodes: []testNode{op("Greater", "x zero", "c"), op("Where", "c high low", "a"), op("Equal", "x zero", "d"), op("Where", "d at a", "y")}}
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		if ok {
			require.NoError(t, err, at)
		} else {
			require.ErrorContains(t, err, "not in the middle", at)
		}
	}
}

// pointwiseGraph draws operators that make functions of the input x, of which all numbers are exact.
type pointwiseGraph struct {
	r      *rand.Rand
	m      testModel
	floats []string
	bools  []string
}

func (f *pointwiseGraph) constant(choices ...float64) string {
	name := fmt.Sprintf("c%d", len(f.m.inits))
	f.m.inits = append(f.m.inits, number(name, choices[f.r.IntN(len(choices))]))
	return name
}

func (f *pointwiseGraph) limit() string {
	return f.constant(-2, -1.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3)
}

func (f *pointwiseGraph) add(list *[]string, opType, in string, attrs ...any) {
	out := fmt.Sprintf("t%d", len(f.m.nodes))
	f.m.nodes = append(f.m.nodes, op(opType, in, out, attrs...))
	*list = append(*list, out)
}

// last returns one of the newest tensors.
func (f *pointwiseGraph) last(list []string) string {
	return list[max(0, len(list)-1-f.r.IntN(3))]
}

func (f *pointwiseGraph) one(list ...string) string { return list[f.r.IntN(len(list))] }

func (f *pointwiseGraph) node() {
	x := f.last(f.floats)
	switch k := f.r.IntN(12); {
	case k < 3:
		f.add(&f.bools, f.one("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"), x+" "+f.limit())
	case k < 6 && len(f.bools) > 0:
		a, b := x, f.limit()
		switch f.r.IntN(4) {
		case 0:
			b = f.last(f.floats)
		case 1:
			a = f.limit()
		case 2:
			a, b = b, a
		}
		f.add(&f.floats, "Where", f.last(f.bools)+" "+a+" "+b)
	case k < 7 && len(f.bools) > 0:
		if f.r.IntN(3) == 0 {
			f.add(&f.bools, "Not", f.last(f.bools))
		} else {
			f.add(&f.bools, f.one("And", "Or", "Xor"), f.last(f.bools)+" "+f.last(f.bools))
		}
	case k < 8:
		f.add(&f.floats, "Clip", x+" "+f.constant(-2, -1, -0.5, 0)+" "+f.constant(0.5, 1, 1.5, 3))
	case k < 9:
		f.add(&f.floats, f.one("Round", "Floor", "Ceil", "Round"), x)
	case k < 10:
		f.add(&f.floats, f.one("Max", "Min"), x+" "+f.limit())
	case k < 11:
		f.add(&f.floats, f.one("Sign", "Relu", "Neg", "Abs"), x)
	default:
		f.add(&f.floats, f.one("Mul", "Add", "Sub"), x+" "+f.constant(-1, 0.5, 2, 1, 1.5))
	}
}

// Whatever comparisons, choices, limits and roundings make of a value is what the operators say.
func TestFunctionsOfOneValue(t *testing.T) {
	models := 3000
	if testing.Short() {
		models = 500
	}
	converted, unlike := 0, map[string]int{}
	for seed := range models {
		r := rand.New(rand.NewPCG(uint64(seed), 91))
		f := &pointwiseGraph{r: r, floats: []string{"x"}, m: testModel{input: image(1, 1, len(grid()))}}
		for range 3 + r.IntN(7) {
			f.node()
		}
		if len(f.floats) == 1 {
			continue
		}
		f.m.output = f.floats[len(f.floats)-1]
		if _, err := onGrid(t, f.m); err != nil {
			unlike[err.Error()]++
			continue
		}
		converted++
	}
	t.Logf("%d of %d convert; errors: %v", converted, models, unlike)
	require.Greater(t, converted, models/2)
}

// Numbers that are rounded without limits stay exact, however large or small they are.
func TestRoundedWithoutBounds(t *testing.T) {
	values := []float32{0.25, 0.5, 0.75, 1, 1.5, 2.5, 1e-30, 0x1p-149, 0x1p-126, 0x1p22 - 0.5, 0x1p22 + 0.5, 0x1p22 + 1.5, 0x1p23 - 0.5, 0x1p23, 0x1p23 + 1, 0x1p24 + 2, 1e10, math.MaxFloat32, float32(math.Inf(1))}
	for _, v := range []float32{0.5, 1, 1.5, 0x1p21} {
		values = append(values, math.Nextafter32(v, 0), math.Nextafter32(v, 1e9))
	}
	for _, v := range slices.Clone(values) {
		values = append(values, -v)
	}
	values = append(values, 0, float32(math.NaN()))
	for name, f := range map[string]func(x float64) float64{"Round": math.RoundToEven, "Floor": math.Floor, "Ceil": math.Ceil} {
		for _, c := range []struct {
			nodes []testNode
			of    func(x float64) float64
		}{
			{[]testNode{op(name, "x", "y")}, f},
			{[]testNode{op(name, "x", "a"), op("Relu", "a", "y")}, func(x float64) float64 { return max(f(x), 0) }},
			{[]testNode{op(name, "x", "a"), op("Clip", "a low high", "y")}, func(x float64) float64 { return max(-5000, min(f(x), 300)) }},
		} {
			m := testModel{input: image(1, 1, len(values)), output: "y", nodes: c.nodes, inits: []testTensor{number("low", -5000), number("high", 300)}}
			net, _, err := Decode(t.Context(), m.encode(), Options{})
			require.NoError(t, err)
			x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
			copy(x.F32, values)
			for _, unfused := range []bool{false, true} {
				plan, err := lower.Network(t.Context(), net, lower.Options{Unfused: unfused})
				require.NoError(t, err)
				got, err := ref.Run(t.Context(), plan, x, nil)
				require.NoError(t, err)
				for i, v := range values {
					if want := c.of(float64(v)); math.IsNaN(want) {
						require.True(t, math.IsNaN(float64(got.F32[i])), "%v", c.nodes)
					} else {
						require.Equal(t, want+0, float64(got.F32[i])+0, "%v of %v", c.nodes, v)
					}
				}
			}
		}
	}
}

// Numbers without dimensions of their own: one for each image of a batch. An output may be an input.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		nodes []testNode
		of    func(x float64) float64
	}{
		{[]testNode{op("Mul", "x half", "a"), op("Relu", "a", "y")}, func(x float64) float64 { return max(x/2, 0) }},
		{[]testNode{op("Greater", "x half", "a"), op("Where", "a half x", "y")}, func(x float64) float64 { return min(x, 0.5) }},
		{[]testNode{op("Unsqueeze", "x one", "a"), op("Concat", "a a", "b", "axis", 1), op("ReduceSum", "b one", "y", "keepdims", 0)}, func(x float64) float64 { return 2 * x }},
		{[]testNode{op("Identity", "x", "y")}, func(x float64) float64 { return x }},
	} {
		m := testModel{input: testInput{"x", pb.Float, []any{"n"}}, output: "y", nodes: c.nodes, inits: []testTensor{number("half", 0.5), ints("one", 1)}}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err)
		require.Empty(t, net.Layers[len(net.Layers)-1].Source.Dims)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 5, net.Inputs[0].Shape)
		copy(x.F32, []float32{-2, -0.25, 0, 0.75, 3})
		got, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		for i, v := range x.F32 {
			require.Equal(t, c.of(float64(v)), float64(got.F32[i]), "%v", c.nodes)
		}
	}
}
