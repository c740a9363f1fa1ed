package simplify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// Signs times a number of each pixel, as of XNOR-Net: a layer that reads one pixel for each of its
// own is binary, any other is as it was.
func TestPixels(t *testing.T) {
	shape := bcnn.Shape{H: 4, W: 3, C: 8}
	pixel := bcnn.Shape{H: 1, W: 1, C: 8}
	conv := func(w bcnn.Window) bcnn.Op {
		return bcnn.Conv2D{Window: w, Out: 2, Weights: bcnn.Weights{F32: alternating(2*w.KH*w.KW*8, 0.5)}, Bias: []float32{1, -2}}
	}
	dense := bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: alternating(2*8, 0.5)}}
	for name, c := range map[string]struct {
		in     bcnn.Shape
		op     bcnn.Op
		mean   int // channels of the other factor
		binary bool
	}{
		"1×1":                 {shape, conv(bcnn.Window{KH: 1, KW: 1}), 1, true},
		"dense on a pixel":    {pixel, dense, 1, true},
		"1×1 on a pixel":      {pixel, conv(bcnn.Window{KH: 1, KW: 1}), 1, true},
		"dense on an image":   {shape, bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: alternating(2*96, 0.5)}}, 1, false},
		"3×3":                 {shape, conv(bcnn.Window{KH: 3, KW: 3}), 1, false},
		"stride":              {shape, conv(bcnn.Window{KH: 1, KW: 1, StrideW: 2}), 1, false},
		"padding":             {shape, conv(bcnn.Window{KH: 1, KW: 1, Pad: bcnn.Padding{Right: 1}}), 1, false},
		"factors of channels": {shape, conv(bcnn.Window{KH: 1, KW: 1}), 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(c.in)
			magnitude := then(n, bcnn.PReLU{Slope: []float32{-1}}, bcnn.NetworkInput)
			mean := then(n, bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: c.mean, Weights: bcnn.Weights{F32: alternating(8*c.mean, 0.125)}}, magnitude)
			sign := then(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.NetworkInput)
			then(n, c.op, then(n, bcnn.Mul{}, sign, mean))
			m, _, err := simplify.Network(t.Context(), n, simplify.Options{})
			require.NoError(t, err)
			requireSame(t, n, m, 3)
			// A binary layer that reads the signs.
			binary := false
			for _, l := range m.Layers {
				var w bcnn.Weights
				switch op := l.Op.(type) {
				case bcnn.Conv2D:
					w = op.Weights
				case bcnn.Dense:
					w = op.Weights
				}
				if w.Bits != nil && m.Layers[l.Inputs[0]].Op.Kind() == "sign" {
					binary = true
				}
			}
			require.Equal(t, c.binary, binary)
		})
	}
}

// alternating returns ±x.
func alternating(n int, x float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		if out[i] = x; i*i%7%2 == 1 {
			out[i] = -x
		}
	}
	return out
}
