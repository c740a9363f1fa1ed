package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

func (im *importer) averagePool(n *pb.Node) build.Operand {
	v := im.value(n, 0)
	try.Check(v.CheckReal())
	v = im.build.Settle(v)
	turned := try.Value(v.CheckPooled())
	win, around := poolWindow(n, v.Shape, turned)
	if win.DilationH != 1 || win.DilationW != 1 {
		if win.Pad != (bcnn.Padding{}) {
			try.Failf("an average over dilated windows with padding is not supported")
		}
		v, win = im.undilate(n, v, win)
	}
	count := n.Bit("count_include_pad", 0)
	if around == (bcnn.Padding{}) {
		count = 0 // there is nothing to count
	}
	if count != 0 && win.Pad != around { // values beyond the padding do not count
		rows := im.placed(around.Top, v.Shape.H, around.Bottom)
		cols := im.placed(around.Left, v.Shape.W, around.Right)
		v = im.build.Pixels(n, "/padding", v, bcnn.Pixels{Rows: rows, Cols: cols})
		win.Pad = bcnn.Padding{Bottom: win.Pad.Bottom - around.Bottom, Right: win.Pad.Right - around.Right}
		count = 0
	}
	return im.average(n, v, bcnn.AvgPool{Window: win, CountPadding: count != 0 && win.Pad != (bcnn.Padding{})}, turned)
}

// placed is padded for rows or columns of pixels.
func (im *importer) placed(begin, n, end int) []int32 {
	at := im.padded(begin, n, end)
	return try.Value(budget.List(im.budget, len(at), func(i int) int32 { return int32(at[i]) }))
}

func (im *importer) globalAveragePool(n *pb.Node) build.Operand {
	v := im.imageOf(n)
	return im.average(n, v, bcnn.AvgPool{Window: tiles(v.Shape.H, v.Shape.W)}, false)
}

// average emits a mean over windows of an image, with the view of a pool.
func (im *importer) average(n *pb.Node, v *build.Value, op bcnn.AvgPool, turned bool) build.Operand {
	out := im.mean(n, v, op)
	out.View = pooledView(v, out.Shape, turned)
	return build.Operand{Value: out}
}

// mean emits a mean over windows. The caller sets the view.
func (im *importer) mean(n *pb.Node, v *build.Value, op bcnn.AvgPool) *build.Value {
	shape := pooled(v.Shape, op.Window)
	try.Check(im.build.CheckShape(shape))
	return im.build.Emit(n, "", op, shape, v)
}

// imageOf returns the first input of a node, settled, which must be a batch of real images.
func (im *importer) imageOf(n *pb.Node) *build.Value {
	v := im.value(n, 0)
	return im.realImage(v)
}

// realImage is imageOf for any value.
func (im *importer) realImage(v *build.Value) *build.Value {
	try.Check(v.CheckReal())
	v = im.build.Settle(v)
	try.Check(v.CheckImage())
	return v
}

// prelu imports PRelu, with one slope or one per channel.
func (im *importer) prelu(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	slope := im.required(n, 1)
	v, list := im.build.Broadcast(v, slope, n)
	return build.Operand{Value: im.build.Emit(n, "", bcnn.PReLU{Slope: list}, v.Shape, v)}
}

func (im *importer) leakyRelu(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	alpha := n.Float("alpha", 0.01)
	return build.Operand{Value: im.build.Emit(n, "", bcnn.PReLU{Slope: []float32{alpha}}, v.Shape, v)}
}
