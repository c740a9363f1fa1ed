package onnx

import (
	"errors"
	"fmt"
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

// value is a tensor that is computed from the input: the output of a layer
// seen through a view, and what is still to be done to it.
type value struct {
	typ   elemType
	node  *node // that made it, nil for the input
	layer int   // bcnn.NetworkInput or an index
	shape bcnn.Shape
	view  view
	signs bool    // all values are ±1, times gain
	gain  float32 // pending factor of ±1 values; 0 means 1

	pad  *pending // values around the image
	clip *clip
	step *step

	// What settleSigns and settle made of the value.
	signed, plain *value
}

// pending is padding that the next window takes in.
type pending struct {
	bcnn.Padding
	value float32
	node  *node
}

// clip is max(lo, min(x, hi)), which only a binarisation behind it can absorb.
type clip struct {
	lo, hi float64
	node   *node
}

// with returns a copy of the value as made by node n, for changes.
func (v *value) with(n *node) *value {
	w := *v
	w.node, w.signed, w.plain = n, nil, nil
	return &w
}

// real checks that the value is of a type that layers compute with.
func (v *value) real() error {
	if v.typ != typeFloat {
		return fmt.Errorf("its input is %v, want FLOAT", v.typ)
	}
	return nil
}

// axisOf returns the axis that a dimension runs over in order, or axisN. A
// dimension of size 1 has one where the view is NCHW.
func (v *value) axisOf(dim int) axis {
	d := v.view[dim]
	if len(d) == 0 {
		if dim >= 2 && v.image() == nil {
			return axis(dim) - 2 + axisH
		}
		return axisN
	}
	for x, size := range map[axis]int{axisH: v.shape.H, axisW: v.shape.W, axisC: v.shape.C} {
		if slices.Equal(d, whole(x, size)) {
			return x
		}
	}
	return axisN
}

// size returns the size of a dimension, padding included.
func (v *value) size(dim int) int {
	n := product(v.view[dim])
	if v.pad != nil {
		switch v.axisOf(dim) {
		case axisH:
			n += v.pad.Top + v.pad.Bottom
		case axisW:
			n += v.pad.Left + v.pad.Right
		}
	}
	return n
}

// image checks that the value is a batch of feature maps in NCHW, whose
// channels may be in any order.
func (v *value) image() error {
	if len(v.view) != 4 {
		return fmt.Errorf("its input has %d dimensions, want 4: batch, channels, height, width", len(v.view))
	}
	if !isBatch(v.view[0]) || !only(v.view[1], axisC) || product(v.view[1]) != v.shape.C ||
		!slices.Equal(v.view[2], whole(axisH, v.shape.H)) || !slices.Equal(v.view[3], whole(axisW, v.shape.W)) {
		return fmt.Errorf("its input is not an image of batch, channels, height, width (%v in memory): "+
			"a Reshape or Transpose before it cannot be represented", v.shape)
	}
	return nil
}

// channels returns the order of a dimension that runs over all channels, nil
// if it is that of the memory.
func (v *value) channels(d []atom) []int {
	if slices.Equal(d, whole(axisC, v.shape.C)) {
		return nil
	}
	return offsets(d, channelStride)
}

// perChannel returns a constant that is broadcast to the value as one number,
// or as one per channel in memory. ok is false where it varies over the image.
func (im *importer) perChannel(v *value, t *tensor) (list []float32, ok bool, err error) {
	if t.typ == typeDouble {
		for _, x := range t.f64 {
			if float64(float32(x)) != x && x == x {
				return nil, false, fmt.Errorf("the DOUBLE constant %v has no exact float32 value", x)
			}
		}
	}
	if t.len() == 0 {
		return nil, false, errors.New("an empty constant")
	}
	if err := im.charge(4 * int64(t.len())); err != nil {
		return nil, false, err
	}
	uniform := true
	for i := range t.len() {
		x := t.at(i)
		if x-x != 0 {
			return nil, false, fmt.Errorf("the constant holds %v", x)
		}
		uniform = uniform && x == t.at(0)
	}
	lead := len(v.view) - len(t.dims)
	if lead < 0 {
		return nil, false, fmt.Errorf("a constant of dimensions %v has more than the %d of the tensor", t.dims, len(v.view))
	}
	varies := make([][]atom, len(t.dims)) // atoms of dimensions along which t varies
	for i, n := range t.dims {
		switch {
		case n == 1:
			continue
		case isBatch(v.view[lead+i]) || v.size(lead+i) != n:
			return nil, false, fmt.Errorf("a constant of dimensions %v does not fit", t.dims)
		}
		varies[i] = v.view[lead+i]
	}
	if uniform {
		return []float32{float32(t.at(0))}, true, nil
	}
	for _, d := range varies {
		if !only(d, axisC) {
			return nil, false, nil
		}
	}
	if err := im.charge(4 * int64(v.shape.C)); err != nil {
		return nil, false, err
	}
	list = make([]float32, v.shape.C)
	for c := range list {
		at := 0
		for i, d := range varies {
			pos := 0
			for _, a := range d {
				pos = pos*a.size + c/a.stride%a.size
			}
			at = at*t.dims[i] + pos
		}
		list[c] = float32(t.at(at))
	}
	return list, true, nil
}
