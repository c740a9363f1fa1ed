package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Lists of tensors, as PyTorch's older exporter writes the parts of a split, an unbind and
// what a script puts together again. A network has none: the tensors go where they are read.

// partUnits is what a tensor of a list costs.
const partUnits = 128

// sequence returns an input that is a list of tensors.
func (im *importer) sequence(n *pb.Node, i int) ([]build.Operand, error) {
	name := n.Input(i)
	r, ok := im.env[name]
	if !ok || r.Parts == nil {
		return nil, fmt.Errorf("input %d (%s) is no sequence", i, text.Quote(name))
	}
	return r.Parts, im.budget.Charge(partUnits * int64(1+len(r.Parts)))
}

// place returns the position in a list that an input gives, the end without one. Those below 0
// count from the end.
func (im *importer) place(n *pb.Node, i, size, end int) (int, error) {
	t, err := im.constant(n, i)
	if err != nil || t == nil {
		return end, err
	}
	list, err := t.Integers()
	if err != nil {
		return 0, err
	}
	if len(list) != 1 || list[0] < -int64(size) || list[0] > int64(end) {
		return 0, fmt.Errorf("position %v of %d tensors", list[:min(len(list), pb.MaxRank)], size)
	}
	if list[0] < 0 {
		list[0] += int64(size)
	}
	return int(list[0]), nil
}

func (im *importer) sequenceEmpty(*pb.Node) (build.Operand, error) {
	return build.Operand{Parts: []build.Operand{}}, nil
}

func (im *importer) sequenceConstruct(n *pb.Node) (build.Operand, error) {
	if err := im.budget.Charge(partUnits * int64(len(n.Inputs))); err != nil {
		return build.Operand{}, err
	}
	parts := make([]build.Operand, len(n.Inputs))
	for i := range parts {
		var err error
		if parts[i], err = im.operand(n, i); err != nil {
			return build.Operand{}, err
		}
	}
	return build.Operand{Parts: parts}, nil
}

func (im *importer) sequenceAt(n *pb.Node) (build.Operand, error) {
	parts, err := im.sequence(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(parts) == 0 || n.Input(1) == "" {
		return build.Operand{}, fmt.Errorf("no position, or none of %d tensors", len(parts))
	}
	i, err := im.place(n, 1, len(parts), len(parts)-1)
	if err != nil {
		return build.Operand{}, err
	}
	return parts[i], nil
}

func (im *importer) sequenceInsert(n *pb.Node) (build.Operand, error) {
	parts, err := im.sequence(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	r, err := im.operand(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	i, err := im.place(n, 2, len(parts), len(parts))
	if err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Parts: slices.Insert(slices.Clone(parts), i, r)}, nil
}

func (im *importer) sequenceErase(n *pb.Node) (build.Operand, error) {
	parts, err := im.sequence(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(parts) == 0 {
		return build.Operand{}, errors.New("the sequence is empty")
	}
	i, err := im.place(n, 1, len(parts), len(parts)-1)
	if err != nil {
		return build.Operand{}, err
	}
	rest := append([]build.Operand{}, parts[:i]...)
	return build.Operand{Parts: append(rest, parts[i+1:]...)}, nil
}

func (im *importer) sequenceLength(n *pb.Node) (build.Operand, error) {
	parts, err := im.sequence(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	return build.Operand{Constant: eval.Scalar(pb.Int64, float64(len(parts)))}, nil
}

// splitToSequence imports SplitToSequence: into parts of given sizes, of one size but for the
// last, or of 1.
func (im *importer) splitToSequence(n *pb.Node) (build.Operand, error) {
	r, whole, axis, err := im.alongAxis(n)
	if err != nil {
		return build.Operand{}, err
	}
	given, err := im.constant(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	keep, err := n.Int("keepdims", 1)
	if err != nil {
		return build.Operand{}, err
	}
	each := int64(1)
	var sizes []int64
	if given != nil {
		if sizes, err = given.Integers(); err != nil {
			return build.Operand{}, err
		}
		if len(given.Dims) == 0 {
			each, sizes = sizes[0], nil
		}
	}
	if sizes == nil {
		if each < 1 {
			return build.Operand{}, fmt.Errorf("parts of %d", each)
		}
		count := (int64(whole[axis]) + each - 1) / each
		if err := im.budget.Charge(partUnits * count); err != nil {
			return build.Operand{}, err
		}
		for rest := int64(whole[axis]); rest > 0; rest -= each {
			sizes = append(sizes, min(each, rest))
		}
	}
	parts, err := im.parts(n, r, axis, sizes)
	if err != nil || given != nil || keep != 0 {
		return build.Operand{Parts: parts}, err
	}
	for i, p := range parts {
		if parts[i], err = im.reshaped(n, p, "Squeeze", int64(axis)); err != nil {
			return build.Operand{}, err
		}
	}
	return build.Operand{Parts: parts}, nil
}

// reshaped squeezes or unsqueezes an axis.
func (im *importer) reshaped(n *pb.Node, r build.Operand, op string, axis int64) (build.Operand, error) {
	m := *n
	m.OpType = op
	m.Inputs = []string{im.lend(n.Input(0), "as a part", r)}
	m.Attrs = []*pb.Attribute{{Name: "axes", Type: pb.AttrInts, Is: []int64{axis}}}
	return im.squeeze(&m, op == "Unsqueeze")
}

// concatFromSequence imports ConcatFromSequence: Concat of the tensors, or of each with a new
// dimension.
func (im *importer) concatFromSequence(n *pb.Node) (build.Operand, error) {
	parts, err := im.sequence(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(parts) == 0 {
		return build.Operand{}, errors.New("the sequence is empty")
	}
	if !n.Has("axis") {
		return build.Operand{}, errors.New("it has no axis")
	}
	axis, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	added, err := n.Int("new_axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	m := *n
	m.OpType = "Concat"
	m.Inputs = make([]string, len(parts))
	m.Attrs = []*pb.Attribute{{Name: "axis", Type: pb.AttrInt, I: axis}}
	for i, p := range parts {
		if added != 0 {
			if p, err = im.reshaped(n, p, "Unsqueeze", axis); err != nil {
				return build.Operand{}, err
			}
		}
		m.Inputs[i] = im.lend(n.Input(0), fmt.Sprintf("part %d", i), p)
	}
	return im.concat(&m)
}
