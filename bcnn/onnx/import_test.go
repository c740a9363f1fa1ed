package onnx

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// All constants in these tests are small multiples of powers of two, so that
// float32 and float64 arithmetic are exact, results are equal to the last bit
// and ties at thresholds are common.

func randoms(r *rand.Rand, n int, choices ...float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = choices[r.IntN(len(choices))]
	}
	return out
}

func size(dims ...int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func randomTensor(r *rand.Rand, name string, dims []int, choices ...float64) testTensor {
	return floats(name, dims, randoms(r, size(dims...), choices...)...)
}

func write(t testing.TB, b []byte) string {
	path := filepath.Join(t.TempDir(), "model.onnx")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// batchOf makes a random batch for the model: an array in the layout of the
// file and the same values as a tensor in NHWC. nhwc says that the file's
// layout is NHWC.
func batchOf(r *rand.Rand, m testModel, in bcnn.Input, nhwc bool) (array, bcnn.Tensor) {
	const n = 2
	s := in.Shape
	choices := []float64{-2, -1, -0.5, 0, 0, 0.5, 1, 3}
	if in.DType == bcnn.Uint8 {
		choices = []float64{0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 254, 255}
	}
	x := bcnn.NewTensor(in.DType, n, s)
	a := newArray(n, s.H, s.W, s.C)
	for i, v := range randoms(r, len(a.v), choices...) {
		a.v[i] = v
		if in.DType == bcnn.Uint8 {
			x.U8[i] = uint8(v)
		} else {
			x.F32[i] = float32(v)
		}
	}
	if !nhwc {
		a = transpose(a, []int{0, 3, 1, 2})
	}
	switch len(m.input.dims) {
	case 2:
		a.dims = []int{n, s.Values()}
	case 3:
		if a.dims = []int{n, s.H, s.W}; nhwc { // a sequence
			a.dims = []int{n, s.W, s.C}
		}
	}
	return a, x
}

// compare imports the model and compares its output with that of the
// interpreter.
func compare(t *testing.T, r *rand.Rand, m testModel, opts Options, nhwc bool) (*bcnn.Network, *Report) {
	t.Helper()
	net, report, err := Load(t.Context(), write(t, m.encode()), opts)
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	for range 3 {
		a, x := batchOf(r, m, net.Inputs[0], nhwc)
		for i, v := range a.v { // what the options put before the graph
			c := 0
			if len(opts.Mean) > 1 {
				c = i / net.Inputs[0].Shape.Pixels() % net.Inputs[0].Shape.C
			}
			if opts.Mean != nil {
				v -= float64(opts.Mean[c])
			}
			if opts.Scale != nil {
				v *= float64(opts.Scale[0])
			}
			a.v[i] = v
		}
		tensors := m.tensors(a)
		want := tensors[m.output]
		got, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		s := plan.OutputShape()
		out := newArray(got.N, s.H, s.W, s.C)
		for i, v := range got.F32 {
			out.v[i] = float64(v)
		}
		source := net.Layers[len(net.Layers)-1].Source
		require.NotNil(t, source)
		if source.ChannelsFirst || s.C == 1 || s.Pixels() == 1 {
			out = transpose(out, []int{0, 3, 1, 2})
		}
		if len(want.dims) == 4 && s.C > 1 && !m.regrouped {
			require.Equal(t, want.dims, out.dims)
		}
		// −0 and 0 are the same number.
		for i := range out.v {
			out.v[i] += 0
			want.v[i] += 0
		}
		m.requireSame(t, want.v, out.v, m.output)
		require.Equal(t, &bcnn.Source{Name: m.output, Dims: want.dims[1:], ChannelsFirst: source.ChannelsFirst}, source)
		compareSources(t, m, net, x, tensors)
	}
	return net, report
}

// requireSame compares values: those of functions within a few roundings of what comes
// in and goes out.
func (m testModel) requireSame(t *testing.T, want, got []float64, name string) {
	t.Helper()
	if !m.rounds {
		require.Equal(t, want, got, name)
		return
	}
	require.Len(t, got, len(want), name)
	for i, v := range want {
		require.InDelta(t, v, got[i], 1e-6*max(1, math.Abs(v)), name)
	}
}

// compareSources compares the outputs of layers with the tensors that they are said to
// be. The input has its source too.
func compareSources(t *testing.T, m testModel, net *bcnn.Network, x bcnn.Tensor, tensors map[string]array) {
	t.Helper()
	require.NotNil(t, net.Inputs[0].Source)
	require.Equal(t, tensors[net.Inputs[0].Source.Name].dims[1:], net.Inputs[0].Source.Dims)
	p, err := lower.Network(t.Context(), net, lower.Options{Unfused: true})
	require.NoError(t, err)
	results := plan.Results(net, p)
	_, err = ref.Run(t.Context(), p, x, func(step int, name string, got bcnn.Tensor) {
		if results[step] < 0 || p.Steps[step].Kind() == "flatten" {
			return
		}
		source := net.Layers[results[step]].Source
		if source == nil || source.ChannelsFirst && got.Shape.Pixels() == 1 { // flattened
			return
		}
		want, ok := tensors[source.Name]
		require.True(t, ok, source.Name)
		require.Equal(t, want.dims[1:], source.Dims, source.Name)
		values := make([]float64, 0, len(want.v))
		row := make([]float32, got.Shape.C)
		for pixel := range got.N * got.Shape.Pixels() {
			if got.DType == bcnn.Bits {
				w := bits.Words(got.Shape.C)
				bits.Unpack(row, got.Words[pixel*w:(pixel+1)*w], got.Shape.C)
			} else {
				copy(row, got.F32[pixel*got.Shape.C:])
			}
			for _, v := range row {
				values = append(values, float64(v)+0)
			}
		}
		out := array{[]int{got.N, got.Shape.H, got.Shape.W, got.Shape.C}, values}
		if source.ChannelsFirst {
			out = transpose(out, []int{0, 3, 1, 2})
		}
		for i := range want.v {
			want.v[i] += 0
		}
		m.requireSame(t, want.v, out.v, source.Name)
	})
	require.NoError(t, err)
}

// layer is a layer that multiplies. It is small if its weights and its input are of up to four
// bits: what it is made of counts here, not what is fastest.
type layer struct {
	plan.LayerReport
	small bool
}

// summarize reports on the layers of a network that have weights.
func summarize(t *testing.T, net *bcnn.Network) []layer {
	p, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	var layers []layer
	for _, l := range plan.Summarize(net, p) {
		layers = append(layers, layer{l, l.Precision <= 4 || strings.HasSuffix(l.WhyFloat, "in groups that are too small")})
	}
	return layers
}

// requireProducts demands so many products of bits of the small layers, unless those of a
// layer are of bytes or float32, which takes one.
func requireProducts(t *testing.T, want string, layers []layer) {
	t.Helper()
	numbers := strings.Fields(want)
	layers = slices.DeleteFunc(layers, func(l layer) bool { return !l.small })
	require.Len(t, layers, len(numbers))
	for i, l := range layers {
		if !l.Bytes && l.WhyFloat == "" {
			require.Equal(t, numbers[i], strconv.Itoa(l.Planes), l.Layer)
		}
	}
}

// A signForm is a way to write a binarisation of x as y.
type signForm struct {
	name  string
	nodes []testNode
	inits []testTensor
	at0   float64
}

func signForms() []signForm {
	one, minus, zero := number("one", 1), number("minus", -1), number("zero", 0)
	consts := []testTensor{one, minus, zero, number("two", 2), number("half", 0.5), number("tenth", 0.125), floats("first", []int{1, 1}, 0)}
	form := func(name string, at0 float64, nodes ...testNode) signForm {
		return signForm{name, nodes, consts, at0}
	}
	toFloat := func(in, out string) testNode { return op("Cast", in, out, "to", int(pb.Float)) }
	ones := func(v float64, out string) testNode {
		return op("ConstantOfShape", "shape", out, "value", floats("", []int{1}, v))
	}
	return []signForm{
		form("where x>=0", 1, op("GreaterOrEqual", "x zero", "c"), op("Where", "c one minus", "y")),
		form("where x>0", -1, op("Greater", "x zero", "c"), op("Where", "c one minus", "y")),
		form("where x<0", 1, op("Less", "x zero", "c"), op("Where", "c minus one", "y")),
		form("where x<=0", -1, op("LessOrEqual", "x zero", "c"), op("Where", "c minus one", "y")),
		form("where 0<=x", 1, op("LessOrEqual", "zero x", "c"), op("Where", "c one minus", "y")),
		form("where 0<x", -1, op("Less", "zero x", "c"), op("Where", "c one minus", "y")),
		form("where 0>x", 1, op("Greater", "zero x", "c"), op("Where", "c minus one", "y")),
		form("where 0>=x", -1, op("GreaterOrEqual", "zero x", "c"), op("Where", "c minus one", "y")),
		form("where not x<0", 1, op("Less", "x zero", "c"), op("Not", "c", "d"), op("Where", "d one minus", "y")),
		form("where x>0 or x=0", 1, op("Greater", "x zero", "c"), op("Equal", "x zero", "d"), op("Or", "c d", "e"), op("Where", "e one minus", "y")),
		form("2 cast(x>0) - 1", -1, op("Greater", "x zero", "c"), toFloat("c", "d"), op("Mul", "two d", "e"), op("Sub", "e one", "y")),
		form("1 - 2 cast(x<0)", 1, op("Less", "x zero", "c"), toFloat("c", "d"), op("Mul", "d two", "e"), op("Sub", "one e", "y")),
		form("(cast(x>=0) - 1/2) / (1/2)", 1, op("GreaterOrEqual", "x zero", "c"), toFloat("c", "d"), op("Sub", "d half", "e"), op("Div", "e half", "y")),
		form("cast(x>0) - cast(x<=0)", -1, op("Greater", "x zero", "c"), toFloat("c", "d"), op("LessOrEqual", "x zero", "e"), toFloat("e", "f"), op("Sub", "d f", "y")),
		form("sign(sign(x)+0.1)", 1, op("Sign", "x", "c"), op("Add", "c tenth", "d"), op("Sign", "d", "y")),
		form("sign(sign(x)-0.1)", -1, op("Sign", "x", "c"), op("Sub", "c tenth", "d"), op("Sign", "d", "y")),
		form("sign(x) + (x=0)", 1, op("Sign", "x", "c"), op("Equal", "c zero", "d"), toFloat("d", "e"), op("Add", "c e", "y")),
		form("where(sign(x)=0, 1, sign(x))", 1, op("Sign", "x", "c"), op("Equal", "c zero", "d"), op("Where", "d one c", "y")),
		form("clip, where x>=0", 1, op("Clip", "x minus one", "b"), op("GreaterOrEqual", "b zero", "c"), op("Where", "c one minus", "y")),
		form("clip at 0, where x>0", -1, op("Clip", "x zero one", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("relu, where x>0", -1, op("Relu", "x", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("min max, where x>0", -1, op("Min", "x one", "a"), op("Max", "minus a", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("2 round(clip(x/2+1/2)) - 1", -1, op("Mul", "x half", "a"), op("Add", "a half", "b"), op("Clip", "b zero one", "c"), op("Round", "c", "d"), op("Mul", "d two", "e"), op("Sub", "e one", "y")),
		form("2 round(hard sigmoid) - 1", -1, op("HardSigmoid", "x", "c", "alpha", 0.25, "beta", 0.5), op("Round", "c", "d"), op("Mul", "d two", "e"), op("Sub", "e one", "y")),
		form("-where x>=0", 1, op("GreaterOrEqual", "x zero", "c"), op("Where", "c minus one", "d"), op("Neg", "d", "y")),
		form("where ones_like", 1, op("Shape", "x", "shape"), ones(1, "p"), op("Neg", "p", "q"), op("GreaterOrEqual", "x zero", "c"), op("Where", "c p q", "y")),
		form("expanded where", -1, op("Shape", "x", "shape"), op("Expand", "one shape", "p"), op("Greater", "x zero", "c"), op("Where", "c p minus", "y")),
		form("BipolarQuant", 1, op("qonnx.custom_op.general/BipolarQuant", "x one", "y")),
		form("Quant, 1 bit", 1, op("qonnx.custom_op.general/Quant", "x one zero one", "y", "signed", 1, "narrow", 0, "rounding_mode", "ROUND")),
		form("MultiThreshold", 1, op("qonnx.custom_op.general/MultiThreshold", "x first", "y", "out_scale", 2.0, "out_bias", -1.0)),
	}
}

// TestSignForms checks that every way to write a sign becomes one Sign layer
// with the right rule for 0.
func TestSignForms(t *testing.T) {
	for _, f := range signForms() {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			m := testModel{
				input:  testInput{"x", pb.Float, []any{"batch", 3, 4, 4}},
				nodes:  append(f.nodes, op("Conv", "y w", "z")),
				inits:  append([]testTensor{randomTensor(r, "w", []int{2, 3, 3, 3}, -1, 1)}, f.inits...),
				output: "z",
			}
			net, _ := compare(t, r, m, Options{}, false)
			signs := 0
			for _, l := range net.Layers {
				if s, ok := l.Op.(bcnn.Sign); ok {
					signs++
					want := bcnn.ZeroIsMinus
					if f.at0 > 0 {
						want = bcnn.ZeroIsPlus
					}
					// A sign that falls in x is that of −x with the other rule.
					if slices.ContainsFunc(net.Layers, func(l bcnn.Layer) bool {
						a, ok := l.Op.(bcnn.Affine)
						return ok && len(a.Scale) > 0 && a.Scale[0] < 0
					}) {
						want = bcnn.ZeroIsPlus + bcnn.ZeroIsMinus - want
					}
					require.Equal(t, want, s.Zero)
				}
			}
			require.Equal(t, 1, signs)
			require.True(t, summarize(t, net)[0].small)
		})
	}
}

// TestSignRules checks the plain Sign: three values, or the rule of the options.
func TestSignRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := testModel{
		input:  testInput{"x", pb.Float, []any{1, 2, 3, 3}},
		nodes:  []testNode{op("Sign", "x", "y"), op("Conv", "y w", "z")},
		inits:  []testTensor{randomTensor(r, "w", []int{2, 2, 2, 2}, -1, 1), number("zero", 0), number("one", 1), number("minus", -1)},
		output: "z",
	}
	net, report := compare(t, r, m, Options{}, false)
	require.Equal(t, []Zero{{"n_y", false}}, report.Ternary)
	require.Equal(t, bcnn.Ternary(), net.Layers[0].Op)
	for rule, comparison := range map[bcnn.ZeroRule]string{bcnn.ZeroIsPlus: "GreaterOrEqual", bcnn.ZeroIsMinus: "Greater"} {
		net, _, err := Load(t.Context(), write(t, m.encode()), Options{SignOfZero: rule})
		require.NoError(t, err)
		exact := m
		exact.nodes = []testNode{op(comparison, "x zero", "c"), op("Where", "c one minus", "y"), m.nodes[1]}
		other, _, err := Load(t.Context(), write(t, exact.encode()), Options{})
		require.NoError(t, err)
		net.Layers[0].Name = other.Layers[0].Name
		require.Equal(t, other, net)
	}
}

// Weights are ±α up to the rounding of float32 and no further, and what they deviate by
// is reported.
func TestWeightTolerance(t *testing.T) {
	const ulp = 0x1p-23
	model := func(off, alpha float64) testModel {
		return testModel{
			opset: 17, input: image(2, 1, 1), output: "y",
			nodes: []testNode{op("Sign", "x", "s"), op("Conv", "s w", "y")},
			inits: []testTensor{floats("w", []int{2, 2, 1, 1}, alpha, -alpha*(1+off), -1, 1)},
		}
	}
	for _, c := range []struct {
		name       string
		model      testModel
		tolerance  float64
		taken      bool
		deviations []float64 // reported
	}{
		{"equal", model(0, 1), -1, true, nil},
		{"equal, with the default", model(0, 0.3), 0, true, nil},
		{"rounded once", model(ulp, 1), 0, true, []float64{ulp}},
		{"rounded, of another factor", model(4*ulp, 0.5), 0, true, []float64{2 * ulp}},
		{"rounded, where equal ones are asked for", model(ulp, 1), -1, false, []float64{ulp}},
		{"almost too far", model(15*ulp, 0.5), 0, true, []float64{8 * ulp}},
		{"too far", model(17*ulp, 0.5), 0, false, []float64{9 * ulp}},
		{"2e-6 from ±1", model(17*ulp, 1), 0, false, []float64{9 * ulp}},
		{"4e-6 from ±1, asked for", model(32*ulp, 1), 1e-5, true, []float64{16 * ulp}},
		{"far", model(0.1, 1), 0, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			net, report, err := Decode(t.Context(), c.model.encode(), Options{SignOfZero: bcnn.ZeroIsPlus, WeightTolerance: c.tolerance})
			require.NoError(t, err)
			require.Equal(t, c.taken, summarize(t, net)[0].small)
			require.Len(t, report.NearlyBinary, len(c.deviations))
			for i, want := range c.deviations {
				require.Equal(t, c.taken, report.NearlyBinary[i].Taken)
				require.InDelta(t, want, report.NearlyBinary[i].Deviation, ulp/2)
			}
		})
	}
}
