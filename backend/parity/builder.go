package parity

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// fill is what an input consists of.
type fill string

const (
	fillRandom fill = ""
	fillZeros  fill = "zeros" // all bytes 0, all floats −1
	fillOnes   fill = "ones"  // all bytes 255, all floats +1
	fillTies   fill = "ties"  // few different values, ±0 among them
	fillTiny   fill = "tiny"  // subnormal floats, which must not be flushed to 0
	// fillExtremes has infinite values, NaNs, zeros of both signs, the largest and the
	// smallest floats.
	fillExtremes fill = "extremes"
	// fillSpecial has the special numbers, and others of any exponent.
	fillSpecial fill = "special"
)

func (f fill) tensor(rng *rand.Rand, in bcnn.Input, n int) bcnn.Tensor {
	t := bcnn.NewTensor(in.DType, n, in.Shape)
	for i := range t.U8 {
		switch f {
		case fillZeros:
		case fillOnes:
			t.U8[i] = 255
		case fillTies:
			t.U8[i] = uint8(127 + rng.IntN(3))
		default:
			t.U8[i] = uint8(rng.UintN(256))
		}
	}
	for i := range t.F32 {
		switch f {
		case fillZeros:
			t.F32[i] = -1
		case fillOnes:
			t.F32[i] = 1
		case fillTies:
			t.F32[i] = []float32{-1, float32(math.Copysign(0, -1)), 0, 1}[rng.IntN(4)]
		case fillTiny:
			t.F32[i] = math.Float32frombits(rng.Uint32N(1<<23) | rng.Uint32N(2)<<31)
		case fillExtremes:
			t.F32[i] = float32(rng.NormFloat64())
			if k := rng.IntN(2 * len(extremes)); k < len(extremes) {
				t.F32[i] = extremes[k]
			}
		case fillSpecial:
			t.F32[i] = math.Float32frombits(rng.Uint32())
			if rng.IntN(2) == 0 {
				t.F32[i] = special[rng.IntN(len(special))]
			}
		default:
			t.F32[i] = float32(rng.NormFloat64())
		}
	}
	return t
}

var extremes = []float32{
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0, float32(math.Copysign(0, -1)),
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
}

// builder makes the networks of the cases.
type builder struct {
	rng *rand.Rand
	c   Case
	net *bcnn.Network
}

func (b *builder) input(d bcnn.DType, h, w, c int) {
	b.net = &bcnn.Network{Name: b.c.Name, Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: h, W: w, C: c}, DType: d}}}
}

// add appends a layer, by default behind the last one.
func (b *builder) add(op bcnn.Op, inputs ...int) int {
	return b.net.Append(fmt.Sprintf("%s%d", op.Kind(), len(b.net.Layers)), op, inputs...)
}

// sofar is the network of the layers that the last one needs: others may still want
// a reader.
func (b *builder) sofar() *bcnn.Network {
	layers := b.net.Layers
	needed := make([]bool, len(layers))
	for i := len(layers) - 1; i >= 0; i-- {
		if needed[i] = needed[i] || i == len(layers)-1; !needed[i] {
			continue
		}
		for _, source := range layers[i].Inputs {
			if source >= 0 {
				needed[source] = true
			}
		}
	}
	net, place := *b.net, make([]int, len(layers))
	net.Layers, net.Outputs = nil, nil
	for i, l := range layers {
		if !needed[i] {
			continue
		}
		l.Inputs = slices.Clone(l.Inputs)
		for j, source := range l.Inputs {
			if source >= 0 {
				l.Inputs[j] = place[source]
			}
		}
		place[i] = len(net.Layers)
		net.Layers = append(net.Layers, l)
	}
	return &net
}

// shape is the shape of the last layer. Where the network is not well formed
// it is of no account: lowering refuses the network.
func (b *builder) shape() bcnn.Shape {
	shapes, err := b.sofar().Shapes()
	if err != nil || len(shapes) == 0 {
		return b.net.Inputs[0].Shape
	}
	return shapes[len(shapes)-1]
}

// bits makes rows of n random weights ±1.
func (b *builder) bits(rows, n int) bcnn.Weights {
	words := bits.Words(n)
	packed := make([]uint64, rows*words)
	for i := range packed {
		packed[i] = b.rng.Uint64()
		if i%words == words-1 {
			packed[i] &= bits.TailMask(n)
		}
	}
	return bcnn.Weights{Bits: packed}
}

func (b *builder) floats(n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * b.rng.NormFloat64())
	}
	return v
}

func (b *builder) weights(rows, n int, real bool) bcnn.Weights {
	if !real {
		return b.bits(rows, n)
	}
	scale := 0.5
	if b.c.fill == fillTiny {
		scale = 0x1p-3 // products round within the subnormal range
	}
	return bcnn.Weights{F32: b.floats(rows*n, scale)}
}

// conv completes a convolution with random weights.
func (b *builder) conv(c bcnn.Conv2D, real bool) {
	n := b.shape().C / max(c.Groups, 1)
	c.Weights = b.weights(c.Out*c.KH*c.KW, n, real)
	if real { // rows run over all taps, which is the same memory
		c.Bias = b.floats(c.Out, 1)
		if b.c.fill == fillTiny {
			c.Bias = make([]float32, c.Out)
		}
	}
	b.add(c)
}

func (b *builder) dense(out int, real bool) {
	d := bcnn.Dense{Out: out, Weights: b.weights(out, b.shape().Values(), real)}
	if real {
		d.Bias = b.floats(out, 1)
	}
	b.add(d)
}

// binarySource makes ±1 values of float input; the signs of its zeros do not
// matter to it.
func (b *builder) binarySource(zero bcnn.ZeroRule) { b.add(bcnn.Sign{Zero: zero}) }

// norm says how batchNorm chooses its parameters.
type norm string

const (
	// normMixed gives every channel another kind: thresholds on sums of the
	// parity that occurs and between them, positive and negative gain, gain 0,
	// always and never.
	normMixed norm = ""
	// normTies puts the thresholds exactly on values that occur.
	normTies norm = "ties"
	// normFalling is normTies with negative gain in every channel.
	normFalling norm = "falling"
	// normConstant makes every channel always or never +1.
	normConstant norm = "constant"
)

// batchNorm appends a batch normalisation that suits the values before it.
func (b *builder) batchNorm(kind norm) {
	c := b.shape().C
	bn := bcnn.BatchNorm{
		Gamma: make([]float32, c), Beta: make([]float32, c), Mean: make([]float32, c), Var: make([]float32, c),
		Epsilon: 1e-3,
	}
	values := b.values()
	for i := range c {
		bn.Var[i] = 0.25 + 4*b.rng.Float32()
		bn.Gamma[i] = 0.25 + b.rng.Float32()
		if b.rng.IntN(2) == 0 || kind == normFalling {
			bn.Gamma[i] = -bn.Gamma[i]
		}
		seen := values[b.rng.IntN(len(values)/c)*c+i] // a value of this channel
		bn.Mean[i] = seen
		if kind == normConstant {
			bn.Beta[i] = float32(math.Copysign(1e9, b.rng.NormFloat64()))
		}
		if kind != normMixed {
			continue
		}
		switch b.rng.IntN(8) {
		case 0:
			bn.Gamma[i] = 0
			bn.Beta[i] = float32(b.rng.IntN(3) - 1) // 0 is a tie everywhere
		case 1:
			bn.Beta[i] = float32(math.Copysign(1e9, b.rng.NormFloat64()))
		case 2, 3:
			bn.Mean[i] += float32(b.rng.NormFloat64())
		case 4:
			bn.Beta[i] = float32(b.rng.NormFloat64())
		}
	}
	b.add(bn)
}

// shifted adds integers up to a number to sums, then scales them and adds real numbers.
func (b *builder) shifted(most int) {
	c := b.shape().C
	integers := make([]float32, c)
	for i := range integers {
		integers[i] = float32(b.rng.IntN(2*most+1) - most)
	}
	b.add(bcnn.Affine{Bias: integers})
	b.add(bcnn.Affine{Scale: b.floats(c, 1)})
	b.add(bcnn.Affine{Bias: b.floats(c, 3)})
}

// values are the values that the last layer gives for one image of the case's
// input. A network that does not lower, which Check will report, gives zeros.
func (b *builder) values() []float32 {
	plan, err := lower.Network(context.Background(), b.sofar(), lower.Options{})
	if err == nil {
		var out []bcnn.Tensor
		if out, err = ref.RunAll(context.Background(), plan, b.c.Inputs(plan, 1), nil); err == nil {
			return out[0].F32
		}
	}
	return make([]float32, b.shape().Values())
}
