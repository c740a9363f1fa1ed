package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators that exist on constants only: they compute shapes, and weights.

func (im *importer) constantNode(n *pb.Node) (result, error) {
	if len(n.Attrs) != 1 {
		return result{}, fmt.Errorf("%d attributes, want 1", len(n.Attrs))
	}
	a := &n.Attrs[0]
	var t *tensor
	switch a.Name {
	case "value":
		if a.T == nil {
			return result{}, errors.New("it holds no tensor")
		}
		var err error
		if t, err = im.eval.tensor(a.T); err != nil {
			return result{}, err
		}
	case "value_float":
		t = scalar(pb.Float, float64(a.F))
	case "value_int":
		t = &tensor{typ: pb.Int64, dims: []int{}, i64: []int64{a.I}}
	case "value_floats":
		t = &tensor{typ: pb.Float, dims: []int{len(a.Fs)}, f32: append([]float32{}, a.Fs...)}
	case "value_ints":
		t = &tensor{typ: pb.Int64, dims: []int{len(a.Is)}, i64: append([]int64{}, a.Is...)}
	default:
		return result{}, fmt.Errorf("attribute %q is not supported", a.Name)
	}
	return result{constant: t}, nil
}

// shapeInput returns the dimensions in an input. Where they depend on the batch
// size every one becomes 1: what is filled with one value broadcasts as well.
func (im *importer) shapeInput(n *pb.Node, i int) ([]int, error) {
	t, err := im.required(n, i)
	if err != nil {
		return nil, err
	}
	if len(t.dims) != 1 || t.i64 == nil || t.len() > pb.MaxRank {
		return nil, fmt.Errorf("input %d is a tensor of %v %v, want a list of at most %d integers", i, t.typ, t.dims, pb.MaxRank)
	}
	dims := make([]int, t.len())
	for i, d := range t.i64 {
		if d < 0 || d > pb.MaxSize {
			return nil, fmt.Errorf("shape %v", t.i64)
		}
		dims[i] = int(d)
		if t.hasBatch() {
			dims[i] = 1
		}
	}
	return dims, nil
}

func (im *importer) constantOfShape(n *pb.Node) (result, error) {
	dims, err := im.shapeInput(n, 0)
	if err != nil {
		return result{}, err
	}
	fill := scalar(pb.Float, 0)
	if a, err := n.Attr("value", pb.AttrTensor); err != nil {
		return result{}, err
	} else if a != nil {
		if a.T == nil {
			return result{}, errors.New("it holds no tensor")
		}
		if fill, err = im.eval.tensor(a.T); err != nil {
			return result{}, err
		}
		if fill.len() != 1 {
			return result{}, errors.New("its value is not a single one")
		}
	}
	t, err := im.eval.pick(fill, dims, walk(dims, nil))
	return result{constant: t}, err
}

func (im *importer) expand(n *pb.Node) (result, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return result{}, err
	}
	dims, err := im.shapeInput(n, 1)
	if err != nil {
		return result{}, err
	}
	if dims, err = broadcast(t.dims, dims); err != nil {
		return result{}, err
	}
	out, err := im.eval.pick(t, dims, walk(dims, t.dims))
	return result{constant: out}, err
}

func (im *importer) concat(n *pb.Node) (result, error) {
	var parts []*tensor
	for i := range n.Inputs {
		t, err := im.required(n, i)
		if err != nil {
			return result{}, err
		}
		parts = append(parts, t)
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return result{}, err
	}
	if len(parts) == 0 || len(parts[0].dims) == 0 {
		return result{}, errors.New("nothing to join")
	}
	axis, err := axisIndex(a, len(parts[0].dims))
	if err != nil {
		return result{}, err
	}
	dims := append([]int{}, parts[0].dims...)
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
		if t.typ != parts[0].typ || len(t.dims) != len(dims) {
			return result{}, errors.New("tensors of different types or numbers of dimensions")
		}
		for i, d := range t.dims {
			if i != axis && d != dims[i] {
				return result{}, fmt.Errorf("dimensions %v and %v", t.dims, parts[0].dims)
			}
		}
		dims[axis] += t.dims[axis]
		marked = marked || t.hasBatch()
	}
	out, err := im.eval.newTensor(parts[0].typ, dims)
	if err != nil {
		return result{}, err
	}
	if marked {
		out.batch = make([]bool, out.len())
	}
	to := 0
	for o := range outer {
		for _, t := range parts {
			n := t.dims[axis] * inner
			for i := o * n; i < (o+1)*n; i++ {
				if t.i64 != nil {
					out.i64[to] = t.i64[i]
				} else {
					out.set(to, t.at(i))
				}
				if marked && t.batch != nil {
					out.batch[to] = t.batch[i]
				}
				to++
			}
		}
	}
	return result{constant: out}, nil
}

func (im *importer) gather(n *pb.Node) (result, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return result{}, err
	}
	indices, err := im.required(n, 1)
	if err != nil {
		return result{}, err
	}
	list, err := indices.integers()
	if err != nil {
		return result{}, err
	}
	a, err := n.Int("axis", 0)
	if err != nil {
		return result{}, err
	}
	axis, err := axisIndex(a, len(t.dims))
	if err != nil {
		return result{}, err
	}
	size := t.dims[axis]
	for _, v := range list {
		if v < int64(-size) || v >= int64(size) {
			return result{}, fmt.Errorf("index %d of %d", v, size)
		}
	}
	dims := append([]int{}, t.dims[:axis]...)
	dims = append(append(dims, indices.dims...), t.dims[axis+1:]...)
	if len(dims) > pb.MaxRank {
		return result{}, fmt.Errorf("more than %d dimensions", pb.MaxRank)
	}
	inner := 1
	for _, d := range t.dims[axis+1:] {
		inner *= d
	}
	out, err := im.eval.pick(t, dims, func(yield func(int, []int) bool) {
		at := []int{0}
		total, _ := count(dims) // newTensor has checked it
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
	return result{constant: out}, err
}

// slice supports a step of 1, with bounds in attributes or inputs.
func (im *importer) slice(n *pb.Node) (result, error) {
	t, err := im.required(n, 0)
	if err != nil {
		return result{}, err
	}
	bounds := func(name string, input int) ([]int64, error) {
		if list, err := n.Ints(name); err != nil || list != nil {
			return list, err
		}
		c, err := im.constant(n, input)
		if err != nil || c == nil {
			return nil, err
		}
		return c.integers()
	}
	starts, err := bounds("starts", 1)
	if err != nil {
		return result{}, err
	}
	ends, err := bounds("ends", 2)
	if err != nil {
		return result{}, err
	}
	steps, err := bounds("steps", 4)
	if err != nil {
		return result{}, err
	}
	for _, s := range steps {
		if s != 1 {
			return result{}, fmt.Errorf("a step of %d is not supported", s)
		}
	}
	axes, ok, err := im.axes(n, 3, len(t.dims))
	if err != nil {
		return result{}, err
	}
	if !ok {
		for i := range starts {
			axes = append(axes, i)
		}
	}
	if len(starts) != len(ends) || len(axes) != len(starts) || len(axes) > len(t.dims) {
		return result{}, fmt.Errorf("%d starts, %d ends, %d axes", len(starts), len(ends), len(axes))
	}
	for i, axis := range axes {
		size := int64(t.dims[axis])
		clamp := func(v int64) int {
			if v < 0 {
				v += size
			}
			return int(max(0, min(v, size)))
		}
		lo, hi := clamp(starts[i]), clamp(ends[i])
		hi = max(lo, hi)
		dims := append([]int{}, t.dims...)
		dims[axis] = hi - lo
		inner := 1
		for _, d := range dims[axis+1:] {
			inner *= d
		}
		t, err = im.eval.pick(t, dims, func(yield func(int, []int) bool) {
			at := []int{0}
			total, _ := count(dims) // newTensor has checked it
			row := (hi - lo) * inner
			for k := range total {
				if at[0] = k/row*int(size)*inner + lo*inner + k%row; !yield(k, at) {
					return
				}
			}
		})
		if err != nil {
			return result{}, err
		}
	}
	return result{constant: t}, nil
}
