package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// selectInputs are images, and values that are repeated: one for each pixel, one for each channel,
// and one.
var selectInputs = []testInput{
	{"x", pb.Float, []any{"batch", 3, 4, 5}}, {"z", pb.Float, []any{"batch", 3, 4, 5}},
	{"p", pb.Float, []any{"batch", 1, 4, 5}}, {"q", pb.Float, []any{"batch", 3, 1, 1}}, {"s", pb.Float, []any{"batch", 1, 1, 1}},
}

// requireSelected imports a graph of selectInputs and compares what it makes of special numbers with
// what float64 gives, within so many units in the last place. Of a zero the sign is free.
func requireSelected(t *testing.T, r *rand.Rand, m testModel, units float64, runs int) {
	t.Helper()
	m.input, m.extra, m.output = selectInputs[0], selectInputs[1:], "y"
	net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
	simple, _, err := simplify.Network(t.Context(), net, simplify.Options{})
	require.NoError(t, err)
	for k := range 4 {
		plan, err := lower.Network(t.Context(), []*bcnn.Network{net, simple}[k/2], lower.Options{Unfused: k%2 == 1})
		require.NoError(t, err)
		for range runs {
			var arrays []array
			var in []bcnn.Tensor
			for i, of := range selectInputs {
				a := newArray(1, of.dims[1].(int), of.dims[2].(int), of.dims[3].(int))
				x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[i].Shape)
				pixels := a.dims[2] * a.dims[3]
				for k := range a.v {
					v := special[r.IntN(len(special))]
					for of.name != "z" && v != v { // what a comparison with NaN gives depends on its lowering
						v = special[r.IntN(len(special))]
					}
					a.v[k], x.F32[k%pixels*a.dims[1]+k/pixels] = float64(v), v
				}
				arrays, in = append(arrays, a), append(in, x)
			}
			got, err := ref.RunAll(t.Context(), plan, in, nil)
			require.NoError(t, err)
			want := m.tensors(arrays[0], arrays[1:]...)["y"]
			require.Equal(t, []int{1, 3, 4, 5}, want.dims)
			for k, w := range want.v {
				if y := got[0].F32[k%20*3+k/20]; math.Abs(w) < 0x1p-148 {
					require.InDelta(t, w, y, units*0x1p-149, k)
				} else {
					requireIEEE(t, w, y, units, fmt.Sprint("value ", k))
				}
			}
		}
	}
}

// Where is a selection, of infinities and NaN too, whatever makes them and on whichever side they are.
func TestSelections(t *testing.T) {
	bools := func(name string, dims []int, values ...float64) testTensor {
		return testTensor{name: name, typ: pb.Bool, dims: dims, values: values}
	}
	some := make([]float64, 20)
	for i := range some {
		some[i] = float64(i * i % 7 % 2)
	}
	inf := math.Inf(1)
	mixed := make([]float64, 20)
	for i := range mixed {
		mixed[i] = []float64{0, -inf, 1.5, inf}[i%4]
	}
	greater, less := op("Greater", "x one", "c"), op("Less", "x one", "c")
	of := func(name string) testNode { return op("Greater", name+" one", "c") }
	quotient := []testNode{op("Equal", "z zero", "e"), op("Not", "e", "c"), op("Div", "x z", "a")}
	for _, c := range []struct {
		name  string
		nodes []testNode
		units float64
	}{
		{"of an image", []testNode{greater, op("Where", "c z x", "y")}, 0},
		{"of another image", []testNode{of("z"), op("Where", "c z x", "y")}, 0},
		{"below", []testNode{less, op("Where", "c z x", "y")}, 0},
		{"of a difference", []testNode{op("Greater", "x z", "c"), op("Where", "c x z", "y")}, 0},
		{"by both", []testNode{greater, op("Less", "p zero", "d"), op("And", "c d", "e"), op("Where", "e z x", "y")}, 0},
		{"in a choice", []testNode{greater, op("Where", "c z x", "a"), op("Less", "p zero", "d"), op("Where", "d a x", "y")}, 0},
		{"nothing or a value", []testNode{greater, op("Where", "c z zero", "y")}, 0},
		{"a value or nothing", []testNode{greater, op("Where", "c zero z", "y")}, 0},
		{"a constant or the value itself", []testNode{greater, op("Where", "c two x", "y")}, 0},
		{"a constant or another", []testNode{greater, op("Where", "c two z", "y")}, 0},
		{"constants of channels", []testNode{greater, op("Where", "c channels z", "y")}, 0},
		{"constants of pixels", []testNode{greater, op("Where", "c pixels z", "y")}, 0},
		{"for each pixel", []testNode{of("p"), op("Where", "c x z", "y")}, 0},
		{"for each channel", []testNode{of("q"), op("Where", "c x z", "y")}, 0},
		{"for all", []testNode{of("s"), op("Where", "c x z", "y")}, 0},
		{"of a value of each pixel", []testNode{greater, op("Where", "c p x", "y")}, 0},
		{"of a value of each channel", []testNode{greater, op("Where", "c x q", "y")}, 0},
		{"of values of pixels and channels", []testNode{greater, op("Where", "c p q", "y")}, 0},
		{"of a value for all", []testNode{greater, op("Where", "c s x", "y")}, 0},
		{"a quotient unless it is by 0", append(quotient, op("Where", "c a zero", "y")), 2.5},
		{"a quotient unless it is by 0, else another", append(quotient, op("Where", "c a x", "y")), 2.5},
		{"1 over a number unless it is 0", []testNode{op("Reciprocal", "z", "a"), op("Equal", "z zero", "c"), op("Where", "c two a", "y")}, 2.5},
		{"a root of what is positive", []testNode{op("Sqrt", "x", "a"), op("Greater", "x zero", "c"), op("Where", "c a two", "y")}, 2.5},
		{"an exponential", []testNode{op("Exp", "x", "a"), greater, op("Where", "c z a", "y")}, 1.5},
		{"−∞", []testNode{greater, op("Where", "c minus z", "y")}, 0},
		{"−∞ elsewhere", []testNode{greater, op("Where", "c z minus", "y")}, 0},
		{"∞ of the value itself", []testNode{greater, op("Where", "c infinite x", "y")}, 0},
		{"∞ or a number", []testNode{greater, op("Where", "c infinite two", "a"), op("Max", "a z", "b"), op("Where", "c b a", "y")}, 0},
		{"∞ or −∞", []testNode{greater, op("Where", "c infinite minus", "y")}, 0},
		{"0 or −∞", []testNode{less, op("Where", "c zero minus", "a"), op("Add", "a z", "y")}, 0},
		{"−∞ for each pixel", []testNode{of("p"), op("Where", "c minus z", "y")}, 0},
		{"−∞ for each channel", []testNode{of("q"), op("Where", "c z minus", "y")}, 0},
		{"infinities of channels", []testNode{greater, op("Where", "c some z", "y")}, 0},
		{"infinities of pixels", []testNode{greater, op("Where", "c z mixed", "y")}, 0},
		{"constant pixels", []testNode{op("Where", "fixed x z", "y")}, 0},
		{"constant pixels or −∞", []testNode{op("Where", "fixed x minus", "y")}, 0},
		{"∞ or constant pixels", []testNode{op("Where", "fixed infinite x", "y")}, 0},
		{"infinities or constant pixels", []testNode{op("Where", "fixed mixed x", "y")}, 0},
		{"constant channels", []testNode{op("Where", "each x z", "y")}, 0},
		{"constant channels or a number", []testNode{op("Where", "each two z", "y")}, 0},
		{"constant channels or −∞", []testNode{op("Where", "each z minus", "y")}, 0},
		{"constant channels or nothing", []testNode{op("Where", "each z zero", "y")}, 0},
		{"always", []testNode{op("Where", "yes x z", "y")}, 0},
		{"never", []testNode{op("Where", "no x z", "y")}, 0},
		{"a condition that always holds", []testNode{op("Clip", "x zero two", "a"), op("LessOrEqual", "zero a", "c"), op("Where", "c two channels", "y")}, 0},
		{"a condition that always holds, of signs", []testNode{op("Clip", "x zero two", "a"), op("LessOrEqual", "zero a", "c"), op("Where", "c one less", "y")}, 0},
		{"a condition of one channel", []testNode{greater, op("Where", "c channels alike", "y")}, 0},
		{"no condition of any value", []testNode{op("Clip", "x zero two", "a"), op("Less", "a zero", "c"), op("Where", "c z x", "y")}, 0},
		{"a rounding of one integer", []testNode{op("Clip", "x zero less4", "a"), op("Round", "a", "b"), op("Add", "b one", "y")}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(87, 88))
			requireSelected(t, r, testModel{nodes: c.nodes, inits: []testTensor{
				number("zero", 0), number("one", 1), number("two", 2), number("less", -1), number("less4", 0.25), number("infinite", inf), number("minus", -inf),
				floats("channels", []int{3, 1, 1}, 0.5, -1.25, 3), floats("alike", []int{3, 1, 1}, 0.5, 1.25, 3), floats("pixels", []int{4, 5}, some...),
				floats("some", []int{3, 1, 1}, 0.5, inf, -inf), floats("mixed", []int{4, 5}, mixed...),
				bools("fixed", []int{4, 5}, some...), bools("each", []int{3, 1, 1}, 1, 0, 1), bools("yes", []int{}, 1), bools("no", []int{1}, 0),
			}}, c.units, 20)
		})
	}
}

// Attention to what a mask leaves, which is a constant or computed: rows of weights sum to 1, those of
// what is masked are 0, and where all is masked they are NaN.
func TestMaskedAttention(t *testing.T) {
	const rows, cols = 6, 7
	inf := math.Inf(-1)
	causal := make([]float64, rows*cols)
	for i := range causal {
		if i/cols >= i%cols && i/cols != 3 { // row 3 attends to nothing
			causal[i] = 1
		}
	}
	fixed := testTensor{name: "fixed", typ: pb.Bool, dims: []int{rows, cols}, values: causal}
	softmax := []testNode{op("Softmax", "a", "b", "axis", 3), op("Mul", "b two", "y")}
	for name, nodes := range map[string][]testNode{
		"constant":           append([]testNode{op("Where", "fixed x minus", "a")}, softmax...),
		"computed":           append([]testNode{op("Greater", "p zero", "c"), op("Where", "c x minus", "a")}, softmax...),
		"computed and added": append([]testNode{op("Greater", "p zero", "c"), op("Where", "c zero minus", "d"), op("Add", "d x", "a")}, softmax...),
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(1, rows, cols), extra: []testInput{{"p", pb.Float, []any{"batch", 1, rows, cols}}}, output: "y", nodes: nodes,
				inits: []testTensor{number("zero", 0), number("two", 2), number("minus", inf), fixed}}
			r := rand.New(rand.NewPCG(89, 90))
			x, p := make([]float32, rows*cols), make([]float32, rows*cols)
			for i := range x {
				x[i], p[i] = float32(10*r.NormFloat64()), float32(2*causal[i]-1)
			}
			got := results(t, m, x, p)
			for row := range rows {
				most, sum := inf, 0.0
				for col := range cols {
					if i := row*cols + col; causal[i] == 1 {
						most = max(most, float64(x[i]))
					}
				}
				for col := range cols {
					if i := row*cols + col; causal[i] == 1 {
						sum += math.Exp(float64(x[i]) - most)
					}
				}
				for col := range cols {
					i := row*cols + col
					switch y := float64(got[i]); {
					case sum == 0:
						require.True(t, math.IsNaN(y), "row %d is %v", row, y)
					case causal[i] == 0:
						require.Equal(t, 0.0, y, "%d, %d", row, col)
					default:
						require.InEpsilon(t, 2*math.Exp(float64(x[i])-most)/sum, y, 1e-5, "%d, %d", row, col)
					}
				}
			}
		})
	}
}
