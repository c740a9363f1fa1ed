package onnx

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Sequences of tensors. PyTorch's older exporter writes them for the parts of a split or an unbind,
// and for what a script puts together again. A network has none: an Operand lists the tensors,
// which are read one by one.

// partUnits is the cost of a tensor of a sequence.
const partUnits = 128

// sequence returns the tensors of input i, which must be a sequence.
func (im *importer) sequence(n *pb.Node, i int) []build.Operand {
	name := n.Input(i)
	r, ok := im.env[name]
	if !ok || r.Parts == nil {
		try.Failf("input %d (%s) is not a sequence of tensors", i, text.Quote(name))
	}
	try.Check(im.budget.Charge(partUnits * int64(1+len(r.Parts))))
	return r.Parts
}

// place returns the position in a sequence of size tensors that input i gives, from 0 to end, or
// end if it is left out. Negative positions count from the end.
func (im *importer) place(n *pb.Node, i, size, end int) int {
	t := im.constant(n, i)
	if t == nil {
		return end
	}
	list := try.Value(t.Integers())
	if len(list) != 1 || list[0] < -int64(size) || list[0] > int64(end) {
		try.Failf("position %v is not one that exists in a sequence of %d tensors", list[:min(len(list), pb.MaxRank)], size)
	}
	if list[0] < 0 {
		list[0] += int64(size)
	}
	return int(list[0])
}

func (im *importer) sequenceEmpty(*pb.Node) build.Operand {
	return build.Operand{Parts: []build.Operand{}}
}

func (im *importer) sequenceConstruct(n *pb.Node) build.Operand {
	try.Check(im.budget.Charge(partUnits * int64(len(n.Inputs))))
	parts := make([]build.Operand, len(n.Inputs))
	for i := range parts {
		parts[i] = im.operand(n, i)
	}
	return build.Operand{Parts: parts}
}

func (im *importer) sequenceAt(n *pb.Node) build.Operand {
	parts := im.sequence(n, 0)
	if len(parts) == 0 || n.Input(1) == "" {
		try.Failf("the position is missing, or the sequence is empty (%d tensors)", len(parts))
	}
	i := im.place(n, 1, len(parts), len(parts)-1)
	return parts[i]
}

func (im *importer) sequenceInsert(n *pb.Node) build.Operand {
	parts := im.sequence(n, 0)
	r := im.operand(n, 1)
	i := im.place(n, 2, len(parts), len(parts))
	return build.Operand{Parts: slices.Insert(slices.Clone(parts), i, r)}
}

func (im *importer) sequenceErase(n *pb.Node) build.Operand {
	parts := im.sequence(n, 0)
	if len(parts) == 0 {
		try.Failf("the sequence is empty")
	}
	i := im.place(n, 1, len(parts), len(parts)-1)
	rest := append([]build.Operand{}, parts[:i]...)
	return build.Operand{Parts: append(rest, parts[i+1:]...)}
}

func (im *importer) sequenceLength(n *pb.Node) build.Operand {
	parts := im.sequence(n, 0)
	return build.Operand{Constant: eval.Scalar(pb.Int64, float64(len(parts)))}
}

// splitToSequence imports SplitToSequence: parts of given sizes, of one size (the last may be
// smaller), or of 1.
func (im *importer) splitToSequence(n *pb.Node) build.Operand {
	r, whole, axis := im.alongAxis(n)
	given := im.constant(n, 1)
	keep := n.Bit("keepdims", 1)
	each := int64(1)
	var sizes []int64
	if given != nil {
		sizes = try.Value(given.Integers())
		if len(given.Dims) == 0 {
			each, sizes = sizes[0], nil
		}
	}
	if sizes == nil {
		if each < 1 {
			try.Failf("parts of size %d are not possible, want at least 1", each)
		}
		count := (int64(whole[axis]) + each - 1) / each
		try.Check(im.budget.Charge(partUnits * count))
		for rest := int64(whole[axis]); rest > 0; rest -= each {
			sizes = append(sizes, min(each, rest))
		}
	}
	parts := im.splitOperand(n, r, axis, sizes)
	if given != nil || keep != 0 {
		return build.Operand{Parts: parts}
	}
	for i, p := range parts {
		parts[i] = im.reshaped(n, p, "Squeeze", int64(axis))
	}
	return build.Operand{Parts: parts}
}

// reshaped squeezes or unsqueezes one axis of an operand.
func (im *importer) reshaped(n *pb.Node, r build.Operand, op string, axis int64) build.Operand {
	m := *n
	m.OpType = op
	m.Inputs = []string{im.alias(n.Input(0), "as a part", r)}
	m.Attrs = []*pb.Attribute{{Name: "axes", Type: pb.AttrInts, Is: []int64{axis}}}
	return im.squeeze(&m, op == "Unsqueeze")
}

// concatFromSequence imports ConcatFromSequence: Concat of the tensors, which may get a new
// dimension first.
func (im *importer) concatFromSequence(n *pb.Node) build.Operand {
	parts := im.sequence(n, 0)
	if len(parts) == 0 {
		try.Failf("the sequence is empty")
	}
	if !n.Has("axis") {
		try.Failf("its axis is missing")
	}
	axis := n.Int("axis", 0)
	added := n.Bit("new_axis", 0)
	m := *n
	m.OpType = "Concat"
	m.Inputs = make([]string, len(parts))
	m.Attrs = []*pb.Attribute{{Name: "axis", Type: pb.AttrInt, I: axis}}
	for i, p := range parts {
		if added != 0 {
			p = im.reshaped(n, p, "Unsqueeze", axis)
		}
		m.Inputs[i] = im.alias(n.Input(0), fmt.Sprintf("part %d", i), p)
	}
	return im.concat(&m)
}
