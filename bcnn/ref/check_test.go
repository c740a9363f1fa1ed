package ref_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

func TestRunNamesWhatIsWrong(t *testing.T) {
	bytes := byteTensor(1, 2, 3, 1, 2, 3, 4, 5, 6)
	floats := floatTensor(1, 2, 3, 1, 2, 3, 4, 5, 6)
	threshold := &bcnn.Threshold{I32: []int32{1}}
	conv := func(change func(*bcnn.ConvStep)) *bcnn.ConvStep {
		c := &bcnn.ConvStep{Window: window(1, 1), Out: 1, Groups: 1, Bits: pack(3, 1, 1, 1), Threshold: threshold}
		change(c)
		return c
	}
	one := bitTensor(1, 2, 1, 1, 1)
	tests := []struct {
		want     string
		op       bcnn.StepOp
		in, out  bcnn.Tensor
		override func(*bcnn.Plan)
	}{
		{want: "input: tensor is uint8", op: &bcnn.AffineStep{}, in: bytes, out: floats,
			override: func(p *bcnn.Plan) { p.Tensors[0].DType = bcnn.Float32 }},
		{want: "no tensors", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Tensors = nil }},
		{want: "no operation", in: bytes, out: floats},
		{want: "which no step has written", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Steps[0].In[0] = 1 }},
		{want: "which no step has written", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Steps[0].In[0] = -1 }},
		{want: "cannot write tensor 0", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Steps[0].Out = 0 }},
		{want: "2 inputs, want 1", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Steps[0].In = []int{0, 0} }},
		{want: "output tensor 2 is not written", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Output = 2 }},
		{want: "has shape 0×2×3", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Tensors[1].Shape.H = 0 }},
		{want: "has type DType(9)", op: &bcnn.AffineStep{}, in: bytes, out: floats, override: func(p *bcnn.Plan) { p.Tensors[1].DType = 9 }},
		{want: "output shape 1×1×6, want 1×2×3", op: &bcnn.AffineStep{}, in: bytes, out: floatTensor(1, 1, 6, 1, 2, 3, 4, 5, 6)},
		{want: "2 scales and 1 shifts", op: &bcnn.AffineStep{Scale: []float32{1, 2}, Shift: []float32{1}}, in: bytes, out: floats},
		{want: `unknown scheme "rgb"`, op: &bcnn.BinarizeStep{Scheme: "rgb"}, in: bytes, out: one},
		{want: "no threshold", op: &bcnn.BinarizeStep{Scheme: bcnn.SchemeGrey}, in: bytes, out: one},
		{want: "makes 3 channels, not 1", op: &bcnn.BinarizeStep{Scheme: bcnn.SchemeLBP}, in: bytes, out: one},
		{want: "needs 1 or 3 channels", op: &bcnn.BinarizeStep{Scheme: bcnn.SchemeLBP}, in: byteTensor(1, 1, 2, 1, 2), out: one},
		{want: "cannot make bits of float32", op: &bcnn.BinarizeStep{Scheme: bcnn.SchemeGrey, Threshold: threshold}, in: floats, out: one},
		{want: "no threshold", op: conv(func(c *bcnn.ConvStep) { c.Threshold = nil }), in: bytes, out: one},
		{want: "0 thresholds for float32", op: conv(func(c *bcnn.ConvStep) { c.F32, c.Bias = make([]float32, 3), make([]float32, 1) }), in: floats, out: one},
		{want: "threshold or pooling with Float32 output", op: conv(func(*bcnn.ConvStep) {}), in: bytes, out: floatTensor(1, 2, 1, 0, 0)},
		{want: "scale or ReLU with Bits output", op: conv(func(c *bcnn.ConvStep) { c.ReLU = true }), in: bytes, out: one},
		{want: "2 words of weights, want 1", op: conv(func(c *bcnn.ConvStep) { c.Bits = make([]uint64, 2) }), in: bytes, out: one},
		{want: "padding bits", op: conv(func(c *bcnn.ConvStep) { c.Bits = []uint64{8} }), in: bytes, out: one},
		{want: "0 weights and 0 biases", op: conv(func(*bcnn.ConvStep) {}), in: floats, out: one},
		{want: "2 groups of 3 input and 1 output", op: conv(func(c *bcnn.ConvStep) { c.Groups = 2 }), in: bytes, out: one},
		{want: "padding value 2", op: conv(func(c *bcnn.ConvStep) { c.PadValue = 2 }), in: bytes, out: one},
		{want: "padding {Top:-1", op: conv(func(c *bcnn.ConvStep) { c.Pad.Top = -1 }), in: bytes, out: one},
		{want: "window {", op: conv(func(c *bcnn.ConvStep) { c.StrideH = 0 }), in: bytes, out: one},
		{want: "want 0×2×1", op: conv(func(c *bcnn.ConvStep) { c.KH = 2; c.Bits = pack(3, 1, 1, 1, 1, 1, 1) }), in: bytes, out: one},
		{want: "flip mask of 2 words", op: conv(func(c *bcnn.ConvStep) { c.Threshold = &bcnn.Threshold{I32: threshold.I32, Flip: make([]uint64, 2)} }), in: bytes, out: one},
		{want: "padding bits", op: conv(func(c *bcnn.ConvStep) { c.Threshold = &bcnn.Threshold{I32: threshold.I32, Flip: []uint64{2}} }), in: bytes, out: one},
		{want: "wholly in the padding", op: &bcnn.MaxPoolStep{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, Pad: bcnn.Padding{Left: 1}}}, in: floats, out: floats},
		{want: "wholly in the padding", op: &bcnn.MaxPoolStep{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, Pad: bcnn.Padding{Right: 1}}}, in: floats, out: floats},
		{want: "flip mask, but not Bits", op: &bcnn.MaxPoolStep{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}, Flip: []uint64{1}}, in: floats, out: floats},
		{want: "cannot make uint8 of uint8", op: &bcnn.MaxPoolStep{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}}, in: bytes, out: bytes},
		{want: "cannot make float32 of uint8", op: &bcnn.AddStep{}, in: bytes, out: floats},
		{want: "cannot make bits of uint8", op: &bcnn.SignStep{Threshold: bcnn.Threshold{F32: make([]float32, 3)}}, in: bytes, out: bitTensor(1, 2, 3, 1, 1, 1, 1, 1, 1)},
		{want: "cannot make uint8 of uint8", op: &bcnn.FlattenStep{}, in: bytes, out: byteTensor(1, 1, 6, 1, 2, 3, 4, 5, 6)},
	}
	for i, test := range tests {
		t.Run(fmt.Sprint(i, " ", test.want), func(t *testing.T) {
			p := single(test.op, test.in, test.out)
			if test.override != nil {
				test.override(p)
			}
			_, err := ref.Run(t.Context(), p, test.in, nil)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := ref.Run(t.Context(), nil, bytes, nil)
	require.ErrorContains(t, err, "no plan")
	dirty := bitTensor(1, 1, 3, 1, 1, 1)
	dirty.Words[0] |= 8
	_, err = ref.Run(t.Context(), single(&bcnn.AffineStep{}, dirty, floatTensor(1, 1, 3, 0, 0, 0)), dirty, nil)
	require.ErrorContains(t, err, "padding bits")
}

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
			Out: groups * (1 + rng.IntN(3)), Groups: groups, PadValue: rng.IntN(3) - 1,
		}
		group := []int{1, 3, 64, 65}[rng.IntN(4)]
		in := bcnn.Shape{H: 1 + rng.IntN(7), W: 1 + rng.IntN(7), C: group * groups}
		weights := make([]int8, conv.Out*conv.KH*conv.KW*group)
		for i := range weights {
			weights[i] = int8(2*rng.IntN(2) - 1)
		}
		conv.Weights.Bits = pack(group, weights...)
		net := &bcnn.Network{Name: "border", Input: bcnn.Input{Shape: in, DType: bcnn.Float32}}
		net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		net.Append("conv", conv)
		plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
		if err != nil { // the window is larger than the padded image
			require.ErrorContains(t, err, "does not fit")
			continue
		}
		step := plan.Steps[1].Op.(*bcnn.ConvStep)
		out := plan.OutputShape()
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
