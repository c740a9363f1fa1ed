package bcnn

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTensorOf(t *testing.T) {
	// Value c of pixel (y, x) of image n is the number n c y x.
	s := Shape{H: 2, W: 3, C: 4}
	var nchw, nhwc []float32
	number := func(n, c, y, x int) float32 { return float32(1000*n + 100*c + 10*y + x) }
	for n := range 2 {
		for c := range s.C {
			for y := range s.H {
				for x := range s.W {
					nchw = append(nchw, number(n, c, y, x))
				}
			}
		}
		for y := range s.H {
			for x := range s.W {
				for c := range s.C {
					nhwc = append(nhwc, number(n, c, y, x))
				}
			}
		}
	}
	for l, values := range map[Layout][]float32{NHWC: nhwc, NCHW: nchw} {
		tensor, err := TensorOf(2, s, l, values)
		require.NoError(t, err)
		require.Equal(t, Tensor{DType: Float32, N: 2, Shape: s, F32: nhwc}, tensor)
		back, err := tensor.Floats(l)
		require.NoError(t, err)
		require.Equal(t, values, back)
		require.Equal(t, l == NHWC, &tensor.F32[0] == &values[0]) // shared
		require.Equal(t, l == NHWC, &tensor.F32[0] == &back[0])
	}
	bytes, err := TensorOf(1, Shape{H: 1, W: 2, C: 2}, NCHW, []uint8{1, 2, 3, 4})
	require.NoError(t, err)
	require.Equal(t, Tensor{DType: Uint8, N: 1, Shape: Shape{H: 1, W: 2, C: 2}, U8: []uint8{1, 3, 2, 4}}, bytes)

	const huge = 1 << (strconv.IntSize / 2) // whose product with itself is 0
	for i, c := range []struct {
		n      int
		shape  Shape
		layout Layout
		values int
		want   string
	}{
		{1, Shape{1, 2, 2}, NCHW, 3, "3 values, want those of 1 image of 1×2×2"},
		{2, Shape{1, 2, 2}, NHWC, 4, "4 values, want those of 2 images of 1×2×2"},
		{0, Shape{1, 2, 2}, NHWC, 0, "0 images of 1×2×2, want at least one value"},
		{1, Shape{0, 2, 2}, NHWC, 0, "want at least one value"},
		{-1, Shape{-1, 1, 1}, NHWC, 1, "want at least one value"},
		{1, Shape{huge, huge, 1}, NHWC, 0, "0 values, want"},
		{1, Shape{1, 1, 1}, "", 1, `layout "", want NHWC or NCHW`},
		{1, Shape{1, 1, 1}, "nchw", 1, `layout "nchw", want NHWC or NCHW`},
	} {
		_, err := TensorOf(c.n, c.shape, c.layout, make([]float32, c.values))
		require.ErrorContains(t, err, c.want, fmt.Sprint(i))
	}
	_, err = bytes.Floats(NHWC)
	require.ErrorContains(t, err, "tensor is uint8")
	_, err = NewTensor(Float32, 1, s).Floats("HWC")
	require.ErrorContains(t, err, "want NHWC or NCHW")
}

func TestTensorString(t *testing.T) {
	floats := NewTensor(Float32, 3, Shape{H: 1, W: 1, C: 3})
	copy(floats.F32, []float32{0.5, -2, 1e-9})
	for want, tensor := range map[string]Tensor{
		"float32 3×1×1×3: 0.5, -2, 1e-09, 0, 0, 0, 0, 0, …": floats,
		"uint8 1×1×1×2: 0, 0":                               NewTensor(Uint8, 1, Shape{H: 1, W: 1, C: 2}),
		"bits 1×1×1×65: 0x0, 0x0":                           NewTensor(Bits, 1, Shape{H: 1, W: 1, C: 65}),
		"float32 0×0×0×0":                                   {DType: Float32},
	} {
		require.Equal(t, want, tensor.String())
	}
}
