package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Convolutions written as windows of an image (im2col) and a matrix product.

// gatherWindows imports Gather of rows or columns with indices [taps][windows], evenly spaced.
// PyTorch writes F.unfold as two of them, for rows and for columns. ok is false for other indices.
func (im *importer) gatherWindows(n *pb.Node, v *build.Value, axis int, dims []int, positions []int) (out *build.Value, ok bool) {
	x := v.AxisOf(axis)
	if len(dims) != 2 || len(positions) == 0 || x != view.H && x != view.W {
		return nil, false
	}
	t := build.Taps{Taps: dims[0], N: dims[1], Stride: 1, Dilation: 1}
	if t.N > 1 {
		t.Stride = positions[1] - positions[0]
	}
	if t.Taps > 1 {
		t.Dilation = positions[t.N] - positions[0]
	}
	for i, p := range positions {
		if p != i%t.N*t.Stride+i/t.N*t.Dilation || t.Stride < 1 || t.Dilation < 1 {
			return nil, false
		}
	}
	image, rows, cols := v, build.Taps{}, build.Taps{}
	if w := v.Windows; w != nil {
		image, rows, cols = w.Of, w.Rows, w.Cols
	} else {
		image = im.build.Settle(v)
		if image.CheckImage() != nil || image.CheckReal() != nil {
			return nil, false
		}
		rows, cols = build.Unit(image.Size(2)), build.Unit(image.Size(3))
	}
	seen := v.View // except for the axis
	switch {
	case x == view.H && rows == build.Unit(rows.N):
		rows = t
	case x == view.W && cols == build.Unit(cols.N):
		cols = t
	default:
		return nil, false
	}
	out = im.build.Windows(n, image, rows, cols)
	whole := out.View[map[view.Axis]int{view.H: 2, view.W: 3}[x]]
	out.View = slices.Clone(seen)
	if out.View[axis] = whole; v.Windows == nil { // what is padded is not in the view
		other := 5 - axis
		out.View[other] = view.All(view.H+view.W-x, map[view.Axis]int{view.H: out.Shape.W, view.W: out.Shape.H}[x])
	}
	out = split(out, axis, dims)
	return out, true
}

// im2col imports Im2Col of QONNX: windows of images whose channels are the last dimension.
func (im *importer) im2col(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	if r.Value == nil || len(r.Value.View) != 4 {
		try.Failf("its input has %d dimensions, want a computed tensor of batch, height, width, channels", rankOf(r))
	}
	r = im.permute(n, r, lastFirst(4))
	v := im.settledImageOf(n, r.Value)
	pairs := map[string][]int{}
	for _, name := range []string{"kernel_size", "stride", "dilations"} {
		pairs[name] = n.Sizes(name, 2, 1)
	}
	pad := n.Sizes("pad_amount", 4, 0)
	fill := n.Int("pad_value", 0)
	around := bcnn.Padding{Top: pad[0], Left: pad[1], Bottom: pad[2], Right: pad[3]}
	if around != (bcnn.Padding{}) {
		v = im.build.Pad(n, v, around, float32(fill))
	}
	var taps [2]build.Taps
	for i, size := range []int{v.Size(2), v.Size(3)} {
		t := build.Taps{Taps: pairs["kernel_size"][i], Stride: pairs["stride"][i], Dilation: pairs["dilations"][i]}
		if t.Taps < 1 || t.Stride < 1 || t.Dilation < 1 {
			try.Failf("kernel_size %v, stride %v and dilations %v must be at least 1", pairs["kernel_size"], pairs["stride"], pairs["dilations"])
		}
		if t.N = outputSize(size, 0, t.Taps, t.Dilation, t.Stride); t.N < 1 {
			try.Failf("the window is larger than its padded input")
		}
		taps[i] = t
	}
	out := im.build.Windows(n, v, taps[0], taps[1])
	parts := try.Value(view.View{view.Batch, out.View[1], out.View[2], out.View[3]}.Reshape([]int{v.Shape.C, taps[0].Taps, taps[0].N, taps[1].Taps, taps[1].N}))
	out.View = view.View{view.Batch, parts[3], parts[5], slices.Concat(parts[2], parts[4], parts[1])}
	return build.Operand{Value: out}
}

// windowed makes a convolution of the product of whole windows, the last dimension of v, with
// weights [window][out], transposed if transB is set. ok is false if it is another product.
func (im *importer) windowed(n *pb.Node, v *build.Value, w *eval.Tensor, transB bool) (r build.Operand, ok bool) {
	win, last := v.Windows, len(v.View)-1
	k, out := w.Dims[0], w.Dims[1]
	if transB {
		k, out = out, k
	}
	channels := v.Shape.C
	taps := win.Rows.Taps * win.Cols.Taps
	// The place of a position of the window in weights [channel][row][column].
	whole := true
	stride := func(a view.Atom) int {
		switch a.Axis {
		case view.H:
			whole = whole && a.Stride%win.Rows.N == 0
			return a.Stride / win.Rows.N * win.Cols.Taps
		case view.W:
			whole = whole && a.Stride%win.Cols.N == 0
			return a.Stride / win.Cols.N
		}
		return a.Stride * taps
	}
	for _, a := range v.View[last] {
		stride(a)
	}
	if !whole || view.Product(v.View[last]) != k || k != channels*taps || out < 1 {
		return r, false
	}
	image := win.Of
	rows, cols := v.View[:last], win.Cols
	for _, d := range rows {
		for _, a := range d {
			if a.Axis == view.C || a.Axis == view.H && a.Stride*a.Size > win.Rows.N || a.Axis == view.W && a.Stride*a.Size > cols.N {
				return r, false
			}
		}
	}
	// A convolution computes all windows; the last ones may be missing here.
	if outputSize(image.Size(2), 0, win.Rows.Taps, win.Rows.Dilation, win.Rows.Stride) != win.Rows.N ||
		outputSize(image.Size(3), 0, cols.Taps, cols.Dilation, cols.Stride) != cols.N {
		return r, false
	}
	places := im.build.Offsets(v.View[last], stride)
	weights := im.eval.NewTensor(pb.Float, []int{out, channels, win.Rows.Taps, cols.Taps})
	try.Check(im.budget.Loop(w.Len(), func(lo, hi int) {
		for from := lo; from < hi; from++ {
			i, o := from/out, from%out
			if transB {
				i, o = from%k, from/k
			}
			weights.F32[o*k+places[i]] = w.F32[from]
		}
	}))
	pair := func(name string, y, x int) *pb.Attribute {
		return &pb.Attribute{Name: name, Type: pb.AttrInts, Is: []int64{int64(y), int64(x)}}
	}
	m := *n
	m.OpType, m.Domain = "Conv", ""
	m.Inputs = []string{im.alias(n.Input(0), "as an image", build.Operand{Value: image}), im.alias(n.Input(1), "as windows", build.Operand{Constant: weights})}
	m.Attrs = []*pb.Attribute{pair("strides", win.Rows.Stride, cols.Stride), pair("dilations", win.Rows.Dilation, cols.Dilation)}
	r = im.conv(&m)
	y := r.Value.With(n)
	y.View = append(slices.Clone(rows), view.All(view.C, out))
	return build.Operand{Value: y}, true
}

// col2im imports Col2Im of windows of one pixel, which is a Reshape. PyTorch exports it for F.fold
// behind a product with what F.unfold gave.
func (im *importer) col2im(n *pb.Node) build.Operand {
	v := im.value(n, 0)
	var sizes [2][]int
	for i := range sizes {
		sizes[i] = im.shapeInput(n, i+1)
	}
	one := len(sizes[0]) == 2 && len(sizes[1]) == 2 && len(v.View) == 3
	for _, k := range sizes[1] {
		one = one && k == 1
	}
	for name, want := range map[string]int64{"strides": 1, "dilations": 1, "pads": 0} {
		list := n.Ints(name)
		one = one && !slices.ContainsFunc(list, func(k int64) bool { return k != want })
	}
	if !one {
		try.Failf("only windows of one pixel are supported, not sums of overlapping ones: write those as a ConvTranspose with weights of 1")
	}
	v = im.build.Movable(v)
	if view.Product(v.View[2]) != sizes[0][0]*sizes[0][1] {
		try.Failf("it has %d windows for %d×%d pixels, want one for each", view.Product(v.View[2]), sizes[0][0], sizes[0][1])
	}
	return build.Operand{Value: split(v.With(n), 2, sizes[0])}
}
