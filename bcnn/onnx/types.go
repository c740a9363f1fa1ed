package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A network computes in float32 what a file computes in FLOAT16, BFLOAT16 or DOUBLE. Here such
// values are FLOAT, and so are the constants that a node reads beside them. Constants are evaluated
// in the type of the file, so that signs and levels of weights are those of the file. A Cast to a
// type of 16 bits rounds; the results of other operators are not rounded, which Report.Deviations
// says.

// fractionBits are the bits of the fraction of the real types other than FLOAT.
var fractionBits = map[pb.DataType]int{pb.Float16: 10, pb.BFloat16: 7, pb.Double: 52}

// computedIn returns the type in which the network computes a tensor of a type of the file.
func computedIn(typ pb.DataType) pb.DataType {
	if typ.Real() {
		return pb.Float
	}
	return typ
}

// inFloat calls the handler of a node. If the node reads a value, its real constants are converted
// to FLOAT for the call. inFloat also notes which tensors have another real type in the file, and
// what their rounding may do to weights (Builder.Rounding), and which constants are quantised.
func (im *importer) inFloat(n *pb.Node, f handler) build.Operand {
	cast := n.OpType == "Cast" || n.OpType == "CastLike"
	if cast {
		im.target = im.castTarget(n)
	}
	typ, constants := im.realInputs(n)
	for _, name := range constants {
		r := im.env[name]
		im.env[name] = build.Operand{Constant: im.eval.Cast(pb.Float)([]*eval.Tensor{r.Constant})}
		defer func() { im.env[name] = r }()
	}
	im.build.Quantised = slices.ContainsFunc(n.Inputs, func(name string) bool { return im.quantised[name] })
	r := f(im, n)
	if r.Constant != nil && (slices.Contains(quantisers, n.OpType) || im.build.Quantised && slices.Contains(picks, n.OpType)) {
		im.quantised[n.Outputs[0]] = true
	}
	if cast && r.Value != nil {
		typ = im.target
	}
	im.noteType(n, r, typ, cast && typ != pb.Double || slices.Contains(picks, n.OpType))
	return r
}

// realInputs returns the first real type other than FLOAT that a node reads in the file, and its
// constants of such types, if it reads a value. It sets what weights may be off by their rounding.
func (im *importer) realInputs(n *pb.Node) (typ pb.DataType, constants []string) {
	typ = pb.Float
	exact := im.opts.WeightTolerance != 0 && im.opts.WeightTolerance != DefaultWeightTolerance // as the options say
	if im.build.Rounding = 0; !exact {
		im.build.Rounding = weights.OfFloat32
	}
	if !slices.ContainsFunc(n.Inputs, func(name string) bool { return im.env[name].Value != nil }) {
		return typ, nil
	}
	for _, name := range n.Inputs {
		if _, made := im.env[name]; name == "" || !made && im.model.Graph.Initializers[name] == nil {
			continue // the handler reports what is missing
		}
		r := im.lookup(name)
		of, ok := im.types[name]
		if r.Constant != nil {
			of = r.Constant.Type
			ok = fractionBits[of] > 0
		}
		if ok && typ == pb.Float {
			typ = of
		}
		if !ok || r.Constant == nil {
			continue
		}
		if of != pb.Double && !exact {
			im.build.Rounding = math.Ldexp(1, -fractionBits[of])
		}
		if !slices.Contains(constants, name) {
			constants = append(constants, name)
		}
	}
	return typ, constants
}

// noteType notes the type that the file computes the outputs of a node in, where it is another real
// one than FLOAT; exact says that the network computes the same.
func (im *importer) noteType(n *pb.Node, r build.Operand, typ pb.DataType, exact bool) {
	if fractionBits[typ] == 0 {
		return
	}
	for _, name := range n.Outputs {
		if v := im.env[name].Value; name == n.Outputs[0] && r.Value != nil && r.Value.Type == pb.Float || v != nil && v.Type == pb.Float {
			im.types[name] = typ
			if !exact {
				im.unrounded[typ]++
			}
		}
	}
}

// quantisers are operators whose results are integers times a scale.
var quantisers = []string{"DequantizeLinear", "Quant", "IntQuant", "BipolarQuant", "FakeQuantize"}

// picks are operators whose results are numbers of their first input, or their negatives, so that a
// type holds them that holds the input.
var picks = []string{
	"Abs", "Clip", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "Identity",
	"Max", "MaxPool", "Min", "Neg", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze",
	"ThresholdedRelu", "Tile", "TopK", "Transpose", "Unsqueeze", "Where",
}

// castTarget returns the type that a Cast or CastLike gives.
func (im *importer) castTarget(n *pb.Node) pb.DataType {
	if n.OpType == "Cast" {
		return pb.DataType(n.Int("to", 0))
	}
	typ, _ := im.typeOf(n.Input(1)) // else the handler fails
	return typ
}

// deviations returns Report.Deviations.
func (im *importer) deviations() []string {
	var said []string
	if im.cut != "" {
		said = append(said, im.cut)
	}
	if newest := newestOpset(); im.model.Opset > newest {
		said = append(said, fmt.Sprintf("its operator set, %d, is newer than the newest one known here, %d, as which its operators are read: if one of them has changed since then, the results are wrong; opset_version=%d of the exporter, or onnx.version_converter, makes sure",
			im.model.Opset, newest, newest))
	}
	for _, typ := range []pb.DataType{pb.Float16, pb.BFloat16, pb.Double} {
		n := im.unrounded[typ]
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("1 tensor of %v is computed in float32", typ)
		if n > 1 {
			text = fmt.Sprintf("%d tensors of %v are computed in float32", n, typ)
		}
		unit := math.Ldexp(1, -fractionBits[typ]-1)
		switch typ {
		case pb.Double:
			text += fmt.Sprintf(", which rounds each value by up to %.2g of it and has no numbers above 3.4e38", math.Ldexp(1, -24))
		case pb.Float16:
			text += fmt.Sprintf(": without the file's rounding of each value by up to %.2g of it, and with numbers above 65504, which are infinite in the file", unit)
		case pb.BFloat16:
			text += fmt.Sprintf(": without the file's rounding of each value by up to %.2g of it", unit)
		}
		said = append(said, text)
	}
	return said
}
