package tflite

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
)

// layout is how the dimensions of a file's tensor run over the image of a layer, where they are
// others than those of an image. TRANSPOSE and RESHAPE make it; normalisations compute in it, and
// move back. Where nothing moves back, settled moves the values.
//
// A layer may have values several times that the tensor has once: along atoms that are in none of
// the dimensions they are equal.
type layout struct {
	dims  view.View // all, the batch is one of size 1
	batch int       // the dimension that a dynamic batch is in, −1 if there is none
}

// imageDims returns the dimensions of an image as a tensor of so many has them.
func imageDims(s bcnn.Shape, rank int) view.View {
	all := view.View{nil, view.All(view.H, s.H), view.All(view.W, s.W), view.All(view.C, s.C)}
	return append(view.View{nil}, all[min(4, 5-max(rank, 1)):]...)
}

// layout returns the layout of any value of a file whose batch is 1.
func (im *importer) layout(v *value) layout {
	if v.layout != nil {
		return *v.layout
	}
	l := layout{imageDims(v.shape, v.rank), -1}
	if im.dynamic {
		l.batch = 0
	}
	return l
}

// arranged gives a value a layout, none where the dimensions are those of an image.
func (v *value) arranged(o *schema.Operator, l layout) *value {
	v.layout, v.rank, v.by = &l, len(l.dims), o
	if n := len(l.dims); n >= 1 && n <= 4 && l.batch <= 0 && l.dims.Equal(imageDims(v.shape, n)) && v.shape.Values() == sizeOfView(l.dims) {
		v.layout = nil
	}
	return v
}

func sizeOfView(dims view.View) int {
	n := 1
	for _, d := range dims {
		n = num.Product(n, view.Product(d))
	}
	return n
}

// products returns the sizes of dimensions.
func products(dims view.View) []int {
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = view.Product(d)
	}
	return out
}

// dims returns the dimensions that the file's tensor has of a value of known rank.
func (im *importer) dims(v *value) []int {
	switch {
	case v.layout != nil:
		return products(v.layout.dims)
	case v.blocks.some():
		return v.blocks.dims(im.batch, v.shape, v.rank)
	}
	out := products(imageDims(v.shape, v.rank))
	out[0] = im.batch
	return out
}

// reordered fails where a value cannot have a layout.
func (im *importer) reordered(v *value) {
	if im.batch != 1 {
		try.Failf("it mixes the images of a batch of %d: convert the model with a batch of 1, or of any size", im.batch)
	}
	if v.typ == schema.Int32 {
		try.Failf("its input is packed bits, which this operator does not support")
	}
}

// reshapedTo gives a value other dimensions; batch is the one that a dynamic batch is in.
func (im *importer) reshapedTo(o *schema.Operator, v *value, dims []int, batch int) *value {
	im.reordered(v)
	l := im.layout(v)
	joined, err := append(view.View{view.Batch}, l.dims...).Reshape(dims)
	out := *v
	if err != nil { // as rows of the last dimension
		out = *im.settled(v)
		n := len(dims) - 1
		row := bcnn.Shape{H: 1, W: num.Product(dims[:n]...), C: dims[n]}
		out = *im.reshaped(o, &out, row)
		joined = try.Value(append(view.View{view.Batch}, imageDims(row, 3)...).Reshape(dims))
	}
	if l.batch < 0 {
		batch = -1
	}
	return out.arranged(o, layout{joined[1:], batch})
}

// permuted is TRANSPOSE.
func (im *importer) permuted(o *schema.Operator, v *value, perm []int64) *value {
	im.reordered(v)
	l := im.layout(v)
	to := layout{make(view.View, len(perm)), -1}
	for i, p := range perm {
		if to.dims[i] = l.dims[p]; int(p) == l.batch {
			to.batch = i
		}
	}
	out := *v
	return out.arranged(o, to)
}

// settled returns a value whose dimensions are those of an image: it moves the values where they
// have another layout.
func (im *importer) settled(v *value) *value {
	if v.layout == nil {
		return v
	}
	l := *v.layout
	dims := products(l.dims)
	if l.batch > 0 || dims[0] != 1 {
		if v.typ == schema.Int8 {
			try.Failf("operator %d (%s) makes a tensor of shape %v of 8-bit values, whose first dimension is not the batch: convert the model without quantising it", v.by.Index, v.by.Name, dims)
		}
		try.Failf("operator %d (%s) makes a tensor of shape %v, whose first dimension is not the batch: this operator does not support that", v.by.Index, v.by.Name, dims)
	}
	s := try.Value(im.shape(dims))
	out := *v
	out.layout, out.rank = nil, len(dims)
	turned := view.View{nil, view.All(view.H, s.H), view.All(view.C, s.W), view.All(view.W, s.C)}
	switch from := v.shape; {
	case slices.Equal(dims, products(imageDims(from, len(dims)))) && l.dims.Equal(imageDims(from, len(dims))):
	case append(view.View{view.Batch}, l.dims...).InOrder(from.Values(), view.FlatStride(from)):
		out.layer = im.reshaped(v.by, v, s).layer
	case len(dims) == 4 && from == (bcnn.Shape{H: s.H, W: s.C, C: s.W}) && l.dims.Equal(turned):
		out.layer = im.emit(v.by, "", bcnn.Transpose{}, s, v).layer
	default:
		out.layer = im.gathered(v, s, l.dims).layer
	}
	out.shape = s
	*v = out // for who reads it next
	return v
}

// gathered moves the values of a layer one by one to where the dimensions have them.
func (im *importer) gathered(v *value, s bcnn.Shape, dims view.View) *value {
	var atoms []view.Atom
	for _, d := range dims {
		atoms = append(atoms, d...)
	}
	const perValue = 32 // of the lists
	try.Check(im.budget.Charge(perValue * int64(s.Values())))
	from := view.Offsets(atoms, view.FlatStride(v.shape))
	index := try.Value(budget.List(im.budget, len(from), func(i int) int32 { return int32(from[i]) }))
	flat := *v
	if v.shape.Pixels() > 1 {
		flat = *im.emit(v.by, "/flat", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: v.shape.Values()}, v)
	}
	vector := bcnn.Shape{H: 1, W: 1, C: len(index)}
	y := im.emit(v.by, "/order", bcnn.Channels{Index: index}, vector, &flat)
	if s.Pixels() == 1 {
		return y
	}
	op := im.pixels(bcnn.Pixels{BlockH: s.H, BlockW: s.W}, 0, s.H, 0, s.W, s)
	return im.emit(v.by, "", op, s, y)
}

// pointwise are operators that do with each value of FLOAT32 the same, whatever its place.
var pointwise = []string{
	"ABS", "CAST", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOGICAL_NOT", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1",
	"RSQRT", "SQRT", "SQUARE", "TANH",
}

// anywhere imports an operator that does the same with each value, and whose input has a layout or
// is in blocks: as if it were an image.
func (im *importer) anywhere(o *schema.Operator, handler func(*importer, *schema.Operator) []operand) []operand {
	if len(o.Inputs) == 0 || !slices.Contains(pointwise, o.Name) {
		return handler(im, o)
	}
	in := im.env[o.Inputs[0]]
	v := in.value
	if v == nil || v.layout == nil && !v.blocks.some() || v.typ != schema.Float32 && v.typ != schema.Bool {
		return handler(im, o)
	}
	image := *v
	image.layout, image.blocks = nil, blocks{}
	im.env[o.Inputs[0]] = operand{value: &image}
	defer func() { im.env[o.Inputs[0]] = in }()
	out := handler(im, o)
	if len(out) == 1 && out[0].value != nil {
		y := *out[0].value
		y.layout, y.blocks, y.rank, y.by = v.layout, v.blocks, v.rank, v.by
		out[0].value = &y
	}
	return out
}

// tile is TILE of dimensions of size 1, as UpSampling2D repeats rows and columns: each becomes so many
// that follow each other.
func (im *importer) tile(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0).undivided()
	try.Check(v.checkBounded())
	im.reordered(v)
	l := im.layout(v)
	times := im.integers(o, 1)
	if len(times) != len(l.dims) {
		try.Failf("%d repetitions for %d dimensions, want one for each", len(times), len(l.dims))
	}
	out, dims := v, slices.Clone(l.dims)
	for i, n := range times {
		if n == 1 {
			continue
		}
		if n < 1 || n > maxSide || len(dims[i]) > 0 || i == l.batch {
			try.Failf("%d repetitions of a dimension of size %d are not supported, only of size 1", n, view.Product(dims[i]))
		}
		axis := view.H // that of the dimension in front
		for _, d := range dims[:i] {
			if len(d) > 0 {
				axis = d[len(d)-1].Axis
			}
		}
		out = im.repeatedEach(o, out, axis, int(n))
		for k, d := range dims {
			dims[k] = slices.Clone(d)
			for j := range d {
				if dims[k][j].Axis == axis {
					dims[k][j].Stride *= int(n)
				}
			}
		}
		dims[i] = []view.Atom{{Axis: axis, Stride: 1, Size: int(n)}}
	}
	same := *out
	same.like(v)
	return same.arranged(o, layout{dims, l.batch})
}

// repeatedEach repeats each row, column or channel of a layer.
func (im *importer) repeatedEach(o *schema.Operator, v *value, axis view.Axis, n int) *value {
	in := v.image()
	s := in.shape
	list := func(size int) []int32 {
		return try.Value(budget.List(im.budget, num.Product(size, n), func(i int) int32 { return int32(i / n) }))
	}
	switch axis {
	case view.C:
		s.C = num.Product(s.C, n)
		return im.emit(o, "/each", bcnn.Channels{Index: list(in.shape.C)}, s, in)
	case view.W:
		s.W = num.Product(s.W, n)
		return im.emit(o, "/each", im.pixels(bcnn.Pixels{Cols: list(in.shape.W)}, 0, s.H, 0, s.W, s), s, in)
	}
	s.H = num.Product(s.H, n)
	return im.emit(o, "/each", im.pixels(bcnn.Pixels{Rows: list(in.shape.H)}, 0, s.H, 0, s.W, s), s, in)
}
