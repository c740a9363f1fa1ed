package onnx

import (
	"errors"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// A value of the graph is a tensor with dimensions in some order; a layer's
// output is an NHWC image in memory. The view of a value tells how each
// dimension of the ONNX tensor runs over the image: as a list of atoms, the
// outermost first. Transpose, Reshape, Flatten, Squeeze and Unsqueeze only
// change the view, so they cost nothing and cancel out; a layer that reads the
// value puts its weights in the order of the memory.

type axis uint8

const (
	axisN axis = iota
	axisH
	axisW
	axisC
)

// atom is a part of an axis of the image: size steps of stride positions.
type atom struct {
	axis         axis
	stride, size int
}

// view has the atoms of every dimension. Dimensions of size 1 have none; the
// batch dimension has one of axisN.
type view [][]atom

var batchAtom = []atom{{axis: axisN, stride: 1}}

func whole(a axis, size int) []atom {
	if size == 1 {
		return nil
	}
	return []atom{{a, 1, size}}
}

// nchw is the view of an image, vector that of 1×1×n.
func nchw(s bcnn.Shape) view {
	return view{batchAtom, whole(axisC, s.C), whole(axisH, s.H), whole(axisW, s.W)}
}

func nhwc(s bcnn.Shape) view {
	return view{batchAtom, whole(axisH, s.H), whole(axisW, s.W), whole(axisC, s.C)}
}

func vector(n int) view { return view{batchAtom, whole(axisC, n)} }

func isBatch(d []atom) bool { return len(d) == 1 && d[0].axis == axisN }

// product returns the number of positions of a dimension.
func product(d []atom) int {
	n := 1
	for _, a := range d {
		n *= a.size
	}
	return n
}

// only reports whether all atoms belong to the axis.
func only(d []atom, x axis) bool {
	return !slices.ContainsFunc(d, func(a atom) bool { return a.axis != x })
}

// merge joins neighbouring atoms that together run evenly, so that equal
// dimensions have equal atoms.
func merge(d []atom) []atom {
	var out []atom
	for _, a := range d {
		if n := len(out); n > 0 && out[n-1].axis == a.axis && out[n-1].stride == a.stride*a.size {
			out[n-1] = atom{a.axis, a.stride, a.size * out[n-1].size}
			continue
		}
		out = append(out, a)
	}
	return out
}

func (v view) equal(w view) bool {
	return slices.EqualFunc(v, w, func(a, b []atom) bool { return slices.Equal(a, b) })
}

// offsets lists the place in memory of every position of a dimension, given
// the stride in memory of an atom.
func offsets(d []atom, stride func(atom) int) []int {
	out := []int{0}
	for _, a := range d {
		next := make([]int, 0, len(out)*a.size)
		for _, base := range out {
			for i := range a.size {
				next = append(next, base+i*stride(a))
			}
		}
		out = next
	}
	return out
}

// channelStride is the stride of an atom within its axis, flatStride that
// within the image of the given shape.
func channelStride(a atom) int { return a.stride }

func flatStride(s bcnn.Shape) func(atom) int {
	return func(a atom) int {
		switch a.axis {
		case axisH:
			return a.stride * s.W * s.C
		case axisW:
			return a.stride * s.C
		}
		return a.stride
	}
}

// flatten returns the view on the image after its pixels have been lined up
// as one vector of channels.
func (v view) flatten(s bcnn.Shape) view {
	stride := flatStride(s)
	out := make(view, len(v))
	for i, d := range v {
		if isBatch(d) {
			out[i] = d
			continue
		}
		var atoms []atom
		for _, a := range d {
			atoms = append(atoms, atom{axisC, stride(a), a.size})
		}
		out[i] = merge(atoms)
	}
	return out
}

// reshape distributes the atoms behind the batch dimension over new
// dimensions.
func (v view) reshape(dims []int) (view, error) {
	var queue []atom
	for _, d := range v[1:] {
		queue = append(queue, d...)
	}
	out := view{batchAtom}
	for _, need := range dims {
		var atoms []atom
		for need > 1 {
			if len(queue) == 0 {
				return nil, errors.New("the number of values changes")
			}
			a := queue[0]
			switch {
			case a.size <= need && need%a.size == 0:
				atoms, queue = append(atoms, a), queue[1:]
				need /= a.size
			case a.size%need == 0:
				// The outer part belongs here, the rest to the next dimension.
				rest := a.size / need
				atoms = append(atoms, atom{a.axis, a.stride * rest, need})
				queue = append([]atom{{a.axis, a.stride, rest}}, queue[1:]...)
				need = 1
			default:
				return nil, errors.New("it cuts through rows, columns or channels")
			}
		}
		out = append(out, merge(atoms))
	}
	return out, nil
}
