package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// averagePool imports AveragePool.
func (im *importer) averagePool(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if err := v.CheckReal(); err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.Settle(v); err != nil {
		return build.Operand{}, err
	}
	turned, err := v.CheckPooled()
	if err != nil {
		return build.Operand{}, err
	}
	win, around, err := poolWindow(n, v.Shape, turned)
	if err != nil {
		return build.Operand{}, err
	}
	if win.DilationH != 1 || win.DilationW != 1 {
		if win.Pad != (bcnn.Padding{}) {
			return build.Operand{}, errors.New("an average over dilated windows with padding is not supported")
		}
		if v, win, err = im.apart(n, v, win); err != nil {
			return build.Operand{}, err
		}
	}
	count, err := n.Int("count_include_pad", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if around == (bcnn.Padding{}) {
		count = 0 // there is nothing to count
	}
	if count != 0 && win.Pad != around {
		return build.Operand{}, errors.New("ceil_mode with count_include_pad is not supported where a window reaches beyond the padding: what lies there does not count")
	}
	return im.average(n, v, bcnn.AvgPool{Window: win, CountPadding: count != 0 && win.Pad != (bcnn.Padding{})}, turned)
}

// globalAveragePool imports GlobalAveragePool.
func (im *importer) globalAveragePool(n *pb.Node) (build.Operand, error) {
	v, err := im.imageOf(n)
	if err != nil {
		return build.Operand{}, err
	}
	return im.average(n, v, bcnn.AvgPool{Window: tiles(v.Shape.H, v.Shape.W)}, false)
}

// average emits a mean over windows of an image.
func (im *importer) average(n *pb.Node, v *build.Value, op bcnn.AvgPool, turned bool) (build.Operand, error) {
	out, err := im.mean(n, v, op)
	if err != nil {
		return build.Operand{}, err
	}
	out.View = pooledView(v, out.Shape, turned)
	return build.Operand{Value: out}, nil
}

// mean emits a mean over windows; the caller sets the view.
func (im *importer) mean(n *pb.Node, v *build.Value, op bcnn.AvgPool) (*build.Value, error) {
	shape := pooled(v.Shape, op.Window)
	if err := im.build.CheckShape(shape); err != nil {
		return nil, err
	}
	return im.build.Emit(n, "", op, shape, v), nil
}

// imageOf returns the first input of a node, which must be a batch of real images
// with nothing pending.
func (im *importer) imageOf(n *pb.Node) (*build.Value, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return nil, err
	}
	return im.realImage(v)
}

// realImage is imageOf for a value.
func (im *importer) realImage(v *build.Value) (*build.Value, error) {
	if err := v.CheckReal(); err != nil {
		return nil, err
	}
	v, err := im.build.Settle(v)
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
