package bcnn

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Layout is the order of the values of a batch of images in memory.
type Layout string

const (
	// NHWC is the layout of all tensors: image by image, row by row, pixel by pixel, the
	// channels of a pixel side by side. Keras and TensorFlow Lite have it.
	NHWC Layout = "NHWC"
	// NCHW is that of PyTorch and most ONNX files: image by image, channel by channel, row by
	// row. TensorOf and Floats convert.
	NCHW Layout = "NCHW"
)

// TensorOf makes a tensor of n images of a shape of values in a layout: n·H·W·C of them. In NHWC
// the tensor shares the memory of values, else it is a copy.
func TensorOf[E uint8 | float32](n int, s Shape, l Layout, values []E) (Tensor, error) {
	if n < 1 || s.H < 1 || s.W < 1 || s.C < 1 {
		return Tensor{}, fmt.Errorf("%d images of %v, want at least one value", n, s)
	}
	if len(values)/n/s.H/s.W/s.C != 1 || len(values) != n*s.Values() { // the product may overflow
		return Tensor{}, fmt.Errorf("%d values, want those of %s of %v", len(values), text.Count(n, "image"), s)
	}
	switch l {
	case NHWC:
	case NCHW:
		values = transposed(values, s.C, s.Pixels())
	default:
		return Tensor{}, errLayout(l)
	}
	t := Tensor{N: n, Shape: s}
	switch v := any(values).(type) {
	case []uint8:
		t.DType, t.U8 = Uint8, v
	case []float32:
		t.DType, t.F32 = Float32, v
	}
	return t, nil
}

// Floats returns the values of a Float32 tensor in a layout: its own memory in NHWC, else a copy.
func (t Tensor) Floats(l Layout) ([]float32, error) {
	if err := t.Check(Float32, t.Shape); err != nil {
		return nil, err
	}
	switch l {
	case NHWC:
		return t.F32, nil
	case NCHW:
		return transposed(t.F32, t.Shape.Pixels(), t.Shape.C), nil
	}
	return nil, errLayout(l)
}

func errLayout(l Layout) error { return fmt.Errorf("layout %q, want %s or %s", string(l), NHWC, NCHW) }

// transposed returns matrices, which follow each other, with their rows as columns.
func transposed[E any](values []E, rows, columns int) []E {
	out := make([]E, 0, len(values))
	for matrix := range slices.Chunk(values, rows*columns) {
		for c := range columns {
			for r := range rows {
				out = append(out, matrix[r*columns+c])
			}
		}
	}
	return out
}
