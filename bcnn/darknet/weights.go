package darknet

import (
	"encoding/binary"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// maxVersion is what versions are below. From it on dense layers had another order, and
// branches of Darknet do not agree on the length of the header.
const maxVersion = 1000

// header reads the beginning of the file of the weights: its version, and how many pictures
// the training has seen, in 64 bits from version 0.2 on.
func (im *importer) header() {
	const version, old = 12, 4
	if len(im.weights) < version+old {
		try.Failf("the file of the weights has %d bytes, which is no more than its header", len(im.weights))
	}
	major, minor := int32(binary.LittleEndian.Uint32(im.weights)), int32(binary.LittleEndian.Uint32(im.weights[4:]))
	if major < 0 || major >= maxVersion || minor < 0 || minor >= maxVersion {
		try.Failf("the file of the weights has version %d.%d, want 0.1 or 0.2: it is not a weights file of Darknet", major, minor)
	}
	size := version + old
	if 10*major+minor >= 2 {
		size += old
	}
	if len(im.weights) < size {
		try.Failf("the file of the weights ends in its header")
	}
	im.at = size
}

// take returns the next so many floats of the file of the weights.
func (im *importer) take(floats int64) []byte {
	left := int64(len(im.weights) - im.at)
	if floats > left/floatBytes {
		try.Failf("the file of the weights ends here: the layer has %d numbers of 4 bytes, and %d bytes are left", floats, left)
	}
	data := im.weights[im.at:][:floats*floatBytes]
	im.at += len(data)
	return data
}

const floatBytes = 4

// floats are numbers of a file.
type floats []byte

func (f floats) at(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(f[floatBytes*i:]))
}

// folded are the filters of a convolution, with batch normalisation in them.
type folded struct {
	c      *convolution
	values floats    // as they are in the file: output, input channel, row, column
	factor []float64 // of each filter
	bias   []float32
}

// epsilon is what Darknet adds to a variance.
const epsilon = 1e-5

// folded folds batch normalisation into the weights, in double precision, and rounded once, as
// Darknet does it.
func (im *importer) folded(c *convolution) *folded {
	n := c.filters
	try.Check(im.budget.Charge(12*int64(n) + int64(len(c.data)/floatBytes)))
	part := func(k int) floats { return c.data[floatBytes*k*n : floatBytes*(k+1)*n] }
	f := &folded{c: c, values: c.data[len(c.data)-floatBytes*n*c.weights:], factor: make([]float64, n), bias: make([]float32, n)}
	biases := part(0)
	for o := range n {
		f.factor[o], f.bias[o] = 1, biases.at(o)
		if c.normalised {
			scale, mean, variance := part(1).at(o), part(2).at(o), part(3).at(o)
			deviation := math.Sqrt(float64(variance) + epsilon)
			if !(deviation > 0) {
				try.Failf("the variance of filter %d is %v, want a number above %v", o, variance, -epsilon)
			}
			f.factor[o] = float64(scale) / deviation
			f.bias[o] = float32(float64(f.bias[o]) - float64(scale)*float64(mean)/deviation)
		}
		if !finite(f.bias[o]) {
			try.Failf("the bias of filter %d is %v, want a finite number", o, f.bias[o])
		}
	}
	return f
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// moveUnits is what it costs to find the place of a weight and to move it.
const moveUnits = 4

// each calls move for every weight in the order of a bcnn.Network: output, pixel, channel. row
// counts pixels of all filters.
func (im *importer) each(f *folded, move func(o, row, channel int, w float32)) {
	c := f.c
	channels := c.weights / c.channel
	for o := range c.filters {
		for p := range c.channel {
			try.Check(im.budget.Charge(moveUnits * int64(channels)))
			for ch := range channels {
				w := float32(float64(f.values.at(o*c.weights+ch*c.channel+p)) * f.factor[o])
				if !finite(w) {
					try.Failf("a weight of filter %d is %v, want a finite number", o, w)
				}
				move(o, o*c.channel+p, ch, w)
			}
		}
	}
}

// real returns the weights as floats.
func (im *importer) real(f *folded) []float32 {
	n := f.c.filters * f.c.weights
	try.Check(im.budget.Charge(floatBytes * int64(n)))
	all := make([]float32, 0, n)
	im.each(f, func(_, _, _ int, w float32) { all = append(all, w) })
	return all
}

// binarised returns the signs of the weights, + where they are more than 0, and the mean of
// their magnitudes for each filter.
func (im *importer) binarised(f *folded) (words []uint64, scale []float32) {
	c := f.c
	perRow := bits.Words(c.weights / c.channel)
	rows := c.filters * c.channel
	try.Check(im.budget.Charge(8*int64(rows)*int64(perRow) + 12*int64(c.filters)))
	words, scale = make([]uint64, rows*perRow), make([]float32, c.filters)
	sums := make([]float64, c.filters)
	im.each(f, func(o, row, ch int, w float32) {
		if sums[o] += math.Abs(float64(w)); w > 0 {
			words[row*perRow+ch/bits.WordBits] |= 1 << (ch % bits.WordBits)
		}
	})
	for o := range scale {
		scale[o] = float32(sums[o] / float64(c.weights))
	}
	return words, scale
}
