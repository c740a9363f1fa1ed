package tflite

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// argMax is ARG_MAX or ARG_MIN over channels: numbers of channels, with one dimension less.
func (im *importer) argMax(o *schema.Operator) (*value, error) {
	v, err := im.real(o, 0)
	if err != nil {
		return nil, err
	}
	axes, err := im.axes(o, 1, v.rank)
	if err != nil {
		return nil, err
	}
	if len(axes) != 1 || axes[0] != dimC {
		return nil, errors.New("the largest of what is not channels is not supported")
	}
	t, err := im.model.Tensor(o.Outputs[0])
	if err != nil {
		return nil, err
	}
	if t.Type != schema.Int32 && t.Type != schema.Int64 {
		return nil, fmt.Errorf("numbers of channels of type %v", t.Type)
	}
	if o.Name == "ARG_MIN" {
		if v, err = im.affine(o, "/minus", v, []float32{-1}, nil); err != nil {
			return nil, err
		}
	}
	shape := bcnn.Shape{H: v.shape.H, W: v.shape.W, C: 1}
	y, err := im.emit(o, "", bcnn.TopK{K: 1}, shape, v)
	if err != nil {
		return nil, err
	}
	y.typ, y.numbers = t.Type, true
	return y, nil
}
