package tflite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

// handlers are the operators. Each returns its outputs.
var handlers map[string]func(*importer, *schema.Operator) []operand

// one makes a handler of a function that returns one value.
func one(f func(*importer, *schema.Operator) *value) func(*importer, *schema.Operator) []operand {
	return func(im *importer, o *schema.Operator) []operand {
		v := f(im, o)
		return []operand{{value: v}}
	}
}

func init() {
	handlers = map[string]func(*importer, *schema.Operator) []operand{
		"ABS":                        one((*importer).abs),
		"ADD":                        one((*importer).add),
		"ADD_N":                      one((*importer).addN),
		"ARG_MAX":                    one((*importer).argMax),
		"ARG_MIN":                    one((*importer).argMax),
		"AVERAGE_POOL_2D":            one((*importer).averagePool),
		"BATCH_TO_SPACE_ND":          one((*importer).batchToSpace),
		"CAST":                       one((*importer).cast),
		"CEIL":                       one((*importer).round),
		"CONCATENATION":              one((*importer).concat),
		"CONV_2D":                    one(divided((*importer).conv)),
		"Convolution2DTransposeBias": one((*importer).transposeConvBias),
		"DEPTH_TO_SPACE":             one((*importer).depthToSpace),
		"DEPTHWISE_CONV_2D":          one(divided((*importer).depthwise)),
		"DEQUANTIZE":                 one((*importer).dequantize8),
		"ELU":                        one((*importer).function),
		"EQUAL":                      one((*importer).compare),
		"EXP":                        one((*importer).function),
		"EXPAND_DIMS":                one((*importer).reshape),
		"FLOOR":                      one((*importer).round),
		"FULLY_CONNECTED":            one((*importer).dense),
		"GELU":                       one((*importer).function),
		"GREATER":                    one((*importer).compare),
		"GREATER_EQUAL":              one((*importer).compare),
		"HARD_SWISH":                 one((*importer).function),
		"L2_NORMALIZATION":           one((*importer).l2Normalization),
		"LceBconv2d":                 one((*importer).bconv),
		"LceBMaxPool2d":              one((*importer).bmaxPool),
		"LceDequantize":              one((*importer).dequantize),
		"LceQuantize":                one((*importer).quantize),
		"LEAKY_RELU":                 one((*importer).leakyReLU),
		"LESS":                       one((*importer).compare),
		"LESS_EQUAL":                 one((*importer).compare),
		"LOG_SOFTMAX":                one((*importer).softmax),
		"LOGICAL_AND":                one((*importer).logical),
		"LOGICAL_NOT":                one((*importer).logical),
		"LOGICAL_OR":                 one((*importer).logical),
		"LOGISTIC":                   one((*importer).function),
		"MAX_POOL_2D":                one((*importer).maxPool),
		"MAXIMUM":                    one((*importer).extreme),
		"MEAN":                       one((*importer).reduce),
		"MINIMUM":                    one((*importer).extreme),
		"MIRROR_PAD":                 one((*importer).mirrorPad),
		"MUL":                        one((*importer).mul),
		"NEG":                        one((*importer).neg),
		"NOT_EQUAL":                  one((*importer).compare),
		"PAD":                        one((*importer).padNode),
		"PADV2":                      one((*importer).padNode),
		"PRELU":                      one((*importer).prelu),
		"QUANTIZE":                   one((*importer).quantize8),
		"REDUCE_MAX":                 one((*importer).reduce),
		"REDUCE_MIN":                 one((*importer).reduce),
		"RELU":                       one((*importer).relu),
		"RELU6":                      one((*importer).relu),
		"RELU_N1_TO_1":               one((*importer).relu),
		"RESHAPE":                    one((*importer).reshape),
		"RESIZE_BILINEAR":            one((*importer).resize),
		"RESIZE_NEAREST_NEIGHBOR":    one((*importer).resize),
		"ROUND":                      one((*importer).round),
		"RSQRT":                      one((*importer).root),
		"SELECT":                     one((*importer).choose),
		"SELECT_V2":                  one((*importer).choose),
		"SHAPE":                      (*importer).shapeOf,
		"SIGN":                       one((*importer).sign),
		"SLICE":                      one((*importer).slice),
		"SOFTMAX":                    one((*importer).softmax),
		"SPACE_TO_BATCH_ND":          one((*importer).spaceToBatch),
		"SPACE_TO_DEPTH":             one((*importer).spaceToDepth),
		"SPLIT":                      (*importer).split,
		"SPLIT_V":                    (*importer).split,
		"SQRT":                       one((*importer).root),
		"SQUARE":                     one((*importer).square),
		"SQUARED_DIFFERENCE":         one((*importer).squaredDifference),
		"SQUEEZE":                    one((*importer).reshape),
		"STRIDED_SLICE":              one((*importer).slice),
		"SUB":                        one((*importer).sub),
		"SUM":                        one((*importer).reduce),
		"TANH":                       one((*importer).function),
		"TILE":                       one((*importer).tile),
		"TRANSPOSE":                  one((*importer).transpose),
		"TRANSPOSE_CONV":             one((*importer).transposeConv),
	}
}

var errUnsupported = errors.New("this operator is not supported")

// last are operators that only turn the output into another form.
var last = []string{"TOPK_V2"}

// operator imports an operator. What no layer can be made of is an obstacle; the error
// is one that ends the import.
func (im *importer) operator(o *schema.Operator) error {
	if err := im.budget.Charge(operatorUnits); err != nil {
		return err
	}
	if len(o.Outputs) == 0 {
		return errors.New("it has no output")
	}
	before := len(im.net.Layers)
	outputs, err := try.DoSafely(func() []operand { return im.outputs(o) })
	if len(im.net.Layers) == before {
		im.report.Folded++
	}
	if err == nil {
		err = im.model.Err()
	}
	if over := im.budget.Charge(0); over != nil { // and what came of it
		return over
	}
	if err == nil && len(outputs) != len(o.Outputs) {
		err = fmt.Errorf("it has %d outputs, want %d", len(o.Outputs), len(outputs))
	}
	for i := range outputs {
		if v := outputs[i].value; err == nil && v != nil {
			if err = im.agree(o.Outputs[i], v); err == nil && v.layer >= before {
				err = im.describe(&im.net.Layers[v.layer].Source, o.Outputs[i], v)
			}
		}
	}
	if err != nil {
		return im.obstacle(o, err)
	}
	for i, r := range outputs {
		im.env[o.Outputs[i]] = r
	}
	return nil
}

// errBlind says that an operator reads a tensor of which nothing is known but that an
// obstacle stands in front of it.
var errBlind = errors.New("behind an obstacle")

func (im *importer) outputs(o *schema.Operator) []operand {
	constants := len(o.Inputs) > 0
	for _, t := range im.data(o) {
		if t < 0 {
			continue
		}
		r := try.Value(im.tensor(t))
		if r == (operand{}) {
			try.Fail(errBlind)
		}
		constants = constants && r.constant != nil
	}
	handler := handlers[o.Name]
	if constants && o.Name != "SHAPE" {
		handler = im.onConstants(o)
	}
	if handler == nil {
		try.Fail(errUnsupported)
	}
	im.begun(o)
	outputs := im.anywhere(o, handler)
	im.ended(o)
	return outputs
}

// agree compares a value with what the file says of the tensor, which tells the number
// of its dimensions.
func (im *importer) agree(index int, v *value) error {
	t, err := im.model.Tensor(index)
	if err != nil {
		return err
	}
	if t.Data != nil {
		return fmt.Errorf("its output has values in the file (buffer of tensor %d)", index)
	}
	if t.Type != v.typ {
		return fmt.Errorf("its output has type %v, want %v", t.Type, v.typ)
	}
	if (v.typ == schema.Int8 || v.typ == schema.Uint8) && (len(t.Scale) != 1 || t.Scale[0] != v.scale || t.Zero[0] != int64(v.zero)) {
		return fmt.Errorf("its output has scales %v and zero points %v in the file, want %v and %d", t.Scale, t.Zero, v.scale, v.zero)
	}
	if len(t.Dims) == 0 { // not said
		v.rank = 4
		return nil
	}
	if v.numbers { // of one dimension less: the file's arrays hold the same in the same order
		n, most := t.Dims[0], v.shape.Pixels()*im.batch
		for _, d := range t.Dims[1:] {
			if n = num.Product(n, d); n > most {
				break
			}
		}
		if n != most {
			return fmt.Errorf("its output has shape %v in the file, which does not fit %d images of %v", t.Dims, im.batch, v.shape)
		}
		v.rank = len(t.Dims)
		return nil
	}
	if v.layout != nil || v.blocks.some() || open(t) {
		return im.agreeDims(t, v)
	}
	s, err := im.shape(t.Dims)
	if err != nil {
		return err
	}
	want := v.shape
	if v.typ == schema.Int32 {
		want.C = wordsOf(want.C)
	}
	if s != want {
		return fmt.Errorf("its output has shape %v in the file, but its inputs give %v", s, want)
	}
	v.rank = len(t.Dims)
	return nil
}

// agreeDims is agree for the dimensions of a value of which the file leaves some open, or that has
// other ones than an image.
func (im *importer) agreeDims(t *schema.Tensor, v *value) error {
	if v.layout == nil && !v.blocks.some() {
		n := len(t.Dims)
		if n < 1 || n > 4 || sizeOfView(imageDims(v.shape, n)) != v.shape.Values() {
			return fmt.Errorf("its output has %d dimensions in the file, but its inputs give %v", n, v.shape)
		}
		v.rank = n
	}
	dims := im.dims(v)
	if v.typ == schema.Int32 {
		dims[len(dims)-1] = wordsOf(dims[len(dims)-1])
	}
	fits := len(dims) == len(t.Dims)
	for i := range dims {
		fits = fits && (t.Dynamic[i] || t.Dims[i] == dims[i])
	}
	if !fits {
		return fmt.Errorf("its output has shape %v in the file, but its inputs give %v", t.Dims, dims)
	}
	return nil
}

// describe says which tensor of the file holds the values of a layer, or of the input.
func (im *importer) describe(s **bcnn.Source, index int, v *value) error {
	t, err := im.model.Tensor(index)
	if err != nil || len(t.Dims) == 0 || v.stairs != nil || v.typ != schema.Float32 || v.layout != nil || v.blocks.some() {
		return err // its arrays are not what the layer gives
	}
	*s = im.newSource(t, v)
	return nil
}

// absorb names the tensors that no layer's output is.
func (im *importer) absorb() error {
	var names []string
	for _, o := range im.model.Graph.Operators {
		for _, index := range o.Outputs {
			if im.env[index].value == nil {
				continue
			}
			t, err := im.model.Tensor(index)
			if err != nil {
				return err
			}
			names = append(names, text.Escape(t.Name))
		}
	}
	im.net.Absorb(names)
	return nil
}

// known returns the dimensions of a value's tensor: those of the file, or where it leaves some open
// those that are computed.
func (im *importer) known(t *schema.Tensor, v *value) []int {
	if open(t) && v.rank > 0 && !v.numbers {
		dims := im.dims(v)
		if v.typ == schema.Int32 {
			dims[len(dims)-1] = wordsOf(dims[len(dims)-1])
		}
		return dims
	}
	return t.Dims
}

// newSource describes arrays of a tensor.
func (im *importer) newSource(t *schema.Tensor, v *value) *bcnn.Source {
	const longest = 256
	source := &bcnn.Source{Dims: im.known(t, v)[1:]}
	if len(t.Name) <= longest {
		source.Name = t.Name
	}
	return source
}

// describeEnd is describe for the input or the output of the file, whose arrays may hold
// the values in another form.
func (im *importer) describeEnd(t *schema.Tensor, v *value) *bcnn.Source {
	if len(t.Dims) == 0 {
		return nil
	}
	source := im.newSource(t, v)
	switch t.Type {
	case schema.Int64:
		source.Type = bcnn.SourceInt64
	case schema.Int32:
		if source.Type = bcnn.SourceBits; v.numbers {
			source.Type = bcnn.SourceInt32
		}
	case schema.Int8:
		source.Type, source.Offset = bcnn.SourceInt8, v.offset
	case schema.Uint8:
		source.Type, source.Offset = bcnn.SourceUint8, v.offset
	}
	if v.probabilities {
		source.Offset, source.Scale = v.zero, v.scale
	}
	return source
}

// shape returns the shape of images that a tensor of these dimensions holds.
func (im *importer) shape(dims []int) (bcnn.Shape, error) {
	if len(dims) > 0 && dims[0] != im.batch {
		return bcnn.Shape{}, fmt.Errorf("its dimensions %v do not begin with the batch size, %d", dims, im.batch)
	}
	switch len(dims) {
	case 1:
		return bcnn.Shape{H: 1, W: 1, C: 1}, nil
	case 2:
		return bcnn.Shape{H: 1, W: 1, C: dims[1]}, nil
	case 3:
		return bcnn.Shape{H: 1, W: dims[1], C: dims[2]}, nil
	case 4:
		return bcnn.Shape{H: dims[1], W: dims[2], C: dims[3]}, nil
	}
	return bcnn.Shape{}, fmt.Errorf("it has %d dimensions, want a batch of images (4), rows (3) or vectors (2)", len(dims))
}

// throughONNX are operators that tf2onnx writes in a form of which the importer of ONNX makes layers.
var throughONNX = []string{"BATCH_MATMUL", "DIV", "GATHER", "PACK", "TOPK_V2", "UNPACK"}

// isFloat reports whether a model has neither operators of LCE, which tf2onnx does not know, nor 8-bit
// values.
func isFloat(m *schema.Model) bool {
	for _, o := range m.Graph.Operators {
		if o.Custom || o.Name == "QUANTIZE" || o.Name == "DEQUANTIZE" {
			return false
		}
	}
	for _, index := range m.Graph.Inputs {
		if t, err := m.Tensor(index); err != nil || t.Type != schema.Float32 {
			return false
		}
	}
	return true
}

// obstacle notes an operator that no layer can be made of, and goes on with what the
// file says of its outputs.
func (im *importer) obstacle(o *schema.Operator, err error) error {
	for _, index := range o.Outputs {
		t, err := im.model.Tensor(index)
		if over := im.budget.Charge(0); over != nil {
			return over
		}
		im.env[index] = operand{}
		if err != nil {
			continue
		}
		if s, err := im.shape(t.Dims); err == nil {
			v := &value{layer: bcnn.NetworkInput, shape: s, rank: len(t.Dims), typ: t.Type}
			if v.typ == schema.Int32 {
				v.shape.C = im.channels(index, s.C)
			}
			if t.Type == schema.Int8 && v.quantized(t) != nil {
				continue
			}
			im.env[index] = operand{value: v}
		}
	}
	if errors.Is(err, errBlind) {
		return nil
	}
	if err := im.budget.Charge(operatorUnits); err != nil {
		return err
	}
	out := bcnn.Obstacle{Op: o.Name, Index: o.Index, Err: err}
	if t, err := im.model.Tensor(o.Outputs[0]); err == nil {
		out.Node = t.Name
	}
	switch {
	case errors.Is(err, errUnsupported) && slices.Contains(throughONNX, o.Name) && im.float():
		out.Advice = "ONNX files may have it: convert this one with python -m tf2onnx.convert --tflite FILE --output FILE.onnx"
	case errors.Is(err, errUnsupported) && slices.Contains(last, o.Name):
		out.Advice = "convert the model without it, and compute it from the output"
	case errors.Is(err, errUnsupported):
		out.Advice = "a network has no layer for it: convert the model without it"
	}
	im.obstacles = append(im.obstacles, out)
	return nil
}
