package tflite

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// step is an operator on the value in front of it, and numbers.
type step struct {
	name    string
	numbers []float32
}

func chain(list ...step) *testGraph {
	dims := []int32{1, 1, 1, 33}
	g := newGraph(dims...)
	at := int32(0)
	for i, s := range list {
		switch s.name {
		case "bits":
			at = g.put(s.name, dims, at)
			continue
		case "conv":
			w := g.floats([]int32{33, 1, 1, 33}, slices.Repeat(of(1), 33*33)...)
			g.outputs[0] = g.add("CONV_2D", convOptions(1, 1), dims, at, w)
			continue
		}
		inputs := []int32{at}
		if s.numbers != nil {
			inputs = append(inputs, g.floats([]int32{}, s.numbers...))
		}
		if at = 1; i < len(list)-1 {
			at = g.tensor(testTensor{name: "y", dims: dims})
		}
		g.operators = append(g.operators, testOperator{name: s.name, inputs: inputs, outputs: []int32{at}})
	}
	return g
}

func of(numbers ...float32) []float32 { return numbers }

// TestRoundings gives what operators that round make of multiples of ¼ from −4 to 4, with
// limits before and behind them.
func TestRoundings(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  []step
		levels int // of the layer, 0 for none
		want   func(x float64) float64
	}{
		{"DoReFa", []step{{"MINIMUM", of(1)}, {"RELU", nil}, {"MUL", of(3)}, {"ROUND", nil}, {"MUL", of(0.5)}}, 4,
			func(x float64) float64 { return math.RoundToEven(3*min(max(x, 0), 1)) / 2 }},
		{"signed", []step{{"RELU_N1_TO_1", nil}, {"ROUND", nil}}, 3, func(x float64) float64 { return math.RoundToEven(min(max(x, -1), 1)) }},
		{"FLOOR", []step{{"MAXIMUM", of(-2.5)}, {"MINIMUM", of(1.25)}, {"FLOOR", nil}}, 5, func(x float64) float64 { return math.Floor(min(max(x, -2.5), 1.25)) }},
		{"CEIL", []step{{"MAXIMUM", of(-2.5)}, {"MINIMUM", of(1.25)}, {"CEIL", nil}}, 5, func(x float64) float64 { return math.Ceil(min(max(x, -2.5), 1.25)) }},
		{"behind", []step{{"ROUND", nil}, {"MINIMUM", of(2)}, {"RELU", nil}}, 3, func(x float64) float64 { return min(max(math.RoundToEven(x), 0), 2) }},
		{"a factor less than 0", []step{{"RELU6", nil}, {"FLOOR", nil}, {"MUL", of(-0.25)}}, 7, func(x float64) float64 { return -math.Floor(max(x, 0)) / 4 }},
		{"two factors", []step{{"RELU6", nil}, {"FLOOR", nil}, {"MUL", of(0.25)}, {"MUL", of(6)}, {"NEG", nil}}, 7,
			func(x float64) float64 { return -1.5 * math.Floor(max(x, 0)) }},
		{"a falling factor in front", []step{{"RELU6", nil}, {"MUL", of(-0.5)}, {"CEIL", nil}}, 4, func(x float64) float64 { return math.Ceil(-max(x, 0) / 2) }},
		{"a product that float32 rounds up", []step{{"RELU", nil}, {"MINIMUM", of(1.3)}, {"MUL", of(1 / float32(1.3))}, {"FLOOR", nil}}, 2,
			func(x float64) float64 {
				return math.Floor(float64(float32(min(max(x, 0), float64(float32(1.3)))) * (1 / float32(1.3))))
			}},
		{"behind TANH", []step{{"TANH", nil}, {"ROUND", nil}}, 3, func(x float64) float64 { return math.Round(math.Tanh(x)) }},
		{"behind LOGISTIC", []step{{"LOGISTIC", nil}, {"ROUND", nil}}, 2, func(x float64) float64 {
			if x > 0 { // ½ is rounded to even
				return 1
			}
			return 0
		}},
		{"behind SIGN", []step{{"SIGN", nil}, {"MUL", of(2)}, {"ADD", of(0.5)}, {"FLOOR", nil}}, 5, func(x float64) float64 { return 2 * float64(cmp.Compare(x, 0)) }},
		{"as many levels as there may be", []step{{"ROUND", nil}, {"MINIMUM", of(255)}, {"RELU", nil}}, 256, func(x float64) float64 { return max(math.RoundToEven(x), 0) }},
		{"the least level that there may be", []step{{"ROUND", nil}, {"MAXIMUM", of(-256)}, {"MINIMUM", of(-1)}}, 256, func(x float64) float64 { return min(math.RoundToEven(x), -1) }},
		{"behind bits", []step{{"bits", nil}, {"ROUND", nil}, {"ADD", of(1)}}, 0, func(x float64) float64 { return 1 + float64(plain["bits"](float32(x))) }},
		{"levels once more", []step{{"RELU6", nil}, {"ROUND", nil}, {"SUB", of(2)}, {"ROUND", nil}}, 7, func(x float64) float64 { return math.RoundToEven(min(max(x, 0), 6)) - 2 }},
		{"one on each side", []step{{"ROUND", nil}, {"RELU_N1_TO_1", nil}}, 3, func(x float64) float64 { return min(max(math.RoundToEven(x), -1), 1) }},
		{"a sum in front", []step{{"RELU6", nil}, {"ADD", of(-1.5)}, {"ROUND", nil}}, 7, func(x float64) float64 { return math.RoundToEven(max(x, 0) - 1.5) }},
		{"a difference in front", []step{{"RELU_N1_TO_1", nil}, {"MUL", of(2)}, {"SUB", of(0.25)}, {"ROUND", nil}}, 5, func(x float64) float64 { return math.RoundToEven(2*min(max(x, -1), 1) - 0.25) }},
		{"one level", []step{{"RELU6", nil}, {"MINIMUM", of(0.25)}, {"FLOOR", nil}, {"ADD", of(2)}}, 0, func(x float64) float64 { return 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			net, _, err := Decode(t.Context(), chain(c.steps...).encode(), Options{Name: "net"})
			require.NoError(t, err)
			levels := 0
			for _, l := range net.Layers {
				if q, ok := l.Op.(bcnn.Quantize); ok {
					levels = q.Levels
				}
			}
			require.Equal(t, c.levels, levels)
			plan, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
			want := make([]float32, 33)
			for i := range want {
				x.F32[i] = float32(i-16) / 4
				want[i] = float32(c.want(float64(x.F32[i])) + 0) // without −0
			}
			y, err := ref.Run(t.Context(), plan, x, nil)
			require.NoError(t, err)
			for i := range want {
				require.Equal(t, want[i], y.F32[i]+0, "%v", x.F32[i])
			}
		})
	}
}

func TestRoundingsRefused(t *testing.T) {
	for _, c := range []struct {
		want  string
		steps []step
	}{
		{"operator 0 (ROUND) gives integers from -Inf to +Inf, but at most 256 levels are supported", []step{{"ROUND", nil}}},
		{"operator 1 (FLOOR) gives integers from 0 to +Inf", []step{{"RELU", nil}, {"FLOOR", nil}, {"ADD", of(1)}}},
		{"from -Inf to 3", []step{{"ROUND", nil}, {"MINIMUM", of(3)}, {"MUL", of(2)}}},
		{"from -Inf to +Inf", []step{{"ROUND", nil}, {"MINIMUM", of(1.5)}, {"RELU", nil}}},
		{"from 0 to 256", []step{{"ROUND", nil}, {"MINIMUM", of(256)}, {"RELU", nil}}},
		{"from 0 to +Inf", []step{{"RELU6", nil}, {"EXP", nil}, {"ROUND", nil}, {"NEG", nil}}},
		{"operator 0 (ROUND) gives integers from -Inf to +Inf", []step{{"ROUND", nil}, {"conv", nil}}},
		{"from -257 to -2", []step{{"ROUND", nil}, {"MAXIMUM", of(-257)}, {"MINIMUM", of(-2)}}},
		{"from -256 to 0", []step{{"ROUND", nil}, {"MAXIMUM", of(-256)}, {"MINIMUM", of(0)}, {"NEG", nil}}},
		{"from -Inf to 0", []step{{"RELU", nil}, {"NEG", nil}, {"FLOOR", nil}, {"NEG", nil}}},
		{"from 300 to 301", []step{{"ROUND", nil}, {"MINIMUM", of(301)}, {"MAXIMUM", of(300)}}},
	} {
		refused(t, chain(c.steps...).encode(), c.want)
	}
}

// Values are bounded by what numbers of all channels make of their bounds.
func TestRoundingsOfChannels(t *testing.T) {
	for _, c := range []struct {
		name          string
		numbers, want []float32
	}{{"ADD", of(1, 3.4), of(-7, -3)}, {"MUL", of(1, 3), of(-6, 0)}, {"SUB", of(2), of(-4, 2)}, {"MUL", of(0), of(0, 0)}} {
		g := newGraph(1, 1, 1, 2)
		x := g.add("RELU6", nil, []int32{1, 1, 1, 2}, 0)
		x = g.add(c.name, nil, []int32{1, 1, 1, 2}, x, g.floats([]int32{int32(len(c.numbers))}, c.numbers...))
		x = g.add("ROUND", nil, []int32{1, 1, 1, 2}, x)
		g.outputs[0] = g.add("NEG", nil, []int32{1, 1, 1, 2}, x)
		require.Equal(t, c.want, runInputs(t, g, of(7, -1))[0], c.name)
	}
}

// Bounds are known behind any number of layers.
func TestBoundsBehindLayers(t *testing.T) {
	list := []step{{"RELU6", nil}}
	for range 40 {
		list = append(list, step{"RELU", nil})
	}
	g := chain(append(list, step{"ROUND", nil}, step{"NEG", nil})...)
	_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
}
