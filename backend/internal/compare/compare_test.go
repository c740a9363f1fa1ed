package compare

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestTensorsNamesTheFirstDifference(t *testing.T) {
	shape := bcnn.Shape{H: 2, W: 3, C: 70}
	bit := bcnn.NewTensor(bcnn.Bits, 2, shape)
	real := bcnn.NewTensor(bcnn.Float32, 2, shape)
	bytes := bcnn.NewTensor(bcnn.Uint8, 2, shape)
	nan := float32(math.NaN())
	tests := []struct {
		name string
		like bcnn.Tensor
		edit func(want, got bcnn.Tensor)
		says string
	}{
		{"equal", bit, func(_, _ bcnn.Tensor) {}, ""},
		{"bit", bit, func(want, got bcnn.Tensor) { got.Words[(6+4)*2+1] = 1 << 3; got.Words[22] = 1 }, "image 1, y 1, x 1, channel 67: want -1, got +1"},
		{"missing bit", bit, func(want, _ bcnn.Tensor) { want.Words[1] = 1 }, "image 0, y 0, x 0, channel 64: want +1, got -1"},
		{"padding", bit, func(_, got bcnn.Tensor) { got.Words[5] = 1 << 6 }, "image 0, y 0, x 2, channel 70: padding bit is 1"},
		{"float", real, func(_, got bcnn.Tensor) { got.F32[6*70+70+5] = 1 }, "image 1, y 0, x 1, channel 5: want 0 (0x00000000), got 1 (0x3f800000)"},
		{"sign of zero", real, func(_, got bcnn.Tensor) { got.F32[0] = float32(math.Copysign(0, -1)) }, "want 0 (0x00000000), got -0 (0x80000000)"},
		{"NaNs", real, func(want, got bcnn.Tensor) { want.F32[1], got.F32[1] = nan, -nan }, ""},
		{"one NaN", real, func(_, got bcnn.Tensor) { got.F32[1] = nan }, "want 0 (0x00000000), got NaN"},
		{"byte", bytes, func(_, got bcnn.Tensor) { got.U8[69] = 9 }, "image 0, y 0, x 0, channel 69: want 0, got 9"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := bcnn.NewTensor(test.like.DType, 2, shape)
			got := bcnn.NewTensor(test.like.DType, 2, shape)
			test.edit(want, got)
			err := Tensors(want, got)
			if test.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.says)
			}
		})
	}
	require.ErrorContains(t, Tensors(bit, real), "tensor is float32")
	require.ErrorContains(t, Tensors(bit, bit.Images(0, 1)), "batch of 1, want 2")
}
