package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// averagePool imports AveragePool.
func (im *importer) averagePool(n *pb.Node) (build.Operand, error) {
	v, err := im.imageOf(n)
	if err != nil {
		return build.Operand{}, err
	}
	win, partial, err := poolWindow(n, v.Shape)
	if err != nil {
		return build.Operand{}, err
	}
	count, err := n.Int("count_include_pad", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if count != 0 && partial {
		return build.Operand{}, errors.New("ceil_mode with count_include_pad is not supported where a window reaches beyond the padding: what lies there does not count")
	}
	return im.average(n, v, bcnn.AvgPool{Window: win, CountPadding: count != 0 && win.Pad != (bcnn.Padding{})})
}

// globalAveragePool imports GlobalAveragePool.
func (im *importer) globalAveragePool(n *pb.Node) (build.Operand, error) {
	v, err := im.imageOf(n)
	if err != nil {
		return build.Operand{}, err
	}
	win := bcnn.Window{KH: v.Shape.H, KW: v.Shape.W, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	return im.average(n, v, bcnn.AvgPool{Window: win})
}

func (im *importer) average(n *pb.Node, v *build.Value, op bcnn.AvgPool) (build.Operand, error) {
	shape := pooled(v.Shape, op.Window)
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	out := im.build.Emit(n, "", op, shape, v)
	out.View = view.View{view.Batch, v.View[1], view.Whole(view.H, shape.H), view.Whole(view.W, shape.W)}
	return build.Operand{Value: out}, nil
}

// imageOf returns the first input of a node, which must be a batch of real images
// with nothing pending.
func (im *importer) imageOf(n *pb.Node) (*build.Value, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return nil, err
	}
	return v, v.CheckImage()
}

// prelu imports PRelu, whose slopes are one for all values or one per channel.
func (im *importer) prelu(n *pb.Node) (build.Operand, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	slope, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	v, list, err := im.build.Broadcast(v, slope, n)
	if err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Value: im.build.Emit(n, "", bcnn.PReLU{Slope: list}, v.Shape, v)}, nil
}

// leakyRelu imports LeakyRelu.
func (im *importer) leakyRelu(n *pb.Node) (build.Operand, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	alpha, err := n.Float("alpha", 0.01)
	if err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Value: im.build.Emit(n, "", bcnn.PReLU{Slope: []float32{alpha}}, v.Shape, v)}, nil
}
