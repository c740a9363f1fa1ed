package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

func (p *pending) error() error {
	return fmt.Errorf("%v must stand right before a Conv", p.node)
}

// padNode imports Pad; the window behind takes it in.
func (im *importer) padNode(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.settleSigns(v); err != nil {
		return result{}, err
	}
	mode, err := n.string("mode", "constant")
	if err != nil {
		return result{}, err
	}
	if mode != "constant" {
		return result{}, fmt.Errorf("mode %q is not supported, want constant", mode)
	}
	pads, err := n.ints("pads")
	if err != nil {
		return result{}, err
	}
	if pads == nil {
		t, err := im.required(n, 1)
		if err != nil {
			return result{}, err
		}
		if pads, err = t.integers(); err != nil {
			return result{}, err
		}
	}
	fill, err := n.float("value", 0)
	if err != nil {
		return result{}, err
	}
	if t, err := im.constant(n, 2); err != nil {
		return result{}, err
	} else if t != nil {
		if t.len() != 1 || t.typ != v.typ {
			return result{}, fmt.Errorf("its value is a constant of %v %v, want one of %v", t.typ, t.dims, v.typ)
		}
		fill = float32(t.at(0))
	}
	axes, ok, err := im.axes(n, 3, len(v.view))
	if err != nil {
		return result{}, err
	}
	if !ok {
		for i := range v.view {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		return result{}, fmt.Errorf("%d pads for %d dimensions", len(pads), len(axes))
	}
	p := pending{value: fill, node: n}
	for i, a := range axes {
		begin, end := pads[i], pads[len(axes)+i]
		if begin < 0 || end < 0 || begin > maxSize || end > maxSize {
			return result{}, fmt.Errorf("pads %v", pads)
		}
		switch x := v.axisOf(a); {
		case begin == 0 && end == 0:
		case x == axisH:
			p.Top, p.Bottom = int(begin), int(end)
		case x == axisW:
			p.Left, p.Right = int(begin), int(end)
		default:
			return result{}, fmt.Errorf("padding of dimension %d, which is not the height or width of an image, is not supported", a)
		}
	}
	out := v.with(n)
	if p.Padding == (bcnn.Padding{}) {
		return result{value: out}, nil
	}
	if v.pad != nil {
		if v.pad.value != fill {
			return result{}, fmt.Errorf("padding with %v around padding with %v", fill, v.pad.value)
		}
		p.Padding = sumPadding(p.Padding, v.pad.Padding)
	}
	// Twice maxSize still fits an int of 32 bits; more does not fit any window.
	if max(p.Top, p.Bottom, p.Left, p.Right) > maxSize {
		return result{}, fmt.Errorf("pads %v", pads)
	}
	out.pad = &p
	return result{value: out}, nil
}

func (im *importer) maxPool(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.settleSigns(v); err != nil {
		return result{}, err
	}
	if v.pad != nil {
		return result{}, v.pad.error()
	}
	if err := v.real(); err != nil {
		return result{}, err
	}
	if err := v.image(); err != nil {
		return result{}, err
	}
	kernel, err := n.sizes("kernel_shape", 2, 0)
	if err != nil {
		return result{}, err
	}
	window, err := n.window(kernel, v.shape.H, v.shape.W)
	if err != nil {
		return result{}, err
	}
	if window.DilationH != 1 || window.DilationW != 1 {
		return result{}, errors.New("max-pooling with dilation is not supported")
	}
	ceil, err := n.int("ceil_mode", 0)
	if err != nil {
		return result{}, err
	}
	if ceil != 0 {
		window.Pad.Bottom += ceilPad(v.shape.H, window.Pad.Top, window.Pad.Bottom, window.KH, window.StrideH)
		window.Pad.Right += ceilPad(v.shape.W, window.Pad.Left, window.Pad.Right, window.KW, window.StrideW)
	}
	shape := bcnn.Shape{
		H: outputSize(v.shape.H, window.Pad.Top+window.Pad.Bottom, window.KH, 1, window.StrideH),
		W: outputSize(v.shape.W, window.Pad.Left+window.Pad.Right, window.KW, 1, window.StrideW),
		C: v.shape.C,
	}
	if err := shapeFits(shape); err != nil {
		return result{}, err
	}
	out := im.emit(n, "", bcnn.MaxPool{Window: window}, shape, v)
	out.view = view{batchAtom, v.view[1], whole(axisH, shape.H), whole(axisW, shape.W)}
	// The maximum commutes with a gain, which is positive.
	out.signs, out.gain = v.signs, v.gain
	return result{value: out}, nil
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

func (im *importer) batchNorm(n *node) (result, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return result{}, err
	}
	for _, flag := range []struct {
		name    string
		allowed int64
	}{{"training_mode", 0}, {"spatial", 1}} {
		if set, err := n.int(flag.name, flag.allowed); err != nil {
			return result{}, err
		} else if set != flag.allowed {
			return result{}, fmt.Errorf("%s %d is not supported", flag.name, set)
		}
	}
	epsilon, err := n.float("epsilon", 1e-5)
	if err != nil {
		return result{}, err
	}
	if len(v.view) < 2 || !isBatch(v.view[0]) {
		return result{}, errors.New("its input does not have the dimensions batch and channels first")
	}
	if !only(v.view[1], axisC) && len(v.view) == 2 {
		v = im.flattened(v, n)
	}
	if !only(v.view[1], axisC) || product(v.view[1]) != v.shape.C {
		return result{}, errors.New("its second dimension is not that of the channels in memory")
	}
	lists := make([][]float32, 4)
	for i := range lists {
		if lists[i], err = im.bias(n, i+1, v.shape.C); err != nil {
			return result{}, err
		}
		if lists[i] == nil {
			return result{}, fmt.Errorf("input %d is missing", i+1)
		}
	}
	if order := v.channels(v.view[1]); order != nil {
		for i, from := range lists {
			if lists[i], err = im.floats(len(from)); err != nil {
				return result{}, err
			}
			for k, c := range order {
				lists[i][c] = from[k]
			}
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return result{value: im.emit(n, "", op, v.shape, v)}, nil
}

// hardSigmoid is Clip(alpha·x + beta, 0, 1).
func (im *importer) hardSigmoid(n *node) (result, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return result{}, err
	}
	alpha, err := n.float("alpha", 0.2)
	if err != nil {
		return result{}, err
	}
	beta, err := n.float("beta", 0.5)
	if err != nil {
		return result{}, err
	}
	v = im.emit(n, "", bcnn.Affine{Scale: []float32{alpha}, Bias: []float32{beta}}, v.shape, v)
	return im.clipValue(n, v, 0, 1)
}

func (im *importer) softmax(n *node) (result, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return result{}, err
	}
	fallback := int64(-1)
	if im.model.opset < 13 {
		fallback = 1
	}
	a, err := n.int("axis", fallback)
	if err != nil {
		return result{}, err
	}
	axis, err := axisIndex(a, len(v.view))
	if err != nil {
		return result{}, err
	}
	if product(v.view[axis]) != v.shape.Values() {
		return result{}, fmt.Errorf("it runs over %d of %d values: only the softmax of a vector is supported",
			product(v.view[axis]), v.shape.Values())
	}
	if v, err = im.vector(v, n); err != nil {
		return result{}, err
	}
	return result{value: im.emit(n, "", bcnn.Softmax{}, v.shape, v)}, nil
}

// binarize imports the operator of domain bitcnn: bytes of the graph's input to
// ±1, see bcnn.Binarize.
func (im *importer) binarize(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v.layer != bcnn.NetworkInput || im.net.Input.DType != bcnn.Uint8 {
		return result{}, errors.New("it must read the graph's input, as bytes")
	}
	if v.pad != nil || v.clip != nil || v.step != nil {
		return result{}, errors.New("it must read the graph's input as it is")
	}
	if err := v.image(); err != nil {
		return result{}, err
	}
	scheme, err := n.string("scheme", "")
	if err != nil {
		return result{}, err
	}
	list, err := n.ints("thresholds")
	if err != nil {
		return result{}, err
	}
	op := bcnn.Binarize{Scheme: bcnn.Scheme(scheme)}
	for _, t := range list {
		if t < math.MinInt32 || t > math.MaxInt32 {
			return result{}, fmt.Errorf("threshold %d", t)
		}
		op.Thresholds = append(op.Thresholds, int32(t))
	}
	shape := v.shape
	switch op.Scheme {
	case bcnn.SchemeGrey:
		shape.C = 1
	case bcnn.SchemeLBP:
		shape.C = 3
	}
	if !v.view.equal(nchw(v.shape)) && shape == v.shape {
		return result{}, errors.New("a Transpose before it is not supported")
	}
	out := im.emit(n, "", op, shape, v)
	out.view, out.signs = nchw(shape), true
	return result{value: out}, nil
}
