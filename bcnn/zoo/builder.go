package zoo

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// byteVariance is the variance of bytes that are spread evenly over 0 to 255.
const byteVariance = (256*256 - 1) / 12.0

// builder appends layers with random weights.
type builder struct {
	net   *bcnn.Network
	rng   *rand.Rand
	shape bcnn.Shape // of the last layer
	// The sums of the last layer with weights have about this variance.
	variance float64
	// bytes says that the next layer reads the bytes of the image.
	bytes bool
}

func newBuilder(name string, seed uint64) *builder {
	return &builder{net: &bcnn.Network{Name: name}, rng: rand.New(rand.NewPCG(seed, 0))}
}

// square is a square window.
func square(size, stride, pad int) bcnn.Window {
	return bcnn.Window{
		KH: size, KW: size, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
	}
}

// image makes the input an RGB image of side² pixels, less 128.
func (b *builder) image(side, resize int) {
	b.shape = bcnn.Shape{H: side, W: side, C: 3}
	b.net.Input = bcnn.Input{Shape: b.shape, DType: bcnn.Uint8, Resize: resize}
	b.net.Append("centre", bcnn.Affine{Bias: []float32{-128}})
	b.bytes = true
}

// bitsInput makes the input bytes of the shape, of which one threshold makes ±1.
func (b *builder) bitsInput(s bcnn.Shape) {
	b.shape = s
	b.net.Input = bcnn.Input{Shape: s, DType: bcnn.Uint8}
	op := bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: make([]int32, s.C)}
	for c := range op.Thresholds {
		op.Thresholds[c] = 128
	}
	b.net.Append("input", op)
}

func (b *builder) weights(rows, n int) bcnn.Weights {
	words := bits.Words(n)
	w := make([]uint64, rows*words)
	for i := range w {
		w[i] = b.rng.Uint64()
		if i%words == words-1 {
			w[i] &= bits.TailMask(n)
		}
	}
	return bcnn.Weights{Bits: w}
}

// summed notes that sums over n taps follow.
func (b *builder) summed(n int) {
	b.variance = float64(n)
	if b.bytes {
		b.variance *= byteVariance
	}
	b.bytes = false
}

// conv completes a convolution with weights and its value of padding.
func (b *builder) conv(name string, c bcnn.Conv2D) {
	taps := b.shape.C / max(c.Groups, 1)
	c.Weights = b.weights(c.Out*c.KH*c.KW, taps)
	if !b.bytes {
		c.PadValue = -1
	}
	b.net.Append(name, c)
	b.shape = c.Window.Output(b.shape, c.Out)
	b.summed(c.KH * c.KW * taps)
}

func (b *builder) dense(name string, out int) {
	n := b.shape.Values()
	b.net.Append(name, bcnn.Dense{Out: out, Weights: b.weights(out, n)})
	b.shape = bcnn.Shape{H: 1, W: 1, C: out}
	b.summed(n)
}

func (b *builder) pool(name string, w bcnn.Window) {
	b.net.Append(name, bcnn.MaxPool{Window: w})
	b.shape = w.Output(b.shape, b.shape.C)
}

// norm appends a batch normalisation as training could have left it: mean and
// variance near those of the sums, gain of either sign.
func (b *builder) norm(id string) {
	bn := bcnn.BatchNorm{Epsilon: 1e-5}
	deviation := math.Sqrt(b.variance)
	for range b.shape.C {
		bn.Gamma = append(bn.Gamma, float32(b.rng.NormFloat64()))
		bn.Beta = append(bn.Beta, float32(b.rng.NormFloat64()/4))
		bn.Mean = append(bn.Mean, float32(deviation*b.rng.NormFloat64()/4))
		bn.Var = append(bn.Var, float32(b.variance*(0.5+b.rng.Float64())))
	}
	b.net.Append("bn"+id, bn)
}

func (b *builder) normSign(id string) {
	b.norm(id)
	b.net.Append("sign"+id, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
}

// classifier appends dense layers, numbered from first, of the given sizes. The
// last one has no sign.
func (b *builder) classifier(first int, sizes ...int) {
	for i, out := range sizes {
		id := fmt.Sprint(first + i)
		b.dense("fc"+id, out)
		if i < len(sizes)-1 {
			b.normSign(id)
		} else {
			b.norm(id)
		}
	}
}

// floatConv completes a convolution with float32 weights whose sums have about
// variance 1.
func (b *builder) floatConv(name string, c bcnn.Conv2D) {
	taps := c.KH * c.KW * b.shape.C
	if b.bytes {
		b.net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}})
		b.bytes = false
	}
	c.Weights = b.realWeights(c.Out, taps)
	b.net.Append(name, c)
	b.shape = c.Window.Output(b.shape, c.Out)
	b.variance = 1
}

func (b *builder) floatDense(name string, out int) {
	n := b.shape.Values()
	b.net.Append(name, bcnn.Dense{Out: out, Weights: b.realWeights(out, n), Bias: make([]float32, out)})
	b.shape = bcnn.Shape{H: 1, W: 1, C: out}
}

func (b *builder) realWeights(rows, n int) bcnn.Weights {
	w := make([]float32, rows*n)
	for i := range w {
		w[i] = float32(b.rng.NormFloat64() / math.Sqrt(float64(n)))
	}
	return bcnn.Weights{F32: w}
}

// averagePool takes the mean of every channel over windows of the given layer,
// or of the last one.
func (b *builder) averagePool(name string, w bcnn.Window, input ...int) {
	b.net.Append(name, bcnn.AvgPool{Window: w}, input...)
	b.shape = w.Output(b.shape, b.shape.C)
}
