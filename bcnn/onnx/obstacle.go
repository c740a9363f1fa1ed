package onnx

import (
	"errors"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// errUnsupported is the reason of an operator that has no layer.
var errUnsupported = errors.New("this operator is not supported")

// errFunction is the reason of an operator that the file defines as a function of others.
var errFunction = errors.New("the file defines this operator itself, as a function")

// errNotFolded is the reason of an operator on constants that is not evaluated.
var errNotFolded = errors.New("all inputs of this operator are constant, but the importer cannot evaluate it")

// errConstant is the reason of a constant input that must be computed.
var errConstant = errors.New("is constant, but must be computed from the network's input")

// errMissing is the reason of a tensor that nothing computes.
var errMissing = errors.New("is neither an initialiser nor the first output of an earlier node")

// last are operators that only postprocess the output of a network.
var last = []string{"Hardmax"}

// integers reports whether an operator computes with integers and their scales.
func integers(op string) bool {
	return strings.HasPrefix(op, "QLinear") || op == "ConvInteger" || op == "MatMulInteger" || op == "DynamicQuantizeLinear"
}

// obstacle describes an obstacle of the builder in the terms of Options.
func obstacle(o build.Obstacle) bcnn.Obstacle {
	out := bcnn.Obstacle{Index: o.Node.Position(), Err: o.Err}
	if o.Node != nil {
		out.Node, out.Op = o.Node.Name, o.Node.Operator()
	}
	var choice *build.Choice
	switch {
	case errors.As(o.Err, &choice):
		out.Option = choice.Option
		switch choice.Option {
		case "SignOfZero":
			out.Advice = "export the sign as Where(x >= 0, 1, -1), or choose a rule with Options.SignOfZero"
		case "OverrideZeros":
			out.Advice = "export the sign as Where(x >= 0, 1, -1) if that is what was trained, or accept the other network with Options.OverrideZeros"
		}
	case errors.Is(o.Err, errMissing):
		out.Advice = "the file is incomplete: if it is from PyTorch's newer exporter, which leaves out tensors at times, export again with optimize=False"
	case errors.Is(o.Err, errFunction):
		out.Advice = "put the operators of the function in its place, with onnx.inliner.inline_local_functions"
	case errors.Is(o.Err, errNotFolded):
		out.Advice = "let ONNX Runtime compute the constant, by having it write the optimised model " +
			"(SessionOptions.optimized_model_filepath) at graph_optimization_level = ORT_ENABLE_BASIC"
	case errors.Is(o.Err, errUnsupported) && o.Node != nil && strings.HasPrefix(o.Node.Domain, contrib):
		out.Advice = "if ONNX Runtime has optimised the model, let it write that (SessionOptions.optimized_model_filepath) " +
			"at graph_optimization_level = ORT_ENABLE_BASIC, which fuses no operators to such ones, or convert the model as it was before"
	case errors.Is(o.Err, errUnsupported) && slices.Contains(last, out.Op):
		out.Advice = "export the model without it, and compute it from the output"
	case errors.Is(o.Err, errUnsupported) && o.Node != nil && integers(o.Node.OpType):
		out.Advice = "write the quantised model as QuantizeLinear and DequantizeLinear around float operators (onnxruntime: QuantFormat.QDQ)"
	case errors.Is(o.Err, errUnsupported):
		out.Advice = "a network has no layer for it: export the model without it"
	}
	return out
}

// blind reports whether a node reads a hole of unknown dimensions.
func (im *importer) blind(n *pb.Node) bool {
	return slices.ContainsFunc(n.Inputs, func(name string) bool {
		v := im.env[name].Value
		return v != nil && v.View == nil
	})
}

// unsure reports whether a node reads a hole that stands for truth values, such as a comparison of
// images. An error of such a node may only follow from the hole.
func (im *importer) unsure(n *pb.Node) bool {
	return slices.ContainsFunc(n.Inputs, func(name string) bool {
		v := im.env[name].Value
		return v != nil && v.Hole && v.Type != pb.Float
	})
}

// activations are operators that keep the dimensions of their input, as those of eval.UnaryOps do.
var activations = []string{
	"Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax", "Mish", "PRelu", "Selu", "Shrink",
	"Softmax", "Softplus", "Softsign", "Swish", "ThresholdedRelu",
}

// hole makes holes of the outputs of a node that no layer can be made of. err is nil if the only
// reason is an obstacle before it.
func (im *importer) hole(n *pb.Node, err error) error {
	if err := im.budget.Charge(nameUnits * int64(len(n.Inputs)+len(n.Outputs))); err != nil {
		return err
	}
	var reads []*build.Value
	like := &build.Value{}
	for _, name := range n.Inputs {
		if v := im.env[name].Value; v != nil {
			reads = append(reads, v)
			if v.View != nil && (like.View == nil || v.Shape.Values() > like.Shape.Values()) {
				like = v
			}
		}
	}
	typ := pb.Float
	_, unary := eval.UnaryOps[n.OpType]
	_, binary := eval.BinaryOps[n.OpType]
	if !unary && !binary && !slices.Contains(activations, n.OpType) {
		like = &build.Value{}
	} else if eval.Logical(n.OpType) || n.OpType == "Not" {
		typ = pb.Bool
	}
	for _, name := range n.Outputs {
		if name == "" {
			continue
		}
		shown := &build.Value{Shape: like.Shape, View: like.View, Type: typ}
		if shown.View == nil && len(reads) > 0 {
			if err := im.declared(name, shown); err != nil {
				return err
			}
		}
		hole := im.build.Hole(n, err, shown, reads)
		im.env[name] = build.Operand{Value: hole}
		err, reads = nil, []*build.Value{hole}
	}
	return im.build.Err()
}

// declared sets shape, view and type of v to what the file declares of a tensor, if it does, and if
// that is a vector or an image of known size.
func (im *importer) declared(name string, v *build.Value) error {
	if im.infos == nil {
		var err error
		if im.infos, err = im.model.Graph.ValueInfos(im.budget); err != nil {
			return err
		}
	}
	info, ok := im.infos[name]
	if !ok {
		return nil
	}
	size := func(i int) int {
		if d := info.Dims[i]; d.Name == "" && d.Size > 0 && d.Size <= pb.MaxSize {
			return int(d.Size)
		}
		return 0
	}
	switch len(info.Dims) {
	case 2:
		v.Shape = bcnn.Shape{H: 1, W: 1, C: size(1)}
		v.View = view.Vector(v.Shape.C)
	case 4:
		v.Shape = bcnn.Shape{H: size(2), W: size(3), C: size(1)}
		v.View = view.NCHW(v.Shape)
	default:
		return nil
	}
	v.Type = computedIn(info.Type)
	if v.Shape.H == 0 || v.Shape.W == 0 || v.Shape.C == 0 || im.build.CheckShape(v.Shape) != nil {
		v.Shape, v.View = bcnn.Shape{}, nil
	}
	return nil
}
