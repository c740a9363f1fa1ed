package tflite

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// argMax is ARG_MAX or ARG_MIN over channels: numbers of channels, with one dimension less.
func (im *importer) argMax(o *schema.Operator) *value {
	v := im.real(o, 0)
	axes := im.axes(o, 1, v.rank)
	if len(axes) != 1 || axes[0] != dimC {
		try.Failf("an arg-max or arg-min is supported only over the channels")
	}
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Type != schema.Int32 && t.Type != schema.Int64 {
		try.Failf("channel indices of type %v are not supported, want INT32 or INT64", t.Type)
	}
	if said := schema.Type(o.Options.Uint8(0, 0)); said != 0 && said != t.Type {
		try.Failf("its output has type %v in the file, but output_type = %v", t.Type, said)
	}
	if o.Name == "ARG_MIN" {
		v = im.affine(o, "/minus", v, []float32{-1}, nil)
	}
	shape := bcnn.Shape{H: v.shape.H, W: v.shape.W, C: 1}
	y := im.emit(o, "", bcnn.TopK{K: 1}, shape, v)
	y.typ, y.numbers = t.Type, true
	return y
}
