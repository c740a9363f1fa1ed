package openvino

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/num"
)

// maxExact is the largest number up to which float32 holds every integer.
const maxExact = 1 << 24

// binaryConvolution imports BinaryConvolution: a sum of products of signs.
func binaryConvolution(im *importer, n *node) operand {
	n.only("mode", "xnor-popcount")
	if _, ok := n.list["mode"]; !ok {
		n.fail("mode", "xnor-popcount")
	}
	c := im.constant(n, 1)
	if c.typ != "u1" || len(c.dims) != 4 {
		try.Failf("its weights are %s of shape %v, want u1 of outputs, channels, height and width", c.typ, c.dims)
	}
	padding := ""
	if _, ok := n.list["pad_value"]; !ok {
		n.fail("pad_value", "−1, 0 or 1")
	}
	padding = n.text("pad_value", "")
	value := n.number("pad_value", padding)
	v := im.real(n, 0)
	return operand{v: im.binary(n, v, c, func(in bcnn.Shape) (bcnn.Window, int) {
		w := n.window(c.dims[2], c.dims[3], in, true)
		// What is neither 0 nor 1 acts like −1.
		switch value {
		case 0:
			return w, 0
		case 1:
			return w, 1
		}
		return w, -1
	})}
}

// binary appends a convolution of signs. window gives its window over an image and its padding.
func (im *importer) binary(n *node, v *value, c *constant, window func(in bcnn.Shape) (bcnn.Window, int)) *value {
	signs, flip := im.bits(v)
	image := im.nchw(n, signs)
	if flip != nil && image.layer != signs.layer {
		try.Failf("its input is a FakeQuantize that turns some channels, in another order, which is not supported")
	}
	out, channels := c.dims[0], c.dims[1]
	w, pad := window(image.shape)
	switch {
	case channels != image.shape.C:
		try.Failf("its weights have %d channels, its input %d", channels, image.shape.C)
	case out > maxOut || num.Product(channels, w.KH, w.KW) > maxExact:
		try.Failf("sums of %d×%d×%d products, or %d of them, are too many", channels, w.KH, w.KW, out)
	case flip != nil && pad != 0 && w.Pad != (bcnn.Padding{}):
		try.Failf("its input is a FakeQuantize that turns some channels and not others, which is not supported with a pad_value of %d", pad)
	}
	op := bcnn.Conv2D{Window: w, Out: out, Weights: im.packed(c, flip)}
	if w.Pad != (bcnn.Padding{}) {
		op.PadValue = pad
	}
	shape := w.Output(image.shape, out)
	return im.emit(n, "", op, shape, view.NCHW(shape), image)
}

// packed puts weights of u1 in the order of a bcnn.Network. flip says of which channels they are
// turned.
func (im *importer) packed(c *constant, flip []bool) bcnn.Weights {
	out, channels, pixels := c.dims[0], c.dims[1], c.dims[2]*c.dims[3]
	words := bits.Words(channels)
	try.Check(im.budget.Charge(8 * int64(num.Product(out, pixels, words))))
	w := bcnn.Weights{Bits: make([]uint64, out*pixels*words)}
	rows := out * pixels
	for row := range rows {
		try.Check(im.budget.Charge(3 * int64(channels)))
		o, p := row/pixels, row%pixels
		for ch := range channels {
			i := (o*channels+ch)*pixels + p
			bit := uint64(c.bits[i/8] >> (i % 8) & 1)
			if flip != nil && flip[ch] {
				bit ^= 1
			}
			w.Bits[row*words+ch/bits.WordBits] |= bit << (ch % bits.WordBits)
		}
	}
	return w
}

// convolution imports Convolution and GroupConvolution, whose weights have the groups first.
func convolution(im *importer, n *node) operand {
	c := im.constant(n, 1)
	c.checkReal()
	groups, dims := 1, c.dims
	if n.typ == "GroupConvolution" && len(dims) == 5 {
		groups, dims = dims[0], append([]int{num.Product(dims[0], dims[1])}, dims[2:]...)
	}
	if len(dims) != 4 {
		try.Failf("its weights have shape %v, want outputs, channels, height and width, and groups in front of those of a GroupConvolution", c.dims)
	}
	v := im.nchw(n, im.value(n, 0))
	return operand{v: im.real2D(n, "", v, c.floats, dims, groups, nil, n.window(dims[2], dims[3], v.shape, true))}
}

// real2D appends a convolution with real weights of outputs, channels of a group, height and
// width.
func (im *importer) real2D(n *node, suffix string, v *value, list []float32, dims []int, groups int, bias []float32, w bcnn.Window) *value {
	out, channels, pixels := dims[0], dims[1], dims[2]*dims[3]
	if out > maxOut || groups < 1 || out%groups != 0 || num.Product(channels, groups) != v.shape.C {
		try.Failf("its weights have %d channels for each of %d groups, and %d outputs; its input has %d channels", channels, groups, out, v.shape.C)
	}
	if pixels > 1 {
		moved := im.newFloats(len(list))
		rows := out * pixels
		for row := range rows {
			try.Check(im.budget.Charge(2 * int64(channels)))
			o, p := row/pixels, row%pixels
			for ch := range channels {
				moved[row*channels+ch] = list[(o*channels+ch)*pixels+p]
			}
		}
		list = moved
	}
	op := bcnn.Conv2D{Window: w, Out: out, Groups: groups, Weights: bcnn.Weights{F32: list}, Bias: bias}
	shape := w.Output(v.shape, out)
	return im.emit(n, suffix, op, shape, view.NCHW(shape), v)
}

// matMul imports a product with constant weights.
func matMul(im *importer, n *node) operand {
	if n.flag("transpose_a", false) {
		n.fail("transpose_a", "false")
	}
	turned := n.flag("transpose_b", false)
	c := im.constant(n, 1)
	c.checkReal()
	if len(c.dims) != 2 {
		try.Failf("its weights have shape %v, want two dimensions", c.dims)
	}
	return operand{v: im.product(n, im.value(n, 0), c, turned, nil)}
}

// product appends one of the last dimension with weights of inputs and outputs, or if they are turned
// of outputs and inputs.
func (im *importer) product(n *node, v *value, c *constant, turned bool, bias []float32) *value {
	last := len(v.view) - 1
	inputs, out := c.dims[0], c.dims[1]
	if turned {
		inputs, out = out, inputs
	}
	if inputs != v.size(last) {
		try.Failf("its weights have %d inputs, its input has shape %v behind the batch", inputs, v.dims())
	}
	// at is where the memory of a filter has each input.
	var at []int32
	if v.shape.Values() == inputs {
		at = im.offsets(v.view[last], view.FlatStride(v.shape))
	} else {
		var rows, cols []int
		for d := 1; d < last; d++ {
			if len(rows) == 0 {
				rows = append(rows, d)
			} else {
				cols = append(cols, d)
			}
		}
		v = im.image(n, v, []int{last}, rows, cols)
	}
	weights := im.newFloats(len(c.floats))
	for o := range out {
		try.Check(im.budget.Charge(2 * int64(inputs)))
		for i := range inputs {
			from, to := i*out+o, i
			if turned {
				from = o*inputs + i
			}
			if at != nil {
				to = int(at[i])
			}
			weights[o*inputs+to] = c.floats[from]
		}
	}
	w := bcnn.Weights{F32: weights}
	if at != nil {
		shape := bcnn.Shape{H: 1, W: 1, C: out}
		seen := slices.Repeat(view.View{nil}, last+1)
		seen[0], seen[last] = view.Batch, view.All(view.C, out)
		return im.emit(n, "", bcnn.Dense{Out: out, Weights: w, Bias: bias}, shape, seen, v)
	}
	shape, seen := v.shape, slices.Clone(v.view)
	shape.C, seen[last] = out, view.All(view.C, out)
	op := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out, Weights: w, Bias: bias}
	return im.emit(n, "", op, shape, seen, v)
}
