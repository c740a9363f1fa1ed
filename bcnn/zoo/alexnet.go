package zoo

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

func binaryAlexNet(b *builder) {
	b.padding = 0
	b.image(224, 64, 256)
	for i, c := range []struct {
		size, stride, out int
		pool              bool
	}{{11, 4, 64, true}, {5, 1, 192, true}, {3, 1, 384, false}, {3, 1, 384, false}, {3, 1, 256, true}} {
		id := fmt.Sprint(i + 1)
		b.conv("conv"+id, bcnn.Conv2D{Window: b.same(c.size, c.stride), Out: b.channels(c.out)})
		if c.pool {
			b.pool("pool"+id, square(3, 2, 0))
		}
		b.normSign(id)
	}
	b.classifier(6, 4096, 4096, 1000)
}

func xnorNet(b *builder) {
	b.padding = 0
	b.image(224, 64, 256)
	b.floatConv("conv1", bcnn.Conv2D{Window: b.same(11, 4), Out: b.channels(96)})
	b.norm("1")
	b.relu("1")
	b.pool("pool1", square(3, 2, 0))
	for i, c := range []struct {
		size, out int
		pool      bool
	}{{5, 256, true}, {3, 384, false}, {3, 384, false}, {3, 256, true}, {0, 4096, false}, {1, 4096, false}} {
		id := fmt.Sprint(i + 2)
		b.normSign(fmt.Sprint(i+1) + "b")
		w := b.fullWindow() // 6×6
		if c.size > 0 {
			w = b.same(c.size, 1)
		}
		taps := w.KH * w.KW * b.shape.C
		b.conv("conv"+id, bcnn.Conv2D{Window: w, Out: b.channels(c.out)})
		b.scaleFilters(id, taps)
		if c.pool {
			b.pool("pool"+id, square(3, 2, 0))
		}
	}
	b.norm("7b")
	b.relu("7")
	n := b.shape.Values()
	b.net.Append("fc", bcnn.Dense{Out: b.channels(1000), Weights: b.realWeights(b.channels(1000), n)})
	b.shape = bcnn.Shape{H: 1, W: 1, C: b.channels(1000)}
}

// scaleFilters multiplies each filter by a number, as the mean magnitude of its weights.
func (b *builder) scaleFilters(id string, taps int) {
	var a bcnn.Affine
	for range b.shape.C {
		a.Scale = append(a.Scale, float32((0.5+b.rng.Float64())/float64(taps)))
	}
	b.net.Append("scale"+id, a)
	b.variance = 1 / float64(taps)
}
