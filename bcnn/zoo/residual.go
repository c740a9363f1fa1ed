package zoo

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// stem7 is the beginning of most networks for ImageNet.
func (b *builder) stem7(activation func(id string)) {
	b.padding = 0
	b.image(224, 64, 256)
	b.floatConv("conv1", bcnn.Conv2D{Window: b.same(7, 2), Out: b.channels(64)})
	b.norm("1")
	activation("1")
	b.pool("pool1", b.same(3, 2))
}

// shortcut is what a layer of the given shape becomes where a block halves its size: the
// means of pairs of pixels and rows, and a convolution of them.
func (b *builder) shortcut(id string, from bcnn.Shape, around, out int) int {
	after := b.shape
	b.shape = from
	b.averagePool("down"+id, square(2, 2, 0), around)
	b.floatConv("shortcut"+id, bcnn.Conv2D{Window: square(1, 1, 0), Out: out})
	b.norm("shortcut" + id)
	b.shape = after
	return b.last()
}

// biRealNet18 is a ResNet-18 with a shortcut around every binary convolution.
func biRealNet18(b *builder) {
	b.image(224, 64, 256)
	b.floatConv("conv1", bcnn.Conv2D{Window: square(7, 2, 3), Out: b.channels(64)})
	b.norm("1")
	b.pool("pool1", square(3, 2, 1))
	b.biRealBlocks()
}

// biRealNet18Stem begins with PeleeNet's stem, which has two branches.
func biRealNet18Stem(b *builder) {
	conv := func(id string, w bcnn.Window, out int) {
		b.floatConv("conv"+id, bcnn.Conv2D{Window: w, Out: b.channels(out)})
		b.norm(id)
	}
	b.image(224, 64, 256)
	conv("1", square(3, 2, 1), 32)
	b.relu("1")
	branch, shape := b.last(), b.shape
	conv("2a", square(1, 1, 0), 16)
	b.relu("2a")
	conv("2b", square(3, 2, 1), 32)
	b.relu("2b")
	half := b.shape.C
	b.net.Append("pool1", bcnn.MaxPool{Window: square(2, 2, 0)}, branch)
	b.net.Append("join1", bcnn.Concat{}, b.last(), b.last()-1)
	b.shape.C = half + shape.C
	conv("3", square(1, 1, 0), 64)
	b.biRealBlocks()
}

func (b *builder) biRealBlocks() {
	for i, out := range []int{64, 64, 128, 128, 256, 256, 512, 512} {
		out = b.channels(out)
		for j := range 2 {
			id := fmt.Sprintf("%d.%d", i/2+2, i%2*2+j+1)
			around, stride := len(b.net.Layers)-1, 1
			from := b.shape
			if out != b.shape.C {
				stride = 2
			}
			b.net.Append("sign"+id, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			b.conv("conv"+id, bcnn.Conv2D{Window: square(3, stride, 1), Out: out})
			b.norm(id)
			sum := len(b.net.Layers) - 1
			if stride == 2 {
				around = b.shortcut(id, from, around, out)
			}
			b.net.Append("add"+id, bcnn.Add{}, sum, around)
		}
	}
	b.averagePool("pool5", b.fullWindow())
	b.floatDense("fc", b.channels(1000))
}

func resNetE18(b *builder) {
	b.stem7(b.relu)
	b.norm("1b")
	for i, out := range []int{64, 64, 64, 64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512} {
		out = b.channels(out)
		id := fmt.Sprintf("%d.%d", i/4+2, i%4+1)
		around, from, stride := b.last(), b.shape, 1
		if out != b.shape.C {
			stride = 2
		}
		b.sign(id)
		b.conv("conv"+id, bcnn.Conv2D{Window: b.same(3, stride), Out: out})
		b.norm(id)
		sum := b.last()
		if stride == 2 {
			around = b.shortcut(id, from, around, out)
		}
		b.add(id, sum, around)
	}
	b.relu("5")
	b.top(1000)
}

// realToBinary multiplies the channels of every binary convolution by gates, which come
// from the means of its input.
func realToBinary(b *builder) {
	b.stem7(b.prelu)
	for i, out := range []int{64, 64, 64, 64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512} {
		out = b.channels(out)
		id := fmt.Sprintf("%d.%d", i/4+2, i%4+1)
		around, from, stride := b.last(), b.shape, 1
		if out != b.shape.C {
			stride = 2
		}
		b.norm(id)
		input := b.last()
		b.sign(id)
		taps := 9 * b.shape.C
		b.conv("conv"+id, bcnn.Conv2D{Window: b.same(3, stride), Out: out})
		conv, after := b.last(), b.shape

		b.shape = from
		b.averagePool("squeeze"+id, b.fullWindow(), input)
		b.gateDense("reduce"+id, max(b.shape.C/8, 1))
		b.relu("gate" + id)
		b.gateDense("expand"+id, out)
		b.sigmoid("gate" + id)
		b.net.Append("gated"+id, bcnn.Mul{}, conv, b.last())
		b.shape = after
		b.net.Append("level"+id, bcnn.Affine{Scale: []float32{float32(2 / float64(taps))}})
		b.prelu(id)
		sum := b.last()
		b.variance = 1
		if stride == 2 {
			around = b.shortcut(id, from, around, out)
		}
		b.add(id, sum, around)
	}
	b.top(1000)
}

// gateDense has no bias.
func (b *builder) gateDense(name string, out int) {
	b.net.Append(name, bcnn.Dense{Out: out, Weights: b.realWeights(out, b.shape.Values())})
	b.shape = bcnn.Shape{H: 1, W: 1, C: out}
}

// reActNet has a shift in front of every sign, and shifts around every PReLU.
func reActNet(b *builder) {
	b.padding = 0
	b.image(224, 32, 256)
	b.floatConv("conv1", bcnn.Conv2D{Window: square(3, 2, 1), Out: b.channels(32)})
	b.norm("1")
	activate := func(id string) {
		b.shift(id + "a")
		b.prelu(id)
		b.shift(id + "b")
	}
	pointwise := func(id string, input, around int) int {
		b.convOf(input, b.shape, "conv"+id, bcnn.Conv2D{Window: square(1, 1, 0), Out: b.shape.C})
		b.norm(id)
		b.add(id, b.last(), around)
		return b.last()
	}
	for i, stride := range []int{1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1} {
		id := fmt.Sprint(i + 2)
		around := b.last()
		b.shift(id)
		b.sign(id)
		b.conv("conv"+id, bcnn.Conv2D{Window: square(3, stride, 1), Out: b.shape.C})
		b.norm(id)
		sum := b.last()
		if stride == 2 {
			b.net.Append("down"+id, bcnn.AvgPool{Window: square(2, 2, 0)}, around)
			around = b.last()
		}
		b.add(id, sum, around)
		activate(id + ".1")
		around = b.last()
		b.shift(id + ".2")
		b.sign(id + ".2")
		input := b.last()
		first := pointwise(id+".2", input, around)
		if i == 0 || stride == 2 { // twice as many
			second := pointwise(id+".3", input, around)
			b.net.Append("join"+id, bcnn.Concat{}, first, second)
			b.shape.C *= 2
		}
		activate(id + ".4")
	}
	b.top(1000)
}
