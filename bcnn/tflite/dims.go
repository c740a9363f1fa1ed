package tflite

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Some options and inputs say of an output what the file says of its tensor, too. The tensor
// counts here; where the two contradict each other, the interpreter would compute another
// shape, and that is an error.

// ranked checks how many dimensions the output of an operator has, where the file says them.
func (im *importer) ranked(o *schema.Operator, want int, why string) {
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if n := len(t.Dims); n != 0 && n != want {
		try.Failf("its output has shape %v in the file, want %d dimensions, since %s", t.Dims, want, why)
	}
}

// dimsOf returns the dimensions of input 0 as the file has them; none if it does not say.
func (im *importer) dimsOf(o *schema.Operator) []int {
	r := im.operand(o, 0)
	if c := r.constant; c != nil {
		return c.dims
	}
	t := try.Value(im.model.Tensor(o.Inputs[0]))
	if open(t) {
		return im.dims(r.value)
	}
	return t.Dims
}

// reshapes checks what RESHAPE, SQUEEZE and EXPAND_DIMS say of the dimensions of their output,
// t, besides. A shape that is computed tells nothing.
func (im *importer) reshapes(o *schema.Operator, t *schema.Tensor) {
	switch o.Name {
	case "RESHAPE":
		im.newShape(o, t)
	case "SQUEEZE":
		im.squeezed(o, t)
	case "EXPAND_DIMS":
		im.expanded(o, t)
	}
}

// expanded checks the dimension of size 1 that EXPAND_DIMS inserts: in the place that its
// second input says, or in any where that is computed.
func (im *importer) expanded(o *schema.Operator, t *schema.Tensor) {
	dims, given := im.dimsOf(o), im.given(o)
	if len(t.Dims) == 0 || len(dims) == 0 && given == nil {
		return // not said
	}
	from, to := 0, len(dims)
	if given != nil {
		list := given.integers()
		if len(list) != 1 {
			try.Failf("%d dimensions are inserted, only one is supported", len(list))
		}
		at := list[0]
		if at < 0 {
			at += int64(len(dims)) + 1
		}
		if at < 0 || at > int64(len(dims)) {
			try.Failf("there is no place %d for a dimension among those of its input, %v", list[0], dims)
		}
		from, to = int(at), int(at)
	}
	for at := from; at <= to; at++ {
		if slices.Equal(t.Dims, slices.Insert(slices.Clone(dims), at, 1)) {
			return
		}
	}
	try.Failf("its output has shape %v in the file, which is not that of its input, %v, with a dimension of size 1 inserted", t.Dims, dims)
}

// given returns input 1 if it is constant, nil if it is left out or computed.
func (im *importer) given(o *schema.Operator) *constant {
	if !has(o, 1) {
		return nil
	}
	im.used[1] = true // what is computed is not known, and not needed
	t := o.Inputs[1]
	if _, made := im.env[t]; !made && try.Value(im.model.Tensor(t)).Data == nil {
		return nil
	}
	return im.operand(o, 1).constant
}

// newShape checks the shape that RESHAPE is given: its second input if that is a list, else an
// option.
func (im *importer) newShape(o *schema.Operator, t *schema.Tensor) {
	option := o.Options.Int32s(0)
	var list []int64
	if given := im.given(o); given != nil && len(given.dims) == 1 {
		list = given.integers()
	} else if !has(o, 1) || given != nil {
		list = few(option)
	}
	if len(list) == 0 {
		return // there is none, or it is computed
	}
	fits, open := len(list) == len(t.Dims), 0
	for i, d := range list {
		if d == -1 {
			open++
		} else {
			fits = fits && (int64(t.Dims[i]) == d || t.Dynamic[i])
		}
	}
	if !fits || open > 1 {
		try.Failf("its output has shape %v in the file, which is not the shape that it is given, %v", t.Dims, list)
	}
}

// few returns a short list of an option.
func few(v flat.Int32s) []int64 {
	if v.Len() > maxIntegers {
		try.Failf("a list of %d integers is too long, at most %d are supported", v.Len(), maxIntegers)
	}
	list := make([]int64, v.Len())
	for i := range list {
		list[i] = int64(v.At(i))
	}
	return list
}

// squeezed checks which dimensions SQUEEZE removes: those that an option lists, or all of
// size 1 if it lists none.
func (im *importer) squeezed(o *schema.Operator, t *schema.Tensor) {
	list, dims := few(o.Options.Int32s(0)), im.dimsOf(o)
	if len(dims) == 0 {
		return // not said
	}
	removed := make([]bool, len(dims))
	for i, d := range dims {
		removed[i] = len(list) == 0 && d == 1
	}
	for _, at := range list {
		k := at
		if k < 0 {
			k += int64(len(dims))
		}
		if k < 0 || k >= int64(len(dims)) || dims[k] != 1 {
			try.Failf("squeeze_dims has %d, which is no dimension of size 1 of its input, %v", at, dims)
		}
		removed[k] = true
	}
	var left []int
	for i, d := range dims {
		if !removed[i] {
			left = append(left, d)
		}
	}
	if len(t.Dims) != 0 && !slices.Equal(t.Dims, left) {
		try.Failf("its output has shape %v in the file, but its input, %v, and its options give %v", t.Dims, dims, left)
	}
}
