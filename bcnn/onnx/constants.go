package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators that exist on constants only: they compute shapes, and weights.

func (im *importer) constantNode(n *pb.Node) (build.Operand, error) {
	if len(n.Attrs) != 1 {
		return build.Operand{}, fmt.Errorf("%d attributes, want 1", len(n.Attrs))
	}
	a := &n.Attrs[0]
	var t *eval.Tensor
	switch a.Name {
	case "value":
		if a.T == nil {
			return build.Operand{}, errors.New("it holds no tensor")
		}
		var err error
		if t, err = im.eval.Tensor(a.T); err != nil {
			return build.Operand{}, err
		}
	case "value_float":
		t = eval.Scalar(pb.Float, float64(a.F))
	case "value_int":
		t = &eval.Tensor{Type: pb.Int64, Dims: []int{}, I64: []int64{a.I}}
	case "value_floats":
		t = &eval.Tensor{Type: pb.Float, Dims: []int{len(a.Fs)}, F32: append([]float32{}, a.Fs...)}
	case "value_ints":
		t = &eval.Tensor{Type: pb.Int64, Dims: []int{len(a.Is)}, I64: append([]int64{}, a.Is...)}
	default:
		return build.Operand{}, fmt.Errorf("attribute %q is not supported", a.Name)
	}
	return build.Operand{Constant: t}, nil
}

// shapeInput returns the dimensions in an input. Where they depend on the batch
// size every one becomes 1: what is filled with one value broadcasts as well.
func (im *importer) shapeInput(n *pb.Node, i int) ([]int, error) {
	t, err := im.required(n, i)
	if err != nil {
		return nil, err
	}
	if len(t.Dims) != 1 || t.I64 == nil || t.Len() > pb.MaxRank {
		return nil, fmt.Errorf("input %d is a tensor of %v %v, want a list of at most %d integers", i, t.Type, t.Dims, pb.MaxRank)
	}
	dims := make([]int, t.Len())
	for i, d := range t.I64 {
		if d < 0 || d > pb.MaxSize {
			return nil, fmt.Errorf("shape %v", t.I64)
		}
		dims[i] = int(d)
		if t.HasBatch() {
			dims[i] = 1
		}
	}
	return dims, nil
}

func (im *importer) constantOfShape(n *pb.Node) (build.Operand, error) {
	dims, err := im.shapeInput(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	fill := eval.Scalar(pb.Float, 0)
	if a, err := n.Attr("value", pb.AttrTensor); err != nil {
		return build.Operand{}, err
	} else if a != nil {
		if a.T == nil {
			return build.Operand{}, errors.New("it holds no tensor")
		}
		if fill, err = im.eval.Tensor(a.T); err != nil {
			return build.Operand{}, err
		}
		if fill.Len() != 1 {
			return build.Operand{}, errors.New("its value is not a single one")
		}
	}
	t, err := im.eval.Pick(fill, dims, eval.Walk(dims, nil))
	return build.Operand{Constant: t}, err
}

func (im *importer) expand(n *pb.Node) (build.Operand, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	dims, err := im.shapeInput(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	if dims, err = eval.Broadcast(t.Dims, dims); err != nil {
		return build.Operand{}, err
	}
	out, err := im.eval.Pick(t, dims, eval.Walk(dims, t.Dims))
	return build.Operand{Constant: out}, err
}

func (im *importer) concat(n *pb.Node) (build.Operand, error) {
	var parts []*eval.Tensor
	for i := range n.Inputs {
		t, err := im.required(n, i)
		if err != nil {
			return build.Operand{}, err
		}
		parts = append(parts, t)
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	if len(parts) == 0 || len(parts[0].Dims) == 0 {
		return build.Operand{}, errors.New("nothing to join")
	}
	axis, err := axisIndex(a, len(parts[0].Dims))
	if err != nil {
		return build.Operand{}, err
	}
	dims := append([]int{}, parts[0].Dims...)
	inner, outer := 1, 1
	for i, d := range dims {
		if i < axis {
			outer *= d
		} else if i > axis {
			inner *= d
		}
	}
	dims[axis] = 0
	marked := false
	for _, t := range parts {
		if t.Type != parts[0].Type || len(t.Dims) != len(dims) {
			return build.Operand{}, errors.New("tensors of different types or numbers of dimensions")
		}
		for i, d := range t.Dims {
			if i != axis && d != dims[i] {
				return build.Operand{}, fmt.Errorf("dimensions %v and %v", t.Dims, parts[0].Dims)
			}
		}
		dims[axis] += t.Dims[axis]
		marked = marked || t.HasBatch()
	}
	out, err := im.eval.NewTensor(parts[0].Type, dims)
	if err != nil {
		return build.Operand{}, err
	}
	if marked {
		out.Batch = make([]bool, out.Len())
	}
	to := 0
	for o := range outer {
		for _, t := range parts {
			n := t.Dims[axis] * inner
			for i := o * n; i < (o+1)*n; i++ {
				if t.I64 != nil {
					out.I64[to] = t.I64[i]
				} else {
					out.Set(to, t.At(i))
				}
				if marked && t.Batch != nil {
					out.Batch[to] = t.Batch[i]
				}
				to++
			}
		}
	}
	return build.Operand{Constant: out}, nil
}

func (im *importer) gather(n *pb.Node) (build.Operand, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	indices, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	list, err := indices.Integers()
	if err != nil {
		return build.Operand{}, err
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return build.Operand{}, err
	}
	axis, err := axisIndex(a, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	size := t.Dims[axis]
	for _, v := range list {
		if v < int64(-size) || v >= int64(size) {
			return build.Operand{}, fmt.Errorf("index %d of %d", v, size)
		}
	}
	dims := append([]int{}, t.Dims[:axis]...)
	dims = append(append(dims, indices.Dims...), t.Dims[axis+1:]...)
	if len(dims) > pb.MaxRank {
		return build.Operand{}, fmt.Errorf("more than %d dimensions", pb.MaxRank)
	}
	inner := 1
	for _, d := range t.Dims[axis+1:] {
		inner *= d
	}
	out, err := im.eval.Pick(t, dims, func(yield func(int, []int) bool) {
		at := []int{0}
		total, _ := eval.Count(dims) // newTensor has checked it
		for i := range total {
			o, k, r := i/inner/len(list), i/inner%len(list), i%inner
			index := int(list[k])
			if index < 0 {
				index += size
			}
			if at[0] = (o*size+index)*inner + r; !yield(i, at) {
				return
			}
		}
	})
	return build.Operand{Constant: out}, err
}

// slice supports a step of 1, with bounds in attributes or inputs.
func (im *importer) slice(n *pb.Node) (build.Operand, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	bounds := func(name string, input int) ([]int64, error) {
		if list, err := n.Ints(name); err != nil || list != nil {
			return list, err
		}
		c, err := im.constant(n, input)
		if err != nil || c == nil {
			return nil, err
		}
		return c.Integers()
	}
	starts, err := bounds("starts", 1)
	if err != nil {
		return build.Operand{}, err
	}
	ends, err := bounds("ends", 2)
	if err != nil {
		return build.Operand{}, err
	}
	steps, err := bounds("steps", 4)
	if err != nil {
		return build.Operand{}, err
	}
	for _, s := range steps {
		if s != 1 {
			return build.Operand{}, fmt.Errorf("a step of %d is not supported", s)
		}
	}
	axes, ok, err := im.axes(n, 3, len(t.Dims))
	if err != nil {
		return build.Operand{}, err
	}
	if !ok {
		for i := range starts {
			axes = append(axes, i)
		}
	}
	if len(starts) != len(ends) || len(axes) != len(starts) || len(axes) > len(t.Dims) {
		return build.Operand{}, fmt.Errorf("%d starts, %d ends, %d axes", len(starts), len(ends), len(axes))
	}
	for i, axis := range axes {
		size := int64(t.Dims[axis])
		clamp := func(v int64) int {
			if v < 0 {
				v += size
			}
			return int(max(0, min(v, size)))
		}
		lo, hi := clamp(starts[i]), clamp(ends[i])
		hi = max(lo, hi)
		dims := append([]int{}, t.Dims...)
		dims[axis] = hi - lo
		inner := 1
		for _, d := range dims[axis+1:] {
			inner *= d
		}
		t, err = im.eval.Pick(t, dims, func(yield func(int, []int) bool) {
			at := []int{0}
			total, _ := eval.Count(dims) // newTensor has checked it
			row := (hi - lo) * inner
			for k := range total {
				if at[0] = k/row*int(size)*inner + lo*inner + k%row; !yield(k, at) {
					return
				}
			}
		})
		if err != nil {
			return build.Operand{}, err
		}
	}
	return build.Operand{Constant: t}, nil
}
