package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Between QuantizeLinear and DequantizeLinear files move and select integers. Layers compute with the
// same numbers in float32, which holds all of them.

// quantisedInput returns the type of the integers that a node moves or selects, if one of its inputs
// is quantised.
func (im *importer) quantisedInput(n *pb.Node) (typ pb.DataType, ok bool) {
	switch {
	case n.OpType == "Resize" || n.OpType == "Upsample":
		if n.Text("mode", "nearest") != "nearest" { // which rounds between pixels
			return 0, false
		}
	case n.Domain != "" || n.OpType == "Neg" || n.OpType == "Abs" || n.OpType == "Sign" || !slices.Contains(picks, n.OpType):
		return 0, false
	}
	for _, name := range n.Inputs {
		if v := im.env[name].Value; v != nil && !v.Hole && !v.IsStep() && v.Type.Quantised() && !im.build.Bytes(v.Layer) {
			return v.Type, true
		}
	}
	return 0, false
}

// ofIntegers imports an operator on quantised values. ok is false for other operators and values.
func (im *importer) ofIntegers(n *pb.Node, f handler) (r build.Operand, ok bool) {
	typ, ok := im.quantisedInput(n)
	if !ok {
		return r, false
	}
	for _, name := range n.Inputs {
		r, known := im.env[name]
		if !known && im.model.Graph.Initializers[name] != nil {
			r = im.lookup(name)
		}
		switch {
		case r.Value != nil && r.Value.Type == typ:
			if v, pending := r.Value.Convert(n, pb.Float); pending {
				im.env[name] = build.Operand{Value: v}
			} else {
				im.env[name] = build.Operand{Value: im.build.Integers(n, r.Value)}
			}
		case r.Constant != nil && r.Constant.Type == typ:
			im.env[name] = build.Operand{Constant: im.eval.Cast(pb.Float)([]*eval.Tensor{r.Constant})}
		default:
			continue
		}
		defer func() { im.env[name] = r }()
	}
	r = im.integers(n, im.inFloat(n, f), typ)
	for _, name := range n.Outputs[1:] {
		if out, ok := im.env[name]; ok {
			im.env[name] = im.integers(n, out, typ)
		}
	}
	return r, true
}

// integers returns a result of integers as one of their type.
func (im *importer) integers(n *pb.Node, r build.Operand, typ pb.DataType) build.Operand {
	v := r.Value
	if v == nil || v.Hole || v.Type != pb.Float {
		return r
	}
	out, pending := v.Convert(n, typ)
	if !pending {
		out = im.build.Settle(v).With(n)
		out.Type = typ
	}
	return build.Operand{Value: out}
}
