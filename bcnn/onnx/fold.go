package onnx

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Nodes whose inputs are all constant are evaluated: exporters write weights as operators that have
// no layer.

// arguments are the inputs of a node that are all constant, nil for those that are left out.
type arguments struct {
	node *pb.Node
	list []*eval.Tensor
}

// fold evaluates a node on constants.
type fold func(im *importer, n *pb.Node, c arguments) []*eval.Tensor

// single makes a fold of a function with one result.
func single(f func(im *importer, n *pb.Node, c arguments) *eval.Tensor) fold {
	return func(im *importer, n *pb.Node, c arguments) []*eval.Tensor { return []*eval.Tensor{f(im, n, c)} }
}

// folds are the operators that are evaluated if all of their inputs are constant. They do not
// include operators whose handlers take constants themselves. least is how many inputs must be
// there.
var folds = map[string]struct {
	least int
	fold  fold
}{
	"AveragePool":               {1, single(foldPool)},
	"BitShift":                  {2, single(foldShift)},
	"BitwiseAnd":                {2, single(foldBitwise)},
	"BitwiseNot":                {1, single(foldBitwiseNot)},
	"BitwiseOr":                 {2, single(foldBitwise)},
	"BitwiseXor":                {2, single(foldBitwise)},
	"Celu":                      {1, single(foldFunction)},
	"CenterCropPad":             {2, single(foldCenterCropPad)},
	"Compress":                  {2, single(foldCompress)},
	"Conv":                      {2, single(foldConv)},
	"DepthToSpace":              {1, single(foldDepthToSpace)},
	"Einsum":                    {1, single(foldEinsum)},
	"Elu":                       {1, single(foldFunction)},
	"EyeLike":                   {1, single(foldEyeLike)},
	"GatherND":                  {2, single(foldGatherND)},
	"Gelu":                      {1, single(foldFunction)},
	"Gemm":                      {2, single(foldGemm)},
	"GlobalAveragePool":         {1, single(foldGlobalPool)},
	"GlobalMaxPool":             {1, single(foldGlobalPool)},
	"HardSigmoid":               {1, single(foldFunction)},
	"HardSwish":                 {1, single(foldFunction)},
	"Hardmax":                   {1, single(foldSoftmax)},
	"IsInf":                     {1, single(foldIsInf)},
	"IsNaN":                     {1, single(foldIsNaN)},
	"LeakyRelu":                 {1, single(foldFunction)},
	"LogSoftmax":                {1, single(foldSoftmax)},
	"LpNormalization":           {1, single(foldLpNormalization)},
	"MaxPool":                   {1, single(foldPool)},
	"MeanVarianceNormalization": {1, single(foldMeanVariance)},
	"Mish":                      {1, single(foldFunction)},
	"NonZero":                   {1, single(foldNonZero)},
	"PRelu":                     {2, single(foldPRelu)},
	"Pad":                       {1, single(foldPad)},
	"ReverseSequence":           {2, single(foldReverseSequence)},
	"Selu":                      {1, single(foldFunction)},
	"Shrink":                    {1, single(foldFunction)},
	"Softmax":                   {1, single(foldSoftmax)},
	"Softplus":                  {1, single(foldFunction)},
	"Softsign":                  {1, single(foldFunction)},
	"SpaceToDepth":              {1, single(foldSpaceToDepth)},
	"Swish":                     {1, single(foldFunction)},
	"ThresholdedRelu":           {1, single(foldFunction)},
	"Trilu":                     {1, single(foldTrilu)},
	"Unique":                    {1, foldUnique},
}

// orFolded returns a handler that evaluates an operator of folds if all inputs are constant, and
// otherwise calls other, which is nil if the operator has no layer.
func orFolded(op string, other handler) handler {
	f := folds[op]
	return func(im *importer, n *pb.Node) build.Operand {
		c, constant := im.constants(n)
		switch {
		case !constant && other == nil:
			try.Failf("%w on computed tensors, only on constants", errUnsupported)
		case !constant || len(c) == 0:
			return other(im, n)
		}
		for i := range max(f.least, len(c)) {
			if i >= len(c) || i < f.least && c[i] == nil {
				try.Failf("input %d is missing", i)
			}
		}
		results := f.fold(im, n, arguments{n, c})
		if len(n.Outputs) > len(results) {
			try.Failf("it has %d outputs, want at most %d", len(n.Outputs), len(results))
		}
		for i, name := range n.Outputs {
			if name != "" {
				im.env[name] = build.Operand{Constant: results[i]}
			}
		}
		return build.Operand{Constant: results[0]}
	}
}

// constants returns the inputs of a node, nil for those that are left out. ok is false if one is
// not constant.
func (im *importer) constants(n *pb.Node) (list []*eval.Tensor, ok bool) {
	for i, name := range n.Inputs {
		if name == "" {
			list = append(list, nil)
			continue
		}
		r := im.lookup(name)
		if r.Constant == nil {
			return nil, false
		}
		try.Check(im.budget.Charge(int64(i) + 1))
		list = append(list, r.Constant)
	}
	return list, true
}

// at returns input i, or nil if it is left out.
func (c arguments) at(i int) *eval.Tensor {
	c.node.Input(i) // is read
	if i < len(c.list) {
		return c.list[i]
	}
	return nil
}

// all returns all inputs.
func (c arguments) all() []*eval.Tensor {
	for i := range c.list {
		c.node.Input(i)
	}
	return c.list
}

// integerOf returns input i, which must be one integer, or the fallback if it is left out.
func integerOf(c arguments, i int, fallback int64) int64 {
	t := c.at(i)
	if t == nil {
		return fallback
	}
	list := try.Value(t.Integers())
	if len(list) != 1 {
		try.Failf("input %d has shape %v, want a single integer", i, t.Dims)
	}
	return list[0]
}

// foldFunction evaluates the functions of one value that have attributes.
func foldFunction(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	return im.eval.Map(c.at(0), c.at(0).Type, functionOf(n))
}

// functionOf returns the function of one value that a node computes.
func functionOf(n *pb.Node) func(x float64) float64 {
	alpha := func(fallback float32) float64 { return float64(n.Float("alpha", fallback)) }
	sigmoid := eval.UnaryOps["Sigmoid"]
	switch n.OpType {
	case "Celu":
		a := alpha(1)
		return func(x float64) float64 { return max(x, 0) + min(0, a*math.Expm1(x/a)) }
	case "Elu", "Selu":
		a, gamma := alpha(1), 1.0
		if n.OpType == "Selu" {
			a = alpha(1.67326319217681884765625)
			gamma = float64(n.Float("gamma", 1.05070102214813232421875))
		}
		return func(x float64) float64 {
			if x < 0 {
				x = a * math.Expm1(x)
			}
			return gamma * x
		}
	case "Gelu":
		return gelu(n.Text("approximate", "none"))
	case "HardSigmoid", "HardSwish":
		a, b := alpha(0.2), float64(n.Float("beta", 0.5))
		if n.OpType == "HardSigmoid" {
			return func(x float64) float64 { return max(0, min(float64(a*x)+b, 1)) }
		}
		return func(x float64) float64 { return x * max(0, min(x/6+0.5, 1)) }
	case "LeakyRelu":
		a := alpha(0.01)
		return func(x float64) float64 {
			if x < 0 {
				x *= a
			}
			return x
		}
	case "Mish":
		return func(x float64) float64 { return x * math.Tanh(logOnePlus(x)) }
	case "Shrink":
		bias, lambd := float64(n.Float("bias", 0)), float64(n.Float("lambd", 0.5))
		return func(x float64) float64 { return shrunk(x, bias, lambd) }
	case "Softplus":
		return logOnePlus
	case "Softsign":
		return func(x float64) float64 { return x / (1 + math.Abs(x)) }
	case "Swish":
		a := alpha(1)
		return func(x float64) float64 { return x * sigmoid(a*x) }
	}
	a := alpha(1) // ThresholdedRelu
	return func(x float64) float64 {
		if x > a {
			return x
		}
		return 0
	}
}

// logOnePlus is log(1 + e^x).
func logOnePlus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// shrunk is the function Shrink.
func shrunk(x, bias, lambd float64) float64 {
	switch {
	case x < -lambd:
		return x + bias
	case x > lambd:
		return x - bias
	}
	return 0
}

func gelu(form string) func(x float64) float64 {
	switch form {
	case "none":
		return func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }
	case "tanh":
		return func(x float64) float64 {
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+float64(0.044715*x*x*x))))
		}
	}
	panic(try.Errorf("approximate is %s, want none or tanh", text.Quote(form)))
}

func foldIsNaN(im *importer, _ *pb.Node, c arguments) *eval.Tensor {
	return im.eval.Map(c.at(0), pb.Bool, func(x float64) float64 { return boolean(x != x) })
}

func foldIsInf(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	positive := n.Bit("detect_positive", 1)
	negative := n.Bit("detect_negative", 1)
	return im.eval.Map(c.at(0), pb.Bool, func(x float64) float64 {
		return boolean(positive != 0 && math.IsInf(x, 1) || negative != 0 && math.IsInf(x, -1))
	})
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func foldShift(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	direction := n.Text("direction", "")
	return im.eval.Bitwise(direction)([]*eval.Tensor{c.at(0), c.at(1)})
}

func foldBitwise(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	return im.eval.Bitwise(n.OpType)([]*eval.Tensor{c.at(0), c.at(1)})
}

func foldBitwiseNot(im *importer, _ *pb.Node, c arguments) *eval.Tensor {
	return im.eval.BitwiseNot(c.at(0))
}

func foldNonZero(im *importer, _ *pb.Node, c arguments) *eval.Tensor {
	return im.eval.NonZero(c.at(0))
}

func foldPRelu(im *importer, _ *pb.Node, c arguments) *eval.Tensor {
	return im.eval.PRelu(c.at(0), c.at(1))
}

// foldSoftmax evaluates Softmax, LogSoftmax and Hardmax. Before opset 13 the dimensions from axis
// on count as one.
func foldSoftmax(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	t, fallback := c.at(0), int64(-1)
	if im.model.Opset < 13 {
		fallback = 1
	}
	axis := axisIndex(n.Int("axis", fallback), len(t.Dims))
	if im.model.Opset < 13 {
		outer := try.Value(eval.Count(t.Dims[:axis]))
		matrix := t.Redim([]int{outer, t.Len() / max(outer, 1)})
		return im.eval.Softmax(matrix, 1, n.OpType).Redim(t.Dims)
	}
	return im.eval.Softmax(t, axis, n.OpType)
}

func foldLpNormalization(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	axis := axisIndex(n.Int("axis", -1), len(c.at(0).Dims))
	return im.eval.LpNormalization(c.at(0), axis, n.Int("p", 2))
}

// foldMeanVariance evaluates (x − mean) / (deviation + 1e-9).
func foldMeanVariance(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	list := n.Ints("axes")
	if list == nil {
		list = []int64{0, 2, 3}
	}
	var axes []int
	for _, a := range list {
		axes = append(axes, axisIndex(a, len(c.at(0).Dims)))
	}
	mean := im.eval.Reduce("ReduceMean", c.at(0), axes)
	t := im.computed(c.at(0), []string{"Sub"}, mean)
	square := im.computed(t, []string{"Mul"}, t)
	deviation := im.eval.Unary("Sqrt")([]*eval.Tensor{im.eval.Reduce("ReduceMean", square, axes)})
	deviation = im.computed(deviation, []string{"Add"}, eval.Scalar(t.Type, 1e-9))
	return im.computed(t, []string{"Div"}, deviation)
}

func foldUnique(im *importer, n *pb.Node, c arguments) []*eval.Tensor {
	axis, sorted := -1, n.Bit("sorted", 1)
	if n.Has("axis") {
		axis = axisIndex(n.Int("axis", 0), len(c.at(0).Dims))
	}
	list := im.eval.Unique(c.at(0), axis, sorted != 0)
	return slices.Clone(list[:])
}
