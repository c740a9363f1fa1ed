package bmxnet

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Layers of BMXNet 2 are made of operators of MXNet, which make their weights as well:
// det_sign(w), and for scaled ones the mean of |w| for each filter. What reads weights
// alone is computed here.

// constants are the operators that may read weights.
var constants = map[string]func(*importer, *node, array) array{
	"det_sign": constantSign,
	"abs":      constantAbs,
	"mean":     constantMean,
	"transpose": func(_ *importer, n *node, a array) array {
		return turned(n, a)
	},
	"BlockGrad": func(_ *importer, _ *node, a array) array { return a },
}

// constant computes a node that reads weights alone; ok is false for other nodes.
func (im *importer) constant(n *node) (a array, ok bool) {
	f, ok := constants[n.op]
	if !ok || len(n.inputs) != 1 || n.inputs[0][1] != 0 {
		return a, false
	}
	from := &im.nodes[n.inputs[0][0]]
	if a, ok = im.known(from); !ok {
		return a, false
	}
	a = f(im, n, a)
	return a, true
}

// known returns weights, or what has been computed of them.
func (im *importer) known(n *node) (array, bool) {
	if n.op == "null" {
		a, ok := im.params[n.name]
		return a, ok
	}
	a, ok := im.folded[n.index]
	return a, ok
}

// each returns a function of every value.
func (im *importer) each(a array, f func(float32) float32) array {
	values := try.Value(a.floats(im.budget))
	for i, v := range values { // charged by floats
		values[i] = f(v)
	}
	return im.floatArray(a.dims, values)
}

// floatArray makes an array of values.
func (im *importer) floatArray(dims []int, values []float32) array {
	try.Check(im.budget.Charge(8 * int64(len(values))))
	a := array{dims: dims, dtype: float32s, data: make([]byte, 0, 4*len(values))}
	for _, v := range values {
		a.data = binary.LittleEndian.AppendUint32(a.data, math.Float32bits(v))
	}
	return a
}

func constantSign(im *importer, _ *node, a array) array {
	a = im.each(a, func(v float32) float32 {
		if v < 0 {
			return -1
		}
		return 1
	})
	a.signs = true
	return a
}

func constantAbs(im *importer, _ *node, a array) array {
	return im.each(a, func(v float32) float32 { return max(v, -v) })
}

// constantMean is the mean of each filter.
func constantMean(im *importer, n *node, a array) array {
	at := n.attributes()
	axis := at.list("axis", -maxDims, maxDims)
	if !slices.Equal(axis, []int{0}) || !at.flag("exclude", false) || !at.flag("keepdims", false) {
		try.Failf("a mean of weights is supported only with axis=0, exclude=True and keepdims=True")
	}
	values := try.Value(a.floats(im.budget))
	if len(a.dims) == 0 || len(values) == 0 {
		try.Failf("a mean of no values is undefined")
	}
	dims, each := make([]int, len(a.dims)), len(values)/a.dims[0]
	for i := range dims {
		dims[i] = 1
	}
	dims[0] = a.dims[0]
	means := make([]float32, dims[0])
	for o := range means {
		sum := 0.0
		for _, v := range values[o*each:][:each] { // charged by floats
			sum += float64(v)
		}
		means[o] = float32(sum / float64(each))
	}
	return im.floatArray(dims, means)
}

// turned changes the order of axes of which at most one is longer than 1.
func turned(n *node, a array) array {
	axes := n.attributes().list("axes", 0, maxDims-1)
	longer := 0
	for _, d := range a.dims {
		if d != 1 {
			longer++
		}
	}
	if longer > 1 || len(axes) != len(a.dims) {
		try.Failf("a transpose of weights of shape %v is not supported", a.dims)
	}
	dims := make([]int, len(axes))
	for i, axis := range axes {
		if axis >= len(a.dims) || slices.Contains(axes[:i], axis) {
			try.Failf("axes is %s, want each of the %d dimensions once", text.Quote(n.attrs["axes"]), len(a.dims))
		}
		dims[i] = a.dims[axis]
	}
	a.dims = dims
	return a
}

// withConstant imports a sum, difference or product of a tensor and of weights: one, or
// one for each channel. ok is false where both are tensors.
func (im *importer) withConstant(n *node) (v value, ok bool) {
	if len(n.inputs) != 2 {
		return v, false
	}
	k := 1
	a, ok := im.known(&im.nodes[n.inputs[1][0]])
	if !ok {
		k = 0
		if a, ok = im.known(&im.nodes[n.inputs[0][0]]); !ok {
			return v, false
		}
	}
	v = im.operand(n, 1-k)
	v = im.plain(n, v)
	values := im.perChannel(a, v)
	var op bcnn.Affine
	switch lowerCase(n.op) {
	case "elemwise_mul", "broadcast_mul", "mul":
		op.Scale = values
	case "elemwise_sub", "broadcast_sub":
		op.Bias = values
		if k == 1 {
			for i := range values {
				values[i] = -values[i]
			}
		} else {
			op.Scale = []float32{-1}
		}
	default:
		op.Bias = values
	}
	v = im.pointwise(n, "", op, v)
	return v, true
}

// perChannel returns weights that are added to a tensor or multiplied with it.
func (im *importer) perChannel(a array, v value) []float32 {
	channels := len(a.dims) - 3 // the axis of channels; the last ones are those of pixels
	if v.vector {
		channels = len(a.dims) - 1
	}
	for i, d := range a.dims {
		if d != 1 && (i != channels || d != v.shape.C) || len(a.dims) > 4 {
			try.Failf("weights of shape %v do not fit values of %v: want one weight, or one for each channel", a.dims, v.shape)
		}
	}
	return try.Value(a.floats(im.budget))
}
