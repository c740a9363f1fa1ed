package build

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Windows are pending windows over an image (im2col, F.unfold of PyTorch), as pixels: row i·Rows.N
// + j of the value is row j·Rows.Stride + i·Rows.Dilation of the image, and columns likewise. A
// product with weights of a whole window is a convolution of the image; anything else that reads
// the value makes pixels of it.
type Windows struct {
	Of         *Value // settled, seen as NCHW
	Rows, Cols Taps
}

// Taps is how N windows of a number of taps lie along an axis.
type Taps struct{ Taps, N, Stride, Dilation int }

// Unit returns windows of one pixel along an axis.
func Unit(size int) Taps { return Taps{Taps: 1, N: size, Stride: 1, Dilation: 1} }

// Windows returns windows over an image, seen as batch, channels, rows and columns.
func (b *Builder) Windows(n *pb.Node, v *Value, rows, cols Taps) *Value {
	shape := bcnn.Shape{H: rows.Taps * rows.N, W: cols.Taps * cols.N, C: v.Shape.C}
	try.Check(b.CheckShape(shape))
	out := &Value{Type: v.Type, Node: n, Layer: v.Layer, Shape: shape, Windows: &Windows{v, rows, cols}}
	out.View = view.NCHW(shape)
	out.View[1] = v.View[1]
	return out
}

// spread settles windows: it copies their pixels.
func (b *Builder) spread(v *Value) *Value {
	w := v.Windows
	places := func(t Taps) []int32 {
		list := b.indices(t.Taps * t.N)
		for k := range list {
			list[k] = int32(k%t.N*t.Stride + k/t.N*t.Dilation)
		}
		return list
	}
	rows := places(w.Rows)
	cols := places(w.Cols)
	out := b.Pixels(v.Node, "", w.Of, bcnn.Pixels{Rows: rows, Cols: cols})
	out.View = slices.Clone(v.View)
	v.settled = out
	return out
}
