package openvino

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
)

// operator is how an operator is imported.
type operator struct {
	versions []string                            // of the operator, see layer.version
	make     func(im *importer, n *node) operand // what it computes
	fold     func(im *importer, n *node) *constant
}

// operators are those of IR 10 and 11. A version is the first operator set that has the operator
// in this form.
var operators map[string]operator

func init() {
	first := []string{"opset1"}
	functions := map[string]bcnn.FunctionName{
		"Sigmoid": bcnn.Sigmoid, "Tanh": bcnn.Tanh, "Exp": bcnn.Exp, "Erf": bcnn.Erf,
	}
	operators = map[string]operator{
		"Parameter": {versions: first, make: parameter},
		"Const":     {versions: first, make: constantLayer},

		"BinaryConvolution": {versions: first, make: binaryConvolution},
		"Convolution":       {versions: first, make: convolution},
		"GroupConvolution":  {versions: first, make: convolution},
		"MatMul":            {versions: first, make: matMul},

		"ConvolutionBackpropData":      {versions: first, make: backprop},
		"GroupConvolutionBackpropData": {versions: first, make: backprop},

		"FakeQuantize": {versions: first, make: fakeQuantize, fold: foldQuantize},

		"Add":      {versions: first, make: add, fold: arithmetic(func(a, b float32) float32 { return a + b })},
		"Subtract": {versions: first, make: subtract, fold: arithmetic(func(a, b float32) float32 { return a - b })},
		"Multiply": {versions: first, make: multiply, fold: arithmetic(func(a, b float32) float32 { return a * b })},
		"Divide":   {versions: first, make: divide, fold: arithmetic(func(a, b float32) float32 { return a / b })},
		"Maximum":  {versions: first, make: maximum},
		"Minimum":  {versions: first, make: minimum},
		"Negative": {versions: first, make: func(im *importer, n *node) operand {
			return im.pointwise(n, bcnn.Affine{Scale: []float32{-1}})
		}},

		"Greater":      {versions: first, make: compare},
		"GreaterEqual": {versions: first, make: compare},
		"Less":         {versions: first, make: compare},
		"LessEqual":    {versions: first, make: compare},
		"Select":       {versions: first, make: choose},
		"Sign": {versions: first, make: func(im *importer, n *node) operand {
			return im.pointwise(n, bcnn.Ternary())
		}},

		"ReLU":     {versions: first, make: func(im *importer, n *node) operand { return im.pointwise(n, bcnn.ReLU{}) }},
		"PReLU":    {versions: first, make: pReLU},
		"Clamp":    {versions: first, make: clamp},
		"Elu":      {versions: first, make: elu},
		"SoftPlus": {versions: []string{"opset4"}, make: function(bcnn.Softplus)},
		"Mish":     {versions: []string{"opset4"}, make: function(bcnn.Mish)},
		"HSwish":   {versions: []string{"opset4"}, make: function(bcnn.HardSwish)},
		"Swish":    {versions: []string{"opset4"}, make: swish},
		"Gelu":     {versions: []string{"opset2", "opset7"}, make: gelu},
		"SoftMax":  {versions: []string{"opset1", "opset8"}, make: softmax},

		"MaxPool":    {versions: []string{"opset1", "opset8"}, make: maxPool},
		"AvgPool":    {versions: first, make: avgPool},
		"ReduceMean": {versions: first, make: reduce},
		"ReduceMax":  {versions: first, make: reduce},

		"BatchNormInference": {versions: []string{"opset1", "opset5"}, make: batchNorm},
		"LRN":                {versions: first, make: lrn},
		"NormalizeL2":        {versions: first, make: normalizeL2},
		"Power":              {versions: first, make: powerOf},
		"Sqrt":               {versions: first, make: powerOf},

		"Convert":      {versions: first, make: convert, fold: foldConvert},
		"Transpose":    {versions: first, make: transpose, fold: foldTranspose},
		"Reshape":      {versions: first, make: reshape, fold: foldReshape},
		"Squeeze":      {versions: first, make: reshape, fold: foldReshape},
		"Unsqueeze":    {versions: first, make: reshape, fold: foldReshape},
		"Concat":       {versions: first, make: concat, fold: foldConcat},
		"ShapeOf":      {versions: []string{"opset1", "opset3"}, make: shapeOf},
		"StridedSlice": {versions: first, make: slice, fold: foldSlice},
		"Gather":       {versions: []string{"opset1", "opset7", "opset8"}, make: slice, fold: foldGather},

		"Split":           {versions: first, make: split},
		"VariadicSplit":   {versions: first, make: split},
		"ReorgYolo":       {versions: []string{"opset1", "opset2"}, make: reorg},
		"ShuffleChannels": {versions: []string{"opset1", "opset3"}, make: shuffle},

		"Interpolate": {versions: []string{"opset4", "opset11"}, make: interpolate},
		"Pad":         {versions: []string{"opset1", "opset12"}, make: pad},

		"PriorBox":          {versions: []string{"opset1", "opset8"}, make: priorBox},
		"PriorBoxClustered": {versions: first, make: priorBoxClustered},
		"DetectionOutput":   {versions: []string{"opset1", "opset8"}, make: inside},
		"RegionYolo":        {versions: first, make: inside},
	}
	for name, f := range functions {
		operators[name] = operator{versions: first, make: function(f)}
	}
}

// pointwise appends a function of single values.
func (im *importer) pointwise(n *node, op bcnn.Op) operand {
	v := im.value(n, 0)
	return operand{v: im.emit(n, "", op, v.shape, v.view, v)}
}

func function(name bcnn.FunctionName) func(im *importer, n *node) operand {
	return func(im *importer, n *node) operand { return im.pointwise(n, bcnn.Function{Name: name}) }
}

func slice(_ *importer, n *node) operand {
	panic(try.Errorf("a %s is supported only of shapes", n.typ))
}

func inside(_ *importer, n *node) operand {
	panic(try.Errorf("a %s is supported only as an output of the graph, which what it reads then takes the place of", n.typ))
}

func pReLU(im *importer, n *node) operand {
	v, c := im.value(n, 0), im.constant(n, 1)
	if len(c.dims) == 1 && c.dims[0] > 1 && len(v.view) > 2 { // one for each channel
		if c.dims[0] != v.size(1) {
			try.Failf("it has %d slopes for %d channels", c.dims[0], v.size(1))
		}
		dims := make([]int, len(v.view)-1)
		for i := range dims {
			dims[i] = 1
		}
		dims[0] = c.dims[0]
		c = &constant{typ: c.typ, dims: dims, floats: c.floats}
	}
	v, slope := im.perChannel(n, v, c)
	return operand{v: im.emit(n, "", bcnn.PReLU{Slope: slope}, v.shape, v.view, v)}
}

func clamp(im *importer, n *node) operand {
	op := bcnn.Clip{Min: n.number("min", ""), Max: n.number("max", "")}
	if !(op.Min <= op.Max) {
		try.Failf("its min, %v, is above its max, %v", op.Min, op.Max)
	}
	return im.pointwise(n, op)
}

func elu(im *importer, n *node) operand {
	if a := n.number("alpha", ""); a != 1 {
		n.fail("alpha", "1")
	}
	return im.pointwise(n, bcnn.Function{Name: bcnn.ELU})
}

func swish(im *importer, n *node) operand {
	if len(n.from) > 1 {
		if c := im.constant(n, 1); c.len() != 1 || c.floats == nil || c.floats[0] != 1 {
			try.Failf("its beta is not 1, which is not supported")
		}
	}
	return im.pointwise(n, bcnn.Function{Name: bcnn.SiLU})
}

func gelu(im *importer, n *node) operand {
	name := bcnn.GELU
	switch mode := n.text("approximation_mode", "erf"); mode {
	case "erf", "ERF":
	case "tanh", "TANH":
		name = bcnn.GELUTanh
	default:
		n.fail("approximation_mode", "erf or tanh")
	}
	return im.pointwise(n, bcnn.Function{Name: name})
}

// constantSide returns which of two inputs is a constant, and the other one's value; ok is false
// where both are computed.
func (im *importer) constantSide(n *node) (v *value, c *constant, k int, ok bool) {
	n.only("auto_broadcast", "numpy")
	a, b := im.operand(n, 0), im.operand(n, 1)
	switch {
	case a.c != nil && b.c != nil:
		try.Failf("both of its inputs are constants, which is not supported")
	case b.c != nil:
		return im.value(n, 0), b.c, 1, true
	case a.c != nil:
		return im.value(n, 1), a.c, 0, true
	}
	return nil, nil, 0, false
}

// affine imports what is a factor and a sum for each channel.
func (im *importer) affine(n *node, v *value, c *constant, op func(list []float32) bcnn.Affine) operand {
	v, list := im.perChannel(n, v, c)
	try.Check(im.budget.Charge(8 * int64(len(list))))
	return operand{v: im.emit(n, "", op(list), v.shape, v.view, v)}
}

// mapped returns a function of each number.
func mapped(list []float32, f func(x float32) float32) []float32 {
	out := make([]float32, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

func add(im *importer, n *node) operand {
	if v, c, _, ok := im.constantSide(n); ok {
		return im.affine(n, v, c, func(list []float32) bcnn.Affine { return bcnn.Affine{Bias: list} })
	}
	a, b := im.pair(n)
	a, b = im.repeated(n, a, b)
	return operand{v: im.emit(n, "", bcnn.Add{}, a.shape, a.view, a, b)}
}

func subtract(im *importer, n *node) operand {
	if v, c, k, ok := im.constantSide(n); ok {
		return im.affine(n, v, c, func(list []float32) bcnn.Affine {
			if k == 0 {
				return bcnn.Affine{Scale: []float32{-1}, Bias: list}
			}
			return bcnn.Affine{Bias: mapped(list, func(x float32) float32 { return -x })}
		})
	}
	a, b := im.value(n, 0), im.value(n, 1)
	b = im.emit(n, "/minus", bcnn.Affine{Scale: []float32{-1}}, b.shape, b.view, b)
	a, b = im.ordered(a, b)
	a, b = im.repeated(n, a, b)
	return operand{v: im.emit(n, "", bcnn.Add{}, a.shape, a.view, a, b)}
}

func multiply(im *importer, n *node) operand {
	if v, c, _, ok := im.constantSide(n); ok {
		return im.affine(n, v, c, func(list []float32) bcnn.Affine { return bcnn.Affine{Scale: list} })
	}
	a, b := im.pair(n)
	a, b, _ = im.fitted(n, a, b)
	return operand{v: im.emit(n, "", bcnn.Mul{}, a.shape, a.view, a, b)}
}

// divide multiplies by the inverse, which differs from a quotient by a rounding unless it is a
// power of two.
func divide(im *importer, n *node) operand {
	n.ignore("m_pythondiv") // is about integers
	v, c, k, ok := im.constantSide(n)
	if !ok || k == 0 {
		try.Failf("a division by what is computed is not supported")
	}
	return im.affine(n, v, c, func(list []float32) bcnn.Affine {
		return bcnn.Affine{Scale: mapped(list, func(x float32) float32 {
			if y := 1 / x; !math.IsInf(float64(y), 0) {
				return y
			}
			panic(try.Errorf("it divides by %v", x))
		})}
	})
}

func maximum(im *importer, n *node) operand { return im.extreme(n, bcnn.Max{}) }
func minimum(im *importer, n *node) operand { return im.extreme(n, bcnn.Min{}) }

// extreme imports the larger or the smaller of two values, or of a value and a number.
func (im *importer) extreme(n *node, op bcnn.Op) operand {
	v, c, _, ok := im.constantSide(n)
	if !ok {
		a, b := im.pair(n)
		a, b, _ = im.fitted(n, a, b)
		return operand{v: im.emit(n, "", op, a.shape, a.view, a, b)}
	}
	c.checkReal()
	if c.len() != 1 || len(c.dims) > len(v.view) {
		try.Failf("its constant has shape %v, want one number", c.dims)
	}
	clip := bcnn.Clip{Min: c.floats[0], Max: float32(math.Inf(1))}
	if n.typ == "Minimum" {
		clip = bcnn.Clip{Min: float32(math.Inf(-1)), Max: c.floats[0]}
	}
	return operand{v: im.emit(n, "", clip, v.shape, v.view, v)}
}

// pair returns both inputs, the larger one first.
func (im *importer) pair(n *node) (a, b *value) { return im.ordered(im.value(n, 0), im.value(n, 1)) }

func (im *importer) ordered(a, b *value) (*value, *value) {
	if a.shape.Values() < b.shape.Values() {
		return b, a
	}
	return a, b
}

// fitted returns two values in forms that a layer combines: b is as large as a, or is repeated over
// its pixels or channels. equal is whether nothing is repeated.
func (im *importer) fitted(n *node, a, b *value) (x, y *value, equal bool) {
	if len(a.view) != len(b.view) {
		try.Failf("its inputs have %d and %d dimensions, want as many", len(a.view), len(b.view))
	}
	equal = true
	var same, over []int // dimensions of b, and those that it is repeated over
	for _, d := range a.indices() {
		switch {
		case b.size(d) == a.size(d):
			same = append(same, d)
		case b.size(d) == 1:
			equal, over = false, append(over, d)
		default:
			try.Failf("shapes %v and %v behind the batch are not combined: each dimension of one must be that of the other, or 1", a.dims(), b.dims())
		}
	}
	switch {
	case equal:
		x, y = im.alike(n, a, b)
	case len(a.view) == 4 && a.view.Equal(view.NCHW(a.shape)) && slices.Equal(over, []int{1}):
		x, y = a, im.image(n, b, []int{1}, []int{2}, []int{3})
	default:
		x, y = im.image(n, a, same, over[:1], over[1:]), im.image(n, b, same, nil, nil)
	}
	return x, y, equal
}

// repeated returns two values in one form, of which the second one is repeated where it is smaller.
func (im *importer) repeated(n *node, a, b *value) (*value, *value) {
	a, b, equal := im.fitted(n, a, b)
	if equal {
		return a, b
	}
	zeros := func(size int) []int32 {
		try.Check(im.budget.Charge(4 * int64(size)))
		return make([]int32, size)
	}
	if b.shape.C != a.shape.C {
		shape := b.shape
		shape.C = a.shape.C
		b = im.emit(n, "/channels", bcnn.Channels{Index: zeros(a.shape.C)}, shape, a.view, b)
	}
	if b.shape != a.shape {
		b = im.emit(n, "/pixels", bcnn.Pixels{Rows: zeros(a.shape.H), Cols: zeros(a.shape.W)}, a.shape, a.view, b)
	}
	return a, b
}

// softmax imports SoftMax at the end of a network.
func softmax(im *importer, n *node) operand {
	axis := n.integer("axis", "1", -maxDims, maxDims)
	v := im.value(n, 0)
	if axis < 0 {
		axis += len(v.view)
	}
	if axis < 1 || axis >= len(v.view) {
		try.Failf("its axis is dimension %d of %d, which is the batch or none", axis, len(v.view))
	}
	var rows, cols []int
	for _, d := range v.indices() {
		switch {
		case d == axis:
		case len(rows) == 0:
			rows = append(rows, d)
		default:
			cols = append(cols, d)
		}
	}
	v = im.image(n, v, []int{axis}, rows, cols)
	out := im.emit(n, "", bcnn.Softmax{}, v.shape, v.view, v)
	out.last = true
	return operand{v: out}
}
