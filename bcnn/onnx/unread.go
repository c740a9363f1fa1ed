package onnx

import (
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// What a node says and its handler does not read would be computed otherwise than the file has it,
// so it is an error: an attribute that is not at its default, and any input.

// immaterial are the attributes ("Operator.name") and inputs ("Operator/position") that change
// nothing here, with the reason.
var immaterial = map[string]string{
	"BatchNormalization.momentum": "of training alone",
	"Cast.round_mode":             "of 8-bit floats, which are refused",
	"Cast.saturate":               "of 8-bit floats, which are refused",
	"CastLike.round_mode":         "of 8-bit floats, which are refused",
	"CastLike.saturate":           "of 8-bit floats, which are refused",
	"Dropout.ratio":               "of training alone",
	"Dropout.seed":                "of training alone",
	"Dropout/1":                   "ratio, of training alone",
	"If.else_branch":              "the branch that the condition does not take",
	"If.then_branch":              "the branch that the condition does not take",
	"Im2Col.input_shape":          "an annotation: the input has its shape",
	"MaxPool.storage_order":       "of the indices alone, which are refused",
	"MultiThreshold.out_dtype":    "an annotation: out_scale and out_bias say which values there are",
	"QuantizeLinear.saturate":     "of 8-bit floats, which are refused",
	"Resize.extrapolation_value":  "of the coordinates tf_crop_and_resize alone, which are refused",
	"Resize/1":                    "roi, of the coordinates tf_crop_and_resize alone, which are refused",
	"SequenceEmpty.dtype":         "what is put into the sequence has its type",
	"TopK.sorted":                 "sorted values are right whether or not they have to be",
}

// checkRead fails if the handler of a node has left something of it unread.
func (im *importer) checkRead(n *pb.Node) {
	attributes, inputs := n.Unread()
	if len(attributes)+len(inputs) == 0 {
		return
	}
	try.Check(im.budget.Charge(nodeUnits * int64(1+len(attributes)+len(inputs))))
	for _, i := range inputs {
		if immaterial[position(n.OpType, i)] == "" {
			try.Failf("input %d (%s) is not read here", i, text.Quote(n.Inputs[i]))
		}
	}
	for _, a := range attributes {
		if immaterial[n.OpType+"."+a.Name] != "" {
			continue
		}
		of, known := im.schemaOf(n, a.Name)
		switch {
		case !known:
			try.Failf("attribute %s is not one that the operator has in operator set %d", text.Quote(a.Name), im.model.Opset)
		case of.fallback == "":
			try.Failf("attribute %s is not read here", text.Quote(a.Name))
		case !a.Equal(of.typ, of.fallback):
			try.Failf("attribute %s is not read here: only %s is supported", text.Quote(a.Name), of.fallback)
		}
	}
}

// position is how inputs are named in immaterial.
func position(op string, i int) string { return op + "/" + strconv.Itoa(i) }

// generalDomain is the domain of QONNX whose operators schemas.tsv has. Those of Brevitas and FINN
// are the same.
const generalDomain = "qonnx.custom_op.general"

// contrib is the domain of ONNX Runtime's own operators.
const contrib = "com.microsoft"

// schemaName returns the name that schemas.tsv has of a node's operator.
func schemaName(n *pb.Node) string {
	switch n.Domain {
	case "", "qonnx.custom_op.channels_last": // which takes what ONNX's operators take
		return n.OpType
	case contrib: // whose operators that are read here are those of ONNX
		return n.OpType
	case generalDomain, "onnx.brevitas", "finn.custom_op.general":
		return generalDomain + "." + n.OpType
	}
	return n.Operator()
}

// schemaOf returns what the schema of a node's operator says of an attribute: in the operator set of
// the model or, where that lacks it, in another one, since exporters write attributes of both.
func (im *importer) schemaOf(n *pb.Node, name string) (attribute, bool) {
	versions := signatures()[schemaName(n)]
	for _, s := range append([]signature{signatureAt(versions, im.model.Opset)}, versions...) {
		if i := slices.IndexFunc(s.attributes, func(a attribute) bool { return a.name == name }); i >= 0 {
			return s.attributes[i], true
		}
	}
	return attribute{}, false
}
