package backendtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// RandomBits makes rows of packed random bits of n channels.
func RandomBits(rng *rand.Rand, rows, n int) []uint64 {
	words := make([]uint64, rows*bits.Words(n))
	for i := range words {
		if words[i] = rng.Uint64(); i%bits.Words(n) == bits.Words(n)-1 {
			words[i] &= bits.TailMask(n)
		}
	}
	return words
}

// VehicleNet has the shape of the network of the paper, with random weights.
func VehicleNet(seed uint64, size int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(seed, 1))
	norm := func(n int) bcnn.BatchNorm {
		b := bcnn.BatchNorm{Epsilon: 1e-5}
		for range n {
			b.Gamma = append(b.Gamma, rng.Float32()-0.5)
			b.Beta = append(b.Beta, rng.Float32()-0.5)
			b.Mean = append(b.Mean, rng.Float32()*10-5)
			b.Var = append(b.Var, rng.Float32()+0.5)
		}
		return b
	}
	net := &bcnn.Network{Name: "vehicle", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: size, W: size, C: 3}}}}
	same := bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}}
	half := bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	channels := 3
	for i := range 2 {
		net.Append(fmt.Sprint("conv", i), bcnn.Conv2D{Window: same, Out: 32, PadValue: -i, Weights: bcnn.Weights{Bits: RandomBits(rng, 32*25, channels)}})
		net.Append(fmt.Sprint("pool", i), bcnn.MaxPool{Window: half})
		net.Append(fmt.Sprint("norm", i), norm(32))
		net.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		channels, size = 32, size/2
	}
	values := size * size * 32
	for i, outputs := range []int{100, 100, 6} {
		net.Append(fmt.Sprint("dense", i), bcnn.Dense{Out: outputs, Weights: bcnn.Weights{Bits: RandomBits(rng, outputs, values)}})
		net.Append(fmt.Sprint("norm", i+2), norm(outputs))
		if outputs > 6 {
			net.Append(fmt.Sprint("sign", i+2), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		}
		values = outputs
	}
	return net
}

// RandomImages makes a batch of random values for an input.
func RandomImages(seed uint64, n int, in bcnn.Input) bcnn.Tensor {
	rng := rand.New(rand.NewPCG(seed, 2))
	t := bcnn.NewTensor(in.DType, n, in.Shape)
	for i := range t.U8 {
		t.U8[i] = uint8(rng.IntN(256))
	}
	for i := range t.F32 {
		t.F32[i] = float32(rng.NormFloat64())
	}
	return t
}

// OneConv is a convolution of bits between two sign layers.
func OneConv(size, k, in, out int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(1, 1))
	net := &bcnn.Network{Name: "conv", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: size, W: size, C: in}}}}
	thresholds := make([]int32, in)
	for i := range thresholds {
		thresholds[i] = 128
	}
	net.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: thresholds})
	appendConv(net, rng, bcnn.Conv2D{Window: square(k), Out: out, PadValue: -1, Weights: bcnn.Weights{Bits: RandomBits(rng, out*k*k, in)}})
	return net
}

// OneByteConv is OneConv with weights of 8 bits, on the bytes of the image, of which 77
// stands for 0.
func OneByteConv(size, k, in, out int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(1, 2))
	net := &bcnn.Network{Name: "conv", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: size, W: size, C: in}}}}
	net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-77.0 / 64}})
	weights := make([]int8, out*k*k*in)
	for i := range weights {
		weights[i] = int8(rng.IntN(256) - 128)
	}
	appendConv(net, rng, bcnn.Conv2D{Window: square(k), Out: out, Weights: bcnn.Weights{Int8: weights}})
	return net
}

// square is a window that keeps the size of images.
func square(k int) bcnn.Window {
	return bcnn.Window{KH: k, KW: k, Pad: bcnn.Padding{Top: k / 2, Left: k / 2, Bottom: k / 2, Right: k / 2}}
}

// appendConv appends a convolution, and a dense layer on its signs.
func appendConv(net *bcnn.Network, rng *rand.Rand, conv bcnn.Conv2D) {
	net.Append("conv", conv)
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	shape := net.Inputs[0].Shape
	net.Append("end", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: RandomBits(rng, 1, shape.H*shape.W*conv.Out)}})
}
