package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// resizing is how Resize computes positions and weights along an axis.
type resizing struct {
	mode, coordinates, nearest string
	cubic                      float64 // cubic_coeff_a
	exclude                    bool    // exclude_outside
	antialias                  bool    // the filter grows as the image shrinks
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
	if how.mode == "nearest" {
		if im.model.Opset < 11 && (how.between(v.Shape.H, sizes[0], scales[0]) || how.between(v.Shape.W, sizes[1], scales[1])) {
			try.Failf("before operator set 11 ONNX does not define which pixels of a larger image are picked: export with opset_version 11 or later")
		}
		out := im.build.Pixels(n, "", v, bcnn.Pixels{
			Rows: how.positions(v.Shape.H, sizes[0], scales[0]), Cols: how.positions(v.Shape.W, sizes[1], scales[1]),
		})
		return build.Operand{Value: out}
	}
	v = im.build.Settle(v)
	taps := how.taps
	if how.antialias {
		try.Check(im.budget.Charge(64 * int64(v.Shape.H+v.Shape.W)))
		taps = how.filtered
	}
	out := im.build.Resample(n, v, bcnn.Resample{
		Rows: taps(v.Shape.H, sizes[0], scales[0]), Cols: taps(v.Shape.W, sizes[1], scales[1]),
	})
	return build.Operand{Value: out}
}

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
		{&r.mode, "mode", "nearest", []string{"nearest", "linear", "bilinear", "cubic"}},
		{&r.coordinates, "coordinate_transformation_mode", transform,
			[]string{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"}},
		{&r.nearest, "nearest_mode", nearest, []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
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
	if r.antialias = antialias != 0; r.antialias && r.mode != "nearest" && r.coordinates != "half_pixel" && r.coordinates != "pytorch_half_pixel" {
		try.Failf("antialias with coordinate_transformation_mode %s is not supported, only with half_pixel and pytorch_half_pixel", r.coordinates)
	}
	a := n.Float("cubic_coeff_a", -0.75)
	r.cubic = float64(a)
	exclude := n.Bit("exclude_outside", 0)
	r.exclude = exclude != 0
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

// at returns where pixel i of to in the result lies among from pixels of the image. It is float32
// arithmetic, as in ONNX Runtime, since rounding decides between neighbours that are equally near.
func (r resizing) at(i, from, to int, scale float32) float32 {
	x := float32(i)
	if scale == 1 { // for all modes
		return x
	}
	switch r.coordinates {
	case "asymmetric":
		return x / scale
	case "align_corners":
		if to == 1 {
			return 0
		}
		return float32(x*float32(from-1)) / float32(to-1)
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / scale
	case "pytorch_half_pixel":
		if to == 1 {
			return 0
		}
	case "half_pixel_symmetric":
		adjustment := float32(to) / float32(scale*float32(from))
		offset := float32(float32(from) / 2 * (1 - adjustment))
		return float32(float64(offset) + float64((float64(x)+0.5)/float64(scale)) - 0.5) // in float64 there
	}
	return float32((x+0.5)/scale) - 0.5
}

// between reports whether the image shrinks and some pixel of the result lies between two of it.
func (r resizing) between(from, to int, scale float32) bool {
	for i := range to {
		if x := r.at(i, from, to, scale); scale < 1 && x != float32(int(x)) {
			return true
		}
	}
	return false
}

// positions returns the nearest pixel for each of the result. A pixel within 1e-6 of the middle of
// two counts as equally near to both, as in ONNX Runtime 1.32 (1.24 has no tolerance). Pixel 4 of 8
// made of 7, for instance, is at 3.5, and in float32 at 3.4999998.
func (r resizing) positions(from, to int, scale float32) []int32 {
	const half = 1e-6
	list := make([]int32, to)
	for i := range list {
		x := float64(r.at(i, from, to, scale))
		switch r.nearest {
		case "floor":
			x = math.Floor(x)
		case "ceil":
			x = math.Ceil(x)
		case "round_prefer_floor":
			x = math.Ceil(x - 0.5 - half)
		case "round_prefer_ceil":
			x = math.Floor(x + 0.5 + half)
		}
		list[i] = int32(max(0, min(x, float64(from-1))))
	}
	return list
}

// taps returns the weighted pixels of linear or cubic interpolation.
func (r resizing) taps(from, to int, scale float32) bcnn.Taps {
	t := bcnn.Taps{N: min(2, from)}
	if r.mode == "cubic" {
		t.N = 4
	}
	t.Index, t.Weight = make([]int32, t.N*to), make([]float32, t.N*to)
	for i := range to {
		index, weights := t.Index[i*t.N:][:t.N], t.Weight[i*t.N:][:t.N]
		x := float64(r.at(i, from, to, scale))
		if r.mode == "cubic" {
			r.cubicTaps(index, weights, x, from)
			continue
		}
		x = max(0, min(x, float64(from-1)))
		first := min(int(x), max(from-2, 0))
		for k := range index {
			index[k] = int32(first + k)
			weights[k] = float32(1 - math.Abs(x-float64(first+k)))
		}
	}
	return t
}

// filtered returns the weighted pixels of an interpolation whose filter is stretched as the image
// shrinks, so that all pixels count. Pixels outside count as the one at the border, or with
// exclude_outside not at all. The weights add up to 1.
func (r resizing) filtered(from, to int, scale float32) bcnn.Taps {
	width, f := 1.0, func(d float64) float64 { return 1 - d }
	if r.mode == "cubic" {
		width, f = 2, r.keys
	}
	shrink := min(float64(scale), 1)
	reach := width / shrink
	window := func(i int) (middle float64, first, end int) {
		middle = float64(r.at(i, from, to, scale)) + 0.5
		first, end = int(math.Floor(middle-reach+0.5)), int(math.Floor(middle+reach+0.5))
		if r.exclude {
			first = max(0, min(first, from-1))
			end = max(first+1, min(end, from))
		}
		return middle, first, end
	}
	inside := func(at int) int { return max(0, min(at, from-1)) }
	var t bcnn.Taps
	for i := range to {
		_, first, end := window(i)
		t.N = max(t.N, inside(end-1)-inside(first)+1)
	}
	t.Index, t.Weight = make([]int32, t.N*to), make([]float32, t.N*to)
	all := make([]float64, t.N)
	for i := range to {
		middle, first, end := window(i)
		clear(all)
		sum := 0.0
		for at := first; at < end; at++ {
			if d := math.Abs(float64(at)+0.5-middle) * shrink; d < width {
				all[inside(at)-inside(first)] += f(d)
				sum += f(d)
			}
		}
		for k, w := range all {
			t.Index[i*t.N+k] = int32(inside(inside(first) + k))
			t.Weight[i*t.N+k] = float32(w / sum)
		}
	}
	return t
}

// keys is the filter of cubic interpolation at a distance below 2.
func (r resizing) keys(d float64) float64 {
	if a := r.cubic; d > 1 {
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return ((r.cubic+2)*d-(r.cubic+3))*d*d + 1
}

// cubicTaps sets the four pixels and weights of Keys, "Cubic Convolution Interpolation for Digital
// Image Processing" (1981), at position x.
func (r resizing) cubicTaps(index []int32, weights []float32, x float64, size int) {
	first := int(math.Floor(x)) - 1
	all := make([]float64, len(index))
	sum := 0.0
	for k := range index {
		all[k] = r.keys(math.Abs(x - float64(first+k)))
		if at := first + k; r.exclude && (at < 0 || at >= size) {
			all[k] = 0
		}
		index[k] = int32(max(0, min(first+k, size-1)))
		sum += all[k]
	}
	for k, w := range all {
		if r.exclude {
			w /= sum
		}
		weights[k] = float32(w)
	}
}
