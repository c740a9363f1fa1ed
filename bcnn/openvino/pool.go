package openvino

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
)

// pooled returns the image that a pool reads, its window, and whether rounding up has made it
// reach beyond the padding.
func (im *importer) pooled(n *node) (v *value, w bcnn.Window, beyond bool) {
	v = im.nchw(n, im.value(n, 0))
	kh, kw := n.pair("kernel", 1)
	w = n.window(kh, kw, v.shape, n.version != "opset1")
	switch n.text("rounding_type", "floor") {
	case "floor":
	case "ceil":
		more := extend(&w.Pad.Bottom, v.shape.H+w.Pad.Top, kh, w.StrideH)
		more = max(more, extend(&w.Pad.Right, v.shape.W+w.Pad.Left, kw, w.StrideW))
		beyond = more > 0
	default:
		n.fail("rounding_type", "floor or ceil")
	}
	return v, w, beyond
}

// extend adds to the padding at the end of a side, of a size with the padding in front, what makes
// its windows reach the end, and returns how much that is.
func extend(end *int, size, kernel, stride int) int {
	rest := size + *end - kernel
	if rest <= 0 {
		return 0
	}
	more := (rest+stride-1)/stride*stride - rest
	*end += more
	return more
}

func maxPool(im *importer, n *node) operand {
	n.ignore("index_element_type", "axis") // are about the second output
	v, w, _ := im.pooled(n)
	return operand{v: im.pool(n, bcnn.MaxPool{Window: w}, w, v)}
}

func avgPool(im *importer, n *node) operand {
	if _, ok := n.list["exclude-pad"]; !ok {
		n.fail("exclude-pad", "true or false")
	}
	exclude := n.flag("exclude-pad", false)
	v, w, beyond := im.pooled(n)
	if beyond && !exclude {
		// What such windows are divided by is not the same in all versions of OpenVINO.
		try.Failf("exclude-pad is false and rounding_type ceil makes windows reach beyond the padding, which is not supported")
	}
	return operand{v: im.pool(n, bcnn.AvgPool{Window: w, CountPadding: !exclude}, w, v)}
}

func (im *importer) pool(n *node, op bcnn.Op, w bcnn.Window, v *value) *value {
	try.Check(w.CheckPool(v.shape, maxSide))
	if _, mean := op.(bcnn.AvgPool); mean {
		try.Check(w.CheckTaps())
	}
	shape := w.Output(v.shape, v.shape.C)
	return im.emit(n, "", op, shape, view.NCHW(shape), v)
}

// reduce imports ReduceMean and ReduceMax, as pools over whole images.
func reduce(im *importer, n *node) operand {
	keep := n.flag("keep_dims", false)
	v := im.value(n, 0)
	chosen := make([]bool, len(v.view))
	for _, a := range im.constant(n, 1).integers(false) {
		k := a
		if k < 0 {
			k += int64(len(v.view))
		}
		if k < 1 || k >= int64(len(v.view)) || chosen[k] {
			try.Failf("its axis %d is the batch, or none, or there twice", a)
		}
		chosen[k] = true
	}
	var over, rest []int
	for _, d := range v.indices() {
		if chosen[d] {
			over = append(over, d)
		} else {
			rest = append(rest, d)
		}
	}
	if len(over) == 0 {
		return operand{v: v}
	}
	v = im.image(n, v, rest, over[:1], over[1:])
	w := bcnn.Window{KH: v.shape.H, KW: v.shape.W, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	var op bcnn.Op = bcnn.AvgPool{Window: w}
	if n.typ == "ReduceMax" {
		op = bcnn.MaxPool{Window: w}
	}
	seen := slices.Clone(v.view)
	for _, d := range over {
		seen[d] = nil
	}
	if !keep {
		kept := view.View{view.Batch}
		for _, d := range rest {
			kept = append(kept, seen[d])
		}
		seen = kept
	}
	try.Check(w.CheckTaps())
	shape := bcnn.Shape{H: 1, W: 1, C: v.shape.C}
	return operand{v: im.emit(n, "", op, shape, seen, v)}
}
