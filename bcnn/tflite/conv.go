package tflite

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// divided gives what a convolution makes of a value the blocks of that, if there are some.
func divided(f func(im *importer, o *schema.Operator, v *value) *value) func(*importer, *schema.Operator) *value {
	return func(im *importer, o *schema.Operator) *value {
		v := im.weighable(o, 0)
		y := f(im, o, v)
		if v.blocks.some() {
			y.blocks, y.rank, y.by = v.blocks, v.rank, o
		}
		return y
	}
}

// conv is CONV_2D: filters [out][kh][kw][channels of a group].
func (im *importer) conv(o *schema.Operator, v *value) *value {
	filter := im.filter(o)
	d := filter.dims
	groups := v.shape.C / d[3]
	if groups == 0 || v.shape.C%d[3] != 0 || d[0]%groups != 0 {
		try.Failf("filters of shape %v do not fit an input of %d channels", d, v.shape.C)
	}
	g := windowed(o)
	g.kh, g.kw = d[1], d[2]
	g.dw, g.dh = int(o.Options.Int32(4, 1)), int(o.Options.Int32(5, 1))
	act := int(o.Options.Uint8(3, 0))
	if v.typ == schema.Int8 {
		sums32(o, 6)
		return im.conv8(o, v, filter, g, act)
	}
	rows := filter.weights(im.budget)
	y := im.convolution(o, v, g, rows, d[0], d[3], groups)
	return im.activation(o, y, act)
}

// depthwise is DEPTHWISE_CONV_2D: filters [1][kh][kw][out].
func (im *importer) depthwise(o *schema.Operator, v *value) *value {
	filter := im.filter(o)
	d := filter.dims
	if d[0] != 1 || d[3]%v.shape.C != 0 {
		try.Failf("filters of shape %v do not fit an input of %d channels", d, v.shape.C)
	}
	if said := int(o.Options.Int32(3, 0)); said != 0 && said != d[3]/v.shape.C {
		try.Failf("depth_multiplier = %d, but filters of shape %v make %d of each of %d channels", said, d, d[3]/v.shape.C, v.shape.C)
	}
	g := windowed(o)
	g.kh, g.kw = d[1], d[2]
	g.dw, g.dh = int(o.Options.Int32(5, 1)), int(o.Options.Int32(6, 1))
	act := int(o.Options.Uint8(4, 0))
	if v.typ == schema.Int8 {
		return im.depthwise8(o, v, filter, g, act)
	}
	taps := filter.weights(im.budget)
	rows := channelsFirst(im.budget, taps, d[3])
	y := im.convolution(o, v, g, rows, d[3], 1, v.shape.C)
	return im.activation(o, y, act)
}

// sums32 reads an option of layers on 8-bit values that says in which type they add up
// products: left out, or INT32.
func sums32(o *schema.Operator, slot int) {
	if t := schema.Type(o.Options.Uint8(slot, 0)); t != 0 && t != schema.Int32 {
		try.Failf("quantized_bias_type = %v is not supported, only INT32", t)
	}
}

// channelsFirst returns taps [taps][channels] as [channels][taps].
func channelsFirst[T any](b *budget.Budget, taps []T, channels int) []T {
	try.Check(b.Charge(8 * int64(len(taps))))
	rows, size := make([]T, len(taps)), len(taps)/channels
	try.Check(b.Loop(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			rows[i] = taps[i%size*channels+i/size]
		}
	}))
	return rows
}

// filter returns the filters of a convolution, which have four dimensions.
func (im *importer) filter(o *schema.Operator) *constant {
	c := im.required(o, 1)
	if len(c.dims) != 4 {
		try.Failf("its filters have %d dimensions, want 4", len(c.dims))
	}
	return c
}

// weighable returns an input of a layer with weights: numbers, of which a factor may be
// pending, or 8-bit values, around which padding may be pending.
func (im *importer) weighable(o *schema.Operator, i int) *value {
	v := im.settled(checked(im.operand(o, i), i))
	try.Check(v.checkBounded())
	if v.typ != schema.Int8 {
		try.Check(v.checkReal())
	}
	return v
}

// bias returns the biases of a layer, which are input i, nil if it has none.
func (im *importer) bias(o *schema.Operator, i, out int) []float32 {
	if !has(o, i) {
		return nil
	}
	bias := im.floats(o, i)
	if len(bias) != out {
		try.Failf("it has %d biases, want one for each of %d channels", len(bias), out)
	}
	return bias
}

// convolution emits a convolution with weights [out][kh][kw][rowLen].
func (im *importer) convolution(o *schema.Operator, v *value, g geometry, rows []float32, out, rowLen, groups int) *value {
	window, shape := g.window(v)
	shape.C = out
	bias := im.bias(o, 2, out)
	return floats(im.emit(o, "", bcnn.Conv2D{Window: window, Out: out, Groups: groups, Weights: bcnn.Weights{F32: rows}, Bias: bias}, shape, v))
}

// denseOfRows is FULLY_CONNECTED of rows that are pixels of an image, in two dimensions of which the
// batch need not be the first; nil if they are no pixels.
func (im *importer) denseOfRows(o *schema.Operator, v *value) *value {
	c := im.required(o, 1)
	l := *v.layout
	last := len(l.dims) - 1
	if len(c.dims) != 2 || last != 1 || l.batch == last || c.dims[1] != v.shape.C || !slices.Equal(l.dims[last], view.All(view.C, v.shape.C)) {
		return nil
	}
	im.ranked(o, len(l.dims), "its input has as many")
	if format := o.Options.Uint8(1, 0); format != 0 {
		try.Failf("the format %d of its weights is not supported", format)
	}
	o.Options.Uint8(2, 0) // keep_num_dims, which changes nothing here
	out := c.dims[0]
	shape := v.shape
	shape.C = out
	rows := c.weights(im.budget)
	bias := im.bias(o, 2, out)
	op := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out, Weights: bcnn.Weights{F32: rows}, Bias: bias}
	y := im.emit(o, "", op, shape, v.image())
	y = floats(im.activation(o, y, int(o.Options.Uint8(0, 0))))
	return y.arranged(o, layout{view.View{l.dims[0], view.All(view.C, out)}, l.batch})
}

// dense is FULLY_CONNECTED: weights [out][in].
func (im *importer) dense(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0)
	if v.layout != nil && v.typ == schema.Float32 && len(o.Inputs) <= 3 {
		if y := im.denseOfRows(o, v); y != nil {
			return y
		}
	}
	v = im.weighable(o, 0).undivided()
	c := im.required(o, 1)
	if len(c.dims) != 2 {
		try.Failf("its weights have %d dimensions, want 2", len(c.dims))
	}
	if format := o.Options.Uint8(1, 0); format != 0 {
		try.Failf("the format %d of its weights is not supported", format)
	}
	out, size := c.dims[0], c.dims[1]
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	layer := func(w bcnn.Weights, bias []float32) bcnn.Op { return bcnn.Dense{Out: out, Weights: w, Bias: bias} }
	keep := o.Options.Uint8(2, 0) != 0
	switch {
	case keep && v.shape.C == size: // for each pixel
		shape.H, shape.W = v.shape.H, v.shape.W
		layer = func(w bcnn.Weights, bias []float32) bcnn.Op {
			return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out, Weights: w, Bias: bias}
		}
	case keep:
		try.Failf("weights of shape %v do not fit pixels of %d channels, which keep_num_dims asks for", c.dims, v.shape.C)
	case v.shape.Values() != size:
		try.Failf("weights of shape %v do not fit an input of %d values", c.dims, v.shape.Values())
	}
	if keep {
		im.ranked(o, v.rank, "keep_num_dims is true")
	} else {
		im.ranked(o, 2, "keep_num_dims is false")
	}
	act := int(o.Options.Uint8(0, 0))
	if v.typ == schema.Int8 {
		sums32(o, 4)
		return im.dense8(o, v, c, shape, act, layer)
	}
	rows := c.weights(im.budget)
	bias := im.bias(o, 2, out)
	y := floats(im.emit(o, "", layer(bcnn.Weights{F32: rows}, bias), shape, v))
	return im.activation(o, y, act)
}
