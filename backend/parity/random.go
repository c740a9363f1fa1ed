package parity

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// RandomCase makes a case of a random network, always the same for a seed.
func RandomCase(seed uint64) Case {
	c := Case{Name: fmt.Sprintf("random/%d", seed), build: randomNetwork}
	rng := c.rng("case")
	c.Batch = 1 + rng.IntN(4)
	c.fill = []fill{fillRandom, fillRandom, fillRandom, fillTies, fillZeros, fillOnes}[rng.IntN(6)]
	return c
}

// randomNetwork stacks layers that fit on what is there, until it has had
// enough. Sums stay below 2²⁴, so that LowerUnfused takes every network, and
// values stay far from overflow.
func randomNetwork(b *builder) *bcnn.Network {
	channels := []int{1, 2, 3, 5, 16, 31, 32, 33, 64, 65, 100, 128, 130}
	channel := func() int { return channels[b.rng.IntN(len(channels))] }
	h, w := 1+b.rng.IntN(12), 1+b.rng.IntN(12)
	if b.rng.IntN(2) == 0 {
		b.input(bcnn.Float32, h, w, channel())
		if b.rng.IntN(4) != 0 {
			b.binarySource(b.zero())
		}
	} else {
		c := []int{1, 3}[b.rng.IntN(2)]
		b.input(bcnn.Uint8, h, w, c)
		switch schemes := []bcnn.Scheme{bcnn.SchemeThreshold, bcnn.SchemeGrey, bcnn.SchemeLBP, bcnn.SchemeMinMax}; b.rng.IntN(4) {
		case 0, 1:
			op := bcnn.Binarize{Scheme: schemes[b.rng.IntN(4)]}
			for range map[bcnn.Scheme]int{bcnn.SchemeThreshold: c, bcnn.SchemeGrey: 1}[op.Scheme] {
				op.Thresholds = append(op.Thresholds, b.rng.Int32N(258)-1)
			}
			b.add(op)
		case 2:
			b.add(bcnn.Affine{Scale: []float32{1.0 / 128}, Bias: []float32{-float32(b.rng.IntN(256)) / 128}})
		}
	}
	for range 1 + b.rng.IntN(6) {
		b.randomBlock(channel())
	}
	if b.rng.IntN(2) == 0 {
		if b.rng.IntN(2) == 0 {
			b.add(bcnn.Flatten{})
		}
		b.dense(1+b.rng.IntN(20), b.rng.IntN(4) == 0)
		b.randomTail()
		if b.rng.IntN(4) == 0 {
			b.add(bcnn.TopK{K: 1 + b.rng.IntN(b.shape().C), Values: b.rng.IntN(2) == 0})
		}
	}
	if len(b.net.Layers) == 0 { // none of the blocks fitted
		b.add(bcnn.ReLU{})
	}
	if b.rng.IntN(4) == 0 {
		b.add(bcnn.Softmax{})
	}
	if b.rng.IntN(4) == 0 && b.last() > 0 {
		b.randomOutputs()
	}
	return b.net
}

// randomOutputs makes outputs of up to four layers, the last among them.
func (b *builder) randomOutputs() {
	b.net.Outputs = append(b.net.Outputs, b.rng.Perm(b.last())[:min(b.last(), 1+b.rng.IntN(3))]...)
	at := b.rng.IntN(len(b.net.Outputs) + 1)
	b.net.Outputs = slices.Insert(b.net.Outputs, at, b.last())
}

func (b *builder) zero() bcnn.ZeroRule { return bcnn.ZeroRule(1 + b.rng.IntN(2)) }

// last is the index of the last layer, or NetworkInput.
func (b *builder) last() int { return len(b.net.Layers) - 1 }

// binary reports whether the last layer makes ±1 values, which a padding value
// needs.
func (b *builder) binary() bool {
	for i := b.last(); i >= 0; i = b.net.Layers[i].Inputs[0] {
		switch b.net.Layers[i].Op.(type) {
		case bcnn.Sign, bcnn.Binarize:
			return true
		case bcnn.MaxPool, bcnn.Flatten: // keep what they get
		default:
			return false
		}
	}
	return false
}

// isCodes reports whether the last layer makes whole numbers of at most 8 bits.
func (b *builder) isCodes() bool {
	for i := b.last(); i >= 0; i = b.net.Layers[i].Inputs[0] {
		switch b.net.Layers[i].Op.(type) {
		case bcnn.Quantize:
			return true
		case bcnn.MaxPool, bcnn.Flatten:
		default:
			return b.binary()
		}
	}
	return b.net.Inputs[0].DType == bcnn.Uint8
}

// randomJoin appends something that reads two layers, or picks channels.
func (b *builder) randomJoin() {
	s, from := b.shape(), b.last()
	switch b.rng.IntN(4) {
	case 0:
		if from >= 0 && s.C <= 40 {
			b.add(bcnn.Channels{Index: reversed(s.C)[:1+b.rng.IntN(s.C)]})
			b.add(bcnn.Concat{}, from, b.last(), from)
		}
	case 1:
		index := make([]int32, 1+b.rng.IntN(min(2*s.C, 70)))
		for i := range index {
			index[i] = int32((i * 5) % s.C)
		}
		if b.rng.IntN(2) == 0 {
			index[b.rng.IntN(len(index))] = -1
		}
		b.add(bcnn.Channels{Index: index})
	default: // a gate, of at most 1
		gate := func() { b.activation([]string{"zero", "hardtanh"}[b.rng.IntN(2)]) }
		if b.rng.IntN(2) == 0 {
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: s.H, KW: s.W}})
		}
		gate()
		if b.rng.IntN(2) == 0 {
			b.add(bcnn.Channels{Index: []int32{b.rng.Int32N(int32(s.C))}})
		}
		b.add([]bcnn.Op{bcnn.Mul{}, bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}}[b.rng.IntN(5)], from, b.last())
		b.randomTail()
	}
}

// randomBlock appends a convolution, a pool, a residual block, a join, or moves pixels.
func (b *builder) randomBlock(out int) {
	s := b.shape()
	switch b.rng.IntN(13) {
	case 11, 12:
		b.randomSpatial()
	case 8, 9:
		b.randomJoin()
	case 10:
		w := b.randomWindow(s, true)
		b.add(bcnn.AvgPool{Window: w, CountPadding: b.rng.IntN(2) == 0})
		b.randomTail()
	case 0:
		b.add(bcnn.MaxPool{Window: b.randomWindow(s, true)})
	case 1: // a block with a way around
		around := b.last()
		if b.rng.IntN(2) == 0 && !b.binary() {
			b.add(bcnn.Sign{Zero: b.zero()})
		}
		op := bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, Out: s.C}
		if b.binary() {
			op.PadValue = b.rng.IntN(3) - 1
		}
		if b.heavy(op, false) {
			op.Window = bcnn.Window{KH: 1, KW: 1}
		}
		b.conv(op, false)
		b.batchNorm(normMixed)
		b.add(bcnn.Add{}, b.last(), around)
		b.randomTail()
	default:
		real := b.rng.IntN(5) == 0
		op := bcnn.Conv2D{Window: b.randomWindow(s, false), Out: out, Groups: 1}
		if g := []int{1, 1, 1, 2, 3, 5, s.C}[b.rng.IntN(7)]; s.C%g == 0 && g <= 32 {
			op.Groups = g
			op.Out = g * max(1, out/g)
		}
		if b.binary() && !real {
			op.PadValue = b.rng.IntN(3) - 1
		}
		levels := b.rng.IntN(4) == 0 && !real
		if b.heavy(op, levels) {
			op.Window = bcnn.Window{KH: 1, KW: 1}
		}
		if levels {
			w := weightLevels[b.rng.IntN(len(weightLevels))]
			if b.isCodes() && b.rng.IntN(2) == 0 {
				w = integers{"s8", -128, 256}
			}
			b.convLevels(op, w)
		} else {
			b.conv(op, real)
		}
		b.randomTail()
	}
}

// heavy reports whether the reference takes long for a convolution, of levels or ±1: a
// fuzzer gives a network ten seconds, on instrumented code. Integer weights are up to 15
// bits, and levels of the input up to 8.
func (b *builder) heavy(op bcnn.Conv2D, levels bool) bool {
	s := b.shape()
	products := op.Output(s, op.Out).Values() * op.KH * op.KW * s.C / max(op.Groups, 1)
	if levels {
		products *= 15
	}
	if b.isCodes() && !b.binary() {
		products *= 8
	}
	return products > 1<<22
}

// randomTail appends what usually follows a weighted layer.
func (b *builder) randomTail() {
	pool := func() {
		if b.rng.IntN(3) == 0 {
			b.add(bcnn.MaxPool{Window: b.randomWindow(b.shape(), true)})
		}
	}
	pool()
	if b.rng.IntN(5) != 0 {
		b.batchNorm([]norm{normMixed, normMixed, normTies, normFalling}[b.rng.IntN(4)])
	}
	if b.rng.IntN(3) == 0 {
		if names := bcnn.FunctionNames(); b.rng.IntN(3) == 0 {
			name := names[b.rng.IntN(len(names))]
			switch name {
			case bcnn.Exp: // of 1e9 it would be infinite
				b.add(bcnn.Clip{Min: float32(math.Inf(-1)), Max: 8})
			case bcnn.Inverse, bcnn.InverseRoot, bcnn.RootFactor: // infinite of 0, or NaN below
				b.add(bcnn.Clip{Min: 0.25, Max: float32(math.Inf(1))})
			case bcnn.Float16Range: // of 2^16 it would be infinite
				b.add(bcnn.Clip{Min: -65504, Max: 65504})
			}
			b.add(bcnn.Function{Name: name})
		} else {
			b.activation(activations[b.rng.IntN(len(activations))])
		}
	}
	switch b.rng.IntN(5) {
	case 0:
	case 1:
		if each := b.rng.IntN(2) == 0; b.rng.IntN(3) == 0 {
			zero := b.rng.IntN(256)
			b.levels8(zero, 256, float32(zero), each)
		} else {
			b.quantize(activationLevels[b.rng.IntN(len(activationLevels))], each)
		}
	default:
		b.add(bcnn.Sign{Zero: b.zero()})
	}
	pool()
}

// randomWindow fits on the shape. The window of a pool is never wholly in the
// padding, and half of them tile the image.
func (b *builder) randomWindow(s bcnn.Shape, pool bool) bcnn.Window {
	side := func(size int) (k, stride, dilation, before, after int) {
		k = 1 + b.rng.IntN(min(5, size))
		stride, dilation = 1+b.rng.IntN(3), 1
		if pool {
			if b.rng.IntN(2) == 0 {
				return k, k, 1, 0, 0
			}
			return k, stride, 1, b.rng.IntN((k + 1) / 2), b.rng.IntN((k + 1) / 2)
		}
		before, after = b.rng.IntN(4), b.rng.IntN(4)
		if k > 1 && b.rng.IntN(3) == 0 {
			dilation = 1 + b.rng.IntN(3)
			for dilation*(k-1)+1 > size+before+after {
				dilation--
			}
		}
		return k, stride, dilation, before, after
	}
	var w bcnn.Window
	w.KH, w.StrideH, w.DilationH, w.Pad.Top, w.Pad.Bottom = side(s.H)
	w.KW, w.StrideW, w.DilationW, w.Pad.Left, w.Pad.Right = side(s.W)
	return w
}
