package bcnn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// What levels become: bits where a layer reads them as such, else float32.
func TestLevels(t *testing.T) {
	ternary, window := bcnn.Ternary(), bcnn.Window{KH: 1, KW: 1}
	signs := bcnn.Weights{Bits: make([]uint64, 4)}
	byEight := bcnn.Weights{Int8: []int8{-8, 7, 1, 0, 1, 2, 3, 4}}
	many := bcnn.Quantize{Low: -128, Levels: 256, Thresholds: constant(255, 1)}
	four := bcnn.Quantize{Levels: 16, Thresholds: constant(15, 1)}
	for name, c := range map[string]struct {
		net  drawing
		want []string
	}{
		"ternary": {draw(bcnn.Float32, 3, 3, 2).add("q", ternary).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}),
			[]string{"[0] sign q → 6×3×2 bits", "[1] conv c → 3×3×4 float32 scaled"}},
		"ternary weights": {draw(bcnn.Float32, 3, 3, 2).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).
			add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: bcnn.Weights{Int8: []int8{1, 0, -1, 1, 1, 1, 0, 0}}}),
			[]string{"[0] sign s → 3×3×2 bits", "[1 1] concat concat → 3×3×4 bits", "[2] conv c → 3×3×4 float32 scaled"}},
		"behind short sums": {draw(bcnn.Float32, 3, 3, 2).add("s", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).add("c", bcnn.Conv2D{Window: window, Out: 4, Weights: signs}).
			add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}).add("q", ternary).add("d", bcnn.Dense{Out: 4, Weights: signs}),
			[]string{"[0] sign s → 3×3×2 bits", "[1] conv c+p+q → 2×1×4 bits pool 2×2", "[2] dense d → 1×1×4 float32 scaled"}},
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
		"read as numbers": {draw(bcnn.Float32, 3, 3, 2).add("q", ternary).add("r", bcnn.ReLU{}),
			[]string{"[0] quantize q → 3×3×2 float32", "[1] affine r → 3×3×2 float32 relu"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := bcnn.Lower(t.Context(), c.net.Network, bcnn.LowerOptions{})
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
	plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
	require.NoError(t, err)
	require.NoError(t, plan.Check())
}
