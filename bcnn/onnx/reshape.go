package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Operators that only move values. Constants are moved; a value gets another view of the same
// memory.

// axes returns the attribute axes or, in later opsets, an input, with 0 ≤ a < rank. ok is false if
// there is neither.
func (im *importer) axes(n *pb.Node, input, rank int) (list []int, ok bool) {
	values := n.Ints("axes")
	if values == nil {
		t := im.constant(n, input)
		if t == nil {
			return nil, false
		}
		values = try.Value(t.Integers())
	}
	for _, v := range values {
		a := axisIndex(v, rank)
		if slices.Contains(list, a) {
			try.Failf("axis %d is given twice", a)
		}
		list = append(list, a)
	}
	return list, true
}

func axisIndex(v int64, rank int) int {
	if v < 0 {
		v += int64(rank)
	}
	if v < 0 || v >= int64(rank) {
		try.Failf("an axis lies outside the %d dimensions", rank)
	}
	return int(v)
}

// sizes returns the dimensions of an operand, 0 for the batch, and which of them is the batch.
func sizes(r build.Operand) (list []int64, batch []bool) {
	if r.Constant != nil {
		for _, d := range r.Constant.Dims {
			list = append(list, int64(d))
		}
		return list, make([]bool, len(list))
	}
	for i, d := range r.Value.View {
		batch = append(batch, view.IsBatch(d))
		if list = append(list, 0); !view.IsBatch(d) {
			list[i] = int64(r.Value.Size(i))
		}
	}
	return list, batch
}

func (im *importer) shape(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	sizes, batch := sizes(r)
	rank := len(sizes)
	bound := func(name string, fallback int) int {
		v := n.Int(name, int64(fallback))
		if v < 0 {
			v += int64(rank)
		}
		return int(max(0, min(v, int64(rank))))
	}
	start := bound("start", 0)
	end := bound("end", rank)
	end = max(start, end)
	return build.Operand{Constant: eval.Sizes(append([]int64{}, sizes[start:end]...), batch[start:end])}
}

func (im *importer) transpose(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	rank := rankOf(r)
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = rank - 1 - i
	}
	list := n.Ints("perm")
	if n.Has("perm") {
		if len(list) != rank {
			try.Failf("perm has %d entries for %d dimensions", len(list), rank)
		}
		seen := make([]bool, rank)
		for i, v := range list {
			if v < 0 || v >= int64(rank) || seen[v] {
				try.Failf("perm %v is not a permutation of the dimensions", list)
			}
			seen[v] = true
			perm[i] = int(v)
		}
	}
	return im.permute(n, r, perm)
}

// permute returns an operand whose dimension i is dimension perm[i] of r.
func (im *importer) permute(n *pb.Node, r build.Operand, perm []int) build.Operand {
	if r.Constant != nil {
		return build.Operand{Constant: im.eval.Transpose(r.Constant, perm)}
	}
	return build.Operand{Value: im.build.Permuted(n, r.Value, perm)}
}

func (im *importer) reshape(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	shape := im.required(n, 1)
	allowZero := n.Bit("allowzero", 0)
	if len(shape.Dims) != 1 || shape.I64 == nil || shape.Len() > pb.MaxRank {
		try.Failf("the shape is %v with dimensions %v, want a list of at most %d integers", shape.Type, shape.Dims, pb.MaxRank)
	}
	if r.Constant != nil {
		return im.reshapeConstant(r.Constant, shape, allowZero != 0)
	}
	v := r.Value
	if isRows(v) {
		shape = copiedSizes(v, shape, allowZero != 0)
		v = unrolled(v)
	}
	v = im.build.Movable(v)
	total := v.Shape.Values()
	want := shape.I64
	if len(want) == 0 {
		try.Failf("a computed tensor cannot become a scalar: the batch must stay the first dimension")
	}
	if dims := im.rowsOf(total, shape); dims != nil {
		out := v.With(n)
		seen, err := v.View.Reshape(dims)
		if err != nil {
			try.Failf("shape %v joins the batch with positions of images of %d values: %w", want, total, err)
		}
		out.View = seen
		return build.Operand{Value: rolled(out)}
	}
	if len(want) == 1 && im.batch == 1 && (want[0] == -1 || want[0] == int64(total)) && view.IsBatch(v.View[0]) {
		line := im.build.Vector(v, n)
		line = line.With(n)
		line.View = view.Vector(total)
		rows := v.With(n)
		rows.View = try.Value(v.View.Reshape([]int{total}))
		im.lines[n.Outputs[0]] = rolled(rows)
		return build.Operand{Value: line}
	}
	out := v.With(n)
	seen, err := v.View.Reshape(im.reshapeDims(v, shape, allowZero != 0))
	if err != nil {
		try.Failf("shape %v: %w", want, err)
	}
	out.View = seen
	return build.Operand{Value: out}
}

// copiedSizes returns the shape of a Reshape of rows (see isRows) with the sizes filled in that a 0
// copies. A first dimension of 0 becomes −1.
func copiedSizes(v *build.Value, shape *eval.Tensor, allowZero bool) *eval.Tensor {
	list := slices.Clone(shape.I64)
	for i, d := range list {
		switch {
		case d != 0 || allowZero || shape.Batch != nil && shape.Batch[i]:
		case i == 0 && !slices.Contains(list, -1):
			list[i] = -1
		case i == 0 || i >= len(v.View):
			try.Failf("shape %v has a 0 that cannot be copied, since the input's first dimension joins the batch with positions: give sizes instead", shape.I64)
		default:
			list[i] = int64(v.Size(i))
		}
	}
	return eval.Sizes(list, shape.Batch)
}

// reshapeDims returns the dimensions behind the batch that a shape asks for.
func (im *importer) reshapeDims(v *build.Value, shape *eval.Tensor, allowZero bool) []int {
	want, total := shape.I64, v.Shape.Values()
	dims := make([]int, len(want)-1)
	known, free := 1, -1
	for i := range dims {
		d := want[i+1]
		switch {
		case shape.Batch != nil && shape.Batch[i+1]:
			try.Failf("the batch must stay the first dimension")
		case d == 0 && !allowZero:
			if i+1 >= len(v.View) {
				try.Failf("a 0 in the shape copies a dimension that the input does not have")
			}
			d = int64(view.Product(v.View[i+1]))
		case d == -1 && free < 0:
			free, d = i, 1
		}
		if d < 1 || d > int64(total) || known > total/int(d) {
			try.Failf("shape %v does not fit images of %d values", want, total)
		}
		dims[i] = int(d)
		known *= int(d)
	}
	if free >= 0 {
		dims[free] = total / known
		known *= dims[free]
	}
	first := want[0]
	// The first dimension may be a copy of the batch, be computed from it, or be the batch size
	// that the model was exported with.
	isBatch := shape.Batch != nil && shape.Batch[0] && want[0] == 0 || first == 0 && !allowZero ||
		first == -1 && free < 0 || first == 1 || first > 0 && first == int64(im.batch)
	if known != total || !isBatch {
		try.Failf("shape %v does not fit images of %d values: its first dimension must be the batch (0 or -1), or the batch times positions "+
			"of an image", want, total)
	}
	return dims
}

func (im *importer) reshapeConstant(t, shape *eval.Tensor, allowZero bool) build.Operand {
	want := try.Value(shape.Integers())
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
			try.Failf("shape %v has a size that is negative or too large", want)
		}
		dims[i] = int(d)
		if known *= int(d); known > pb.MaxSize {
			try.Failf("shape %v has a size that is negative or too large", want)
		}
	}
	if free >= 0 && known > 0 {
		dims[free] = t.Len() / known
		known *= dims[free]
	}
	if known != t.Len() {
		try.Failf("shape %v does not fit a constant of %d values", want, t.Len())
	}
	return build.Operand{Constant: t.Redim(dims)}
}

func (im *importer) flatten(n *pb.Node) build.Operand {
	r := im.operand(n, 0)
	a := n.Int("axis", 1)
	if t := r.Constant; t != nil {
		rank := int64(len(t.Dims))
		if a < 0 {
			a += rank
		}
		if a < 0 || a > rank {
			try.Failf("axis %d lies outside the %d dimensions", a, rank)
		}
		dims := []int{1, 1}
		for i, d := range t.Dims {
			if i < int(a) {
				dims[0] *= d
			} else {
				dims[1] *= d
			}
		}
		return build.Operand{Constant: t.Redim(dims)}
	}
	v := im.build.Movable(r.Value)
	if a < 0 {
		a += int64(len(v.View))
	}
	if a < 1 || a > int64(len(v.View)) {
		try.Failf("axis %d would flatten the batch, or does not exist: use 1 (start_dim=1 in PyTorch)", a)
	}
	var atoms []view.Atom
	for i, d := range v.View[1:] {
		if i+1 < int(a) && len(d) > 0 {
			try.Failf("axis %d would join other dimensions with the batch: use 1 (start_dim=1 in PyTorch)", a)
		}
		atoms = append(atoms, d...)
	}
	out := v.With(n)
	out.View = view.View{view.Batch, view.Merge(atoms)}
	return build.Operand{Value: out}
}

// squeeze imports Squeeze or, if insert is set, Unsqueeze.
func (im *importer) squeeze(n *pb.Node, insert bool) build.Operand {
	r := im.operand(n, 0)
	v := r.Value
	if v != nil {
		if v.Windows == nil {
			v = im.build.Settle(v)
		}
		r.Value = v
	}
	space := rankOf(r)
	ones := onesOf(r)
	if insert {
		// The axes count the dimensions of the result.
		list := n.Ints("axes")
		space += len(list)
		if list == nil {
			t := im.required(n, 1)
			space += t.Len()
		}
		if space > pb.MaxRank {
			try.Failf("the result would have more than %d dimensions", pb.MaxRank)
		}
	}
	list, given := im.axes(n, 1, space)
	switch {
	case !given && insert:
		try.Failf("its axes are missing")
	case !given && v != nil && im.batch <= 1:
		try.Failf("without axes it may drop a batch of 1: give the axes (dim in PyTorch)")
	case !given:
		list = ones
	}
	slices.Sort(list)
	if !insert {
		for _, a := range list {
			if !slices.Contains(ones, a) {
				try.Failf("dimension %d cannot be removed, since it is not 1 or is the batch", a)
			}
		}
	}
	if v == nil {
		dims := edit(r.Constant.Dims, list, insert, 1)
		return build.Operand{Constant: r.Constant.Redim(dims)}
	}
	out := v.With(n)
	out.View = edit(v.View, list, insert, nil)
	if view.IsBatch(v.View[0]) && !view.IsBatch(out.View[0]) {
		try.Failf("the batch must stay the first dimension")
	}
	return build.Operand{Value: out}
}

// onesOf returns the dimensions of size 1.
func onesOf(r build.Operand) []int {
	ones := []int{}
	for i := range rankOf(r) {
		if r.Constant != nil && r.Constant.Dims[i] == 1 || r.Value != nil && len(r.Value.View[i]) == 0 {
			ones = append(ones, i)
		}
	}
	return ones
}

// edit returns a list without the entries at the given positions or, if insert is set, with one
// inserted so that it is at each of them. Positions must be sorted.
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
