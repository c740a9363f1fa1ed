package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// Operators that move values without computing: on constants they are
// evaluated, on values they change the view.

// axes returns a list of axes, from an attribute or, in later operator sets,
// an input; ok is false if neither is there. They are normalised to 0 ≤ a < rank.
func (im *importer) axes(n *pb.Node, input, rank int) (list []int, ok bool, err error) {
	values, err := n.Ints("axes")
	if err != nil {
		return nil, false, err
	}
	if values == nil {
		t, err := im.constant(n, input)
		if err != nil || t == nil {
			return nil, false, err
		}
		if values, err = t.Integers(); err != nil {
			return nil, false, err
		}
	}
	for _, v := range values {
		a, err := axisIndex(v, rank)
		if err != nil {
			return nil, false, err
		}
		if slices.Contains(list, a) {
			return nil, false, fmt.Errorf("axis %d twice", a)
		}
		list = append(list, a)
	}
	return list, true, nil
}

func axisIndex(v int64, rank int) (int, error) {
	if v < 0 {
		v += int64(rank)
	}
	if v < 0 || v >= int64(rank) {
		return 0, fmt.Errorf("an axis lies outside the %d dimensions", rank)
	}
	return int(v), nil
}

func (im *importer) shape(n *pb.Node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	var sizes []int64
	var batch []bool
	if r.constant != nil {
		for _, d := range r.constant.Dims {
			sizes = append(sizes, int64(d))
		}
		batch = make([]bool, len(sizes))
	} else {
		for i, d := range r.value.view {
			batch = append(batch, view.IsBatch(d))
			if sizes = append(sizes, 0); !view.IsBatch(d) {
				sizes[i] = int64(r.value.size(i))
			}
		}
	}
	rank := len(sizes)
	bound := func(name string, fallback int) (int, error) {
		v, err := n.Int(name, int64(fallback))
		if v < 0 {
			v += int64(rank)
		}
		return int(max(0, min(v, int64(rank)))), err
	}
	start, err := bound("start", 0)
	if err != nil {
		return result{}, err
	}
	end, err := bound("end", rank)
	if err != nil {
		return result{}, err
	}
	end = max(start, end)
	return result{constant: &eval.Tensor{
		Type: pb.Int64, Dims: []int{end - start},
		I64: append([]int64{}, sizes[start:end]...), Batch: batch[start:end],
	}}, nil
}

func (im *importer) transpose(n *pb.Node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	rank := 0
	if r.constant != nil {
		rank = len(r.constant.Dims)
	} else {
		rank = len(r.value.view)
	}
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = rank - 1 - i
	}
	list, err := n.Ints("perm")
	if err != nil {
		return result{}, err
	}
	if n.Has("perm") {
		if len(list) != rank {
			return result{}, fmt.Errorf("a permutation of %d dimensions for %d", len(list), rank)
		}
		seen := make([]bool, rank)
		for i, v := range list {
			if v < 0 || v >= int64(rank) || seen[v] {
				return result{}, fmt.Errorf("%v is not a permutation", list)
			}
			seen[v] = true
			perm[i] = int(v)
		}
	}
	if r.constant != nil {
		from := r.constant.Dims
		dims := make([]int, rank)
		strides := make([]int, rank)
		stride := 1
		for i := rank - 1; i >= 0; i-- {
			strides[i] = stride
			stride *= from[i]
		}
		for i, p := range perm {
			dims[i] = from[p]
		}
		t, err := im.eval.Pick(r.constant, dims, func(yield func(int, []int) bool) {
			at := []int{0}
			for i := range r.constant.Len() {
				rest, pos := i, 0
				for d := rank - 1; d >= 0; d-- {
					pos += rest % dims[d] * strides[perm[d]]
					rest /= dims[d]
				}
				if at[0] = pos; !yield(i, at) {
					return
				}
			}
		})
		return result{constant: t}, err
	}
	v := r.value.with(n)
	if v.pad != nil && (v.shape.H == 1 || v.shape.W == 1) {
		// The view of a dimension of size 1 does not tell which one it is.
		return result{}, v.pad.error()
	}
	v.view = make(view.View, rank)
	for i, p := range perm {
		v.view[i] = r.value.view[p]
	}
	if v.step != nil || v.clip != nil {
		s, err := im.build.settleSigns(r.value)
		if err != nil {
			return result{}, err
		}
		w := s.with(n)
		w.view = v.view
		v = w
	}
	return result{value: v}, nil
}

func (im *importer) reshape(n *pb.Node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	shape, err := im.required(n, 1)
	if err != nil {
		return result{}, err
	}
	allowZero, err := n.Int("allowzero", 0)
	if err != nil {
		return result{}, err
	}
	if len(shape.Dims) != 1 || shape.I64 == nil || shape.Len() > pb.MaxRank {
		return result{}, fmt.Errorf("the shape is a tensor of %v %v, want a list of at most %d integers", shape.Type, shape.Dims, pb.MaxRank)
	}
	if r.constant != nil {
		return im.reshapeConstant(r.constant, shape, allowZero != 0)
	}
	v, err := im.build.movable(r.value)
	if err != nil {
		return result{}, err
	}
	total := v.shape.Values()
	want := shape.I64
	if len(want) == 0 {
		return result{}, errors.New("a scalar shape")
	}
	dims := make([]int, len(want)-1)
	known, free := 1, -1
	for i := range dims {
		d := want[i+1]
		switch {
		case shape.Batch != nil && shape.Batch[i+1]:
			return result{}, errors.New("the batch must stay the first dimension")
		case d == 0 && allowZero == 0:
			if i+1 >= len(v.view) {
				return result{}, errors.New("it copies a dimension that is not there")
			}
			d = int64(view.Product(v.view[i+1]))
		case d == -1 && free < 0:
			free, d = i, 1
		}
		if d < 1 || d > int64(total) || known > total/int(d) {
			return result{}, fmt.Errorf("shape %v for %d values and the batch", want, total)
		}
		dims[i] = int(d)
		known *= int(d)
	}
	if free >= 0 {
		dims[free] = total / known
		known *= dims[free]
	}
	first := want[0]
	// The batch may be copied, computed, or written as the size that the model
	// was exported with.
	isBatch := shape.Batch != nil && shape.Batch[0] || first == 0 && allowZero == 0 ||
		first == -1 && free < 0 || first == 1 || first > 0 && first == int64(im.batch)
	if known != total || !isBatch {
		return result{}, fmt.Errorf("shape %v for %d values and the batch", want, total)
	}
	out := v.with(n)
	if out.view, err = v.view.Reshape(dims); err != nil {
		return result{}, fmt.Errorf("shape %v: %w", want, err)
	}
	return result{value: out}, nil
}

func (im *importer) reshapeConstant(t, shape *eval.Tensor, allowZero bool) (result, error) {
	want, err := shape.Integers()
	if err != nil {
		return result{}, err
	}
	dims := make([]int, len(want))
	known, free := 1, -1
	for i, d := range want {
		switch {
		case d == 0 && !allowZero && i < len(t.Dims):
			d = int64(t.Dims[i])
		case d == -1 && free < 0:
			free, d = i, 1
		}
		if d < 0 || d > pb.MaxSize {
			return result{}, fmt.Errorf("shape %v", want)
		}
		dims[i] = int(d)
		if known *= int(d); known > pb.MaxSize {
			return result{}, fmt.Errorf("shape %v", want)
		}
	}
	if free >= 0 && known > 0 {
		dims[free] = t.Len() / known
		known *= dims[free]
	}
	if known != t.Len() {
		return result{}, fmt.Errorf("shape %v for %d values", want, t.Len())
	}
	return result{constant: t.Redim(dims)}, nil
}

func (im *importer) flatten(n *pb.Node) (result, error) {
	v, err := im.value(n, 0)
	if err != nil {
		return result{}, err
	}
	if v, err = im.build.movable(v); err != nil {
		return result{}, err
	}
	a, err := n.Int("axis", 1)
	if err != nil {
		return result{}, err
	}
	if a < 0 {
		a += int64(len(v.view))
	}
	if a < 1 || a > int64(len(v.view)) {
		return result{}, fmt.Errorf("axis %d would flatten the batch", a)
	}
	var atoms []view.Atom
	for i, d := range v.view[1:] {
		if i+1 < int(a) && len(d) > 0 {
			return result{}, fmt.Errorf("axis %d would join other dimensions with the batch", a)
		}
		atoms = append(atoms, d...)
	}
	out := v.with(n)
	out.view = view.View{view.Batch, view.Merge(atoms)}
	return result{value: out}, nil
}

// squeeze is Squeeze and, with insert, Unsqueeze.
func (im *importer) squeeze(n *pb.Node, insert bool) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	v := r.value
	if v != nil {
		if v, err = im.build.movable(v); err != nil {
			return result{}, err
		}
	}
	rank := 0
	ones := []int{} // dimensions of size 1
	if r.constant != nil {
		rank = len(r.constant.Dims)
		for i, d := range r.constant.Dims {
			if d == 1 {
				ones = append(ones, i)
			}
		}
	} else {
		rank = len(v.view)
		for i, d := range v.view {
			if len(d) == 0 {
				ones = append(ones, i)
			}
		}
	}
	space := rank
	if insert {
		// The axes are those of the result.
		list, err := n.Ints("axes")
		if err != nil {
			return result{}, err
		}
		space += len(list)
		if list == nil {
			t, err := im.required(n, 1)
			if err != nil {
				return result{}, err
			}
			space += t.Len()
		}
		if space > pb.MaxRank {
			return result{}, fmt.Errorf("more than %d dimensions", pb.MaxRank)
		}
	}
	list, given, err := im.axes(n, 1, space)
	switch {
	case err != nil:
		return result{}, err
	case !given && insert:
		return result{}, errors.New("it has no axes")
	case !given && v != nil && im.batch <= 1:
		return result{}, errors.New("without axes it may drop the batch")
	case !given:
		list = ones
	}
	slices.Sort(list)
	if !insert {
		for _, a := range list {
			if !slices.Contains(ones, a) {
				return result{}, fmt.Errorf("dimension %d is not 1, or is the batch", a)
			}
		}
	}
	if v == nil {
		dims := edit(r.constant.Dims, list, insert, 1)
		return result{constant: r.constant.Redim(dims)}, nil
	}
	out := v.with(n)
	out.view = edit(v.view, list, insert, nil)
	if !view.IsBatch(out.view[0]) {
		return result{}, errors.New("the batch must stay the first dimension")
	}
	return result{value: out}, nil
}

// edit removes the entries of a list at the sorted positions, or inserts one so
// that it gets there.
func edit[S ~[]E, E any](list S, positions []int, insert bool, one E) S {
	out := S{}
	if !insert {
		for i, e := range list {
			if !slices.Contains(positions, i) {
				out = append(out, e)
			}
		}
		return out
	}
	for i := 0; len(list) > 0 || slices.Contains(positions, i); i++ {
		if slices.Contains(positions, i) {
			out = append(out, one)
		} else {
			out, list = append(out, list[0]), list[1:]
		}
	}
	return out
}
