package darknet

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// maxPool is [maxpool].
type maxPool struct {
	size, strideX, strideY, padding int
}

func readMaxPool(s *section) layer {
	var p maxPool
	p.strideX, p.strideY = s.strides()
	p.size = s.integer("size", s.integer("stride", 1, 1, maxSide), 1, maxSide)
	p.padding = s.integer("padding", p.size-1, 0, maxSide)
	s.off("the maximum would be over channels", "maxpool_depth")
	s.off("the layer would be smoothed by another behind it", "antialiasing")
	s.ignore("out_channels", "maxpool_zero_nonmax") // for maxpool_depth, and training
	return p
}

// window returns the window for an image. Darknet adds the padding once to both sides together,
// of which the upper and left ones get the smaller half; at the other ends only what is read
// counts.
func (p maxPool) window(in bcnn.Shape) bcnn.Window {
	before := p.padding / 2
	end := func(size, stride int) int {
		last := (size + p.padding - p.size) / stride * stride
		return max(0, last+p.size-before-size)
	}
	return bcnn.Window{
		KH: p.size, KW: p.size, StrideH: p.strideY, StrideW: p.strideX, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: before, Left: before, Bottom: end(in.H, p.strideY), Right: end(in.W, p.strideX)},
	}
}

func (p maxPool) shape(in []bcnn.Shape) bcnn.Shape {
	s := in[0]
	if least := min(s.H, s.W) + p.padding; p.size > least {
		try.Failf("option size is %d, but the image has %d pixels with its padding", p.size, least)
	}
	w := p.window(s)
	try.Check(w.CheckPool(s, maxSide))
	return w.Output(s, s.C)
}

func (p maxPool) build(im *importer, s *section, in []value) value {
	v := in[0]
	w := p.window(v.shape)
	return im.emit(s, "", bcnn.MaxPool{Window: w}, w.Output(v.shape, v.shape.C), v)
}

// avgPool is [avgpool], the mean of each channel.
type avgPool struct{}

func readAvgPool(*section) layer { return avgPool{} }

func (avgPool) shape(in []bcnn.Shape) bcnn.Shape {
	try.Check(whole(in[0]).CheckTaps())
	return bcnn.Shape{H: 1, W: 1, C: in[0].C}
}

// whole is the window of a whole image.
func whole(s bcnn.Shape) bcnn.Window { return bcnn.Window{KH: s.H, KW: s.W} }

func (avgPool) build(im *importer, s *section, in []value) value {
	v := in[0]
	return im.emit(s, "", bcnn.AvgPool{Window: whole(v.shape)}, bcnn.Shape{H: 1, W: 1, C: v.shape.C}, v)
}

// softmax is [softmax], of all values of a vector.
type softmax struct{ temperature float32 }

func readSoftmax(s *section) layer {
	if groups := s.integer("groups", 1, 1, maxWhole); groups > 1 {
		s.fail("groups", "which is not supported: a softmax of each part")
	}
	if _, ok := s.find("tree"); ok {
		s.fail("tree", "which is not supported: a hierarchy of classes in another file")
	}
	s.off("a softmax of each pixel", "spatial")
	s.ignore("noloss")
	t := s.float("temperature", 1)
	if !(t > 0) || math.IsInf(float64(1/t), 0) {
		s.fail("temperature", "want more than 0")
	}
	return softmax{t}
}

func (softmax) shape(in []bcnn.Shape) bcnn.Shape {
	if in[0].Pixels() != 1 {
		try.Failf("its input is %v, want a vector, such as that of [avgpool]", in[0])
	}
	return in[0]
}

func (l softmax) build(im *importer, s *section, in []value) value {
	v := in[0]
	if l.temperature != 1 {
		v = im.emit(s, "/temperature", bcnn.Affine{Scale: []float32{1 / l.temperature}}, v.shape, v)
	}
	v = im.emit(s, "", bcnn.Softmax{}, v.shape, v)
	v.softmax = true
	return v
}

// nothing is a layer that does nothing when Darknet detects.
type nothing struct{}

func readDropout(s *section) layer {
	s.ignore("probability", "dropblock", "dropblock_size_rel", "dropblock_size_abs")
	return nothing{}
}

func readCost(s *section) layer {
	s.ignore("type", "scale", "ratio")
	return nothing{}
}

func (nothing) shape(in []bcnn.Shape) bcnn.Shape { return in[0] }

func (nothing) build(_ *importer, _ *section, in []value) value { return in[0] }
