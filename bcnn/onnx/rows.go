package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Rows: networks on point clouds make one matrix of the points of all images, x.view(-1, C),
// multiply it, and split it again. The first dimension of the matrix joins the batch with positions
// of an image. No layer joins images, so operators see the matrix as batch, positions and channels.

// isRows reports whether the first dimension of a value joins the batch with positions.
func isRows(v *build.Value) bool {
	return v != nil && len(v.View) > 0 && len(v.View[0]) > 1 && v.View[0][0].Axis == view.N
}

// unrolled splits the first dimension of rows into batch and positions.
func unrolled(v *build.Value) *build.Value {
	out := v.With(v.Node)
	out.View = slices.Concat(view.View{view.Batch, v.View[0][1:]}, v.View[1:])
	return out
}

// rolled joins the first two dimensions, batch and positions. It is the inverse of unrolled.
func rolled(v *build.Value) *build.Value {
	if len(v.View) < 2 || !view.IsBatch(v.View[0]) {
		try.Failf("its first dimension must stay the batch joined with positions")
	}
	out := v.With(v.Node)
	out.View = slices.Concat(view.View{slices.Concat(view.Batch, v.View[1])}, v.View[2:])
	return out
}

// ofEach are the operators that treat every value alike, or every vector of the last dimension.
var ofEach = []string{
	"BipolarQuant", "Cast", "Celu", "Clip", "DequantizeLinear", "Dropout", "Elu", "Gelu", "HardSigmoid",
	"HardSwish", "Identity", "LeakyRelu", "MatMul", "Mish", "PRelu", "Quant", "QuantizeLinear", "Selu", "Shrink", "Softplus",
	"Softsign", "Sum", "Swish", "ThresholdedRelu", "Where",
}

// ofLast are operators of vectors of the last dimension.
var ofLast = []string{"BatchNormalization", "Gemm", "LogSoftmax", "MatMul", "Softmax"}

// eachRow reports whether a node computes every row of what it reads by itself, and returns it as one that
// still does where the first dimension is split, and the rank of the rows.
func (im *importer) eachRow(n *pb.Node) (_ *pb.Node, rank int, each bool) {
	for _, name := range n.Inputs {
		if v := im.env[name].Value; isRows(v) {
			rank = max(rank, len(v.View))
		}
	}
	_, unary := eval.UnaryOps[n.OpType]
	_, binary := eval.BinaryOps[n.OpType]
	each = unary || binary || slices.Contains(ofEach, n.OpType)
	first := isRows(im.env[n.Input(0)].Value)
	switch n.OpType {
	case "Softmax", "LogSoftmax":
		each = n.Int("axis", -1) == -1 && im.model.Opset >= 13
	case "BatchNormalization", "Gemm":
		each = first
	case "Gather":
		each = im.lookup(n.Input(0)).Constant != nil
	case "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare":
		if each = first; each {
			n, each = im.behindRows(n)
		}
	}
	return n, rank, each && !(rank == 1 && slices.Contains(ofLast, n.OpType)) // which would be of all images together
}

// ofRows imports a node that reads rows, as one that reads batch, positions and channels. ok is
// false for any other node, and for Reshape, which splits rows.
func (im *importer) ofRows(n *pb.Node, f handler) (r build.Operand, ok bool) {
	if !slices.ContainsFunc(n.Inputs, im.isRows) || n.OpType == "Reshape" {
		return r, false
	}
	n, rank, each := im.eachRow(n)
	if !each {
		if n.OpType == "Conv" && im.isRows(n.Input(1)) {
			im.required(n, 1) // fails: weights of each image
		}
		try.Failf("the first dimension of its input joins the batch with positions, which this operator does not support: " +
			"Reshape it to batch, positions and channels before")
	}
	for _, name := range im.rowInputs(n, rank) {
		was := im.env[name]
		im.env[name] = build.Operand{Value: unrolled(was.Value)}
		defer func() { im.env[name] = was }()
	}
	switch n.OpType {
	case "Gemm":
		f = (*importer).rowsGemm
	case "BatchNormalization":
		f = (*importer).rowsNorm
	}
	r = im.inFloat(n, f)
	if r.Value != nil {
		r.Value = rolled(r.Value)
	}
	return r, true
}

// isRows reports whether a tensor is rows.
func (im *importer) isRows(name string) bool { return isRows(im.env[name].Value) }

// rowInputs returns which inputs of a node are rows. It fails if another one does not fit them.
func (im *importer) rowInputs(n *pb.Node, rank int) (rows []string) {
	for i, name := range n.Inputs {
		if name == "" || i > 0 && (n.OpType == "BatchNormalization" || n.OpType == "Gemm") {
			continue
		}
		switch t := im.lookup(name).Constant; {
		case slices.Contains(rows, name):
		case im.isRows(name):
			rows = append(rows, name)
		case t == nil:
			try.Failf("one input has the batch joined with positions, another one has it as a dimension of its own: Reshape them alike")
		case len(t.Dims) > min(rank, 2) || rank == 1 && t.Len() != 1 && n.OpType != "Gather" || len(t.Dims) == 2 && t.Dims[0] != 1 && n.OpType != "MatMul":
			try.Failf("a constant of shape %v does not fit an input whose first dimension joins the batch with positions: want one number, or one per channel", t.Dims)
		}
	}
	return rows
}

// behindRows returns a reduction of rows with its axes counted from the last dimension, which is the
// same one when the first is split. ok is false if it reduces rows to one.
func (im *importer) behindRows(n *pb.Node) (_ *pb.Node, ok bool) {
	rank := len(im.lookup(n.Input(0)).Value.View)
	axes, _ := im.axes(n, 1, rank)
	list := make([]int64, len(axes))
	for i, a := range axes {
		list[i] = int64(a - rank)
	}
	m := *n
	m.Inputs = n.Inputs[:1]
	m.Attrs = append(slices.DeleteFunc(slices.Clone(n.Attrs), func(a *pb.Attribute) bool { return a.Name == "axes" }),
		&pb.Attribute{Name: "axes", Type: pb.AttrInts, Is: list})
	return &m, len(axes) > 0 && !slices.Contains(axes, 0)
}

// rowsGemm imports alpha·A·B + beta·C for rows A: a 1×1 convolution.
func (im *importer) rowsGemm(n *pb.Node) build.Operand {
	transA := n.Bit("transA", 0)
	w := im.required(n, 1)
	c := im.constant(n, 2)
	if transA != 0 || len(w.Dims) != 2 || w.Type != pb.Float {
		try.Failf("its weights are %v of shape %v and transA is %d, want FLOAT with 2 dimensions and transA 0", w.Type, w.Dims, transA)
	}
	if transB := n.Bit("transB", 0); transB != 0 {
		w = im.eval.Transpose(w, []int{1, 0})
	}
	if alpha := n.Float("alpha", 1); alpha != 1 {
		w = im.computed(w, []string{"Mul"}, eval.Scalar(pb.Float, float64(alpha)))
	}
	v := im.build.Movable(im.value(n, 0))
	try.Check(v.CheckReal())
	k, out := w.Dims[0], w.Dims[1]
	v = im.channelled(n, v, k)
	if last := lastOf(v); k != v.Shape.C || !view.Only(last, view.C) || view.Product(last) != k || out == 0 {
		try.Failf("weights of %d inputs do not fit rows of %d values (stored as %v, height×width×channels): the last dimension must be the channels",
			k, view.Product(last), v.Shape)
	}
	return im.pixelDense(n, v, w, im.denseBias(c, out, n.Float("beta", 1)))
}

// rowsNorm imports BatchNormalization of rows, whose channels are the last dimension.
func (im *importer) rowsNorm(n *pb.Node) build.Operand {
	swap := []int{0, 2, 1}
	r := im.operand(n, 0)
	if rankOf(r) != 3 {
		try.Failf("its input has %d dimensions behind the rows, want 1", rankOf(r)-2)
	}
	v := im.build.Movable(r.Value)
	r.Value = im.channelled(n, v, v.Size(2))
	m := *n
	m.Inputs = slices.Clone(n.Inputs)
	m.Inputs[0] = im.alias(n.Input(0), "as batch, channels, positions", im.permute(n, r, swap))
	return im.permute(n, im.batchNorm(&m), swap)
}

// rowsOf returns the dimensions behind the batch, positions first, if a Reshape of images of total
// values joins the batch with positions. Otherwise it returns nil. The first dimension of such a
// shape is −1, or batch size times positions.
func (im *importer) rowsOf(total int, shape *eval.Tensor) []int {
	want := shape.I64
	if len(want) == 0 || len(want) == 1 && im.batch == 1 { // a line, see gatherLine
		return nil
	}
	positions := 0
	switch first := want[0]; {
	case shape.Marked(0):
		positions = int(first)
	case first > 0 && im.batch > 0 && first%int64(im.batch) == 0:
		positions = int(first / int64(im.batch))
	case first != -1:
		return nil
	}
	dims, free, rest := []int{positions}, 0, 1
	for i, d := range want[1:] {
		if d == -1 && positions > 0 && free == 0 {
			free, d = i+1, 1
		}
		if d < 1 || d > int64(total) || rest > total/int(d) || shape.Marked(i+1) {
			return nil
		}
		dims, rest = append(dims, int(d)), rest*int(d)
	}
	switch {
	case positions == 0:
		dims[0] = total / rest
	case free > 0:
		dims[free] = total / rest / positions
	}
	if dims[0] < 2 || try.Value(eval.Count(dims)) != total {
		return nil
	}
	return dims
}
