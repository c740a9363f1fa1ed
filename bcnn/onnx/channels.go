package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// broadcast is perChannel for a value that may become a vector for it.
func (im *importer) broadcast(v *value, t *tensor, n *pb.Node) (*value, []float32, error) {
	list, ok, err := im.perChannel(v, t)
	if err != nil || ok {
		return v, list, err
	}
	if len(v.view) == 2 && v.shape.Pixels() > 1 {
		flat := im.flattened(v, n)
		list, ok, err = im.perChannel(flat, t)
		v = flat
	}
	if err == nil && !ok {
		err = errors.New("a constant that varies over the height or width of an image is not supported")
	}
	return v, list, err
}

// perChannel returns a constant that is broadcast to the value as one number,
// or as one per channel in memory. ok is false where it varies over the image.
func (im *importer) perChannel(v *value, t *tensor) (list []float32, ok bool, err error) {
	if t.typ == pb.Double {
		for _, x := range t.f64 {
			if float64(float32(x)) != x && x == x {
				return nil, false, fmt.Errorf("the DOUBLE constant %v has no exact float32 value", x)
			}
		}
	}
	if t.len() == 0 {
		return nil, false, errors.New("an empty constant")
	}
	if err := im.budget.Charge(4 * int64(t.len())); err != nil {
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
	if err := im.budget.Charge(4 * int64(v.shape.C)); err != nil {
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
