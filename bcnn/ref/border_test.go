package ref_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// A backend that borders the image with 0 bits must add exactly what Border
// says: for every padded tap (PadValue − −1)·w.
func TestBorderCorrectionIsWhatABorderOfZeroBitsLacks(t *testing.T) {
	corrected := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		groups := 1 + rng.IntN(2)
		conv := bcnn.Conv2D{
			Window: bcnn.Window{
				KH: 1 + rng.IntN(5), KW: 1 + rng.IntN(5), StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(3),
				DilationH: 1 + rng.IntN(3), DilationW: 1 + rng.IntN(3),
				Pad: bcnn.Padding{Top: rng.IntN(7), Left: rng.IntN(7), Bottom: rng.IntN(7), Right: rng.IntN(7)},
			},
			Groups: groups, PadValue: rng.IntN(3) - 1,
		}
		group := []int{1, 3, 64, 65}[rng.IntN(4)]
		conv.Out = 1 + rng.IntN(3)
		if groups > 1 { // fewer weights would be of float32
			conv.Out = groups * (256/group + conv.Out)
		}
		in := bcnn.Shape{H: 1 + rng.IntN(7), W: 1 + rng.IntN(7), C: group * groups}
		weights := make([]int8, conv.Out*conv.KH*conv.KW*group)
		for i := range weights {
			weights[i] = int8(2*rng.IntN(2) - 1)
		}
		conv.Weights.Bits = pack(group, weights...)
		net := &bcnn.Network{Name: "border", Inputs: []bcnn.Input{{Shape: in, DType: bcnn.Float32}}}
		net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		net.Append("conv", conv)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		if err != nil { // the window is larger than the padded image
			require.ErrorContains(t, err, "does not fit")
			continue
		}
		step := p.Steps[1].Op.(*plan.Conv)
		out := p.OutputShape()
		for y := range out.H {
			for x := range out.W {
				for o := range out.C {
					want := int32(0)
					for ky := range conv.KH {
						for kx := range conv.KW {
							iy := y*conv.StrideH - conv.Pad.Top + ky*conv.DilationH
							ix := x*conv.StrideW - conv.Pad.Left + kx*conv.DilationW
							if iy >= 0 && iy < in.H && ix >= 0 && ix < in.W {
								continue
							}
							row := step.Bits[((o*conv.KH+ky)*conv.KW+kx)*bits.Words(group):]
							for c := range group {
								want += int32((conv.PadValue + 1) * bits.At(row, c))
							}
						}
					}
					got := int32(0)
					if b := step.Border; b != nil {
						require.Less(t, b.Row[y], b.Rows)
						require.Less(t, b.Col[x], b.Cols)
						got = b.Correction[(b.Row[y]*b.Cols+b.Col[x])*out.C+o]
					}
					if got != 0 {
						corrected++
					}
					require.Equal(t, want, got, "seed %d, y %d, x %d, channel %d, %+v", seed, y, x, o, conv.Window)
				}
			}
		}
	}
	require.Greater(t, corrected, 1000, "the random geometries hardly had a border")
}
