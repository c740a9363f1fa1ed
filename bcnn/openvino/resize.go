package openvino

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/resize"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// interpolate imports Interpolate: of opset 4 with sizes and scales, of opset 11 with one of both. The
// axes are the last input.
func interpolate(im *importer, n *node) operand {
	how := n.interpolation()
	v := im.value(n, 0)
	sizes, scales := v.dims(), make([]float32, len(v.view)-1) // behind the batch
	for i := range scales {
		scales[i] = 1
	}
	bySize := n.text("shape_calculation_mode", "") == "sizes"
	if !bySize {
		n.only("shape_calculation_mode", "sizes", "scales")
	}
	given, last := 1, 2
	if n.version == "opset4" {
		last = 3
		im.constant(n, 1)
		im.constant(n, 2)
		if !bySize {
			given = 2
		}
	}
	list := im.constant(n, given)
	axes := im.resizedAxes(n, last, len(v.view))
	if list.len() != len(axes) {
		try.Failf("it has %d sizes or scales for %d axes", list.len(), len(axes))
	}
	var spatial []int
	for i, a := range axes {
		var size int
		var scale float32
		if bySize {
			size = int(min(max(list.integers(false)[i], 0), maxValues))
		} else {
			scale = list.scale(i)
			size = int(math.Floor(float64(scale * float32(im.size(v, a)))))
		}
		if a == 0 {
			if bySize && size != im.batch || !bySize && scale != 1 {
				try.Failf("it resizes the batch, which is not supported")
			}
			continue
		}
		if size < 1 {
			try.Failf("dimension %d, of size %d, becomes empty", a, v.size(a))
		}
		if bySize {
			scale = float32(size) / float32(v.size(a))
		}
		sizes[a-1], scales[a-1] = size, scale
		spatial = append(spatial, a)
	}
	spatial = chosenAxes(len(v.view), spatial, func(a int) bool { return sizes[a-1] == v.size(a) })
	return im.resize(n, v, how, spatial, sizes, scales)
}

// resize appends what gives two dimensions, spatial, other sizes; sizes and scales are those of all
// dimensions behind the batch.
func (im *importer) resize(n *node, v *value, how resize.Method, spatial, sizes []int, scales []float32) operand {
	v = im.spatial(n, v, spatial)
	rows, cols := spatial[0], spatial[1]
	shape := bcnn.Shape{H: sizes[rows-1], W: sizes[cols-1], C: v.shape.C}
	im.checkShape(shape)
	try.Check(im.budget.Charge(64 * int64(shape.H+shape.W)))
	var op bcnn.Op
	if how.Mode == "nearest" {
		op = bcnn.Pixels{Rows: how.Positions(v.shape.H, shape.H, scales[rows-1]), Cols: how.Positions(v.shape.W, shape.W, scales[cols-1])}
	} else {
		op = bcnn.Resample{Rows: how.Taps(v.shape.H, shape.H, scales[rows-1]), Cols: how.Taps(v.shape.W, shape.W, scales[cols-1])}
	}
	return operand{v: im.emit(n, "", op, shape, resized(v, spatial, shape), v)}
}

// size is that of a dimension, of which the first is the batch.
func (im *importer) size(v *value, d int) int {
	if d == 0 {
		return im.batch
	}
	return v.size(d)
}

// scale returns a factor of sizes.
func (c *constant) scale(i int) float32 {
	c.checkReal()
	s := c.floats[i]
	if !(s > 0 && s <= maxSide) {
		try.Failf("a scale is %v, want one above 0, up to %d", s, maxSide)
	}
	return s
}

// interpolation reads the attributes of Interpolate but for what becomes of sizes.
func (n *node) interpolation() resize.Method {
	m := resize.Method{
		Coordinates: n.text("coordinate_transformation_mode", "half_pixel"), Nearest: n.text("nearest_mode", "round_prefer_floor"),
		Cubic: float64(n.number("cube_coeff", "-0.75")), Still: true,
	}
	switch mode := n.text("mode", ""); mode {
	case "nearest", "cubic":
		m.Mode = mode
	case "linear", "linear_onnx": // which differ where they average more than their neighbours: by antialias
		m.Mode = "linear"
	default:
		n.fail("mode", "nearest, linear, linear_onnx or cubic")
	}
	n.only("coordinate_transformation_mode", "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
	n.only("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
	if n.flag("antialias", false) && m.Mode != "nearest" {
		n.fail("antialias", "false")
	}
	for _, name := range []string{"pads_begin", "pads_end"} {
		if list := n.numbers(name, 0, maxSide); len(list) > 0 && slices.Max(list) > 0 {
			n.fail(name, "zeros")
		}
	}
	return m
}

// resizedAxes returns the axes that an input names, or all.
func (im *importer) resizedAxes(n *node, k, rank int) []int {
	var axes []int
	if k >= len(n.from) {
		for i := range rank {
			axes = append(axes, i)
		}
		return axes
	}
	for _, a := range im.constant(n, k).integers(false) {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) || slices.Contains(axes, int(a)) {
			try.Failf("its axes are not some of %d dimensions", rank)
		}
		axes = append(axes, int(a))
	}
	return axes
}

// chosenAxes returns the two dimensions of rank ones that become rows and columns, so that nothing is
// done to the others: of those that are named, or the last ones that same says keep their size.
func chosenAxes(rank int, axes []int, same func(a int) bool) []int {
	chosen := slices.DeleteFunc(slices.Clone(axes), same)
	for a := rank - 1; a > 0 && len(chosen) < 2; a-- {
		if !slices.Contains(chosen, a) {
			chosen = append(chosen, a)
		}
	}
	slices.Sort(chosen)
	switch {
	case len(chosen) > 2:
		try.Failf("it changes dimensions %v: more than two are not supported", chosen)
	case len(chosen) < 2:
		try.Failf("its input has %d dimensions, want 3 or more", rank)
	}
	return chosen
}

// spatial returns a value as images with two dimensions as rows and columns.
func (im *importer) spatial(n *node, v *value, dims []int) *value {
	var rest []int
	for _, d := range v.indices() {
		if !slices.Contains(dims, d) {
			rest = append(rest, d)
		}
	}
	return im.image(n, v, rest, dims[:1], dims[1:])
}

// resized is the view of a value, of which two dimensions have become rows and columns of a shape.
func resized(v *value, dims []int, shape bcnn.Shape) view.View {
	seen := slices.Clone(v.view)
	seen[dims[0]], seen[dims[1]] = view.All(view.H, shape.H), view.All(view.W, shape.W)
	return seen
}

// pad imports Pad of two dimensions behind the batch. Negative pads crop.
func pad(im *importer, n *node) operand {
	v := im.value(n, 0)
	mode := n.text("pad_mode", "")
	fill := float32(0)
	if len(n.from) > 3 {
		c := im.constant(n, 3)
		if c.checkReal(); c.len() != 1 {
			try.Failf("its value has shape %v, want one number", c.dims)
		}
		fill = c.floats[0]
	}
	least := int64(0)
	if n.version != "opset1" {
		least = -maxSide
	}
	return im.padding(n, v, mode, fill, least, im.constant(n, 1).integers(false), im.constant(n, 2).integers(false))
}

// legacyPad imports Pad of the old versions.
func legacyPad(im *importer, n *node) operand {
	list := func(name string) (list []int64) {
		for _, v := range n.numbers(name, 0, maxSide) {
			list = append(list, int64(v))
		}
		return list
	}
	return im.padding(n, im.value(n, 0), n.text("pad_mode", ""), n.number("pad_value", "0"), 0, list("pads_begin"), list("pads_end"))
}

// padding appends what puts so many values, least or more, around two dimensions.
func (im *importer) padding(n *node, v *value, mode string, fill float32, least int64, begin, end []int64) operand {
	if len(begin) != len(v.view) || len(end) != len(v.view) {
		try.Failf("it has %d and %d pads for %d dimensions", len(begin), len(end), len(v.view))
	}
	if slices.Min(append(begin, end...)) < least || slices.Max(append(begin, end...)) > maxSide {
		try.Failf("its pads are %v and %v, want numbers from %d to %d", begin, end, least, maxSide)
	}
	if begin[0] != 0 || end[0] != 0 {
		try.Failf("it pads the batch, which is not supported")
	}
	var axes []int
	for a := range v.view {
		if a > 0 && (begin[a] != 0 || end[a] != 0) {
			axes = append(axes, a)
		}
	}
	axes = chosenAxes(len(v.view), axes, func(int) bool { return false })
	v = im.spatial(n, v, axes)
	h, w := axes[0], axes[1]
	op := bcnn.Pixels{Fill: fill}
	try.Check(im.budget.Charge(64 * max(begin[h]+end[h]+begin[w]+end[w]+int64(v.shape.H+v.shape.W), 0)))
	op.Rows = n.padded(mode, v.shape.H, int(begin[h]), int(end[h]))
	op.Cols = n.padded(mode, v.shape.W, int(begin[w]), int(end[w]))
	shape := bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: v.shape.C}
	return operand{v: im.emit(n, "", op, shape, resized(v, axes, shape), v)}
}

// padded returns what pixels there are along a side of a size, −1 for the value of the padding.
func (n *node) padded(mode string, size, begin, end int) []int32 {
	if begin+size+end < 1 {
		try.Failf("pads of %d and %d leave nothing of a size of %d", begin, end, size)
	}
	most := size // of pixels that are repeated on a side
	at := map[string]func(p int) int{
		"constant": func(p int) int {
			if p >= size {
				return -1
			}
			return max(p, -1)
		},
		"edge": func(p int) int { return max(0, min(p, size-1)) },
		"reflect": func(p int) int {
			if p >= size {
				return 2*(size-1) - p
			}
			return max(p, -p)
		},
		"symmetric": func(p int) int {
			if p >= size {
				return 2*size - 1 - p
			}
			return max(p, -p-1)
		},
	}[mode]
	switch {
	case at == nil:
		n.fail("pad_mode", "constant, edge, reflect or symmetric")
	case mode == "reflect":
		most = size - 1
		fallthrough
	case mode == "symmetric":
		if max(begin, end) > most || min(begin, end) < 0 {
			try.Failf("pads of %d and %d of a size of %d, mode %s: want 0 to %d", begin, end, size, text.Quote(mode), most)
		}
	}
	list := make([]int32, begin+size+end)
	for i := range list {
		list[i] = int32(at(i - begin))
	}
	return list
}

// legacySize returns the rows and columns of the output of an image, which the file states whatever the
// attributes are that gave them.
func (im *importer) legacySize(n *node, v *value) (sizes []int, scales []float32) {
	if len(n.outputs) != 1 || len(n.outputs[0].dims) != 4 || len(v.view) != 4 || slices.Min(n.outputs[0].dims[1:]) < 1 {
		try.Failf("it makes images of an image, but has not one output of 4 dimensions")
	}
	sizes = n.outputs[0].dims[1:]
	for i, d := range v.dims() {
		scales = append(scales, float32(sizes[i])/float32(d))
	}
	return sizes, scales
}

// interp imports Interp, which is linear: corners on corners, or with the first pixels on one another.
func interp(im *importer, n *node) operand {
	n.only("pad_beg", "0")
	n.only("pad_end", "0")
	n.ignore("height", "width", "factor", "zoom_factor", "shrink_factor")
	v := im.value(n, 0)
	sizes, scales := im.legacySize(n, v)
	how := resize.Method{Mode: "linear", Coordinates: "asymmetric", Still: true}
	if n.flag("align_corners", true) {
		how.Coordinates = "align_corners"
	}
	return im.resize(n, v, how, []int{2, 3}, sizes, scales)
}

// resample imports Resample that enlarges images by whole factors, to the nearest pixel, or to the mean of
// neighbours by their distance from the middle of a pixel. What it computes where images shrink, or
// in between, was not the same on all devices.
func resample(im *importer, n *node) operand {
	n.ignore("factor", "antialias", "height", "width") // antialias concerns images that shrink
	v := im.value(n, 0)
	if len(n.from) > 1 {
		im.constant(n, 1)
	}
	sizes, scales := im.legacySize(n, v)
	for i, d := range v.dims() {
		if sizes[i]%d != 0 || i == 0 && sizes[i] != d {
			try.Failf("it makes images of %v of %v, want rows and columns times whole numbers", sizes, v.dims())
		}
	}
	how := resize.Method{Mode: "nearest", Nearest: "floor", Coordinates: "asymmetric", Still: true}
	switch n.text("type", "") {
	case "caffe.ResampleParameter.NEAREST":
	case "caffe.ResampleParameter.LINEAR":
		how = resize.Method{Mode: "linear", Coordinates: "half_pixel", Still: true}
	default:
		n.fail("type", "caffe.ResampleParameter.NEAREST or caffe.ResampleParameter.LINEAR")
	}
	return im.resize(n, v, how, []int{2, 3}, sizes, scales)
}
