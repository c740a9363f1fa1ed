package build

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// ErrPixels says that a constant has more than one number for a channel.
var ErrPixels = errors.New("a constant that varies over the height or width of an image is not supported")

// Broadcast is perChannel for a value that may become a vector for it.
func (b *Builder) Broadcast(v *Value, t *eval.Tensor, n *pb.Node) (*Value, []float32, error) {
	list, ok, err := b.perChannel(v, t)
	if err != nil || ok {
		return v, list, err
	}
	if len(v.View) == 2 && v.Shape.Pixels() > 1 {
		flat := b.Flattened(v, n)
		list, ok, err = b.perChannel(flat, t)
		v = flat
	}
	if err == nil && !ok {
		err = ErrPixels
	}
	return v, list, err
}

// OverPixels reports whether a constant varies over the height or width of a value.
func (b *Builder) OverPixels(v *Value, t *eval.Tensor) (bool, error) {
	if t.Len() < 2 || len(v.View) == 2 {
		return false, nil
	}
	_, ok, err := b.perChannel(v, t)
	return !ok && err == nil, err
}

// perChannel returns a constant that is broadcast to the value as one number,
// or as one per channel in memory. ok is false where it varies over the image.
func (b *Builder) perChannel(v *Value, t *eval.Tensor) (list []float32, ok bool, err error) {
	if t.Len() == 0 {
		return nil, false, errors.New("an empty constant")
	}
	uniform := true
	var wrong error
	err = b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := t.At(i)
			if x-x != 0 {
				wrong = fmt.Errorf("the constant holds %v", x)
			} else if t.F64 != nil && float64(float32(x)) != x {
				wrong = fmt.Errorf("the DOUBLE constant %v has no exact float32 value", x)
			}
			uniform = uniform && x == t.At(0)
		}
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, false, err
	}
	lead := len(v.View) - len(t.Dims)
	if lead < 0 {
		return nil, false, fmt.Errorf("a constant of dimensions %v has more than the %d of the tensor", t.Dims, len(v.View))
	}
	// Exporters expand constants to all dimensions, along which they then do not
	// vary.
	across, expanded := make([]bool, len(t.Dims)), false
	for i, n := range t.Dims {
		d := v.View[lead+i]
		across[i] = n != 1 && (view.IsBatch(d) || !view.Only(d, view.C))
		expanded = expanded || across[i]
	}
	given := t.Dims
	if expanded {
		if t, err = b.eval.Collapse(t, across); err != nil {
			return nil, false, err
		}
	}
	varies := make([][]view.Atom, len(t.Dims)) // atoms of dimensions along which t varies
	for i, n := range given {
		batch := view.IsBatch(v.View[lead+i])
		switch {
		case batch && t.Dims[i] != 1 || !batch && n != 1 && v.Size(lead+i) != n:
			return nil, false, fmt.Errorf("a constant of dimensions %v does not fit", given)
		case t.Dims[i] != 1:
			varies[i] = v.View[lead+i]
		}
	}
	if uniform {
		return []float32{float32(t.At(0))}, true, nil
	}
	for _, d := range varies {
		if !view.Only(d, view.C) {
			return nil, false, nil
		}
	}
	if list, err = b.Floats(v.Shape.C); err != nil {
		return nil, false, err
	}
	for _, d := range varies { // which every channel looks at
		if err := b.budget.Charge(int64(len(d)) * int64(v.Shape.C)); err != nil {
			return nil, false, err
		}
	}
	err = b.budget.Loop(len(list), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			at := 0
			for i, d := range varies {
				at = at*t.Dims[i] + view.Position(d, c)
			}
			list[c] = float32(t.At(at))
		}
	})
	return list, err == nil, err
}
