// Package vehiclenet is the vehicle classifier of Khan, Huttunen and Boutellier,
// "Binarized Convolutional Neural Networks for Efficient Inference on GPUs"
// (EUSIPCO 2018): the network, and trained weights for each of its input schemes.
// Package vision prepares photos for it.
package vehiclenet

import (
	"fmt"
	"math/rand/v2"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// InputScheme is what the network does with the bytes of a photo.
type InputScheme string

const (
	NoBinarization InputScheme = "none" // the first convolution reads bytes
	RGBThreshold   InputScheme = "rgb"  // a threshold per channel
	GreyThreshold  InputScheme = "grey" // a threshold on the luma
	LBP            InputScheme = "lbp"  // local binary patterns of the luma
)

// InputSchemes lists all schemes.
var InputSchemes = []InputScheme{NoBinarization, RGBThreshold, GreyThreshold, LBP}

// Topology returns the network of the paper with random weights from a seed: an
// RGB image of 96×96 pixels; two convolutions of 32 filters 5×5 with a 2×2
// max-pool, batch normalisation and sign behind each; two dense layers of 100
// units, likewise with batch normalisation and sign; and a dense layer with one
// output per class. All weights are ±1. Padding is −1, but for bytes it is
// their zero, 128.
func Topology(scheme InputScheme, classes int, seed uint64) (*bcnn.Network, error) {
	if classes < 1 {
		return nil, fmt.Errorf("vehiclenet: %d classes", classes)
	}
	const side, filters, units, kernel = 96, 32, 100, 5
	n := &bcnn.Network{
		Name:   "vehiclenet-" + string(scheme),
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: side, W: side, C: 3}, DType: bcnn.Uint8}},
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	channels, padValue := 3, -1
	switch scheme {
	case NoBinarization:
		n.Append("centre", bcnn.Affine{Bias: []float32{-128}})
		n.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}})
		padValue = 0
	case RGBThreshold:
		n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{128, 128, 128}})
	case GreyThreshold:
		n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
		channels = 1
	case LBP:
		n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeLBP})
	default:
		return nil, fmt.Errorf("vehiclenet: unknown input scheme %q", scheme)
	}
	weights := func(rows, length int) bcnn.Weights {
		w := make([]uint64, rows*bits.Words(length))
		for i := range w {
			w[i] = rng.Uint64()
			if i%bits.Words(length) == bits.Words(length)-1 {
				w[i] &= bits.TailMask(length)
			}
		}
		return bcnn.Weights{Bits: w}
	}
	norm := func(taps int) bcnn.BatchNorm {
		bn := bcnn.BatchNorm{Epsilon: 1e-5}
		for range taps {
			bn.Gamma = append(bn.Gamma, float32(rng.NormFloat64()))
			bn.Beta = append(bn.Beta, float32(rng.NormFloat64())/4)
			bn.Mean = append(bn.Mean, 8*float32(rng.NormFloat64()))
			bn.Var = append(bn.Var, 100+float32(rng.IntN(900)))
		}
		return bn
	}
	const pad = kernel / 2
	for i := 1; i <= 2; i++ {
		n.Append(fmt.Sprint("conv", i), bcnn.Conv2D{
			Window: bcnn.Window{KH: kernel, KW: kernel, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}},
			Out:    filters, PadValue: padValue, Weights: weights(filters*kernel*kernel, channels),
		})
		n.Append(fmt.Sprint("pool", i), bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
		n.Append(fmt.Sprint("bn", i), norm(filters))
		n.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		channels, padValue = filters, -1
	}
	n.Append("flatten", bcnn.Flatten{})
	inputs := side / 4 * (side / 4) * filters
	for i := 3; i <= 4; i++ {
		n.Append(fmt.Sprint("dense", i), bcnn.Dense{Out: units, Weights: weights(units, inputs)})
		n.Append(fmt.Sprint("bn", i), norm(units))
		n.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		inputs = units
	}
	n.Append("dense5", bcnn.Dense{Out: classes, Weights: weights(classes, inputs)})
	n.Append("bn5", norm(classes))
	return n, nil
}
