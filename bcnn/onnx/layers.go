package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// handlers are the operators, by domain.
var handlers = map[string]map[string]func(*importer, *node) (result, error){}

func init() {
	onnx := map[string]func(*importer, *node) (result, error){
		"BatchNormalization": (*importer).batchNorm,
		"Cast":               (*importer).castNode,
		"Clip":               (*importer).clipNode,
		"Concat":             (*importer).concat,
		"Constant":           (*importer).constantNode,
		"ConstantOfShape":    (*importer).constantOfShape,
		"Conv":               (*importer).conv,
		"Dropout":            (*importer).identity,
		"Expand":             (*importer).expand,
		"Flatten":            (*importer).flatten,
		"Gather":             (*importer).gather,
		"Gemm":               (*importer).gemm,
		"HardSigmoid":        (*importer).hardSigmoid,
		"Identity":           (*importer).identity,
		"MatMul":             (*importer).matMul,
		"MaxPool":            (*importer).maxPool,
		"Pad":                (*importer).padNode,
		"Reshape":            (*importer).reshape,
		"Shape":              (*importer).shape,
		"Slice":              (*importer).slice,
		"Softmax":            (*importer).softmax,
		"Squeeze":            func(im *importer, n *node) (result, error) { return im.squeeze(n, false) },
		"Transpose":          (*importer).transpose,
		"Unsqueeze":          func(im *importer, n *node) (result, error) { return im.squeeze(n, true) },
		"Where":              (*importer).whereNode,
	}
	for op := range unaryOps {
		onnx[op] = (*importer).unaryNode
	}
	for op := range binaryOps {
		if logical(op) {
			onnx[op] = (*importer).compare
		} else {
			onnx[op] = (*importer).arithmetic
		}
	}
	delete(onnx, "BipolarQuant")
	qonnx := map[string]func(*importer, *node) (result, error){
		"BipolarQuant": (*importer).bipolarQuant,
		"IntQuant":     (*importer).quantNode,
		"Quant":        (*importer).quantNode,
	}
	handlers[""], handlers["ai.onnx"] = onnx, onnx
	for _, domain := range []string{"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"} {
		handlers[domain] = qonnx
	}
	handlers["bitcnn"] = map[string]func(*importer, *node) (result, error){"Binarize": (*importer).binarize}
}

// node imports a node.
func (im *importer) node(n *node) error {
	handler := handlers[n.domain][n.opType]
	if handler == nil {
		return errors.New("this operator is not supported")
	}
	if len(n.outputs) == 0 {
		return errors.New("it has no output")
	}
	r, err := handler(im, n)
	if err == nil && im.budget < 0 {
		err = errBudget
	}
	if err != nil {
		return err
	}
	im.folded[n.index] = r.constant != nil
	im.env[n.outputs[0]] = r
	return nil
}

// window reads the geometry of Conv and MaxPool for an image of h×w.
func (n *node) window(kernel []int, h, w int) (bcnn.Window, error) {
	strides, err := n.sizes("strides", 2, 1)
	if err != nil {
		return bcnn.Window{}, err
	}
	dilations, err := n.sizes("dilations", 2, 1)
	if err != nil {
		return bcnn.Window{}, err
	}
	pads, err := n.sizes("pads", 4, 0)
	if err != nil {
		return bcnn.Window{}, err
	}
	for _, v := range [][]int{kernel, strides, dilations} {
		if v[0] < 1 || v[1] < 1 || max(v[0], v[1]) > 1<<16 {
			return bcnn.Window{}, fmt.Errorf("kernel %v, strides %v, dilations %v", kernel, strides, dilations)
		}
	}
	auto, err := n.string("auto_pad", "NOTSET")
	if err != nil {
		return bcnn.Window{}, err
	}
	switch auto {
	case "NOTSET", "":
	case "VALID":
		pads = make([]int, 4)
	case "SAME_UPPER", "SAME_LOWER":
		for i, size := range []int{h, w} {
			out := (size + strides[i] - 1) / strides[i]
			total := max((out-1)*strides[i]+(kernel[i]-1)*dilations[i]+1-size, 0)
			pads[i], pads[i+2] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				pads[i], pads[i+2] = pads[i+2], pads[i]
			}
		}
	default:
		return bcnn.Window{}, fmt.Errorf("auto_pad %q", auto)
	}
	return bcnn.Window{
		KH: kernel[0], KW: kernel[1], StrideH: strides[0], StrideW: strides[1],
		DilationH: dilations[0], DilationW: dilations[1],
		Pad: bcnn.Padding{Top: pads[0], Left: pads[1], Bottom: pads[2], Right: pads[3]},
	}, nil
}

// outputSize returns the size of the result along one axis, 0 if the window
// does not fit.
func outputSize(in, pad, kernel, dilation, stride int) int {
	rest := in + pad - (dilation*(kernel-1) + 1)
	if rest < 0 {
		return 0
	}
	return rest/stride + 1
}

func (im *importer) conv(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.settleSigns(v); err != nil {
		return result{}, err
	}
	if err := v.real(); err != nil {
		return result{}, err
	}
	if err := v.image(); err != nil {
		return result{}, err
	}
	w, err := im.required(n, 1)
	if err != nil {
		return result{}, err
	}
	if len(w.dims) != 4 || w.typ != typeFloat {
		return result{}, fmt.Errorf("weights of %v %v, want four dimensions of FLOAT: only two-dimensional convolutions are supported", w.typ, w.dims)
	}
	groups, err := n.int("group", 1)
	if err != nil {
		return result{}, err
	}
	out, channels, kernel := w.dims[0], w.dims[1], w.dims[2:]
	if groups < 1 || groups > maxSize || out%int(groups) != 0 || int64(channels)*groups != int64(v.shape.C) || out == 0 {
		return result{}, fmt.Errorf("weights %v in %d groups for %d channels", w.dims, groups, v.shape.C)
	}
	if given, err := n.ints("kernel_shape"); err != nil {
		return result{}, err
	} else if given != nil && (len(given) != 2 || given[0] != int64(kernel[0]) || given[1] != int64(kernel[1])) {
		return result{}, fmt.Errorf("kernel_shape %v, but weights %v", given, w.dims)
	}
	h, wd := v.shape.H, v.shape.W
	var before pending
	if v.pad != nil {
		before = *v.pad
		h, wd = h+before.Top+before.Bottom, wd+before.Left+before.Right
	}
	window, err := n.window(kernel, h, wd)
	if err != nil {
		return result{}, err
	}
	if before.value != 0 && window.Pad != (bcnn.Padding{}) {
		return result{}, fmt.Errorf("padding with 0 around padding with %v of %v", before.value, before.node)
	}
	window.Pad = sumPadding(window.Pad, before.Padding)
	bias, err := im.bias(n, 2, out)
	if err != nil {
		return result{}, err
	}
	// [out][channel][ky][kx] becomes [out][ky][kx][channel in memory].
	taps := kernel[0] * kernel[1]
	rows, err := im.floats(w.len())
	if err != nil {
		return result{}, err
	}
	order := v.channels(v.view[1])
	if order != nil && groups > 1 {
		return result{}, errors.New("a grouped convolution of channels that a Transpose has mixed is not supported")
	}
	for o := range out {
		for c := range channels {
			to := c
			if order != nil {
				to = order[c]
			}
			for k := range taps {
				rows[(o*taps+k)*channels+to] = w.f32[(o*channels+c)*taps+k]
			}
		}
	}
	shape := bcnn.Shape{
		H: outputSize(v.shape.H, window.Pad.Top+window.Pad.Bottom, window.KH, window.DilationH, window.StrideH),
		W: outputSize(v.shape.W, window.Pad.Left+window.Pad.Right, window.KW, window.DilationW, window.StrideW),
		C: out,
	}
	if err := shapeFits(shape); err != nil {
		return result{}, err
	}
	r, err := im.weighted(n, v, rows, out, channels, bias, shape, func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: out, Groups: int(groups), PadValue: padValue, Weights: w, Bias: bias}
	})
	if err != nil {
		return result{}, err
	}
	r.view = nchw(shape)
	return result{value: r}, nil
}

func sumPadding(a, b bcnn.Padding) bcnn.Padding {
	return bcnn.Padding{Top: a.Top + b.Top, Left: a.Left + b.Left, Bottom: a.Bottom + b.Bottom, Right: a.Right + b.Right}
}

func shapeFits(s bcnn.Shape) error {
	if s.H < 1 || s.W < 1 {
		return errors.New("the window is larger than its padded input")
	}
	_, err := count([]int{s.H, s.W, s.C})
	return err
}

// floats allocates numbers for a layer.
func (im *importer) floats(n int) ([]float32, error) {
	if err := im.charge(4 * int64(n)); err != nil {
		return nil, err
	}
	return make([]float32, n), nil
}

// bias returns a vector of n values, or nil if the input is left out.
func (im *importer) bias(n *node, input, size int) ([]float32, error) {
	t, err := im.constant(n, input)
	if err != nil || t == nil {
		return nil, err
	}
	if t.typ != typeFloat || len(t.dims) != 1 || t.dims[0] != size {
		return nil, fmt.Errorf("input %d is a constant of %v %v, want %d FLOAT values", input, t.typ, t.dims, size)
	}
	return t.f32, im.charge(4 * int64(size))
}

// weighted emits a layer with weights, [out][…][rowLen]. Weights ±α of a filter
// become ±1 and an Affine layer behind.
func (im *importer) weighted(n *node, v *value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (*value, error) {
	packed, alpha, err := im.binaryWeights(rows, out, rowLen)
	if err != nil {
		return nil, err
	}
	gain := v.gain
	if gain == 0 {
		gain = 1
	}
	padValue := 0
	if v.pad != nil && v.pad.value != 0 {
		p := v.pad.value / gain
		if !v.signs || packed == nil || p != 1 && p != -1 {
			return nil, fmt.Errorf("padding with %v at %v needs binary weights and an input of ±%v", v.pad.value, v.pad.node, v.pad.value)
		}
		padValue = int(p)
	}
	in := v
	if v.pad != nil {
		in = v.with(v.node)
		in.pad = nil
	}
	if packed == nil {
		if in, err = im.settle(in); err != nil {
			return nil, err
		}
		return im.emit(n, "", build(bcnn.Weights{F32: rows}, bias, 0), shape, in), nil
	}
	w := bcnn.Weights{Bits: packed}
	if alpha == nil && gain == 1 {
		return im.emit(n, "", build(w, bias, padValue), shape, in), nil
	}
	y := im.emit(n, "", build(w, nil, padValue), shape, in)
	if alpha != nil && gain != 1 {
		y = im.emit(n, "/gain", bcnn.Affine{Scale: []float32{gain}}, shape, y)
	} else if alpha == nil {
		alpha = []float32{gain}
	}
	return im.emit(n, "/scale", bcnn.Affine{Scale: alpha, Bias: bias}, shape, y), nil
}

// binaryWeights packs weights that are ±α for one α > 0 per filter. packed is
// nil where there are others, alpha is nil where all α are 1.
func (im *importer) binaryWeights(rows []float32, out, rowLen int) (packed []uint64, alpha []float32, err error) {
	size := len(rows) / out
	if size == 0 {
		return nil, nil, errors.New("the weights are empty")
	}
	if alpha, err = im.floats(out); err != nil {
		return nil, nil, err
	}
	one, same := true, true
	for o := range out {
		filter := rows[o*size : (o+1)*size]
		a := float32(math.Abs(float64(filter[0])))
		for _, w := range filter {
			if w != a && w != -a || a == 0 || a-a != 0 {
				return nil, nil, nil
			}
		}
		alpha[o] = a
		one = one && a == 1
		same = same && a == alpha[0]
	}
	words := len(rows) / rowLen * bits.Words(rowLen)
	if err := im.charge(8 * int64(words)); err != nil {
		return nil, nil, err
	}
	packed = make([]uint64, words)
	bits.Pack(packed, rows, rowLen)
	switch {
	case one:
		alpha = nil
	case same:
		alpha = alpha[:1]
	}
	return packed, alpha, nil
}

// gemm imports alpha·A·B + beta·C with a computed A.
func (im *importer) gemm(n *node) (result, error) {
	transA, err := n.int("transA", 0)
	if err != nil {
		return result{}, err
	}
	transB, err := n.int("transB", 0)
	if err != nil {
		return result{}, err
	}
	alpha, err := n.float("alpha", 1)
	if err != nil {
		return result{}, err
	}
	beta, err := n.float("beta", 1)
	if err != nil {
		return result{}, err
	}
	if transA != 0 {
		return result{}, errors.New("transA would mix the images of a batch")
	}
	c, err := im.constant(n, 2)
	if err != nil {
		return result{}, err
	}
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if len(v.view) != 2 {
		return result{}, fmt.Errorf("its input has %d dimensions, want 2", len(v.view))
	}
	return im.dense(n, v, transB != 0, alpha, beta, c)
}

func (im *importer) matMul(n *node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	return im.dense(n, v, false, 1, 0, nil)
}

// dense emits a dense layer over all values of v.
func (im *importer) dense(n *node, v *value, transB bool, alpha, beta float32, c *tensor) (result, error) {
	v, err := im.movable(v)
	if err != nil {
		return result{}, err
	}
	if err := v.real(); err != nil {
		return result{}, err
	}
	w, err := im.required(n, 1)
	if err != nil {
		return result{}, err
	}
	if len(w.dims) != 2 || w.typ != typeFloat {
		return result{}, fmt.Errorf("weights of %v %v, want two dimensions of FLOAT", w.typ, w.dims)
	}
	k, out := w.dims[0], w.dims[1]
	if transB {
		k, out = out, k
	}
	last := v.view[len(v.view)-1]
	if len(v.view) < 2 || product(last) != k || k != v.shape.Values() || out == 0 {
		return result{}, fmt.Errorf("weights %v for a last dimension of %d out of %d values: only vectors can be multiplied",
			w.dims, product(last), v.shape.Values())
	}
	rows, err := im.floats(w.len())
	if err != nil {
		return result{}, err
	}
	if err := im.charge(8 * int64(k)); err != nil {
		return result{}, err
	}
	for i, to := range offsets(last, flatStride(v.shape)) {
		for o := range out {
			from := i*out + o
			if transB {
				from = o*k + i
			}
			rows[o*k+to] = w.f32[from] * alpha
		}
	}
	var bias []float32
	if c != nil && beta != 0 {
		if n := len(c.dims); c.typ != typeFloat || n > 2 || n == 2 && c.dims[0] != 1 ||
			n > 0 && c.dims[n-1] != 1 && c.dims[n-1] != out {
			return result{}, fmt.Errorf("a bias of %v %v, want %d FLOAT values", c.typ, c.dims, out)
		}
		if bias, err = im.floats(out); err != nil {
			return result{}, err
		}
		for o := range bias {
			bias[o] = c.f32[o%c.len()] * beta
		}
	}
	shape := bcnn.Shape{H: 1, W: 1, C: out}
	y, err := im.weighted(n, v, rows, out, k, bias, shape, func(w bcnn.Weights, bias []float32, _ int) bcnn.Op {
		return bcnn.Dense{Out: out, Weights: w, Bias: bias}
	})
	if err != nil {
		return result{}, err
	}
	y.view = append(view{}, v.view...)
	y.view[len(y.view)-1] = whole(axisC, out)
	return result{value: y}, nil
}
