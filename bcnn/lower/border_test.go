package lower_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// onBits returns a network of one convolution with random weights on ±1 values.
func onBits(seed uint64, in bcnn.Shape, c bcnn.Conv2D) *bcnn.Network {
	rng := rand.New(rand.NewPCG(seed, 21))
	n := &bcnn.Network{Name: "border", Inputs: []bcnn.Input{{Shape: in, DType: bcnn.Float32}}}
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	group := in.C / max(c.Groups, 1)
	values := make([]int8, c.Out*c.KH*c.KW*group)
	for i := range values {
		values[i] = int8(2*rng.IntN(2) - 1)
	}
	c.Weights.Bits = make([]uint64, c.Out*c.KH*c.KW*bits.Words(group))
	bits.Pack(c.Weights.Bits, values, group)
	n.Append("conv", c)
	return n
}

// requireBorder computes the correction of every output from its definition: a
// padded tap is read as −1 and ought to be PadValue.
func requireBorder(t *testing.T, in bcnn.Shape, c bcnn.Conv2D, seed uint64) {
	t.Helper()
	n := onBits(seed, in, c)
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	step := p.Steps[1].Op.(*plan.Conv)
	out, b := p.OutputShape(), step.Border
	if b != nil {
		require.Len(t, b.Row, out.H)
		require.Len(t, b.Col, out.W)
		require.Len(t, b.Correction, b.Rows*b.Cols*c.Out)
		require.LessOrEqual(t, b.Rows, 2*c.KH+2)
		require.LessOrEqual(t, b.Cols, 2*c.KW+2)
	}
	group := in.C / step.Groups
	padded := false
	for y := range out.H {
		for x := range out.W {
			for o := range c.Out {
				want, free := 0, true
				for ky := range c.KH {
					for kx := range c.KW {
						iy, ix := y*step.StrideH-c.Pad.Top+ky*step.DilationH, x*step.StrideW-c.Pad.Left+kx*step.DilationW
						if iy >= 0 && iy < in.H && ix >= 0 && ix < in.W {
							continue
						}
						free, padded = false, true
						row := step.Bits[((o*c.KH+ky)*c.KW+kx)*bits.Words(group):]
						for k := range group {
							want += (c.PadValue + 1) * bits.At(row, k)
						}
					}
				}
				if b == nil {
					require.Zero(t, want, "%+v of %v at %d,%d", c.Window, in, y, x)
					continue
				}
				require.EqualValues(t, want, b.Correction[(b.Row[y]*b.Cols+b.Col[x])*c.Out+o], "%+v of %v at %d,%d", c.Window, in, y, x)
				require.Equal(t, free, b.Row[y] == 0 && b.Col[x] == 0, "class 0 is for windows without padded taps")
			}
		}
	}
	require.Equal(t, padded && c.PadValue != -1, b != nil, "there is a border where padded taps do not read as −1")
}

func TestBorderCorrectsPaddedTaps(t *testing.T) {
	w := func(kh, kw, stride, dilation int, pad ...int) bcnn.Window {
		return bcnn.Window{KH: kh, KW: kw, StrideH: stride, StrideW: stride, DilationH: dilation, DilationW: dilation,
			Pad: bcnn.Padding{Top: pad[0], Left: pad[1], Bottom: pad[2], Right: pad[3]}}
	}
	for i, c := range []struct {
		window bcnn.Window
		h, w   int
	}{
		{w(3, 3, 1, 1, 1, 1, 1, 1), 5, 6},
		{w(3, 3, 1, 1, 0, 0, 0, 0), 5, 6},
		{w(3, 3, 2, 1, 1, 1, 1, 1), 6, 7},
		{w(3, 2, 2, 1, 0, 0, 1, 0), 7, 4},  // padding that no window reaches
		{w(2, 3, 2, 1, 0, 0, 0, 1), 4, 7},  // and to the right
		{w(3, 2, 2, 1, 0, 0, 1, 0), 6, 4},  // padding that the last one reaches
		{w(3, 2, 1, 1, 2, 0, 0, 0), 4, 4},  // above only
		{w(2, 3, 1, 1, 0, 0, 0, 2), 4, 4},  // to the right only
		{w(5, 5, 1, 1, 4, 4, 4, 4), 2, 1},  // larger than the image: no window without padded taps
		{w(3, 3, 1, 3, 5, 6, 7, 8), 2, 2},  // taps jump over the image
		{w(1, 1, 1, 1, 2, 2, 2, 2), 1, 1},  // windows wholly in the padding
		{w(7, 1, 3, 2, 9, 0, 11, 0), 4, 3}, // windows above, in and below
	} {
		for pad := -1; pad <= 1; pad++ {
			for _, groups := range []int{1, 2} {
				t.Run(fmt.Sprintf("%d/pad%d/groups%d", i, pad, groups), func(t *testing.T) {
					conv := bcnn.Conv2D{Window: c.window, Out: []int{2, 200}[groups-1], Groups: groups, PadValue: pad}
					requireBorder(t, bcnn.Shape{H: c.h, W: c.w, C: 3 * groups}, conv, uint64(i))
				})
			}
		}
	}
}

func TestBorderOfRandomWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 23))
	for seed := range uint64(300) {
		in := bcnn.Shape{H: 1 + rng.IntN(6), W: 1 + rng.IntN(6), C: 1 + rng.IntN(70)}
		one := func() (k, stride, dilation int) { return 1 + rng.IntN(5), 1 + rng.IntN(3), 1 + rng.IntN(3) }
		c := bcnn.Conv2D{Out: 1 + rng.IntN(3), PadValue: rng.IntN(2)}
		c.KH, c.StrideH, c.DilationH = one()
		c.KW, c.StrideW, c.DilationW = one()
		c.Pad = bcnn.Padding{Top: rng.IntN(9), Left: rng.IntN(9), Bottom: rng.IntN(9), Right: rng.IntN(9)}
		c.Pad.Bottom += max(0, c.DilationH*(c.KH-1)+1-in.H-c.Pad.Top-c.Pad.Bottom)
		c.Pad.Right += max(0, c.DilationW*(c.KW-1)+1-in.W-c.Pad.Left-c.Pad.Right)
		requireBorder(t, in, c, seed)
	}
}
