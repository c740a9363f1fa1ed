package darknet

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// convolution is [convolutional].
type convolution struct {
	filters, groups int
	window          bcnn.Window
	normalised      bool
	xnor, binary    bool
	binOutput       bool // and not cancelled
	activation      bcnn.Op

	// Once the input is known:
	in               bcnn.Shape
	weights, channel int    // of a filter, and of each of its channels
	data             []byte // its part of the file of the weights
}

// maxExact is the largest number up to which float32 holds every whole one.
const maxExact = 1 << 24

// signWord is the number of channels that Darknet packs into a word.
const signWord = 32

func readConvolution(s *section) layer {
	c := &convolution{
		filters: s.integer("filters", 1, 1, maxChannels),
		groups:  s.integer("groups", 1, 1, maxChannels),
	}
	size := s.integer("size", 1, 1, maxSide)
	strideX, strideY := s.strides()
	dilation := s.integer("dilation", 1, 1, maxSide)
	padding := s.integer("padding", 0, 0, maxSide)
	if s.flag("pad") {
		padding = size / 2
	}
	if size == 1 {
		dilation = 1
	}
	c.normalised = s.flag("batch_normalize")
	if s.flag("cbn") { // over several batches, in training alone
		c.normalised = true
	}
	c.xnor, c.binary, c.binOutput = s.flag("xnor"), s.flag("binary"), s.flag("bin_output")
	c.activation = s.activation("logistic")
	s.off("the layer would be smoothed by another behind it", "antialiasing")
	s.off("weights would be turned or stretched", "sway", "rotate", "stretch", "stretch_sway")
	s.off("its weights would have another order", "flipped")
	if _, ok := s.find("share_index"); ok {
		s.fail("share_index", "which is not supported: weights of another layer")
	}
	s.ignore("assisted_excitation", "angle", "dot", "grad_centr", "reverse", "coordconv") // training, and what has no code
	switch {
	case dilation > 1 && c.xnor:
		s.fail("dilation", "which xnor=1 leaves out where signs are packed")
	case dilation > 1 && 2*padding != size-1:
		// Darknet sizes the output as if there were no dilation, and pads dilation times as much.
		s.fail("dilation", "which needs a padding of half the size, rounded down, and an odd size")
	case c.xnor && strideX != strideY:
		try.Failf("option xnor is on, and strides %d and %d differ, for which Darknet does not pack signs", strideX, strideY)
	}
	pad := padding * dilation
	c.window = bcnn.Window{
		KH: size, KW: size, StrideH: strideY, StrideW: strideX, DilationH: dilation, DilationW: dilation,
		Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
	}
	if c.xnor {
		c.groups = 1 // as Darknet takes them
	}
	return c
}

// strides reads the strides of a convolution or a pool.
func (s *section) strides() (x, y int) {
	stride := s.integer("stride", 1, 1, maxSide)
	return s.integer("stride_x", stride, 1, maxSide), s.integer("stride_y", stride, 1, maxSide)
}

func (c *convolution) shape(in []bcnn.Shape) bcnn.Shape {
	s, w := in[0], c.window
	try.Check(w.Check(s, maxSide))
	if s.C%c.groups != 0 || c.filters%c.groups != 0 {
		try.Failf("option groups is %d, which does not divide %d channels and %d filters", c.groups, s.C, c.filters)
	}
	same := w.KH == 3 && w.StrideH == 1 && w.Pad.Top == 1
	if c.xnor && s.C%signWord != 0 && !same {
		try.Failf("option xnor is on with %d channels, no multiple of %d, for which Darknet packs signs with size 3, stride 1 and padding 1 alone", s.C, signWord)
	}
	c.in, c.channel = s, w.KH*w.KW
	if taps := int64(c.channel) * int64(s.C/c.groups); taps > maxExact {
		try.Failf("a filter has %d weights, at most %d are supported", taps, maxExact)
	}
	c.weights = c.channel * (s.C / c.groups)
	return w.Output(s, c.filters)
}

// floats is how many numbers the file of the weights has for the layer: biases, what batch
// normalisation takes, and the weights.
func (c *convolution) floats() int64 {
	each := int64(1)
	if c.normalised {
		each += 3
	}
	return int64(c.filters) * (each + int64(c.weights))
}

func (c *convolution) build(im *importer, s *section, in []value) value {
	v := in[0]
	out := c.window.Output(v.shape, c.filters)
	f := im.folded(c)
	op := bcnn.Conv2D{Window: c.window, Out: c.filters, Groups: c.groups}
	activation := c.activation
	switch {
	case c.xnor:
		v = im.sign(s, v)
		if c.window.Pad != (bcnn.Padding{}) {
			op.PadValue = -1
		}
		if c.binOutput {
			activation = nil
		}
		fallthrough
	case c.binary:
		var scale []float32
		op.Weights.Bits, scale = im.binarised(f)
		v = im.emit(s, "/sum", op, out, v)
		v = im.emit(s, "/scale", bcnn.Affine{Scale: scale, Bias: f.bias}, out, v)
	default:
		op.Weights.F32, op.Bias = im.real(f), f.bias
		v = im.emit(s, "/sum", op, out, v)
	}
	return im.activate(s, activation, v)
}
