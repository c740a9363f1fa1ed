package onnx

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

// A transposed convolution of stride s makes s rows and columns of each of the image.
// With the padding cut off at the end, row y of the result is y = s·q + r, and the taps
// that reach it lie s apart: for each r it is a convolution of stride 1 with some of the
// taps. All of them together are one, whose output channels are the pixels of a block of
// s×s: so weights of ±1 stay what they are, and so do the ±1 of the input.

// phases are the taps of one dimension.
type phases struct {
	stride, dilation, kernel int
	window                   int // taps of a phase
	first                    int // q of the first row of the convolution
	before, after            int // padding of the convolution
	positions                []int32
}

// phasesOf divides the taps for an image of a size of which so many rows are wanted,
// from row cut of the whole result on.
func phasesOf(size, kernel, stride, dilation, cut, wanted int) phases {
	p := phases{stride: stride, dilation: dilation, kernel: kernel, window: (kernel-1)*dilation/stride + 1}
	p.before = max(0, p.window-1-cut/stride)
	p.first = p.window - 1 - p.before
	p.after = max(0, num.CeilDiv(cut+wanted, stride)-size)
	p.positions = make([]int32, wanted)
	for i := range p.positions {
		p.positions[i] = int32(cut + i - p.first*stride)
	}
	return p
}

// tap returns which tap of the kernel is number t of a phase, −1 for none.
func (p *phases) tap(phase, t int) int {
	at := (p.window-1-t)*p.stride + phase
	if k := at / p.dilation; at%p.dilation == 0 && k < p.kernel {
		return k
	}
	return -1
}

// transposedWindow reads the geometry of ConvTranspose: what is cut off at the beginning
// of height and width, and what is left.
func transposedWindow(n *pb.Node, kernel []int, in [2]int) (strides, dilations, cut, wanted []int, err error) {
	if strides, err = n.Sizes("strides", 2, 1); err != nil {
		return nil, nil, nil, nil, err
	}
	if dilations, err = n.Sizes("dilations", 2, 1); err != nil {
		return nil, nil, nil, nil, err
	}
	pads, err := n.Sizes("pads", 4, 0)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	more, err := n.Sizes("output_padding", 2, 0)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	var sizes []int
	if n.Has("output_shape") {
		if sizes, err = n.Sizes("output_shape", 2, 0); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	auto, err := n.Text("auto_pad", "NOTSET")
	if err != nil {
		return nil, nil, nil, nil, err
	}
	cut, wanted = make([]int, 2), make([]int, 2)
	for i, size := range in {
		if min(kernel[i], strides[i], dilations[i]) < 1 || max(kernel[i], strides[i], dilations[i]) > 1<<16 {
			return nil, nil, nil, nil, fmt.Errorf("kernel %v, strides %v, dilations %v", kernel, strides, dilations)
		}
		whole := strides[i]*(size-1) + (kernel[i]-1)*dilations[i] + 1 + more[i]
		if whole > pb.MaxSize {
			return nil, nil, nil, nil, fmt.Errorf("%d rows or columns", whole)
		}
		cut[i], wanted[i] = pads[i], whole-pads[i]-pads[2+i]
		switch {
		case auto == "VALID":
			cut[i], wanted[i] = 0, whole
		case auto == "SAME_UPPER" || auto == "SAME_LOWER" || sizes != nil:
			if wanted[i] = size * strides[i]; sizes != nil {
				wanted[i] = sizes[i]
			}
			total := max(whole-wanted[i], 0)
			if cut[i] = total - total/2; auto == "SAME_UPPER" {
				cut[i] = total / 2
			}
		case auto != "NOTSET" && auto != "":
			return nil, nil, nil, nil, fmt.Errorf("auto_pad %s", text.Quote(auto))
		}
		if wanted[i] < 1 {
			return nil, nil, nil, nil, fmt.Errorf("pads %v leave nothing", pads)
		}
	}
	return strides, dilations, cut, wanted, nil
}

// convTranspose imports ConvTranspose.
func (im *importer) convTranspose(n *pb.Node) (build.Operand, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if v, err = im.build.SettleSigns(v); err == nil {
		v, err = im.build.Padded(v)
	}
	if err == nil {
		err = v.CheckReal()
	}
	if err == nil {
		err = v.CheckImage()
	}
	if err == nil {
		v, err = im.build.Ordered(n, v)
	}
	if err != nil {
		return build.Operand{}, err
	}
	w, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	if len(w.Dims) != 4 || w.Type != pb.Float || w.Len() == 0 {
		return build.Operand{}, fmt.Errorf("weights of %v %v, want four dimensions of FLOAT", w.Type, w.Dims)
	}
	g, err := n.Int("group", 1)
	if err != nil {
		return build.Operand{}, err
	}
	if g < 1 || g > pb.MaxSize || w.Dims[0] != v.Shape.C || v.Shape.C%int(g) != 0 {
		return build.Operand{}, fmt.Errorf("weights %v in %d groups for %d channels", w.Dims, g, v.Shape.C)
	}
	groups, each, kernel := int(g), w.Dims[1], w.Dims[2:]
	strides, dilations, cut, wanted, err := transposedWindow(n, kernel, [2]int{v.Shape.H, v.Shape.W})
	if err != nil {
		return build.Operand{}, err
	}
	bias, err := im.bias(n, 2, groups*each)
	if err != nil {
		return build.Operand{}, err
	}
	if err := im.build.CheckShape(bcnn.Shape{H: wanted[0], W: wanted[1], C: groups * each}); err != nil {
		return build.Operand{}, err
	}
	if err := im.budget.Charge(8 * int64(wanted[0]+wanted[1])); err != nil {
		return build.Operand{}, err
	}
	y := phasesOf(v.Shape.H, kernel[0], strides[0], dilations[0], cut[0], wanted[0])
	x := phasesOf(v.Shape.W, kernel[1], strides[1], dilations[1], cut[1], wanted[1])
	blocks := y.stride * x.stride
	win := bcnn.Window{
		KH: y.window, KW: x.window, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: y.before, Left: x.before, Bottom: y.after, Right: x.after},
	}
	shape := bcnn.Shape{
		H: outputSize(v.Shape.H, y.before+y.after, y.window, 1, 1), W: outputSize(v.Shape.W, x.before+x.after, x.window, 1, 1),
		C: num.Product(groups, blocks, each),
	}
	if err := im.build.CheckShape(shape); err != nil {
		return build.Operand{}, err
	}
	rows, biases, err := im.transposedWeights(w, groups, &y, &x, bias)
	if err != nil {
		return build.Operand{}, err
	}
	out, err := im.build.Weighted(n, v, rows, shape.C, v.Shape.C/groups, biases, shape, win.Pad != (bcnn.Padding{}), func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op {
		return bcnn.Conv2D{Window: win, Out: shape.C, Groups: groups, PadValue: padValue, Weights: w, Bias: bias}
	})
	if err != nil {
		return build.Operand{}, err
	}
	out.View = view.NCHW(shape)
	if groups > 1 && blocks > 1 { // the groups of a pixel side by side
		index, err := budget.List(im.budget, shape.C, func(i int) int {
			b, o := i/(groups*each), i%(groups*each)
			return (o/each*blocks+b)*each + o%each
		})
		if err != nil {
			return build.Operand{}, err
		}
		if out, err = im.build.Pick(n, "/order", out, 1, index); err != nil {
			return build.Operand{}, err
		}
	}
	if blocks == 1 && first(y.positions, shape.H) && first(x.positions, shape.W) {
		return build.Operand{Value: out}, nil
	}
	out, err = im.build.Pixels(n, "/pixels", out, bcnn.Pixels{Rows: y.positions, Cols: x.positions, BlockH: y.stride, BlockW: x.stride})
	return build.Operand{Value: out}, err
}

// first reports whether positions are all of so many, in order.
func first(positions []int32, n int) bool {
	return len(positions) == n && positions[0] == 0 && slices.IsSorted(positions)
}

// transposedWeights puts weights [channel][out][ky][kx] in the order
// [group][phase][out][tap][channel of the group]; taps that a phase does not have are 0.
func (im *importer) transposedWeights(w *eval.Tensor, groups int, y, x *phases, bias []float32) (rows, biases []float32, err error) {
	channels, each := w.Dims[0]/groups, w.Dims[1]
	taps, blocks := num.Product(y.window, x.window), num.Product(y.stride, x.stride)
	size := num.Product(groups, blocks, each, taps, channels)
	if _, err := eval.Count([]int{groups * each, blocks, taps, channels}); err != nil {
		return nil, nil, err
	}
	if rows, err = im.build.Floats(size); err != nil {
		return nil, nil, err
	}
	if bias != nil {
		if biases, err = im.build.Floats(groups * blocks * each); err != nil {
			return nil, nil, err
		}
	}
	area := y.kernel * x.kernel
	for o := range groups * blocks * each {
		group, block, m := o/(blocks*each), o/each%blocks, o%each
		if bias != nil {
			biases[o] = bias[group*each+m]
		}
		for t := range taps {
			if err := im.budget.Charge(4 * int64(channels)); err != nil {
				return nil, nil, err
			}
			ky, kx := y.tap(block/x.stride, t/x.window), x.tap(block%x.stride, t%x.window)
			if ky < 0 || kx < 0 {
				continue
			}
			to := rows[(o*taps+t)*channels:][:channels]
			for c := range to {
				to[c] = w.F32[((group*channels+c)*each+m)*area+ky*x.kernel+kx]
			}
		}
	}
	return rows, biases, nil
}
