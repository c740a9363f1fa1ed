package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// functions are the operators that are one function without parameters.
var functions = map[string]bcnn.FunctionName{
	"Erf": bcnn.Erf, "Exp": bcnn.Exp, "HardSwish": bcnn.HardSwish, "Mish": bcnn.Mish, "Sigmoid": bcnn.Sigmoid,
	"Softplus": bcnn.Softplus, "Tanh": bcnn.Tanh,
}

// functionNode imports the operators of functions.
func (im *importer) functionNode(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	return im.function(n, v)
}

func (im *importer) function(n *pb.Node, v *build.Value) build.Operand {
	v = im.build.Settle(v)
	return im.emit(n, "", bcnn.Function{Name: functions[n.OpType]}, v)
}

// emit appends a layer whose output has the shape of its input.
func (im *importer) emit(n *pb.Node, suffix string, op bcnn.Op, v *build.Value) build.Operand {
	return build.Operand{Value: im.build.Emit(n, suffix, op, v.Shape, v)}
}

// elu imports Elu, which is x where x > 0 and α·(e^x − 1) elsewhere; Celu, α·(e^(x/α) − 1)
// elsewhere; and Selu, γ·Elu.
func (im *importer) elu(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	fallback, gamma := float32(1), float32(1)
	if n.OpType == "Selu" {
		fallback = 1.67326319217681884765625
		gamma = n.Float("gamma", 1.05070102214813232421875)
	}
	alpha := n.Float("alpha", fallback)
	if n.OpType == "Celu" {
		if !(alpha > 0) { // else it is no ELU
			try.Failf("alpha is %v, which is not supported, want a number above 0", alpha)
		}
		return im.scaled(n, bcnn.ELU, v, 1/alpha, alpha)
	}
	op := bcnn.Function{Name: bcnn.ELU}
	if alpha == 1 && gamma == 1 {
		return im.emit(n, "", op, v)
	}
	v = im.emit(n, "/elu", op, v).Value
	if !(gamma > 0) { // the PReLU below tells e^x − 1 by its sign
		try.Failf("gamma is %v, which is not supported, want a number above 0", gamma)
	}
	if gamma != 1 {
		v = im.emit(n, "/gamma", bcnn.Affine{Scale: []float32{gamma}}, v).Value
	}
	return im.emit(n, "", bcnn.PReLU{Slope: []float32{alpha}}, v)
}

// scaled returns after·f(before·v).
func (im *importer) scaled(n *pb.Node, f bcnn.FunctionName, v *build.Value, before, after float32) build.Operand {
	op := bcnn.Function{Name: f}
	if before != 1 {
		v = im.emit(n, "/before", bcnn.Affine{Scale: []float32{before}}, v).Value
	}
	if after == 1 {
		return im.emit(n, "", op, v)
	}
	v = im.emit(n, "/"+string(f), op, v).Value
	return im.emit(n, "", bcnn.Affine{Scale: []float32{after}}, v)
}

// swish imports Swish, x·sigmoid(α·x).
func (im *importer) swish(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	alpha := n.Float("alpha", 1)
	if alpha == 0 || math.IsInf(float64(1/alpha), 0) {
		return im.emit(n, "", bcnn.Affine{Scale: []float32{0.5}}, v)
	}
	return im.scaled(n, bcnn.SiLU, v, alpha, 1/alpha)
}

func (im *importer) gelu(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	form := n.Text("approximate", "none")
	switch form {
	case "none":
		return im.emit(n, "", bcnn.Function{Name: bcnn.GELU}, v)
	case "tanh":
		return im.emit(n, "", bcnn.Function{Name: bcnn.GELUTanh}, v)
	}
	panic(try.Errorf("approximate is %s, want none or tanh", text.Quote(form)))
}

// scale returns the factor of a layer that only multiplies by one number; ok is false for others.
func scale(op bcnn.Op) (factor float64, ok bool) {
	a, ok := op.(bcnn.Affine)
	if !ok || len(a.Scale) != 1 || len(a.Bias) > 0 {
		return 0, false
	}
	return float64(a.Scale[0]), true
}

// linearFrom is the number from which on softplus(x) is x in float32.
const linearFrom = 18

// linearSoftplus reports whether a Where is Where(β·x > t, x, softplus(β·x)/β) with a large t. Its
// result then is the third operand. PyTorch's newer exporter writes softplus so.
func (im *importer) linearSoftplus(operands []build.Operand) bool {
	above, x, y := operands[0].Value, operands[1].Value.Settled(), operands[2].Value.Settled()
	if above == nil || x == nil || y == nil || x.Shape != y.Shape || !x.View.Equal(y.View) {
		return false
	}
	base, t, larger, ok := above.OneSided()
	if !ok || !larger || t < linearFrom || !base.View.Equal(x.View) {
		return false
	}
	layers := im.build.Net.Layers
	layer, before, after := y.Layer, 1.0, 1.0
	if layer >= 0 {
		if by, scales := scale(layers[layer].Op); scales {
			after, layer = by, layers[layer].Inputs[0]
		}
	}
	if layer < 0 || layers[layer].Op.Kind() != string(bcnn.Softplus) || layers[layer].Inputs[0] != base.Layer {
		return false
	}
	if layer = base.Layer; layer >= 0 && layer != x.Layer {
		if by, scales := scale(layers[layer].Op); scales {
			before, layer = by, layers[layer].Inputs[0]
		}
	}
	return layer == x.Layer && math.Abs(before*after-1) < 1e-6
}

// sigmoidOf returns x if a value is 1 + e^(−x), the denominator of a sigmoid that is written out.
// ok is false for other values.
func (im *importer) sigmoidOf(n *pb.Node, v *build.Value) (x *build.Value, ok bool) {
	v = v.Settled()
	if v == nil || v.Layer < 0 {
		return nil, false
	}
	layers := im.build.Net.Layers
	one, affine := layers[v.Layer].Op.(bcnn.Affine)
	if !affine || len(one.Scale) > 0 || len(one.Bias) != 1 || one.Bias[0] != 1 {
		return nil, false
	}
	e := layers[v.Layer].Inputs[0]
	if e < 0 || layers[e].Op != bcnn.Op(bcnn.Function{Name: bcnn.Exp}) {
		return nil, false
	}
	x = v.With(n)
	x.Layer = layers[e].Inputs[0]
	if x.Layer >= 0 {
		if by, scales := scale(layers[x.Layer].Op); scales && by == -1 {
			x.Layer = layers[x.Layer].Inputs[0]
			return x, true
		}
	}
	return im.emit(n, "/negative", bcnn.Affine{Scale: []float32{-1}}, x).Value, true
}
