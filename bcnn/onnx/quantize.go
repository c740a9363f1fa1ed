package onnx

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// binarize imports Binarize of domain bitcnn: bytes of the input to ±1, see bcnn.Binarize.
func (im *importer) binarize(n *pb.Node) build.Operand {
	v := im.value(n, 0)
	if !im.build.Bytes(v.Layer) {
		try.Failf("it must read the graph's input directly, as UINT8")
	}
	if v.Func != nil {
		try.Failf("it must read the graph's input directly, without operators between")
	}
	try.Check(v.CheckImage())
	scheme := n.Text("scheme", "")
	list := n.Ints("thresholds")
	op := bcnn.Binarize{Scheme: bcnn.Scheme(scheme)}
	try.Check(im.budget.Charge(8 * int64(len(list))))
	for _, t := range list {
		if t < math.MinInt32 || t > math.MaxInt32 {
			try.Failf("threshold %d does not fit into 32 bits", t)
		}
		op.Thresholds = append(op.Thresholds, int32(t))
	}
	shape := v.Shape
	switch op.Scheme {
	case bcnn.SchemeGrey:
		shape.C = 1
	case bcnn.SchemeLBP:
		shape.C = 3
	}
	if !v.View.Equal(view.NCHW(v.Shape)) && shape == v.Shape {
		try.Failf("a Transpose before it is not supported")
	}
	out := im.build.Emit(n, "", op, shape, v)
	out.View = view.NCHW(shape)
	return build.Operand{Value: out}
}
