package zoo

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// join appends the concatenation of a layer and the last one.
func (b *builder) join(id string, first, channels int) {
	b.net.Append("join"+id, bcnn.Concat{}, first, b.last())
	b.shape.C += channels
	b.variance = max(b.variance, 1)
}

func denseNet28(b *builder) {
	b.stem7(b.relu)
	growth := b.channels(64)
	for i, layers := range []int{6, 6, 6, 5} {
		for j := range layers {
			id := fmt.Sprintf("%d.%d", i+2, j+1)
			input := b.last()
			b.normSign(id)
			before := b.shape.C
			b.conv("conv"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: growth})
			b.join(id, input, before)
		}
		if i < 3 {
			id := fmt.Sprint(i + 2)
			b.norm(id)
			b.pool("pool"+id, square(2, 2, 0))
			b.relu(id)
			unit := float64(b.channels(32))
			out := int(math.RoundToEven(math.Floor(float64(b.shape.C)/[]float64{2.7, 2.7, 2.2}[i])/unit) * unit)
			b.floatConv("transition"+id, bcnn.Conv2D{Window: square(1, 1, 0), Out: out})
		}
	}
	b.norm("6")
	b.relu("6")
	b.top(1000)
}

func meliusNet22(b *builder) {
	b.padding = 0
	b.image(224, 64, 256)
	for i, c := range []struct{ out, stride, groups int }{{32, 2, 1}, {32, 1, 4}, {64, 1, 8}} {
		id := fmt.Sprint(i + 1)
		b.floatConv("conv"+id, bcnn.Conv2D{Window: b.same(3, c.stride), Out: b.channels(c.out), Groups: c.groups})
		b.norm(id)
		b.relu(id)
	}
	b.pool("pool1", b.same(2, 2))
	growth := b.channels(64)
	for i, blocks := range []int{4, 5, 4, 4} {
		for j := range blocks {
			id := fmt.Sprintf("%d.%d", i+2, j+1)
			input, before := b.last(), b.shape.C
			b.normSign(id + "a")
			b.conv("dense"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: growth})
			b.join(id, input, before)

			// The newest channels are improved.
			input, before = b.last(), b.shape.C
			b.normSign(id + "b")
			b.conv("improve"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: growth})
			index := make([]int32, before)
			for c := range index {
				index[c] = int32(max(c-before+growth, -1))
			}
			b.net.Append("place"+id, bcnn.Channels{Index: index})
			b.shape.C = before
			b.add(id, input, b.last())
		}
		if i < 3 {
			id := fmt.Sprint(i+2, "t")
			b.norm(id)
			b.pool("pool"+id, b.same(2, 2))
			b.relu(id)
			b.floatConv("transition"+id, bcnn.Conv2D{Window: square(1, 1, 0), Out: b.channels([]int{160, 224, 256}[i])})
		}
	}
	b.norm("6")
	b.relu("6")
	b.top(1000)
}

// quickNet returns the builder of a QuickNet with so many binary convolutions of so many
// channels.
func quickNet(blocks, filters []int) func(b *builder) {
	return func(b *builder) {
		b.padding = 1
		b.image(224, 64, 256)
		first := b.channels(filters[0]) / 4
		b.floatConv("conv1", bcnn.Conv2D{Window: b.same(3, 2), Out: first})
		b.norm("1")
		b.relu("1")
		b.floatConv("depthwise1", bcnn.Conv2D{Window: b.same(3, 2), Out: first, Groups: first})
		b.norm("1b")
		b.floatConv("pointwise1", bcnn.Conv2D{Window: square(1, 1, 0), Out: b.channels(filters[0])})
		b.norm("1c")
		for i, layers := range blocks {
			if out := b.channels(filters[i]); i > 0 {
				id := fmt.Sprint(i + 2)
				b.relu(id)
				b.pool("pool"+id, square(2, 1, 0))
				b.blur("blur"+id, out)
			}
			for j := range layers {
				id := fmt.Sprintf("%d.%d", i+2, j+1)
				around := b.last()
				b.sign(id)
				b.conv("conv"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: b.shape.C})
				b.relu(id)
				b.norm(id)
				b.add(id, b.last(), around)
			}
		}
		b.relu("end")
		b.top(1000)
	}
}

// blur halves the image by weights that are 1, 2, 1 along both sides, and mixes its
// channels.
func (b *builder) blur(id string, out int) {
	c := bcnn.Conv2D{Window: b.same(3, 2), Out: b.shape.C, Groups: b.shape.C}
	for range b.shape.C {
		for _, w := range []float32{1, 2, 1, 2, 4, 2, 1, 2, 1} {
			c.Weights.F32 = append(c.Weights.F32, w/16)
		}
	}
	b.net.Append(id, c)
	b.shape = c.Window.Output(b.shape, c.Out)
	b.floatConv("pointwise"+id, bcnn.Conv2D{Window: square(1, 1, 0), Out: out})
	b.norm(id)
}
