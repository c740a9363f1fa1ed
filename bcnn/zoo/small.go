package zoo

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// half makes BMXNet's output of a sum of ±1 products: how many of them are +1.
func (b *builder) half(id string) {
	taps := b.variance
	b.net.Append("half"+id, bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{float32(taps / 2)}})
	b.mean, b.variance = taps/2, taps/4
}

func bmxLeNet(b *builder) {
	b.shape = bcnn.Shape{H: 28, W: 28, C: 1}
	b.net.Inputs = []bcnn.Input{{Shape: b.shape, DType: bcnn.Uint8}}
	b.bytes = true
	b.floatConv("conv1", bcnn.Conv2D{Window: square(5, 1, 0), Out: b.channels(64), Bias: make([]float32, b.channels(64))})
	b.net.Append("tanh1", bcnn.Function{Name: bcnn.Tanh})
	b.pool("pool1", square(2, 2, 0))
	b.normSign("1")
	b.conv("conv2", bcnn.Conv2D{Window: square(5, 1, 0), Out: b.channels(64)})
	b.half("2")
	b.norm("2")
	b.pool("pool2", square(2, 2, 0))
	b.sign("2")
	b.dense("fc1", b.channels(1000))
	b.half("3")
	b.norm("3")
	b.net.Append("tanh3", bcnn.Function{Name: bcnn.Tanh})
	b.floatDense("fc2", 10)
}

// bmxResNet18 has binary shortcuts.
func bmxResNet18(b *builder) {
	b.padding = 1
	b.image(32, 16, 0)
	b.variance = byteVariance / 64 / 64
	b.net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}})
	b.bytes = false
	b.norm("0")
	b.floatConv("conv0", bcnn.Conv2D{Window: square(3, 1, 1), Out: b.channels(64)})
	for i, out := range []int{64, 64, 128, 128, 256, 256, 512, 512} {
		out = b.channels(out)
		id := fmt.Sprintf("%d.%d", i/2+1, i%2+1)
		around, stride := b.last(), 1
		mean, variance := b.mean, b.variance
		if i%2 == 0 && i > 0 {
			stride = 2
		}
		b.normSign(id + ".1")
		from, input := b.shape, b.last()
		b.conv("conv"+id+".1", bcnn.Conv2D{Window: square(3, stride, 1), Out: out})
		b.half(id + ".1")
		b.normSign(id + ".2")
		b.conv("conv"+id+".2", bcnn.Conv2D{Window: square(3, 1, 1), Out: out})
		b.half(id + ".2")
		sum, after := b.last(), b.shape
		sumMean, sumVariance := b.mean, b.variance
		if i%2 == 0 {
			b.convOf(input, from, "shortcut"+id, bcnn.Conv2D{Window: square(1, stride, 0), Out: out})
			b.half("shortcut" + id)
			around, b.shape = b.last(), after
			mean, variance = b.mean, b.variance
		}
		b.add(id, sum, around)
		b.mean, b.variance = mean+sumMean, variance+sumVariance
	}
	b.norm("1")
	b.relu("1")
	b.top(10)
}

func cnv(b *builder) {
	b.image(32, 32, 0) // smaller ones leave nothing
	for i, out := range []int{64, 64, 128, 128, 256, 256} {
		id := fmt.Sprint(i + 1)
		b.conv("conv"+id, bcnn.Conv2D{Window: square(3, 1, 0), Out: b.channels(out)})
		b.normSign(id)
		if i == 1 || i == 3 {
			b.pool("pool"+id, square(2, 2, 0))
		}
	}
	b.classifier(7, 512, 512, 10)
}

// lowBits returns the builder of a network with activations −1, 0 and 1, and such weights
// where they are ternary.
func lowBits(build func(b *builder), ternary bool) func(b *builder) {
	return func(b *builder) {
		b.lowBits, b.ternary = true, ternary
		build(b)
	}
}

func lfc(b *builder) {
	if image := (bcnn.Shape{H: 28, W: 28, C: 1}); b.lowBits {
		b.shape = image
		b.net.Inputs = []bcnn.Input{{Shape: image, DType: bcnn.Uint8}}
		b.net.Append("scale", bcnn.Affine{Scale: []float32{2.0 / 255}, Bias: []float32{-1}})
		b.round("input")
	} else {
		b.bitsInput(image)
	}
	b.classifier(1, 1024, 1024, 1024, 10)
}
