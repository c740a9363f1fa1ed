package lower_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// What levels become: bits where a layer reads them as such, else float32.
func TestLevels(t *testing.T) {
	ternary, window := bcnn.Ternary(), bcnn.Window{KH: 1, KW: 1}
	signs, signs64 := bcnn.Weights{Bits: make([]uint64, 4)}, bcnn.Weights{Bits: make([]uint64, 64)}
	byEight := bcnn.Weights{Int8: []int8{-8, 7, 1, 0, 1, 2, 3, 4}}
	many := bcnn.Quantize{Low: -128, Levels: 256, Thresholds: constant(255, 1)}
	four := bcnn.Quantize{Levels: 16, Thresholds: constant(15, 1)}
	for name, c := range map[string]struct {
		net  drawing
		want []string
	}{
		"ternary": {draw(bcnn.Float32, 3, 3, 64).add("q", ternary).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}),
			[]string{"[0] sign q → 6×3×64 bits", "[1] conv c → 3×3×4 float32 scaled"}},
		"of few channels": {draw(bcnn.Float32, 3, 3, 2).add("q", bcnn.Quantize{Levels: 4, Thresholds: constant(3, 1)}).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}),
			[]string{"[0] quantize q → 3×3×2 uint8", "[1] conv c → 3×3×4 float32"}},
		"ternary weights": {draw(bcnn.Float32, 3, 3, 2).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).
			add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: bcnn.Weights{Int8: []int8{1, 0, -1, 1, 1, 1, 0, 0}}}),
			[]string{"[0] sign s → 3×3×2 bits", "[1 1] concat concat → 3×3×4 bits", "[2] conv c → 3×3×4 float32 scaled"}},
		"behind short sums": {draw(bcnn.Float32, 3, 3, 2).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).add("c", bcnn.Conv2D{Window: window, Out: 64, Weights: signs64}).
			add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}).add("q", ternary).add("d", bcnn.Dense{Out: 64, Weights: signs64}),
			[]string{"[0] sign s → 3×3×2 bits", "[1] conv c+p+q → 2×1×64 bits pool 2×2", "[2] dense d → 1×1×64 float32 scaled"}},
		"too many bits": {draw(bcnn.Float32, 3, 3, 2).add("q", four).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: byEight}),
			[]string{"[0] quantize q → 3×3×2 uint8", "[1] conv c → 3×3×4 float32"}},
		"bytes through a pool": {draw(bcnn.Float32, 4, 4, 2).add("q", four).
			add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}).
			add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: byEight}),
			[]string{"[0] quantize q → 4×4×2 uint8", "[1] maxpool p → 2×2×2 uint8", "[2] conv c → 2×2×4 float32"}},
		"many levels of ±1 weights": {draw(bcnn.Float32, 3, 3, 2).add("q", many).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}),
			[]string{"[0] quantize q → 3×3×2 uint8", "[1] conv c → 3×3×4 float32"}},
		"bytes in groups": {draw(bcnn.Float32, 3, 3, 2).add("q", many).add("c", bcnn.Conv2D{Window: window, Out: 4, Groups: 2, Weights: bcnn.Weights{Int8: []int8{2, 3, 0, 1}}}),
			[]string{"[0] quantize q → 3×3×2 float32", "[1] conv c → 3×3×4 float32"}},
		"bytes of an image": {draw(bcnn.Uint8, 3, 3, 2).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: byEight}).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).add("d", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: []uint64{0}}}),
			[]string{"[0] conv c → 3×3×4 float32", "[1] sign s → 3×3×4 bits", "[2] dense d → 1×1×1 float32"}},
		"levels without a 0": {draw(bcnn.Float32, 3, 3, 2).add("q", bcnn.Quantize{Low: 1, Levels: 255, Thresholds: constant(254, 1)}).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: byEight}),
			[]string{"[0] quantize q → 3×3×2 float32", "[1] conv c → 3×3×4 float32"}},
		"behind a clip and a factor": {draw(bcnn.Float32, 3, 3, 2).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}).
			add("n", bcnn.Affine{Scale: constant(4, 0.5), Bias: []float32{1, 2, 3, 4}}).add("k", bcnn.Clip{Max: 1}).add("m", bcnn.Affine{Scale: []float32{15}}).
			add("q", four).add("d", bcnn.Conv2D{Window: window, Out: 2, Weights: byEight}),
			[]string{"[0] conv c+n → 3×3×4 float32 scaled", "[1] quantize k+m+q → 3×3×4 uint8", "[2] conv d → 3×3×2 float32"}},
		"numbers of bytes": {draw(bcnn.Float32, 3, 3, 2).add("q", four).
			add("c", bcnn.Conv2D{Window: window, Out: 2, Weights: bcnn.Weights{Int8: []int8{-8, 7, 1, 0}}}).
			add("m", bcnn.Affine{Scale: []float32{0.5}}, 0).add("+", bcnn.Add{}, 1, 2),
			[]string{"[0] quantize q → 3×3×2 uint8", "[1] conv c → 3×3×2 float32", "[1] affine m → 3×3×2 float32 scaled", "[2 3] add + → 3×3×2 float32"}},
		"read as numbers": {draw(bcnn.Float32, 3, 3, 2).add("q", ternary).add("r", bcnn.ReLU{}),
			[]string{"[0] quantize q → 3×3×2 float32", "[1] affine r → 3×3×2 float32 relu"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := lower.Network(t.Context(), c.net.Network, lower.Options{})
			require.NoError(t, err)
			require.Equal(t, c.want, lines(plan))
		})
	}
}

// Levels of the second of several inputs.
func TestLevelsOfInputs(t *testing.T) {
	net := fed(bcnn.Float32, 2, 2, 1)
	net.Inputs = append(net.Inputs, bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Float32})
	net.Append("q", bcnn.Ternary(), bcnn.NetworkInput-1)
	net.Append("c", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{Bits: []uint64{1}}})
	net.Append("sum", bcnn.Add{}, 1, bcnn.NetworkInput)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.NoError(t, plan.Check())
}

// A padding of ±1 stays where a layer with integer weights is computed in float32.
func TestPaddingOfFloats(t *testing.T) {
	weights := bcnn.Weights{Int8: make([]int8, 3*3*2*2)}
	for i := range weights.Int8 {
		weights.Int8[i] = int8(i*37 - 128)
	}
	for _, value := range []int{-1, 0, 1} {
		net := draw(bcnn.Uint8, 5, 4, 2).add("a", bcnn.Affine{Bias: []float32{-3}}).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).
			add("c", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, StrideW: 2, DilationH: 2, Pad: bcnn.Padding{Top: 2, Left: 1, Bottom: 1, Right: 3}}, Out: 2, PadValue: value, Weights: weights})
		requireLowersRight(t, net.Network, 3)
		p, err := lower.Network(t.Context(), net.Network, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, value != 0, slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind() == "pixels" }), lines(p))
		summary := plan.Summarize(net.Network, p)
		require.Equal(t, "its weights have more levels than products of bits are worth, and its input is bits", summary[0].WhyFloat)
	}
}

// Why layers on levels are computed in float32, and how the others are reported.
func TestSumsOfBytes(t *testing.T) {
	all := func(n int) bcnn.Quantize {
		return bcnn.Quantize{Low: -128, Levels: n, Thresholds: constant(n-1, 1)}
	}
	few := bcnn.Quantize{Low: -8, Levels: 16, Thresholds: constant(15, 1)}
	conv := func(groups int, weights ...int8) bcnn.Conv2D {
		return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 2, Groups: groups, Weights: bcnn.Weights{Int8: weights}}
	}
	inGroups := func(groups, in, out int) bcnn.Conv2D {
		return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: groups * out, Groups: groups, Weights: bcnn.Weights{Int8: slices.Repeat([]int8{9}, groups*in*out)}}
	}
	signs := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 2, Weights: bcnn.Weights{Bits: []uint64{1, 2}}}
	large := bcnn.Dense{Out: 1, Weights: bcnn.Weights{Int8: make([]int8, 65794)}}
	for name, c := range map[string]struct {
		net       drawing
		precision plan.Precision
		why       string
	}{
		"8 bits":           {draw(bcnn.Float32, 2, 2, 2).add("q", all(256)).add("c", conv(1, 1, 2, 3, 4)), 8, ""},
		"4 bits":           {draw(bcnn.Float32, 2, 2, 2).add("q", few).add("c", conv(1, -8, 7, 3, 4)), 4, ""},
		"weights of 5":     {draw(bcnn.Float32, 2, 2, 2).add("q", few).add("c", conv(1, -9, 7, 3, 4)), 5, ""},
		"17 levels":        {draw(bcnn.Float32, 2, 2, 2).add("q", bcnn.Quantize{Low: -8, Levels: 17, Thresholds: constant(16, 1)}).add("c", conv(1, -8, 7, 3, 4)), 5, ""},
		"through a pool":   {draw(bcnn.Float32, 2, 2, 2).add("q", few).add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}).add("c", conv(1, -8, 7, 3, 4)), 4, ""},
		"±1":               {draw(bcnn.Float32, 2, 2, 2).add("q", all(256)).add("c", signs), 8, ""},
		"±1 of an image":   {draw(bcnn.Uint8, 2, 2, 2).add("c", signs), 8, ""},
		"an image":         {draw(bcnn.Uint8, 2, 2, 2).add("c", conv(1, 1, 0, 1, 1)), 8, ""},
		"8 bits of images": {draw(bcnn.Uint8, 2, 2, 2).add("c", conv(1, 1, 0, 9, 1)), 8, ""},
		"groups":           {draw(bcnn.Float32, 2, 2, 2).add("q", all(256)).add("c", conv(2, 2, 3)), plan.Float, "it sums bytes in groups that are too small"},
		"wide groups":      {draw(bcnn.Float32, 1, 1, 48).add("q", all(256)).add("c", inGroups(3, 16, 64)), 8, ""},
		"few inputs":       {draw(bcnn.Float32, 1, 1, 30).add("q", all(256)).add("c", inGroups(2, 15, 64)), plan.Float, "it sums bytes in groups that are too small"},
		"two for a block":  {draw(bcnn.Float32, 1, 1, 64).add("q", all(256)).add("c", inGroups(4, 16, 32)), 8, ""},
		"no whole blocks":  {draw(bcnn.Float32, 1, 1, 64).add("q", all(256)).add("c", inGroups(4, 16, 33)), plan.Float, "it sums bytes in groups that are too small"},
		"odd groups":       {draw(bcnn.Float32, 1, 1, 48).add("q", all(256)).add("c", inGroups(3, 16, 32)), plan.Float, "it sums bytes in groups that are too small"},
		"two groups":       {draw(bcnn.Float32, 1, 1, 32).add("q", all(256)).add("c", inGroups(2, 16, 33)), 8, ""},
		"groups of images": {draw(bcnn.Uint8, 2, 2, 2).add("c", conv(2, 2, 3)), plan.Float, "it sums bytes in groups that are too small"},
		"many taps":        {draw(bcnn.Float32, 2, 32897, 1).add("q", all(256)).add("d", large), plan.Float, "its sums of bytes might not fit into 32 bits"},
		"many pixels":      {draw(bcnn.Uint8, 2, 32897, 1).add("d", large), plan.Float, "its sums of bytes might not fit into 32 bits"},
		"without a 0": {draw(bcnn.Float32, 2, 2, 2).add("q", bcnn.Quantize{Low: 1, Levels: 17, Thresholds: constant(16, 1)}).add("c", conv(1, 1, 2, 3, 4)),
			plan.Float, "0 is not among the levels of its input"},
		"moved": {draw(bcnn.Float32, 2, 2, 2).add("q", all(256)).add("p", bcnn.Pixels{Rows: []int32{1}, Cols: []int32{0}}).add("c", conv(1, 1, 2, 3, 4)),
			8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := lower.Network(t.Context(), c.net.Network, lower.Options{})
			require.NoError(t, err)
			r := plan.Summarize(c.net.Network, p)[0]
			require.Equal(t, []any{c.precision, c.precision < plan.Float, c.why}, []any{r.Precision, r.Bytes, r.WhyFloat}, lines(p))
		})
	}
}

// Groups of few inputs are of float32 where products of bits would take longer, also with the inputs of all
// groups, but for depthwise bits of which bits are made, and for sums that float32 does not hold.
func TestBitsInGroups(t *testing.T) {
	two := bcnn.Quantize{Low: 0, Levels: 4, Thresholds: []float32{1, 2, 3}}
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	conv := func(window, groups, in, out int) bcnn.Conv2D {
		return bcnn.Conv2D{Window: bcnn.Window{KH: window, KW: window, Pad: bcnn.Padding{Top: window - 1, Left: window - 1}}, Out: groups * out, Groups: groups,
			Weights: bcnn.Weights{Bits: make([]uint64, groups*out*window*window*((in+63)/64))}}
	}
	ternary := func(groups, in, out int) bcnn.Conv2D {
		op := conv(1, groups, in, out)
		op.Weights = bcnn.Weights{Int8: slices.Repeat([]int8{-1, 0, 1, 1}, groups*in*out/4)}
		return op
	}
	const float, low, binary = "float", "planes", "binary"
	for name, c := range map[string]struct {
		of, conv bcnn.Op
		next     []bcnn.Op
		c        int
		want     string
	}{
		"depthwise":                     {sign, conv(3, 8, 1, 1), nil, 8, float},
		"depthwise, then a sign":        {sign, conv(3, 8, 1, 1), []bcnn.Op{bcnn.ReLU{}, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}}, sign}, 8, binary},
		"depthwise, then levels":        {sign, conv(3, 8, 1, 1), []bcnn.Op{two}, 8, float},
		"depthwise of levels":           {two, conv(3, 8, 1, 1), []bcnn.Op{sign}, 8, float},
		"two filters a channel":         {sign, conv(3, 8, 1, 2), []bcnn.Op{sign}, 8, float},
		"16 to 16, between zeros":       {sign, conv(1, 2, 16, 16), []bcnn.Op{sign}, 32, low},
		"2 to 2, between zeros":         {sign, conv(3, 32, 2, 2), []bcnn.Op{sign}, 64, low},
		"2 to 2 of many groups":         {sign, conv(3, 64, 2, 2), []bcnn.Op{sign}, 128, float},
		"16 to 17":                      {sign, conv(1, 2, 16, 17), nil, 32, binary},
		"32 to 32 of two planes":        {two, conv(1, 3, 32, 32), nil, 96, float},
		"32 to 33 of two planes":        {two, conv(1, 3, 32, 33), nil, 96, low},
		"16 to 16 of ternary weights":   {sign, ternary(2, 16, 16), nil, 32, float},
		"16 to 17 of ternary weights":   {sign, ternary(2, 16, 17), nil, 32, low},
		"sums that float32 would round": {bcnn.Quantize{Low: 253, Levels: 4, Thresholds: two.Thresholds}, conv(260, 2, 1, 1), nil, 2, low},
		"one group":                     {two, conv(3, 1, 64, 1), nil, 64, low},
	} {
		t.Run(name, func(t *testing.T) {
			n := draw(bcnn.Float32, 2, 2, c.c).add("of", c.of).add("c", c.conv)
			for i, op := range c.next {
				n = n.add(fmt.Sprint("next", i), op)
			}
			p, err := lower.Network(t.Context(), n.Network, lower.Options{})
			require.NoError(t, err)
			r := plan.Summarize(n.Network, p)[0]
			got := binary
			switch {
			case r.WhyFloat != "":
				got = float
			case r.Planes > 1:
				got = low
			}
			require.Equal(t, c.want, got, lines(p))
		})
	}
}

// Levels that are joined and moved stay such, as planes where all are the same, or become
// such again.
func TestMovedLevels(t *testing.T) {
	levels := func(low, n int) bcnn.Quantize {
		q := bcnn.Quantize{Low: low, Levels: n}
		for k := 1; k < n; k++ {
			q.Thresholds = append(q.Thresholds, float32(low+k))
		}
		return q
	}
	window := bcnn.Window{KH: 1, KW: 1}
	// conv has two filters of so many channels, whose weights repeat a list.
	conv := func(channels int, weights ...int8) bcnn.Conv2D {
		w := make([]int8, 0, 2*channels)
		for i := range 2 * channels {
			w = append(w, weights[i%len(weights)])
		}
		return bcnn.Conv2D{Window: window, Out: 2, Weights: bcnn.Weights{Int8: w}}
	}
	few, many := conv(64, 1, -1, 1), conv(64, 5, -7, 3)
	input := func() drawing { return draw(bcnn.Float32, 2, 3, 32) }
	joined := func(q, r bcnn.Quantize, op bcnn.Conv2D) drawing {
		d := input().add("q", q)
		d.Append("r", r, bcnn.NetworkInput)
		d.Append("j", bcnn.Concat{}, 0, 1)
		d.Append("c", op, 2)
		return d
	}
	index, zeros := slices.Repeat([]int32{1, 0, 0, 31}, 16), slices.Repeat([]int32{1, -1, 0, -1}, 16)
	for name, c := range map[string]struct {
		net  drawing
		want []string
	}{
		"planes": {joined(levels(0, 4), levels(0, 4), few),
			[]string{"[0] sign q → 4×3×32 bits", "[0] sign r → 4×3×32 bits", "[1 2] concat j → 4×3×64 bits", "[3] conv c → 2×3×2 float32 scaled"}},
		"other planes": {joined(levels(0, 4), levels(-1, 4), few),
			[]string{"[0] quantize q → 2×3×32 float32", "[0] quantize r → 2×3×32 float32", "[1 2] concat j → 2×3×64 float32", "[3] quantize quantize → 2×3×64 uint8", "[4] conv c → 2×3×2 float32"}},
		"bytes": {joined(levels(0, 16), levels(0, 16), many),
			[]string{"[0] quantize q → 2×3×32 float32", "[0] quantize r → 2×3×32 float32", "[1 2] concat j → 2×3×64 float32", "[3] quantize quantize → 2×3×64 uint8", "[4] conv c → 2×3×2 float32"}},
		"channels": {input().add("q", levels(0, 4)).add("m", bcnn.Channels{Index: index}).add("c", few),
			[]string{"[0] sign q → 4×3×32 bits", fmt.Sprint("[1] channels m → 4×3×64 bits ", index), "[2] conv c → 2×3×2 float32 scaled"}},
		"zeros": {input().add("q", levels(1, 3)).add("m", bcnn.Channels{Index: zeros}).add("c", few),
			[]string{"[0] quantize q → 2×3×32 float32", fmt.Sprint("[1] channels m → 2×3×64 float32 ", zeros), "[2] sign sign → 4×3×64 bits", "[3] conv c → 2×3×2 float32 scaled"}},
		"filled": {input().add("q", levels(0, 4)).add("m", bcnn.Pixels{Rows: []int32{-1, 0, 1}, Cols: []int32{2, 1, 0}, Fill: 3}).add("c", conv(32, 1, -1, 1)),
			[]string{"[0] quantize q → 2×3×32 float32", "[1] pixels m → 3×3×32 float32", "[2] sign sign → 6×3×32 bits", "[3] conv c → 3×3×2 float32 scaled"}},
		"halves": {input().add("q", levels(0, 4)).add("m", bcnn.Pixels{Rows: []int32{-1, 0}, Cols: []int32{0, 1, 2}, Fill: 0.5}).add("c", conv(32, 1, -1, 1)),
			[]string{"[0] quantize q → 2×3×32 float32", "[1] pixels m → 2×3×32 float32", "[2] conv c → 2×3×2 float32"}},
		"blocks": {input().add("q", levels(0, 4)).add("m", bcnn.Pixels{Rows: []int32{0, 1, 2, 3}, Cols: []int32{0, 1, 2}, BlockH: 2, BlockW: 1}).add("c", conv(16, 1, -1)),
			[]string{"[0] quantize q → 2×3×32 float32", "[1] pixels m → 4×3×16 float32", "[2] quantize quantize → 4×3×16 uint8", "[3] conv c → 4×3×2 float32"}},
		"twice": {input().add("q", levels(0, 3)).add("m", bcnn.Channels{Index: index}).add("p", bcnn.MaxPool{Window: window}).
			add("n", bcnn.Pixels{Rows: []int32{1, 0}, Cols: []int32{0, 2}}).add("c", few),
			[]string{"[0] sign q → 4×3×32 bits", fmt.Sprint("[1] channels m → 4×3×64 bits ", index), "[2] maxpool p → 4×3×64 bits", "[3] pixels n → 4×2×64 bits", "[4] conv c → 2×2×2 float32 scaled"}},
		"read by nothing of bits": {joined(levels(0, 4), levels(0, 4), bcnn.Conv2D{Window: window, Out: 2, Weights: bcnn.Weights{F32: constant(128, 0.5)}}),
			[]string{"[0] quantize q → 2×3×32 float32", "[0] quantize r → 2×3×32 float32", "[1 2] concat j → 2×3×64 float32", "[3] conv c → 2×3×2 float32"}},
		"more than planes hold": {draw(bcnn.Float32, 1, 3, 8).add("q", levels(-128, 256)).add("m", bcnn.Pixels{Rows: []int32{0, 0, 0, 0}, Cols: slices.Repeat([]int32{0, 1, 2}, 5)}).
			add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 3, StrideW: 8}}),
			[]string{"[0] quantize q → 1×3×8 float32", "[1] pixels m → 4×15×8 float32", "[2] maxpool p → 1×2×8 float32"}},
		"vectors": {func() drawing {
			d := input().add("q", levels(0, 4)).add("f", bcnn.Flatten{})
			d.Append("j", bcnn.Concat{}, 1, 1)
			return d.add("c", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: slices.Repeat([]uint64{0x5a5a5a}, 6)}})
		}(),
			[]string{"[0] quantize q → 2×3×32 float32", "[1] flatten flatten → 1×1×192 float32", "[2 2] concat j → 1×1×384 float32", "[3] sign sign → 2×1×384 bits", "[4] dense c → 1×1×1 float32 scaled"}},
		"with signs": {func() drawing {
			d := input().add("q", levels(0, 4))
			d.Append("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.NetworkInput)
			d.Append("j", bcnn.Concat{}, 0, 1)
			return d.add("c", few)
		}(),
			[]string{"[0] quantize q → 2×3×32 float32", "[0] sign s → 2×3×32 bits", "[2] affine affine → 2×3×32 float32", "[1 3] concat j → 2×3×64 float32", "[4] conv c → 2×3×2 float32"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := lower.Network(t.Context(), c.net.Network, lower.Options{})
			require.NoError(t, err)
			require.Equal(t, c.want, lines(plan))
			requireLowersRight(t, c.net.Network, 7)
		})
	}
}

// Infinite values have the first and the last level, also where planes hold more levels than there
// are, and NaN the first; behind a falling function it is the other way round.
func TestLevelsOfInfiniteValues(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name     string
		scale    []float32
		levels   bcnn.Quantize
		in, want []float32
	}{
		{"ternary", nil, bcnn.Ternary(), []float32{-inf, inf, 2, float32(math.NaN())}, []float32{-1, 1, 1, -1}},
		{"five levels", nil, bcnn.Quantize{Levels: 5, Thresholds: []float32{-1, 0, 1, 2}}, []float32{-inf, inf, 3, 0}, []float32{0, 4, 4, 2}},
		{"falling", []float32{-1}, bcnn.Ternary(), []float32{-inf, inf, 2, -2}, []float32{1, -1, -1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			net := &bcnn.Network{Name: "levels", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 64}, DType: bcnn.Float32}}}
			if c.scale != nil {
				net.Append("scale", bcnn.Affine{Scale: c.scale})
			}
			net.Append("levels", c.levels)
			ones := make([]uint64, 64)
			for i := range ones {
				ones[i] = ^uint64(0)
			}
			net.Append("dense", bcnn.Dense{Out: 64, Weights: bcnn.Weights{Bits: ones}})
			in := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
			for _, unfused := range []bool{false, true} {
				p, err := lower.Network(t.Context(), net, lower.Options{Unfused: unfused})
				require.NoError(t, err)
				for i, x := range c.in {
					for k := range in.F32 {
						in.F32[k] = x
					}
					out, err := ref.Run(t.Context(), p, in, nil)
					require.NoError(t, err)
					require.Equal(t, 64*c.want[i], out.F32[0], "of %v, unfused %v", x, unfused)
				}
			}
		})
	}
}
