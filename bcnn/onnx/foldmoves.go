package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Evaluation of operators that move the values of constants, and of products.

func foldGatherND(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	batch := n.Int("batch_dims", 0)
	return im.eval.GatherND(c.at(0), c.at(1), int(max(-1, min(batch, pb.MaxRank))))
}

func foldCompress(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	if !n.Has("axis") {
		return im.eval.Compress(c.at(0).Redim([]int{c.at(0).Len()}), c.at(1), 0)
	}
	axis := axisOf(n, c.at(0))
	return im.eval.Compress(c.at(0), c.at(1), axis)
}

func foldTrilu(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	upper := n.Bit("upper", 1)
	return im.eval.Trilu(c.at(0), diagonal(integerOf(c, 1, 0)), upper != 0)
}

// diagonal limits the number of a diagonal to what matrices of the largest size have.
func diagonal(k int64) int64 { return max(-2*pb.MaxSize, min(k, 2*pb.MaxSize)) }

func foldEyeLike(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	typ := pb.DataType(n.Int("dtype", int64(c.at(0).Type)))
	return im.eval.EyeLike(typ, c.at(0).Dims, diagonal(n.Int("k", 0)))
}

func foldReverseSequence(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	rank := len(c.at(0).Dims)
	batch, time := axisIndex(n.Int("batch_axis", 1), rank), axisIndex(n.Int("time_axis", 0), rank)
	return im.eval.ReverseSequence(c.at(0), c.at(1), batch, time)
}

// blocks returns the block size of DepthToSpace or SpaceToDepth, and the four dimensions of the
// constant.
func blocks(n *pb.Node, t *eval.Tensor) (size int, d []int) {
	b := n.Int("blocksize", 0)
	if len(t.Dims) != 4 || b < 1 || b > pb.MaxSize {
		try.Failf("blocksize %d is not possible for a constant of shape %v: want at least 1, and 4 dimensions", b, t.Dims)
	}
	return int(b), t.Dims
}

func foldDepthToSpace(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	b, d := blocks(n, c.at(0))
	mode := n.Text("mode", "DCR")
	if d[1]%(b*b) != 0 || mode != "DCR" && mode != "CRD" {
		try.Failf("mode %s with blocksize %d is not possible for %d channels: want DCR or CRD, and a multiple of blocksize² channels", text.Quote(mode), b, d[1])
	}
	t, perm := c.at(0).Redim([]int{d[0], b, b, d[1] / b / b, d[2], d[3]}), []int{0, 3, 4, 1, 5, 2}
	if mode == "CRD" {
		t, perm = c.at(0).Redim([]int{d[0], d[1] / b / b, b, b, d[2], d[3]}), []int{0, 1, 4, 2, 5, 3}
	}
	return im.eval.Transpose(t, perm).Redim([]int{d[0], d[1] / b / b, d[2] * b, d[3] * b})
}

func foldSpaceToDepth(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	b, d := blocks(n, c.at(0))
	if d[2]%b != 0 || d[3]%b != 0 {
		try.Failf("blocksize %d does not divide the height and width of a constant of shape %v", b, d)
	}
	perm := []int{0, 3, 5, 1, 2, 4}
	switch mode := n.Text("mode", "DCR"); mode {
	case "DCR":
	case "CRD":
		perm = []int{0, 1, 3, 5, 2, 4}
	default:
		try.Failf("mode %s is not supported, want DCR or CRD", text.Quote(mode))
	}
	t := im.eval.Transpose(c.at(0).Redim([]int{d[0], d[1], d[2] / b, b, d[3] / b, b}), perm)
	return t.Redim([]int{d[0], d[1] * b * b, d[2] / b, d[3] / b})
}

func foldPad(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	t, mode := c.at(0), n.Text("mode", "constant")
	fill := eval.Scalar(t.Type, float64(n.Float("value", 0)))
	if given := c.at(2); given != nil {
		if fill = given; fill.Len() != 1 || fill.Type != t.Type {
			try.Failf("the value of the padding is %v of shape %v, want one number of %v", fill.Type, fill.Dims, t.Type)
		}
	}
	pads := n.Ints("pads")
	if pads == nil {
		if c.at(1) == nil {
			try.Failf("input 1 is missing")
		}
		pads = try.Value(c.at(1).Integers())
	}
	axes, ok := im.axes(n, 3, len(t.Dims))
	if !ok {
		for d := range t.Dims {
			axes = append(axes, d)
		}
	}
	if len(pads) != 2*len(axes) {
		try.Failf("it has %d pads for %d axes, want two for each", len(pads), len(axes))
	}
	positions := make([][]int, len(t.Dims))
	for d, size := range t.Dims {
		begin, end := int64(0), int64(0)
		if i := slices.Index(axes, d); i >= 0 {
			begin, end = pads[i], pads[len(axes)+i]
		}
		if max(begin, end) > pb.MaxSize || min(begin, end) < -pb.MaxSize || begin+end < -int64(size) {
			try.Failf("pads %d and %d are not possible for a dimension of %d", begin, end, size)
		}
		positions[d] = im.foldPositions(mode, size, int(begin), int(end))
	}
	return im.eval.Pad(t, positions, fill)
}

// foldPositions returns, for each position of a padded or cropped dimension, the position of the
// constant that it has, −1 for the fill value.
func (im *importer) foldPositions(mode string, size, begin, end int) []int {
	if mode != "constant" && (begin > 0 || end > 0) {
		list := im.padPositions(mode, size, begin, end)
		return try.Value(budget.List(im.budget, len(list), func(i int) int { return int(list[i]) }))
	}
	return try.Value(budget.List(im.budget, max(size+begin+end, 0), func(i int) int {
		if i -= begin; i >= 0 && i < size {
			return i
		}
		return -1
	}))
}

// foldCenterCropPad evaluates CenterCropPad, which crops and pads with zeros, the same on both
// sides.
func foldCenterCropPad(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	t := c.at(0)
	want := try.Value(c.at(1).Integers())
	list := n.Ints("axes")
	if list == nil {
		for d := range t.Dims {
			list = append(list, int64(d))
		}
	}
	if len(list) != len(want) {
		try.Failf("it has %d sizes for %d axes, want one for each", len(want), len(list))
	}
	positions := make([][]int, len(t.Dims))
	for d, size := range t.Dims {
		positions[d] = im.foldPositions("constant", size, 0, 0)
	}
	for i, a := range list {
		d := axisIndex(a, len(t.Dims))
		size := t.Dims[d]
		if want[i] < 0 || want[i] > pb.MaxSize {
			try.Failf("a size of %d is negative or too large", want[i])
		}
		more := int(want[i]) - size
		begin := more / 2
		if more < 0 { // of an odd number the larger part is cropped at the end
			begin = -(-more / 2)
		}
		positions[d] = im.foldPositions("constant", size, begin, more-begin)
	}
	return im.eval.Pad(t, positions, eval.Scalar(t.Type, 0))
}

func foldEinsum(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	return im.eval.Einsum(n.Text("equation", ""), c.all())
}

// foldGemm evaluates alpha·A·B + beta·C.
func foldGemm(im *importer, n *pb.Node, c arguments) *eval.Tensor {
	a, b := c.at(0), c.at(1)
	if len(a.Dims) != 2 || len(b.Dims) != 2 {
		try.Failf("its operands have shapes %v and %v, want two matrices", a.Dims, b.Dims)
	}
	if n.Bit("transA", 0) != 0 {
		a = im.eval.Transpose(a, []int{1, 0})
	}
	if n.Bit("transB", 0) != 0 {
		b = im.eval.Transpose(b, []int{1, 0})
	}
	t := im.eval.MatMul(a, b)
	if alpha := n.Float("alpha", 1); alpha != 1 {
		t = im.computed(t, []string{"Mul"}, eval.Scalar(t.Type, float64(alpha)))
	}
	bias, beta := c.at(2), n.Float("beta", 1)
	if bias == nil {
		return t
	}
	if beta != 1 {
		bias = im.computed(bias, []string{"Mul"}, eval.Scalar(t.Type, float64(beta)))
	}
	if dims := try.Value(eval.Broadcast(t.Dims, bias.Dims)); !slices.Equal(dims, t.Dims) {
		try.Failf("input C has shape %v, which cannot be broadcast to the product of shape %v", bias.Dims, t.Dims)
	}
	return im.computed(t, []string{"Add"}, bias)
}
