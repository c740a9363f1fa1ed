// Package view describes how the tensors of a graph lie in memory. A tensor has dimensions in some
// order; a layer's output is an NHWC image. The view of a tensor tells how each of its dimensions
// runs over the image: as a list of atoms, the outermost first. Transpose, Reshape, Flatten,
// Squeeze and Unsqueeze only change the view, so they cost nothing and cancel out. A layer that
// reads the tensor puts its weights in the order of the memory.
package view

import (
	"errors"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Axis is a direction in a batch of NHWC images.
type Axis uint8

// The axes: image of the batch, row, column, channel.
const (
	N Axis = iota
	H
	W
	C
)

// Atom is a part of an axis of the image: Size positions, Stride apart.
type Atom struct {
	Axis         Axis
	Stride, Size int
}

// View has the atoms of every dimension. A dimension of size 1 has none; the batch has one of axis
// N.
type View [][]Atom

// Batch is the batch dimension.
var Batch = []Atom{{Axis: N, Stride: 1}}

// All is a dimension that runs over all of an axis of the given size.
func All(a Axis, size int) []Atom {
	if size == 1 {
		return nil
	}
	return []Atom{{a, 1, size}}
}

// NCHW is the view of batch, channels, height and width on an image.
func NCHW(s bcnn.Shape) View {
	return View{Batch, All(C, s.C), All(H, s.H), All(W, s.W)}
}

// NHWC is the view of batch, height, width and channels on an image.
func NHWC(s bcnn.Shape) View {
	return View{Batch, All(H, s.H), All(W, s.W), All(C, s.C)}
}

// Vector is the view of batch and values on an image of 1×1×n.
func Vector(n int) View { return View{Batch, All(C, n)} }

// IsBatch reports whether a dimension is the batch.
func IsBatch(d []Atom) bool { return len(d) == 1 && d[0].Axis == N }

// Product returns the number of positions of a dimension.
func Product(d []Atom) int {
	n := 1
	for _, a := range d {
		n *= a.Size
	}
	return n
}

// Position returns the position of channel c in a dimension that runs over channels.
func Position(d []Atom, c int) int {
	at := 0
	for _, a := range d {
		at = at*a.Size + c/a.Stride%a.Size
	}
	return at
}

// Only reports whether all atoms of a dimension belong to axis x.
func Only(d []Atom, x Axis) bool {
	return !slices.ContainsFunc(d, func(a Atom) bool { return a.Axis != x })
}

// Merge joins neighbouring atoms that together run evenly, so that equal dimensions have equal
// atoms.
func Merge(d []Atom) []Atom {
	var out []Atom
	for _, a := range d {
		if n := len(out); n > 0 && out[n-1].Axis == a.Axis && out[n-1].Stride == a.Stride*a.Size {
			out[n-1] = Atom{a.Axis, a.Stride, a.Size * out[n-1].Size}
			continue
		}
		out = append(out, a)
	}
	return out
}

// Equal reports whether two views are the same.
func (v View) Equal(w View) bool {
	return slices.EqualFunc(v, w, func(a, b []Atom) bool { return slices.Equal(a, b) })
}

// Permuted returns the view whose dimension i is dimension perm[i] of v.
func (v View) Permuted(perm []int) View {
	out := make(View, len(perm))
	for i, p := range perm {
		out[i] = v[p]
	}
	return out
}

// Each returns the view with what f makes of each atom behind the batch.
func (v View) Each(f func(Atom) []Atom) View {
	out := View{v[0]}
	for _, d := range v[1:] {
		var atoms []Atom
		for _, a := range d {
			atoms = append(atoms, f(a)...)
		}
		out = append(out, Merge(atoms))
	}
	return out
}

// Offsets returns the place in memory of every position of a dimension, given the stride in memory
// of an atom.
func Offsets(d []Atom, stride func(Atom) int) []int {
	out := []int{0}
	for _, a := range d {
		next := make([]int, 0, len(out)*a.Size)
		for _, base := range out {
			for i := range a.Size {
				next = append(next, base+i*stride(a))
			}
		}
		out = next
	}
	return out
}

// ChannelStride is the stride of an atom along its axis.
func ChannelStride(a Atom) int { return a.Stride }

// FlatStride returns the strides of atoms in an NHWC image.
func FlatStride(s bcnn.Shape) func(Atom) int {
	return func(a Atom) int {
		switch a.Axis {
		case H:
			return a.Stride * s.W * s.C
		case W:
			return a.Stride * s.C
		}
		return a.Stride
	}
}

// PlanarStride returns the strides of atoms in an image in NCHW order.
func PlanarStride(s bcnn.Shape) func(Atom) int {
	return func(a Atom) int {
		switch a.Axis {
		case C:
			return a.Stride * s.H * s.W
		case H:
			return a.Stride * s.W
		}
		return a.Stride
	}
}

// InOrder reports whether the dimensions behind the batch run over so many values in the order of
// memory, given the stride in memory of an atom.
func (v View) InOrder(values int, stride func(Atom) int) bool {
	n := 1
	for _, d := range slices.Backward(v[1:]) {
		for _, a := range slices.Backward(d) {
			if stride(a) != n {
				return false
			}
			n *= a.Size
		}
	}
	return n == values
}

// Flatten returns the view of the tensor after the pixels of the image have been lined up as one
// vector of channels.
func (v View) Flatten(s bcnn.Shape) View {
	stride := FlatStride(s)
	out := make(View, len(v))
	for i, d := range v {
		if IsBatch(d) {
			out[i] = d
			continue
		}
		var atoms []Atom
		for _, a := range d {
			atoms = append(atoms, Atom{C, stride(a), a.Size})
		}
		out[i] = Merge(atoms)
	}
	return out
}

// Reshape distributes the atoms behind the batch over new dimensions. It fails if the sizes do not
// match, or if a new dimension would need a part of an atom that does not divide it.
func (v View) Reshape(dims []int) (View, error) {
	var queue []Atom
	for _, d := range v[1:] {
		queue = append(queue, d...)
	}
	out := View{Batch}
	for _, need := range dims {
		var atoms []Atom
		for need > 1 {
			if len(queue) == 0 {
				return nil, errors.New("the new shape has another number of values")
			}
			a := queue[0]
			switch {
			case a.Size <= need && need%a.Size == 0:
				atoms, queue = append(atoms, a), queue[1:]
				need /= a.Size
			case a.Size%need == 0:
				// The outer part belongs to this dimension, the rest to the next one.
				rest := a.Size / need
				atoms = append(atoms, Atom{a.Axis, a.Stride * rest, need})
				queue = append([]Atom{{a.Axis, a.Stride, rest}}, queue[1:]...)
				need = 1
			default:
				return nil, errors.New("the new shape splits the height, the width or the channels at a place that is no factor of their size")
			}
		}
		out = append(out, Merge(atoms))
	}
	return out, nil
}
