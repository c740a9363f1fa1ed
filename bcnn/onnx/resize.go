package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/resize"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// resizing is how Resize computes positions and weights along an axis.
type resizing struct {
	resize.Method
	antialias bool // the filter grows as the image shrinks
}

// resize imports Resize and its predecessor Upsample.
func (im *importer) resize(n *pb.Node) build.Operand {
	v := im.build.Settle(im.value(n, 0))
	try.Check(v.CheckReal())
	try.Check(v.CheckImage())
	how := im.resizing(n)
	sizes, scales := im.resized(n, v)
	try.Check(im.build.CheckShape(bcnn.Shape{H: sizes[0], W: sizes[1], C: v.Shape.C}))
	try.Check(im.budget.Charge(64 * int64(sizes[0]+sizes[1])))
	if how.Mode == "nearest" {
		if im.model.Opset < 11 && (how.Between(v.Shape.H, sizes[0], scales[0]) || how.Between(v.Shape.W, sizes[1], scales[1])) {
			try.Failf("before operator set 11 ONNX does not define which pixels of a larger image are picked: export with opset_version 11 or later")
		}
		out := im.build.Pixels(n, "", v, bcnn.Pixels{
			Rows: how.Positions(v.Shape.H, sizes[0], scales[0]), Cols: how.Positions(v.Shape.W, sizes[1], scales[1]),
		})
		return build.Operand{Value: out}
	}
	v = im.build.Settle(v)
	taps := how.Taps
	if how.antialias {
		try.Check(im.budget.Charge(64 * int64(v.Shape.H+v.Shape.W)))
		taps = how.Filtered
	}
	out := im.build.Resample(n, v, bcnn.Resample{
		Rows: taps(v.Shape.H, sizes[0], scales[0]), Cols: taps(v.Shape.W, sizes[1], scales[1]),
	})
	return build.Operand{Value: out}
}

// tie is that of ONNX Runtime, see resize.Method.
const tie = 1e-6

// resizing reads the attributes of Resize or Upsample.
func (im *importer) resizing(n *pb.Node) (r resizing) {
	transform, nearest := "half_pixel", "round_prefer_floor"
	if n.OpType == "Upsample" || im.model.Opset < 11 {
		transform, nearest = "asymmetric", "floor"
	}
	for _, a := range []struct {
		to             *string
		name, fallback string
		allowed        []string
	}{
		{&r.Mode, "mode", "nearest", []string{"nearest", "linear", "bilinear", "cubic"}},
		{&r.Coordinates, "coordinate_transformation_mode", transform,
			[]string{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"}},
		{&r.Nearest, "nearest_mode", nearest, []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
	} {
		*a.to = n.Text(a.name, a.fallback)
		known := false
		for _, name := range a.allowed {
			known = known || *a.to == name
		}
		if !known {
			try.Failf("%s %s is not supported", a.name, text.Quote(*a.to))
		}
	}
	antialias := n.Bit("antialias", 0)
	if r.antialias = antialias != 0; r.antialias && r.Mode != "nearest" && r.Coordinates != "half_pixel" && r.Coordinates != "pytorch_half_pixel" {
		try.Failf("antialias with coordinate_transformation_mode %s is not supported, only with half_pixel and pytorch_half_pixel", r.Coordinates)
	}
	a := n.Float("cubic_coeff_a", -0.75)
	r.Cubic = float64(a)
	exclude := n.Bit("exclude_outside", 0)
	r.Exclude, r.Tie = exclude != 0, tie
	return r
}

// resized returns height and width of the result, and their scales.
func (im *importer) resized(n *pb.Node, v *build.Value) (sizes [2]int, scales [2]float32) {
	policy := n.Text("keep_aspect_ratio_policy", "stretch")
	if policy != "stretch" {
		try.Failf("keep_aspect_ratio_policy %s is not supported, want stretch", text.Quote(policy))
	}
	axes, ok := im.axes(n, len(n.Inputs), len(v.View))
	in := [2]int{v.Shape.H, v.Shape.W}
	sizes, scales = in, [2]float32{1, 1}
	given, wanted := im.scales(n)
	if !ok {
		axes = []int{0, 1, 2, 3}
		if max(len(given), len(wanted)) == 3 { // of a sequence
			axes = []int{0, 1, 3}
		}
	}
	if max(len(given), len(wanted)) != len(axes) {
		try.Failf("it has %d scales or sizes for %d dimensions, want one for each", max(len(given), len(wanted)), len(axes))
	}
	for i, a := range axes {
		k := a - 2 // of sizes
		if k < 0 {
			if given != nil && given[i] != 1 || given == nil && !view.IsBatch(v.View[a]) && wanted[i] != int64(v.Shape.C) {
				try.Failf("it resizes more than height and width: batch and channels must keep their sizes")
			}
			continue
		}
		if given != nil {
			scales[k] = given[i]
			size := math.Floor(float64(float32(in[k]) * given[i]))
			if !(given[i] > 0) || !(size >= 1) || size > pb.MaxSize {
				try.Failf("scale %v of a size of %d gives an empty image, or one that is too large", given[i], in[k])
			}
			sizes[k] = int(size)
			continue
		}
		if wanted[i] < 1 || wanted[i] > pb.MaxSize {
			try.Failf("sizes %v of height and width must be at least 1, and not too large", wanted)
		}
		sizes[k] = int(wanted[i])
		scales[k] = float32(sizes[k]) / float32(in[k])
	}
	return sizes, scales
}

// scales returns the scales or, if there are none, the sizes of the result.
func (im *importer) scales(n *pb.Node) (scales []float32, sizes []int64) {
	if a := try.Value(n.Attr("scales", pb.AttrFloats)); a != nil { // Upsample before opset 9
		return a.Fs, nil
	}
	at := 2 // behind the region of interest
	if n.OpType == "Upsample" || im.model.Opset < 11 {
		at = 1
	}
	t := im.constant(n, at)
	if t != nil && t.Len() > 0 {
		if t.Type != pb.Float {
			try.Failf("its scales are %v, want FLOAT", t.Type)
		}
		return t.F32, nil
	}
	t = im.required(n, 3)
	if t.Type != pb.Int64 {
		try.Failf("its sizes are %v, want INT64", t.Type)
	}
	for i, batch := range t.Batch {
		if batch && (i > 0 || t.I64[i] > 0) {
			try.Failf("its sizes of height and width depend on the batch size")
		}
	}
	return nil, t.I64
}

// channelsBehind extends the handler of Resize to images whose channels are last, of which it resizes
// the second and the third of four dimensions.
func channelsBehind(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		if !im.channelsAreLast(n) {
			return images(im, n)
		}
		r := images(im, im.channelsFirst(n))
		return im.permute(n, r, []int{0, 2, 3, 1})
	}
}

// channelsAreLast reports whether a Resize is of an image whose channels are last, and resizes its height
// alone or with its width.
func (im *importer) channelsAreLast(n *pb.Node) bool {
	v := im.env[n.Input(0)].Value
	if v == nil || v.Hole || len(v.View) != 4 {
		return false
	}
	turned := v.With(v.Node)
	if turned.View = v.View.Permuted(lastFirst(4)); v.CheckImage() == nil || turned.CheckImage() != nil {
		return false
	}
	axes, _ := im.resizedAxes(n)
	given, wanted := im.scales(n)
	if max(len(given), len(wanted)) != len(axes) {
		return false
	}
	var resized [4]bool
	for i, a := range axes {
		resized[a] = given != nil && given[i] != 1 || given == nil && a > 0 && wanted[i] != int64(v.Size(a))
	}
	return resized[1] && !resized[3] && !resized[0]
}

// resizedAxes returns the dimensions that scales or sizes are of; some is false if these are all four.
func (im *importer) resizedAxes(n *pb.Node) (axes []int, some bool) {
	if axes, some = im.axes(n, len(n.Inputs), 4); !some {
		axes = []int{0, 1, 2, 3}
	}
	return axes, some
}

// channelsFirst returns a Resize of an image whose channels are last as one whose channels are first.
func (im *importer) channelsFirst(n *pb.Node) *pb.Node {
	first := lastFirst(4)
	axes, some := im.resizedAxes(n)
	given, _ := im.scales(n)
	m := *n
	m.Inputs, m.Attrs = slices.Clone(n.Inputs), slices.Clone(n.Attrs)
	m.Inputs[0] = im.alias(n.Input(0), "with the channels first", im.permute(n, im.env[n.Input(0)], first))
	for i, a := range m.Attrs {
		turned := *a
		switch a.Name {
		case "axes":
			turned.Is = make([]int64, len(axes))
			for k, axis := range axes {
				turned.Is[k] = int64(slices.Index(first, axis))
			}
		case "scales":
			turned.Fs = ordered(given, first)
		}
		m.Attrs[i] = &turned
	}
	for i := 1; i < len(n.Inputs) && !some; i++ {
		if t := im.constant(n, i); t != nil && t.Len() == 4 {
			turned := *t
			turned.F32, turned.I64, turned.Batch = ordered(t.F32, first), ordered(t.I64, first), ordered(t.Batch, first)
			m.Inputs[i] = im.alias(n.Input(i), "with the channels first", build.Operand{Constant: &turned})
		}
	}
	return &m
}

// ordered returns a list whose element i is element order[i] of another one, nil of nil.
func ordered[T any](list []T, order []int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(order))
	for i, at := range order {
		out[i] = list[at]
	}
	return out
}
