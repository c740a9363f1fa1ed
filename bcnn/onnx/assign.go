package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Assignments to slices, x[:, 1:3, ::2] = y, which exporters write as ScatterND or ScatterElements.

// assign imports ScatterND and ScatterElements of which the data or the updates are computed, with
// constant indices. These must be all combinations of some positions of each dimension, in order.
func (im *importer) assign(n *pb.Node, data, updates build.Operand, indices *eval.Tensor) build.Operand {
	if how := n.Text("reduction", "none"); how != "none" {
		try.Failf("it combines computed tensors, which is not supported: want reduction none")
	}
	dims := sizesOf(data)
	switch b := im.batchOf(data, updates, len(dims)); {
	case b < 0 && data.Value != nil:
		try.Failf("the batch must be a dimension of its own")
	case b >= 0:
		dims = slices.Clone(dims)
		if of := data.Constant; of != nil && of.Dims[b] != max(im.batch, 1) {
			try.Failf("a tensor of shape %v has the batch of the updates in another dimension, or a larger one", of.Dims)
		}
		dims[b] = max(im.batch, 1)
	}
	var places [][]int
	form := indices.Dims // of the updates
	if n.OpType == "ScatterND" {
		places = im.grid(indices, dims)
		last := len(form) - 1
		form = slices.Concat(form[:last], dims[form[last]:])
	} else {
		places = im.gridAlong(indices, dims, axisIndex(n.Int("axis", 0), len(dims)))
	}
	if t := updates.Constant; t != nil && !slices.Equal(t.Dims, form) {
		try.Failf("updates of shape %v do not fit indices of shape %v and a tensor of shape %v", t.Dims, indices.Dims, dims)
	}
	updates = im.shaped(n, updates, data, places)
	at := make([][]int, len(places)) // the update of each position, −1 without; nil where all are as they were
	for d, list := range places {
		whole := len(list) == dims[d]
		at[d] = try.Value(budget.List(im.budget, dims[d], func(int) int { return -1 }))
		for i, p := range list {
			if at[d][p] >= 0 {
				try.Failf("position %d of dimension %d is assigned twice", p, d)
			}
			at[d][p] = i
			whole = whole && p == i
		}
		if whole {
			at[d] = nil
		}
	}
	// Layers have the batch first.
	if b := im.batchOf(data, updates, len(dims)); b > 0 {
		perm := []int{b}
		back := make([]int, len(dims))
		for d := range dims {
			if d != b {
				perm = append(perm, d)
			}
		}
		turned := make([][]int, len(dims))
		for i, d := range perm {
			turned[i], back[d] = at[d], i
		}
		r := im.assigned(n, im.permute(n, data, perm), im.permute(n, updates, perm), turned)
		return im.permute(n, r, back)
	}
	return im.assigned(n, data, updates, at)
}

// batchOf returns which dimension of data is the batch, or of updates in its form if data is constant.
func (im *importer) batchOf(data, updates build.Operand, rank int) int {
	v := data.Value
	if v == nil {
		v = updates.Value
	}
	if v == nil || len(v.View) != rank {
		return -1
	}
	return slices.IndexFunc(v.View, view.IsBatch)
}

// grid returns the positions of each dimension that the indices of ScatterND combine.
func (im *importer) grid(indices *eval.Tensor, dims []int) [][]int {
	list := try.Value(indices.Integers())
	k := 0
	if last := len(indices.Dims) - 1; last >= 0 {
		k = indices.Dims[last]
	}
	if k < 1 || k > len(dims) || len(list) == 0 {
		try.Failf("indices of shape %v do not fit a tensor of %d dimensions", indices.Dims, len(dims))
	}
	at := func(i, d int) int { return eval.Position(list[i*k+d], dims[d]) }
	n, inner := len(list)/k, 1
	places := make([][]int, len(dims))
	for d := k - 1; d >= 0; d-- {
		size := 1
		for size*inner < n && at(size*inner, d) != at(0, d) {
			size++
		}
		places[d] = im.combined(n, inner, size, func(i int) int { return at(i, d) })
		inner *= size
	}
	if inner != n {
		try.Failf("indices of shape %v are not all combinations of positions of each dimension", indices.Dims)
	}
	for d := k; d < len(dims); d++ {
		places[d] = im.all(dims[d])
	}
	return places
}

// combined returns the size positions of a dimension, each of which is repeated inner times, and checks
// that all of n are such repetitions.
func (im *importer) combined(n, inner, size int, at func(i int) int) []int {
	list := try.Value(budget.List(im.budget, size, func(i int) int { return at(i * inner) }))
	try.Check(im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if at(i) != list[i/inner%size] {
				try.Failf("the indices are not all combinations of positions of each dimension")
			}
		}
	}))
	return list
}

// gridAlong is grid for ScatterElements, whose indices are positions along an axis.
func (im *importer) gridAlong(indices *eval.Tensor, dims []int, axis int) [][]int {
	list := try.Value(indices.Integers())
	if len(indices.Dims) != len(dims) || len(list) == 0 {
		try.Failf("indices of shape %v do not fit a tensor of %d dimensions", indices.Dims, len(dims))
	}
	places := make([][]int, len(dims))
	inner := 1
	for d := len(dims) - 1; d >= 0; d-- {
		size := indices.Dims[d]
		switch {
		case d == axis:
			places[d] = im.combined(len(list), inner, size, func(i int) int { return eval.Position(list[i], dims[d]) })
		case size > dims[d]:
			try.Failf("indices of shape %v are larger than the tensor", indices.Dims)
		default:
			places[d] = im.all(size)
		}
		inner *= size
	}
	return places
}

// all returns the numbers below n.
func (im *importer) all(n int) []int {
	return try.Value(budget.List(im.budget, n, func(i int) int { return i }))
}

// shaped returns the updates with a dimension for each one of data.
func (im *importer) shaped(n *pb.Node, updates, data build.Operand, places [][]int) build.Operand {
	sizes := make([]int, len(places))
	for d, list := range places {
		sizes[d] = len(list)
	}
	if t := updates.Constant; t != nil {
		return build.Operand{Constant: t.Redim(sizes)}
	}
	v := updates.Value
	b := slices.IndexFunc(v.View, view.IsBatch)
	fits := len(v.View) == len(sizes)
	for d := 0; fits && d < len(sizes); d++ {
		fits = d == b || v.Size(d) == sizes[d]
	}
	if !fits {
		v = im.build.Movable(v)
		out := v.With(n)
		out.View = try.Value(v.View.Reshape(sizes[1:]))
		v, b = out, 0
	}
	if b < 0 {
		try.Failf("the batch must be a dimension of the updates")
	}
	if x := data.Value; sizes[b] != max(im.batch, 1) || x != nil && !view.IsBatch(x.View[b]) {
		try.Failf("the updates have the batch where the tensor has another dimension")
	}
	return build.Operand{Value: v}
}

// assigned replaces the positions of data that have an update, dimension by dimension: it updates the
// part of the others in the same way, joins that to data, and picks.
func (im *importer) assigned(n *pb.Node, data, updates build.Operand, at [][]int) build.Operand {
	dim := slices.IndexFunc(at, func(list []int) bool { return list != nil })
	if dim < 0 {
		return updates
	}
	size := len(at[dim])
	if data.Constant != nil {
		like := im.build.Settle(updates.Value)
		for d, list := range at {
			if list != nil {
				like = im.picks(n, like, d, try.Value(budget.List(im.budget, len(list), func(i int) int { return max(list[i], 0) })))
			}
		}
		data.Value = im.build.Constant(n, data.Constant, like, -1)
	}
	v := im.build.Settle(data.Value)
	places := try.Value(budget.List(im.budget, slices.Max(at[dim])+1, func(int) int { return 0 }))
	for p, i := range at[dim] {
		if i >= 0 {
			places[i] = p
		}
	}
	rest := slices.Clone(at)
	rest[dim] = nil
	if updates.Value == nil || slices.ContainsFunc(rest, func(list []int) bool { return list != nil }) {
		part := im.picks(n, v, dim, places)
		updates = im.assigned(n, build.Operand{Value: part}, updates, rest)
		if updates.Value == nil {
			updates.Value = im.build.Constant(n, updates.Constant, part, -1)
		}
	}
	joined := im.build.Concat(n, []*build.Value{v, updates.Value}, dim)
	return build.Operand{Value: im.picks(n, joined, dim, try.Value(budget.List(im.budget, size, func(i int) int {
		if at[dim][i] >= 0 {
			return size + at[dim][i]
		}
		return i
	})))}
}

// picks is pick for a dimension over anything.
func (im *importer) picks(n *pb.Node, v *build.Value, dim int, positions []int) *build.Value {
	return im.pick(n, v, dim, v.AxisOf(dim), positions)
}
