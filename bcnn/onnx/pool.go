package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

func (im *importer) maxPool(n *pb.Node) build.Operand {
	v, again := im.value(n, 0).WithoutLimits()
	v = im.build.Settle(v)
	try.Check(v.CheckReal())
	turned := try.Value(v.CheckPooled())
	win, _ := poolWindow(n, v.Shape, turned)
	v, win = im.undilate(n, v, win)
	out := im.maximum(n, v, win)
	out.View = pooledView(v, out.Shape, turned)
	again(out)
	return build.Operand{Value: out}
}

// pooledView returns the view of an image of shape s that a pool makes of v. turned is that of
// CheckPooled.
func pooledView(v *build.Value, s bcnn.Shape, turned bool) view.View {
	h, w := view.All(view.H, s.H), view.All(view.W, s.W)
	if turned {
		h, w = w, h
	}
	return view.View{view.Batch, v.View[1], h, w}
}

// maximum emits a max-pool. The caller sets the view.
func (im *importer) maximum(n *pb.Node, v *build.Value, win bcnn.Window) *build.Value {
	shape := pooled(v.Shape, win)
	try.Check(im.build.CheckShape(shape))
	return im.build.Emit(n, "", bcnn.MaxPool{Window: win}, shape, v)
}

func (im *importer) globalMaxPool(n *pb.Node) build.Operand {
	v := im.imageOf(n)
	out := im.maximum(n, v, tiles(v.Shape.H, v.Shape.W))
	out.View = pooledView(v, out.Shape, false)
	return build.Operand{Value: out}
}

// tiles returns windows of h×w side by side, which do not overlap.
func tiles(h, w int) bcnn.Window {
	return bcnn.Window{KH: h, KW: w, StrideH: h, StrideW: w, DilationH: 1, DilationW: 1}
}

// undilate picks the pixels that a dilated pool reads, and returns them with windows over them that are
// dense. Where all windows read the same phase of an axis, its pixels are picked once each. Elsewhere
// those of each window lie side by side; a tap in the padding is then one of the same window inside the
// image, which changes no maximum.
func (im *importer) undilate(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, bcnn.Window) {
	if win.DilationH == 1 && win.DilationW == 1 {
		return v, win
	}
	y := im.undilated(axisWindow{v.Shape.H, win.KH, win.StrideH, win.DilationH, win.Pad.Top, win.Pad.Bottom})
	x := im.undilated(axisWindow{v.Shape.W, win.KW, win.StrideW, win.DilationW, win.Pad.Left, win.Pad.Right})
	v = im.build.Pixels(n, "/taps", v, bcnn.Pixels{Rows: y.at, Cols: x.at})
	return v, bcnn.Window{
		KH: win.KH, KW: win.KW, StrideH: y.stride, StrideW: x.stride, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: y.before, Left: x.before, Bottom: y.after, Right: x.after},
	}
}

// axisWindow is what windows are along an axis of an image.
type axisWindow struct{ size, k, stride, dilation, before, after int }

// dense are pixels of an axis, and windows over them.
type dense struct {
	at                    []int32
	stride, before, after int
}

func (im *importer) undilated(a axisWindow) dense {
	outs := outputSize(a.size, a.before+a.after, a.k, a.dilation, a.stride)
	if a.stride%a.dilation == 0 {
		first := (a.dilation - a.before%a.dilation) % a.dilation // of the phase, inside
		d := dense{stride: a.stride / a.dilation, before: (a.before + first) / a.dilation}
		d.at = im.build.Span(first, a.dilation, max(0, (a.size-first+a.dilation-1)/a.dilation))
		last := (outs-1)*d.stride - d.before // the first tap of the last window
		if d.before >= a.k || last >= len(d.at) {
			try.Fail(errPaddingAlone)
		}
		d.after = max(0, last+a.k-len(d.at))
		return d
	}
	count := try.Value(eval.Count([]int{outs, a.k}))
	empty := false
	list := try.Value(budget.List(im.budget, count, func(i int) int32 {
		first := i/a.k*a.stride - a.before
		from := max(0, (-first+a.dilation-1)/a.dilation) // the first tap inside
		to := min(a.k-1, (a.size-1-first)/a.dilation)    // the last one
		empty = empty || from > to || first > a.size-1   // there is none
		return int32(first + max(from, min(i%a.k, to))*a.dilation)
	}))
	if empty {
		try.Fail(errPaddingAlone)
	}
	return dense{at: list, stride: a.k}
}

var errPaddingAlone = errors.New("a window lies in the padding alone, so that it has no largest value")

// ones returns n weights of 1.
func (im *importer) ones(n int) bcnn.Weights {
	ones := im.build.NewFloats(n)
	try.Check(im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			ones[i] = 1
		}
	}))
	return bcnn.Weights{F32: ones}
}

// sum emits sums over windows, as a depthwise convolution with ones. The caller sets the view.
func (im *importer) sum(n *pb.Node, v *build.Value, win bcnn.Window) *build.Value {
	shape := pooled(v.Shape, win)
	try.Check(im.build.CheckShape(shape))
	size := try.Value(eval.Count([]int{v.Shape.C, win.KH, win.KW}))
	ones := im.ones(size)
	return im.build.Emit(n, "", bcnn.Conv2D{Window: win, Out: v.Shape.C, Groups: v.Shape.C, Weights: ones}, shape, v)
}

// minimum emits the minimum over windows, as a max-pool of the negated values.
func (im *importer) minimum(n *pb.Node, v *build.Value, win bcnn.Window) *build.Value {
	negate := bcnn.Affine{Scale: []float32{-1}}
	v = im.build.Emit(n, "/negative", negate, v.Shape, v)
	y := im.maximum(n, v, win)
	return im.build.Emit(n, "/minimum", negate, y.Shape, y)
}

// pooled returns the shape that a pool makes of an image.
func pooled(in bcnn.Shape, win bcnn.Window) bcnn.Shape {
	return bcnn.Shape{
		H: outputSize(in.H, win.Pad.Top+win.Pad.Bottom, win.KH, 1, win.StrideH),
		W: outputSize(in.W, win.Pad.Left+win.Pad.Right, win.KW, 1, win.StrideW),
		C: in.C,
	}
}

// poolWindow returns the window of a pool over an image, in the terms of memory if the image is
// turned there. With ceil_mode the last window may reach beyond the padding of the node, around.
func poolWindow(n *pb.Node, in bcnn.Shape, turned bool) (win bcnn.Window, around bcnn.Padding) {
	if turned {
		in.H, in.W = in.W, in.H
	}
	kernel := n.Sizes("kernel_shape", 2, 0)
	win = window(n, kernel, in.H, in.W)
	ceil := n.Bit("ceil_mode", 0)
	around = win.Pad
	if ceil != 0 {
		win.Pad.Bottom += ceilPad(in.H, win.Pad.Top, win.Pad.Bottom, win.DilationH*(win.KH-1)+1, win.StrideH)
		win.Pad.Right += ceilPad(in.W, win.Pad.Left, win.Pad.Right, win.DilationW*(win.KW-1)+1, win.StrideW)
	}
	if turned {
		win.KH, win.KW, win.StrideH, win.StrideW = win.KW, win.KH, win.StrideW, win.StrideH
		win.DilationH, win.DilationW = win.DilationW, win.DilationH
		for _, p := range []*bcnn.Padding{&win.Pad, &around} {
			p.Top, p.Left, p.Bottom, p.Right = p.Left, p.Top, p.Right, p.Bottom
		}
	}
	return win, around
}

// ceilPad returns the padding to add at the end so that ceil_mode counts a last, partial window. A
// window that would start in the padding does not count.
func ceilPad(in, begin, end, kernel, stride int) int {
	rest := in + begin + end - kernel
	if rest < 0 || rest%stride == 0 {
		return 0
	}
	last := (rest/stride + 1) * stride
	if last >= in+begin {
		return 0
	}
	return last - rest
}
