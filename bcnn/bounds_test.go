package bcnn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// fed returns a network without layers.
func fed(d bcnn.DType, h, w, c int) *bcnn.Network {
	return &bcnn.Network{Name: "bounds", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: h, W: w, C: c}, DType: d}}}
}

// plus adds a layer under a name of its own.
func plus(n *bcnn.Network, op bcnn.Op, inputs ...int) int {
	return n.Append(fmt.Sprintf("layer%07d", len(n.Layers)), op, inputs...)
}

func kernel(in, out int, w bcnn.Window) bcnn.Conv2D {
	return bcnn.Conv2D{Window: w, Out: out, Weights: bcnn.Weights{Bits: make([]uint64, out*w.KH*w.KW*bits.Words(in))}}
}

// one returns a network of one layer.
func one(d bcnn.DType, h, w, c int, op bcnn.Op) *bcnn.Network {
	n := fed(d, h, w, c)
	plus(n, op)
	return n
}

// two returns a network of one layer that reads the input twice.
func two(s bcnn.Shape, op bcnn.Op) *bcnn.Network {
	n := fed(bcnn.Float32, s.H, s.W, s.C)
	n.Append("two", op, bcnn.NetworkInput, bcnn.NetworkInput)
	return n
}

// Each bound is kept exactly: what lies on it passes, what lies beyond does not,
// and the error says why. Where the bound is too large to be tried whole, a later
// complaint shows that the first one was not made.
func TestBoundsOfCheck(t *testing.T) {
	square := func(k int) bcnn.Window { return bcnn.Window{KH: k, KW: k} }
	pool := func(w bcnn.Window) bcnn.Op { return bcnn.MaxPool{Window: w} }
	conv := func(out int, w bcnn.Window) bcnn.Op { return bcnn.Conv2D{Window: w, Out: out} }
	resized := func(resize int) *bcnn.Network {
		n := one(bcnn.Uint8, 3, 5, 1, bcnn.ReLU{})
		n.Inputs[0].Resize = resize
		return n
	}
	norm := func(variance, epsilon float32) bcnn.Op {
		return bcnn.BatchNorm{Gamma: []float32{1}, Beta: []float32{0}, Mean: []float32{0}, Var: []float32{variance}, Epsilon: epsilon}
	}
	for _, c := range []struct {
		name string
		net  *bcnn.Network
		want string // in the error; none if empty
	}{
		{"most rows", one(bcnn.Float32, 1<<16, 1, 1, bcnn.ReLU{}), ""},
		{"more rows", one(bcnn.Float32, 1<<16+1, 1, 1, bcnn.ReLU{}), "larger than"},
		{"most columns", one(bcnn.Float32, 1, 1<<16, 1, bcnn.ReLU{}), ""},
		{"more columns", one(bcnn.Float32, 1, 1<<16+1, 1, bcnn.ReLU{}), "larger than"},
		{"most channels", one(bcnn.Float32, 1, 1, 1<<22, bcnn.ReLU{}), ""},
		{"more channels", one(bcnn.Float32, 1, 1, 1<<22+1, bcnn.ReLU{}), "larger than"},
		{"most values", one(bcnn.Float32, 1<<14, 1<<14, 1, bcnn.ReLU{}), ""},
		{"more values", one(bcnn.Float32, 1<<14, 1<<14+1, 1, bcnn.ReLU{}), "more than 268435456 values"},
		{"no rows", one(bcnn.Float32, 0, 1, 1, bcnn.ReLU{}), "empty"},
		{"no channels", one(bcnn.Float32, 1, 1, 0, bcnn.ReLU{}), "empty"},
		{"a vector of too many values", one(bcnn.Float32, 1<<12, 1<<11, 1, bcnn.Flatten{}), "larger than"},
		{"a vector of most values", one(bcnn.Float32, 1<<11, 1<<11, 1, bcnn.Flatten{}), ""},

		{"resize to the crop", resized(5), ""},
		{"resize below the crop", resized(4), "resize 4"},
		{"most resize", resized(1 << 16), ""},
		{"more resize", resized(1<<16 + 1), "resize 65537"},
		{"negative resize", resized(-1), "resize -1"},

		{"a window that just fits", one(bcnn.Float32, 5, 7, 1, pool(bcnn.Window{KH: 5, KW: 7})), ""},
		{"a window too high", one(bcnn.Float32, 5, 7, 1, pool(bcnn.Window{KH: 6, KW: 7})), "6×7 does not fit into 5×7×1"},
		{"a window too wide", one(bcnn.Float32, 5, 7, 1, pool(bcnn.Window{KH: 5, KW: 8})), "5×8 does not fit into 5×7×1"},
		{"a window that fits with its padding", one(bcnn.Float32, 5, 5, 1, pool(bcnn.Window{KH: 7, KW: 8, Pad: bcnn.Padding{Top: 1, Bottom: 1, Left: 1, Right: 2}})), ""},
		{"most kernel", one(bcnn.Float32, 1<<16, 1, 1, pool(bcnn.Window{KH: 1 << 16, KW: 1})), ""},
		{"more kernel", one(bcnn.Float32, 1<<16, 1, 1, pool(bcnn.Window{KH: 1<<16 + 1, KW: 1, Pad: bcnn.Padding{Bottom: 1}})), "want values from 1 to 65536"},
		{"no kernel", one(bcnn.Float32, 1, 1, 1, pool(bcnn.Window{KH: 1})), "kernel 1×0"},
		{"most stride", one(bcnn.Float32, 1, 1, 1, pool(bcnn.Window{KH: 1, KW: 1, StrideH: 1 << 16, StrideW: 1 << 16})), ""},
		{"more stride", one(bcnn.Float32, 1, 1, 1, pool(bcnn.Window{KH: 1, KW: 1, StrideH: 1<<16 + 1})), "stride 65537×1"},
		{"most dilation", one(bcnn.Float32, 1, 1, 1, conv(1, bcnn.Window{KH: 1, KW: 1, DilationH: 1 << 16, DilationW: 1 << 16})), "0 weights"},
		{"more dilation", one(bcnn.Float32, 1, 1, 1, conv(1, bcnn.Window{KH: 1, KW: 1, DilationW: 1<<16 + 1})), "dilation 1×65537"},
		{"most padding", one(bcnn.Float32, 1, 1, 1, conv(1, bcnn.Window{KH: 2, KW: 1, Pad: bcnn.Padding{Bottom: 1 << 16}})), "0 weights"},
		{"more padding", one(bcnn.Float32, 1, 1, 1, conv(1, bcnn.Window{KH: 2, KW: 1, StrideH: 9, Pad: bcnn.Padding{Bottom: 1<<16 + 1}})), "padding 65537"},

		{"most outputs", one(bcnn.Float32, 1, 1, 1, conv(1<<22, square(1))), "0 weights"},
		{"more outputs", one(bcnn.Float32, 1, 1, 1, conv(1<<22+1, square(1))), "4194305 output channels are too few or too many"},
		{"most taps", one(bcnn.Float32, 1<<14, 1<<14, 1, conv(1, square(1<<14))), "0 weights"},
		{"more taps", one(bcnn.Float32, 1<<13, 1<<14, 2, conv(1, bcnn.Window{KH: 1<<13 + 1, KW: 1 << 14, Pad: bcnn.Padding{Top: 1}})), "taps, want at most"},
		{"most taps of groups", one(bcnn.Float32, 1<<13, 1<<14, 2, bcnn.Conv2D{Window: bcnn.Window{KH: 1 << 13, KW: 1 << 14}, Out: 2, Groups: 2}), "0 weights"},
		{"most kernel rows", one(bcnn.Float32, 1<<14, 1<<13, 1, conv(2, bcnn.Window{KH: 1 << 14, KW: 1 << 13})), "0 weights"},
		{"more kernel rows", one(bcnn.Float32, 1<<14, 1<<13, 1, conv(3, bcnn.Window{KH: 1 << 14, KW: 1 << 13})), "weights have more than 268435456 rows of output channels × kernel height × kernel width"},
		{"groups of nothing", one(bcnn.Float32, 1, 1, 2, bcnn.Conv2D{Window: square(1), Out: 4, Groups: 4}), "4 groups do not divide 2 input"},
		{"groups of outputs", one(bcnn.Float32, 1, 1, 4, bcnn.Conv2D{Window: square(1), Out: 2, Groups: 4}), "4 groups do not divide 4 input and 2 output"},
		{"a padding value without padding", one(bcnn.Float32, 1, 1, 1, bcnn.Conv2D{Window: square(1), Out: 1, PadValue: 1, Weights: bcnn.Weights{F32: []float32{1}}}), ""},
		{"a padding value of −2", one(bcnn.Float32, 1, 1, 1, bcnn.Conv2D{Window: square(1), Out: 1, PadValue: -2, Weights: bcnn.Weights{F32: []float32{1}}}), "padding value -2"},
		{"a padding value on real values", one(bcnn.Float32, 1, 1, 1, bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1, Pad: bcnn.Padding{Top: 1}}, Out: 1, PadValue: -1,
			Weights: bcnn.Weights{Bits: []uint64{1}}}), "padding value -1 needs"},

		{"most outputs of a dense layer", one(bcnn.Float32, 1, 1, 1, bcnn.Dense{Out: 1 << 22}), "0 weights"},
		{"more outputs of a dense layer", one(bcnn.Float32, 1, 1, 1, bcnn.Dense{Out: 1<<22 + 1}), "4194305 outputs are too few or too many"},
		{"a dense layer of one output", one(bcnn.Float32, 1, 1, 1, bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: []float32{1}}}), ""},
		{"infinite weights", one(bcnn.Float32, 1, 1, 1, bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: []float32{float32(math.Inf(-1))}}}), "weights[0] is -Inf"},

		{"least variance", one(bcnn.Float32, 1, 1, 1, norm(0, math.SmallestNonzeroFloat32)), ""},
		{"variance of 0", one(bcnn.Float32, 1, 1, 1, norm(0, 0)), "variance[0] + epsilon is 0"},
		{"negative epsilon", one(bcnn.Float32, 1, 1, 1, norm(1, -1)), "variance[0] + epsilon is 0"},
		{"epsilon that is no number", one(bcnn.Float32, 1, 1, 1, norm(1, float32(math.NaN()))), "epsilon[0]"},

		{"most padding of a pool", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}})), ""},
		{"a pool above", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Top: 2}})), "in the padding"},
		{"a pool on the left", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Left: 2}})), "in the padding"},
		{"a pool below", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Bottom: 2}})), "in the padding"},
		{"a pool on the right", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Right: 2}})), "in the padding"},
		{"a pool that steps over the padding", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, StrideH: 4, StrideW: 4, Pad: bcnn.Padding{Bottom: 2, Right: 2}})), ""},
		{"a pool that steps into it", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, StrideH: 3, StrideW: 1, Pad: bcnn.Padding{Bottom: 2}})), "in the padding"},
		{"a pool that steps into it on the right", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 3, Pad: bcnn.Padding{Right: 2}})), "in the padding"},
		{"a pool with dilation across", one(bcnn.Float32, 3, 3, 1, pool(bcnn.Window{KH: 2, KW: 2, DilationW: 2})), "dilation"},

		{"most taps of a mean", one(bcnn.Float32, 1<<11, 1<<11, 1, bcnn.AvgPool{Window: square(1 << 11)}), ""},
		{"more taps of a mean", one(bcnn.Float32, 1<<11, 1<<11+1, 1, bcnn.AvgPool{Window: bcnn.Window{KH: 1 << 11, KW: 1<<11 + 1}}), "an average pool of 4196352 taps, want at most 4194304"},
		{"a mean with dilation", one(bcnn.Float32, 3, 3, 1, bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, DilationH: 2}}), "dilation"},
		{"a mean of padding", one(bcnn.Float32, 3, 3, 1, bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Top: 2}}, CountPadding: true}), "in the padding"},
		{"a slope for all", one(bcnn.Float32, 1, 1, 3, bcnn.PReLU{Slope: []float32{1}}), ""},
		{"no slope", one(bcnn.Float32, 1, 1, 3, bcnn.PReLU{}), "0 values of slope for 3 channels"},
		{"slopes for other channels", one(bcnn.Float32, 1, 1, 3, bcnn.PReLU{Slope: []float32{1, 2}}), "2 values of slope for 3 channels"},
		{"a slope that is no number", one(bcnn.Float32, 1, 1, 1, bcnn.PReLU{Slope: []float32{float32(math.NaN())}}), "slope[0] is NaN"},
		{"a clip to one value", one(bcnn.Float32, 1, 1, 1, bcnn.Clip{Min: 1, Max: 1}), ""},
		{"a clip from above only", one(bcnn.Float32, 1, 1, 1, bcnn.Clip{Min: float32(math.Inf(-1)), Max: 1}), ""},
		{"a clip without bounds", one(bcnn.Float32, 1, 1, 1, bcnn.Clip{Min: float32(math.Inf(-1)), Max: float32(math.Inf(1))}), "clip without a finite bound"},
		{"a clip upside down", one(bcnn.Float32, 1, 1, 1, bcnn.Clip{Min: 1, Max: 0}), "clip from 1 to 0, want the lower bound first"},
		{"a clip that is no number", one(bcnn.Float32, 1, 1, 1, bcnn.Clip{Max: float32(math.NaN())}), "clip from 0 to NaN, want the lower bound first"},
		{"the last channel", one(bcnn.Float32, 1, 1, 2, bcnn.Channels{Index: []int32{-1, 0, 1}}), ""},
		{"a channel behind the last", one(bcnn.Float32, 1, 1, 2, bcnn.Channels{Index: []int32{0, 2}}), "channel 1 of the output is channel 2 of an input with 2 channels"},
		{"a channel of −2", one(bcnn.Float32, 1, 1, 2, bcnn.Channels{Index: []int32{-2}}), "channel 0 of the output is channel -2 of an input with 2 channels"},
		{"no channels picked", one(bcnn.Float32, 1, 1, 2, bcnn.Channels{}), "empty"},
		{"the last pixel", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Rows: []int32{1, -1}, Cols: []int32{2, 0}}), ""},
		{"a row behind the last", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Rows: []int32{0, 2}, Cols: []int32{0}}), "row 1 of the output is row 2 of an input with 2"},
		{"a column of −2", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{-2}}), "column 0 of the output is column -2 of an input with 3"},
		{"no rows", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Cols: []int32{0}}), "the list of rows is empty"},
		{"no columns", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Rows: []int32{0}}), "the list of columns is empty"},
		{"the last row of a block", one(bcnn.Float32, 2, 3, 6, bcnn.Pixels{Rows: []int32{3}, Cols: []int32{8}, BlockH: 2, BlockW: 3}), ""},
		{"a row behind the last block", one(bcnn.Float32, 2, 3, 6, bcnn.Pixels{Rows: []int32{4}, Cols: []int32{8}, BlockH: 2, BlockW: 3}), "row 0 of the output is row 4 of an input with 4"},
		{"a block of no columns", one(bcnn.Float32, 2, 3, 6, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}, BlockH: 2}), "blocks of 2×0 pixels do not divide 6 channels"},
		{"blocks of other channels", one(bcnn.Float32, 2, 3, 7, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}, BlockH: 2, BlockW: 3}), "blocks of 2×3 pixels do not divide 7 channels"},
		{"huge blocks", one(bcnn.Float32, 2, 3, 6, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}, BlockH: math.MaxInt, BlockW: math.MaxInt}), "blocks of"},
		{"filled with no number", one(bcnn.Float32, 2, 3, 1, bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}, Fill: float32(math.NaN())}), "fill[0] is NaN"},
		{"the last tap", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 2, Index: []int32{1, 0}, Weight: []float32{1, 2}}, Cols: bcnn.Taps{N: 1, Index: []int32{2}, Weight: []float32{1}}}), ""},
		{"a tap behind the last", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 2, Index: []int32{1, 2}, Weight: []float32{1, 2}}, Cols: bcnn.Taps{N: 1, Index: []int32{2}, Weight: []float32{1}}}), "row 1 of the output is row 2 of an input with 2"},
		{"a tap of −1", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 1, Index: []int32{1}, Weight: []float32{1}}, Cols: bcnn.Taps{N: 1, Index: []int32{-1}, Weight: []float32{1}}}), "column 0 of the output is column -1 of an input with 3"},
		{"a tap without a weight", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 2, Index: []int32{1, 0}, Weight: []float32{1}}}), "2 taps, 2 for each of the rows, do not fit 1 weights"},
		{"half a row", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 2, Index: []int32{1}, Weight: []float32{1}}}), "1 taps, 2 for each of the rows"},
		{"too many taps", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{Rows: bcnn.Taps{N: 1<<16 + 1, Index: make([]int32, 1<<16+1), Weight: make([]float32, 1<<16+1)}}), "65537 taps, 65537 for each of the rows"},
		{"no taps", one(bcnn.Float32, 2, 3, 1, bcnn.Resample{}), "0 taps, 0 for each of the rows"},
		{"a weight that is no number", one(bcnn.Float32, 1, 1, 1, bcnn.Resample{Rows: bcnn.Taps{N: 1, Index: []int32{0}, Weight: []float32{float32(math.Inf(1))}}}), "weight[0] is +Inf"},
		{"all values in order", one(bcnn.Float32, 2, 3, 4, bcnn.TopK{K: 4}), ""},
		{"more than all values", one(bcnn.Float32, 2, 3, 4, bcnn.TopK{K: 5}), "K is 5, want 1 to the number of channels, 4"},
		{"no largest value", one(bcnn.Float32, 2, 3, 4, bcnn.TopK{}), "K is 0, want 1 to the number of channels, 4"},
		{"too many in order", one(bcnn.Float32, 1, 1, 1<<13, bcnn.TopK{K: 1<<11 + 1}), "more than 2²⁴"},
		{"one part", one(bcnn.Float32, 1, 1, 2, bcnn.Concat{}), "concat has 1 inputs, want 2 or more"},
		{"most channels joined", two(bcnn.Shape{H: 1, W: 1, C: 1 << 21}, bcnn.Concat{}), ""},
		{"more channels joined", two(bcnn.Shape{H: 1, W: 1, C: 1<<21 + 1}, bcnn.Concat{}), "4194306 channels, at most 4194304"},

		{"both kinds of thresholds", one(bcnn.Uint8, 1, 1, 3, bcnn.Binarize{Scheme: bcnn.SchemeMinMax, Thresholds: []int32{1}}), "1 thresholds, want 0"},
		{"grey of one channel", one(bcnn.Uint8, 1, 1, 1, bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{1}}), ""},
		{"grey of four channels", one(bcnn.Uint8, 1, 1, 4, bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{1}}), "1 or 3 channels"},
		{"binarize of floats", one(bcnn.Float32, 1, 1, 1, bcnn.Binarize{Scheme: bcnn.SchemeLBP}), "uint8 input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.net.Check()
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// What follows a pool of bytes takes it for real values.
func TestPoolOfBytesIsNotBytes(t *testing.T) {
	n := one(bcnn.Uint8, 2, 2, 1, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}})
	plus(n, bcnn.Binarize{Scheme: bcnn.SchemeLBP})
	require.ErrorContains(t, n.Check(), "uint8 input")
}

func TestShapes(t *testing.T) {
	shapes, err := small().Shapes()
	require.NoError(t, err)
	require.Equal(t, []bcnn.Shape{{H: 6, W: 6, C: 3}, {H: 6, W: 6, C: 2}, {H: 3, W: 3, C: 2}, {H: 3, W: 3, C: 2}, {H: 3, W: 3, C: 2}, {H: 1, W: 1, C: 2}, {H: 1, W: 1, C: 2}}, shapes)
	broken := small()
	broken.Labels = nil
	broken.Layers[0].Op = nil
	shapes, err = broken.Shapes()
	require.Error(t, err)
	require.Nil(t, shapes)
}

// positions counts what a window makes of a row, by trying.
func positions(size, k, stride, dilation int) int {
	n := 0
	for at := 0; at+(k-1)*dilation < size; at += stride {
		n++
	}
	return n
}

func TestWindowOutput(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 2000 {
		in := bcnn.Shape{H: 1 + rng.IntN(12), W: 1 + rng.IntN(12), C: 3}
		w := bcnn.Window{
			KH: 1 + rng.IntN(5), KW: 1 + rng.IntN(5), StrideH: 1 + rng.IntN(4), StrideW: 1 + rng.IntN(4),
			DilationH: 1 + rng.IntN(4), DilationW: 1 + rng.IntN(4),
			Pad: bcnn.Padding{Top: rng.IntN(3), Left: rng.IntN(3), Bottom: rng.IntN(3), Right: rng.IntN(3)},
		}
		out := w.Output(in, 7)
		want := bcnn.Shape{
			H: positions(in.H+w.Pad.Top+w.Pad.Bottom, w.KH, w.StrideH, w.DilationH),
			W: positions(in.W+w.Pad.Left+w.Pad.Right, w.KW, w.StrideW, w.DilationW),
			C: 7,
		}
		require.Equal(t, want, out, "%+v of %v", w, in)
		if out.H == 0 || out.W == 0 {
			continue
		}
		// The network agrees.
		n := one(bcnn.Float32, in.H, in.W, 1, kernel(1, 7, w))
		shapes, err := n.Shapes()
		require.NoError(t, err)
		require.Equal(t, out, shapes[0])

		reads := false
		for y := range out.H {
			for x := range out.W {
				for ky := range w.KH {
					for kx := range w.KW {
						iy, ix := y*w.StrideH-w.Pad.Top+ky*w.DilationH, x*w.StrideW-w.Pad.Left+kx*w.DilationW
						reads = reads || iy < 0 || iy >= in.H || ix < 0 || ix >= in.W
					}
				}
			}
		}
		require.Equal(t, reads, w.ReadsPadding(in, out), "%+v of %v", w, in)
	}
}

func TestStrings(t *testing.T) {
	require.Equal(t, "uint8 bits float32 DType(9)", bcnn.Uint8.String()+" "+bcnn.Bits.String()+" "+bcnn.Float32.String()+" "+bcnn.DType(9).String())
	require.Equal(t, "x ≥ 0, x > 0, ZeroRule(3)", bcnn.ZeroIsPlus.String()+", "+bcnn.ZeroIsMinus.String()+", "+bcnn.ZeroRule(3).String())
	require.Equal(t, "1×2×3", bcnn.Shape{H: 1, W: 2, C: 3}.String())
	for kind, op := range map[string]bcnn.Op{
		"binarize": bcnn.Binarize{}, "conv2d": bcnn.Conv2D{}, "dense": bcnn.Dense{}, "batchnorm": bcnn.BatchNorm{},
		"affine": bcnn.Affine{}, "sign": bcnn.Sign{}, "relu": bcnn.ReLU{}, "maxpool": bcnn.MaxPool{}, "add": bcnn.Add{},
		"flatten": bcnn.Flatten{}, "softmax": bcnn.Softmax{}, "logsoftmax": bcnn.Softmax{Log: true}, "prelu": bcnn.PReLU{}, "clip": bcnn.Clip{}, "avgpool": bcnn.AvgPool{},
		"mul": bcnn.Mul{}, "min": bcnn.Min{}, "max": bcnn.Max{}, "mask": bcnn.Mask{}, "concat": bcnn.Concat{}, "channels": bcnn.Channels{}, "tanh": bcnn.Function{Name: bcnn.Tanh},
		"pixels": bcnn.Pixels{}, "resample": bcnn.Resample{}, "topk": bcnn.TopK{}, "matmul": bcnn.MatMul{}, "transpose": bcnn.Transpose{},
	} {
		require.Equal(t, kind, op.Kind())
	}
}

func TestTensorSizes(t *testing.T) {
	s := bcnn.Shape{H: 2, W: 3, C: 65}
	require.Equal(t, 390, s.Values())
	require.Equal(t, 6, s.Pixels())
	for d, want := range map[bcnn.DType]int{bcnn.Uint8: 390, bcnn.Float32: 4 * 390, bcnn.Bits: 8 * 12} {
		require.EqualValues(t, want, s.Bytes(d))
		x := bcnn.NewTensor(d, 5, s)
		require.Equal(t, 5, x.N)
		require.Equal(t, 5*want, len(x.U8)+4*len(x.F32)+8*len(x.Words))
		require.Equal(t, 5*s.Elements(d), len(x.U8)+len(x.F32)+len(x.Words))
	}
}

// The reports of all layers with weights, alone and fused.
// The second of two layers is as large as the first, or repeated over pixels or channels.
func TestShapesOfPairs(t *testing.T) {
	for _, c := range []struct {
		a, b bcnn.Shape
		ok   bool
	}{
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 2, W: 3, C: 4}, true},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 1, W: 1, C: 4}, true},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 2, W: 3, C: 1}, true},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 1, W: 1, C: 1}, true},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 1, W: 3, C: 4}, false},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 2, W: 1, C: 1}, false},
		{bcnn.Shape{H: 2, W: 3, C: 4}, bcnn.Shape{H: 2, W: 3, C: 2}, false},
		{bcnn.Shape{H: 1, W: 1, C: 4}, bcnn.Shape{H: 2, W: 3, C: 4}, false},
		{bcnn.Shape{H: 2, W: 3, C: 1}, bcnn.Shape{H: 2, W: 3, C: 4}, false},
	} {
		for _, op := range []bcnn.Op{bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}} {
			n := fed(bcnn.Float32, 6, 6, 1)
			shaped := func(s bcnn.Shape) int {
				return plus(n, kernel(1, s.C, bcnn.Window{KH: 7 - s.H, KW: 7 - s.W}), bcnn.NetworkInput)
			}
			plus(n, op, shaped(c.a), shaped(c.b))
			if err := n.Check(); c.ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "shapes "+c.a.String()+" and "+c.b.String()+" cannot be combined")
			}
		}
	}
}
