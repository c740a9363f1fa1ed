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
	// The sums of the last layer with weights have about this mean and variance.
	mean, variance float64
	// bytes says that the next layer reads the bytes of the image.
	bytes bool
	// padding is the value of the padding of binary convolutions.
	padding int
	// lowBits says that activations are −1, 0 and 1, ternary that weights are.
	lowBits, ternary bool
	// reduced says that images are smaller, and channels fewer.
	reduced bool
}

func newBuilder(name string, seed uint64) *builder {
	return &builder{net: &bcnn.Network{Name: name}, rng: rand.New(rand.NewPCG(seed, 0)), padding: -1}
}

// channels is a number of channels, outputs or classes, or less of them.
func (b *builder) channels(n int) int {
	if !b.reduced {
		return n
	}
	return max(n/8, min(n, 8))
}

// last is the layer that was appended last.
func (b *builder) last() int { return len(b.net.Layers) - 1 }

// square is a square window.
func square(size, stride, pad int) bcnn.Window {
	return bcnn.Window{
		KH: size, KW: size, StrideH: stride, StrideW: stride, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
	}
}

// image makes the input an RGB image of side² pixels, less 128; of reduced ones where
// the network is.
func (b *builder) image(side, reduced, resize int) {
	if b.reduced {
		side, resize = reduced, 0
	}
	b.shape = bcnn.Shape{H: side, W: side, C: 3}
	b.net.Inputs = []bcnn.Input{{Shape: b.shape, DType: bcnn.Uint8, Resize: resize}}
	b.net.Append("centre", bcnn.Affine{Bias: []float32{-128}})
	b.bytes = true
}

// bitsInput makes the input bytes of the shape, of which one threshold makes ±1.
func (b *builder) bitsInput(s bcnn.Shape) {
	b.shape = s
	b.net.Inputs = []bcnn.Input{{Shape: s, DType: bcnn.Uint8}}
	op := bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: make([]int32, s.C)}
	for c := range op.Thresholds {
		op.Thresholds[c] = 128
	}
	b.net.Append("input", op)
}

func (b *builder) weights(rows, n int) bcnn.Weights {
	if b.ternary {
		w := bcnn.Weights{Int8: make([]int8, rows*n)}
		for i := range w.Int8 {
			w.Int8[i] = int8(b.rng.IntN(3) - 1)
		}
		return w
	}
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
	b.mean, b.variance = 0, float64(n)
	switch {
	case b.bytes:
		b.variance *= byteVariance
	case b.lowBits:
		b.variance /= 2 // about as many are 0
	}
	if b.ternary {
		b.variance *= 2.0 / 3
	}
	b.bytes = false
}

// conv completes a convolution with weights and its value of padding.
func (b *builder) conv(name string, c bcnn.Conv2D) {
	taps := b.shape.C / max(c.Groups, 1)
	c.Weights = b.weights(c.Out*c.KH*c.KW, taps)
	if !b.bytes {
		c.PadValue = b.padding
	}
	b.net.Append(name, c)
	b.shape = c.Window.Output(b.shape, c.Out)
	b.summed(c.KH * c.KW * taps)
}

// convOf is conv of another layer than the last one, of the given shape.
func (b *builder) convOf(input int, s bcnn.Shape, name string, c bcnn.Conv2D) {
	b.shape = s
	b.conv(name, c)
	b.net.Layers[b.last()].Inputs = []int{input}
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
		bn.Mean = append(bn.Mean, float32(b.mean+deviation*b.rng.NormFloat64()/4))
		bn.Var = append(bn.Var, float32(b.variance*(0.5+b.rng.Float64())))
	}
	b.net.Append("bn"+id, bn)
}

func (b *builder) normSign(id string) {
	b.norm(id)
	if b.lowBits {
		b.round("round" + id)
		return
	}
	b.net.Append("sign"+id, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
}

// round appends the nearest of −1, 0 and 1; of two, 0.
func (b *builder) round(name string) {
	above := math.Nextafter32(0.5, 1)
	b.net.Append(name, bcnn.Quantize{Low: -1, Levels: 3, Thresholds: []float32{-0.5, above}})
}

// classifier appends dense layers, numbered from first, of the given sizes. The
// last one has no sign.
func (b *builder) classifier(first int, sizes ...int) {
	for i, out := range sizes {
		id := fmt.Sprint(first + i)
		b.dense("fc"+id, b.channels(out))
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
	taps := c.KH * c.KW * b.shape.C / max(c.Groups, 1)
	if b.bytes {
		b.net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}})
		b.bytes = false
	}
	c.Weights = b.realWeights(c.Out, taps)
	b.net.Append(name, c)
	b.shape = c.Window.Output(b.shape, c.Out)
	b.mean, b.variance = 0, 1
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

// same is a window whose padding makes the output as large as the input, divided by the
// stride: TensorFlow's, with the larger part at the end.
func (b *builder) same(size, stride int) bcnn.Window {
	w := square(size, stride, 0)
	around := func(side int) (before, after int) {
		total := max(((side+stride-1)/stride-1)*stride+size-side, 0)
		return total / 2, total - total/2
	}
	w.Pad.Top, w.Pad.Bottom = around(b.shape.H)
	w.Pad.Left, w.Pad.Right = around(b.shape.W)
	return w
}

// fullWindow is a window over the whole image.
func (b *builder) fullWindow() bcnn.Window {
	w := square(1, 1, 0)
	w.KH, w.KW = b.shape.H, b.shape.W
	return w
}

func (b *builder) relu(id string) { b.net.Append("relu"+id, bcnn.ReLU{}) }

func (b *builder) sign(id string) {
	b.net.Append("sign"+id, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
}

// prelu appends slopes per channel as training could have left them.
func (b *builder) prelu(id string) {
	var p bcnn.PReLU
	for range b.shape.C {
		p.Slope = append(p.Slope, float32(0.25+b.rng.NormFloat64()/8))
	}
	b.net.Append("prelu"+id, p)
}

// shift appends a learned bias per channel.
func (b *builder) shift(id string) {
	var a bcnn.Affine
	for range b.shape.C {
		a.Bias = append(a.Bias, float32(b.rng.NormFloat64()/8))
	}
	b.net.Append("shift"+id, a)
}

func (b *builder) sigmoid(id string) {
	b.net.Append("sigmoid"+id, bcnn.Function{Name: bcnn.Sigmoid})
}

// add appends the sum of two layers of the shape of the last one.
func (b *builder) add(id string, x, y int) {
	b.net.Append("add"+id, bcnn.Add{}, x, y)
	b.variance = max(2*b.variance, 1)
}

// top is the end of most networks: the mean of every channel, and real weights.
func (b *builder) top(classes int) {
	b.averagePool("pool", b.fullWindow())
	b.floatDense("fc", b.channels(classes))
}
