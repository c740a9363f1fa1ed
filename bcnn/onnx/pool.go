package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) maxPool(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	clip := v.Clip
	if clip != nil {
		v = v.With(v.Node)
		v.Clip = nil
	}
	if v, err = im.build.SettleSigns(v); err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.Padded(v); err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	turned, err := v.CheckPooled()
	if err != nil {
		return build.Operand{}, err
	}
	win, _, err := poolWindow(n, v.Shape, turned)
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.maximum(n, v, win)
	if err != nil {
		return build.Operand{}, err
	}
	out.Clip = clip // with which the maximum commutes
	out.View = pooledView(v, out.Shape, turned)
	return build.Operand{Value: out}, nil
}

// pooledView is the view on what a pool makes of an image.
func pooledView(v *build.Value, s bcnn.Shape, turned bool) view.View {
	h, w := view.Whole(view.H, s.H), view.Whole(view.W, s.W)
	if turned {
		h, w = w, h
	}
	return view.View{view.Batch, v.View[1], h, w}
}

// maximum emits a max-pool; the caller sets the view.
func (im *importer) maximum(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
	shape := pooled(v.Shape, win)
	if err := im.build.CheckShape(shape); err != nil {
		return nil, err
	}
	out := im.build.Emit(n, "", bcnn.MaxPool{Window: win}, shape, v)
	// The maximum commutes with a gain, which is positive.
	out.Signs, out.Levels, out.Gain, out.Offset = v.Signs, v.Levels, v.Gain, v.Offset
	return out, nil
}

// globalMaxPool imports GlobalMaxPool.
func (im *importer) globalMaxPool(n *pb.Node) (build.Operand, error) {
	v, err := im.imageOf(n)
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.maximum(n, v, tiles(v.Shape.H, v.Shape.W))
	if err != nil {
		return build.Operand{}, err
	}
	out.View = pooledView(v, out.Shape, false)
	return build.Operand{Value: out}, nil
}

// tiles returns windows that lie side by side.
func tiles(h, w int) bcnn.Window {
	return bcnn.Window{KH: h, KW: w, StrideH: h, StrideW: w, DilationH: 1, DilationW: 1}
}

// ones returns so many weights of 1.
func (im *importer) ones(n int) (bcnn.Weights, error) {
	ones, err := im.build.Floats(n)
	if err != nil {
		return bcnn.Weights{}, err
	}
	err = im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			ones[i] = 1
		}
	})
	return bcnn.Weights{F32: ones}, err
}

// overChannels is the sum or the mean over all channels, over which dimension dim runs:
// a convolution with ones, for a mean divided by their number.
func (im *importer) overChannels(n *pb.Node, v *build.Value, dim int) (*build.Value, error) {
	if n.OpType == "ReduceMax" || n.OpType == "ReduceMin" {
		return im.extreme(n, v, dim)
	}
	ones, err := im.ones(v.Shape.C)
	if err != nil {
		return nil, err
	}
	mean := n.OpType == "ReduceMean"
	suffix := ""
	if mean {
		suffix = "/sum"
	}
	shape := bcnn.Shape{H: v.Shape.H, W: v.Shape.W, C: 1}
	y := im.build.Emit(n, suffix, bcnn.Conv2D{Window: tiles(1, 1), Out: 1, Groups: 1, Weights: ones}, shape, v)
	if mean {
		divided, err := im.quotient(y, []float32{float32(v.Shape.C)})
		if err != nil {
			return nil, err
		}
		y = im.build.Emit(n, "", divided, shape, y)
	}
	y.View = slices.Clone(v.View)
	y.View[dim] = nil
	return y, nil
}

// extreme is the largest or the smallest value of the channels, over which dimension dim
// runs.
func (im *importer) extreme(n *pb.Node, v *build.Value, dim int) (*build.Value, error) {
	negate := bcnn.Affine{Scale: []float32{-1}}
	smallest := n.OpType == "ReduceMin"
	if smallest {
		v = im.build.Emit(n, "/negative", negate, v.Shape, v)
	}
	y, err := im.build.TopK(n, "", v, dim, bcnn.TopK{K: 1, Values: true})
	if err != nil {
		return nil, err
	}
	if smallest {
		y = im.build.Emit(n, "/minimum", negate, y.Shape, y)
	}
	y.View = slices.Clone(v.View)
	y.View[dim] = nil
	return y, nil
}

// sum emits sums over windows: a convolution of each channel with ones.
func (im *importer) sum(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
	shape := pooled(v.Shape, win)
	if err := im.build.CheckShape(shape); err != nil {
		return nil, err
	}
	size, err := eval.Count([]int{v.Shape.C, win.KH, win.KW})
	if err != nil {
		return nil, err
	}
	ones, err := im.ones(size)
	if err != nil {
		return nil, err
	}
	return im.build.Emit(n, "", bcnn.Conv2D{Window: win, Out: v.Shape.C, Groups: v.Shape.C, Weights: ones}, shape, v), nil
}

// minimum emits the minimum over windows, the maximum of what is negated.
func (im *importer) minimum(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
	negate := bcnn.Affine{Scale: []float32{-1}}
	v = im.build.Emit(n, "/negative", negate, v.Shape, v)
	y, err := im.maximum(n, v, win)
	if err != nil {
		return nil, err
	}
	return im.build.Emit(n, "/minimum", negate, y.Shape, y), nil
}

// reduceValue imports ReduceMean, ReduceSum, ReduceMax and ReduceMin over heights and
// widths: of images, or of the windows that a Reshape has made of them; or over channels.
func (im *importer) reduceValue(n *pb.Node, v *build.Value) (build.Operand, error) {
	over := map[string]func(*pb.Node, *build.Value, bcnn.Window) (*build.Value, error){
		"ReduceMax": im.maximum, "ReduceMin": im.minimum, "ReduceSum": im.sum,
		"ReduceMean": func(n *pb.Node, v *build.Value, win bcnn.Window) (*build.Value, error) {
			return im.mean(n, v, bcnn.AvgPool{Window: win})
		},
	}[n.OpType]
	if over == nil {
		return build.Operand{}, fmt.Errorf("%w on anything but constants", errUnsupported)
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	v, err := im.build.Settle(v)
	if err != nil {
		return build.Operand{}, err
	}
	keep, err := n.Int("keepdims", 1)
	if err != nil {
		return build.Operand{}, err
	}
	axes, _, err := im.axes(n, 1, len(v.View))
	if err != nil {
		return build.Operand{}, err
	}
	if len(axes) == 0 {
		return build.Operand{}, errors.New("without axes it would join the batch")
	}
	slices.Sort(axes)
	all := axes
	channels := slices.IndexFunc(axes, func(a int) bool {
		d := v.View[a]
		return len(d) > 0 && view.Only(d, view.C) && view.Product(d) == v.Shape.C
	})
	if channels >= 0 {
		channels = axes[channels]
		axes = slices.DeleteFunc(slices.Clone(axes), func(a int) bool { return a == channels })
	}
	size := map[view.Axis]int{view.H: 1, view.W: 1}
	for _, a := range axes {
		for _, atom := range v.View[a] {
			if size[atom.Axis] == 0 {
				return build.Operand{}, fmt.Errorf("%s over dimension %d, which is not a height, a width or the channels, is not supported", n.OpType, a)
			}
			size[atom.Axis] *= atom.Size
		}
	}
	// What is joined must be the inner part of its axis: windows side by side.
	out := make(view.View, len(v.View))
	for i, d := range v.View {
		for _, atom := range d {
			k := size[atom.Axis]
			if slices.Contains(axes, i) {
				if atom.Stride*atom.Size > k {
					return build.Operand{}, errors.New("the values that it joins are not windows of an image")
				}
				continue
			}
			if k > 0 {
				atom.Stride /= k
			}
			out[i] = append(out[i], atom)
		}
	}
	y := v
	if win := tiles(size[view.H], size[view.W]); channels < 0 || win.KH > 1 || win.KW > 1 {
		if y, err = over(n, v, win); err != nil {
			return build.Operand{}, err
		}
		y.View = out
	}
	if channels >= 0 {
		if y, err = im.overChannels(n, y, channels); err != nil {
			return build.Operand{}, err
		}
	}
	if keep == 0 {
		y.View = edit(y.View, all, false, nil)
	}
	return build.Operand{Value: y}, nil
}

// pooled returns the shape of what a pool makes of an image.
func pooled(in bcnn.Shape, win bcnn.Window) bcnn.Shape {
	return bcnn.Shape{
		H: outputSize(in.H, win.Pad.Top+win.Pad.Bottom, win.KH, 1, win.StrideH),
		W: outputSize(in.W, win.Pad.Left+win.Pad.Right, win.KW, 1, win.StrideW),
		C: in.C,
	}
}

// poolWindow returns the window of a pool over an image, which may be turned in memory.
// Its last positions may reach beyond the padding that the node asks for, which is around.
func poolWindow(n *pb.Node, in bcnn.Shape, turned bool) (win bcnn.Window, around bcnn.Padding, err error) {
	if turned {
		in.H, in.W = in.W, in.H
	}
	kernel, err := n.Sizes("kernel_shape", 2, 0)
	if err != nil {
		return win, around, err
	}
	if win, err = window(n, kernel, in.H, in.W); err != nil {
		return win, around, err
	}
	if win.DilationH != 1 || win.DilationW != 1 {
		return win, around, errors.New("pooling with dilation is not supported")
	}
	ceil, err := n.Int("ceil_mode", 0)
	if err != nil {
		return win, around, err
	}
	around = win.Pad
	if ceil != 0 {
		win.Pad.Bottom += ceilPad(in.H, win.Pad.Top, win.Pad.Bottom, win.KH, win.StrideH)
		win.Pad.Right += ceilPad(in.W, win.Pad.Left, win.Pad.Right, win.KW, win.StrideW)
	}
	if turned {
		win.KH, win.KW, win.StrideH, win.StrideW = win.KW, win.KH, win.StrideW, win.StrideH
		for _, p := range []*bcnn.Padding{&win.Pad, &around} {
			p.Top, p.Left, p.Bottom, p.Right = p.Left, p.Top, p.Right, p.Bottom
		}
	}
	return win, around, nil
}

// ceilPad returns the padding to add at the end so that a last, partial window
// counts. One that would start in the padding does not.
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
