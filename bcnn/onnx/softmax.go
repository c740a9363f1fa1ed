package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// atEnd are the operators that only move or compare values. A Softmax in front of them is still at
// the end of the network.
var atEnd = map[string]bool{
	"ArgMax": true, "Cast": true, "Dropout": true, "Flatten": true, "Identity": true, "Reshape": true, "Shape": true,
	"Squeeze": true, "TopK": true, "Transpose": true, "Unsqueeze": true,
}

// continues reports whether a node behind n computes with its output, beyond moving and comparing
// its values.
func (im *importer) continues(n *pb.Node) bool {
	if im.inside == nil {
		im.inside = map[string]bool{}
		nodes := im.model.Graph.Nodes
		for i := len(nodes) - 1; i >= 0; i-- {
			m := nodes[i]
			try.Check(im.budget.Charge(nameUnits * int64(1+len(m.Inputs)+len(m.Outputs))))
			if !im.needed[m.Index] {
				continue
			}
			inside := !atEnd[m.OpType]
			for _, out := range m.Outputs {
				inside = inside || im.inside[out]
			}
			names := try.Value(im.reads(m))
			for k, in := range names {
				if inside && (k == 0 || !atEnd[m.OpType]) {
					im.inside[in] = true
				}
			}
		}
	}
	return im.inside[n.Outputs[0]]
}

// shares emits a softmax as layers: e^(x − max), divided by its sum.
func (im *importer) shares(n *pb.Node, v *build.Value, axes []int) build.Operand {
	most := im.reduced(n, "ReduceMax", v, axes)
	r := im.ofValues(n, "Sub", v, most)
	e := im.emit(n, "/exp", bcnn.Function{Name: bcnn.Exp}, r.Value).Value
	sum := im.reduced(n, "ReduceSum", e, axes)
	return im.ofValues(n, "Mul", e, im.reciprocal(n, sum))
}
