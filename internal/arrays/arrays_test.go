package arrays

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// Images of 2×3 pixels and two channels, counted from 0 in the order of the array.
func TestOrders(t *testing.T) {
	shape := bcnn.Shape{H: 2, W: 3, C: 2}
	count := make([]float32, 2*12)
	for i := range count {
		count[i] = float32(i)
	}
	for _, c := range []struct {
		source *bcnn.Source
		dims   []int
		nhwc   []float32 // of the first image
	}{
		{nil, []int{2, 3, 2}, count[:12]},
		{&bcnn.Source{Name: "x", Dims: []int{2, 6}}, []int{2, 6}, count[:12]},
		{&bcnn.Source{Dims: []int{2, 2, 3}, ChannelsFirst: true}, []int{2, 2, 3}, []float32{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}},
		{&bcnn.Source{Dims: []int{12}, ChannelsFirst: true}, []int{12}, []float32{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}},
	} {
		p := newPort("y", shape, c.source)
		require.Equal(t, c.dims, p.Dims)
		a := npy.From(append([]int{2}, c.dims...), count)
		n, err := p.Batch(a.Shape)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		for _, d := range []bcnn.DType{bcnn.Uint8, bcnn.Float32} {
			all := bcnn.NewTensor(d, 2, shape)
			require.NoError(t, p.Fill(all, a))
			second := bcnn.NewTensor(d, 1, shape)
			require.NoError(t, p.Fill(second, npy.From(append([]int{1}, c.dims...), count[12:])))
			require.Equal(t, all.Images(1, 1), second)
			for i, v := range c.nhwc {
				if d == bcnn.Uint8 {
					require.Equal(t, uint8(v), all.U8[i])
					require.Equal(t, uint8(v)+12, all.U8[i+12])
					continue
				}
				require.Equal(t, v, all.F32[i])
				require.Equal(t, v+12, all.F32[i+12])
			}
			if d == bcnn.Float32 {
				back := make([]float32, len(count))
				p.Values(back, all)
				require.Equal(t, count, back)
			}
		}
	}
}

// Bits are ±1, whole images or flattened.
func TestBits(t *testing.T) {
	shape := bcnn.Shape{H: 1, W: 2, C: 3}
	for _, s := range []bcnn.Shape{shape, {H: 1, W: 1, C: 6}} {
		tensor := bcnn.NewTensor(bcnn.Bits, 1, s)
		bits.Pack(tensor.Words, []float32{1, -1, 1, 1, 1, -1}, s.C)
		got := make([]float32, 6)
		newPort("x", shape, &bcnn.Source{Dims: []int{3, 1, 2}, ChannelsFirst: true}).Values(got, tensor)
		require.Equal(t, []float32{1, 1, -1, 1, 1, -1}, got)
	}
}

// Arrays of packed bits and of integers hold values in other forms.
func TestForms(t *testing.T) {
	shape := bcnn.Shape{H: 1, W: 2, C: 33}
	bits := newPort("x", shape, &bcnn.Source{Dims: []int{1, 2, 2}, Type: bcnn.SourceBits})
	words := []int32{-1, 0, 5, 1, -1 << 31, 1, 0, 0}
	a := npy.From([]int{2, 1, 2, 2}, words)
	n, err := bits.Batch(a.Shape)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	x := bcnn.NewTensor(bcnn.Float32, 2, shape)
	require.NoError(t, bits.Fill(x, a))
	for i, v := range x.F32 {
		pixel, c := i/33, i%33
		require.Equal(t, float32(1-2*(words[2*pixel+c/32]>>(c%32)&1)), v)
	}
	require.Equal(t, a, bits.Array(2, x.F32))
	second := bcnn.NewTensor(bcnn.Float32, 1, shape)
	require.NoError(t, bits.Fill(second, npy.From([]int{1, 1, 2, 2}, words[4:])))
	require.Equal(t, x.Images(1, 1), second)
	for _, v := range []float32{0.5, 1 << 32} {
		require.ErrorContains(t, bits.Fill(second, npy.From([]int{1, 1, 2, 2}, []float32{v, 0, 0, 0})), "is not a 32-bit word")
	}

	shape = bcnn.Shape{H: 1, W: 1, C: 6}
	integers := newPort("y", shape, &bcnn.Source{Dims: []int{6}, Type: bcnn.SourceInt8, Offset: -128})
	y := bcnn.NewTensor(bcnn.Uint8, 1, shape)
	require.NoError(t, integers.Fill(y, npy.From([]int{1, 6}, []int8{-128, -1, 0, 1, 100, 127})))
	require.Equal(t, []uint8{0, 127, 128, 129, 228, 255}, y.U8)
	require.ErrorContains(t, integers.Fill(y, npy.From([]int{1, 6}, []int32{0, 0, 128, 0, 0, 0})), "element 2 is 128, which is out of range")
	results := []float32{-1, 0.5, 1.5, 2.49, 300, 255}
	integers.Results(results)
	require.Equal(t, npy.From([]int{1, 6}, []int8{-128, -127, -126, -126, 127, 127}), integers.Array(1, results))

	unsigned := newPort("z", shape, &bcnn.Source{Dims: []int{6}, Type: bcnn.SourceUint8, Offset: 3})
	results = []float32{-4, -3.5, -2.5, 0, 252, 253}
	unsigned.Results(results)
	require.Equal(t, npy.From([]int{1, 6}, []uint8{0, 0, 0, 3, 255, 255}), unsigned.Array(1, results))
}

func TestDifference(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		got               float32
		want              float64
		largest, relative float64
	}{
		{2, 2, 0, 0},
		{-3, -4, 1, 0.25},
		{1, 0, 1, inf},
		{0, 0, 0, 0},
		{float32(inf), inf, 0, 0},
		{float32(inf), -inf, inf, inf},
		{float32(nan), nan, 0, 0},
		{float32(nan), 1, inf, inf},
		{1, nan, inf, inf},
		{1, inf, inf, inf},
	} {
		var d Difference
		d.Add([]float32{c.got}, []float64{c.want})
		require.Equal(t, c.largest, d.Largest, "%v", c)
		require.Equal(t, c.relative, d.Relative(), "%v", c)
	}
	var d Difference
	d.Add([]float32{1, 7}, []float64{1, 8})
	d.Add([]float32{-20}, []float64{-16.5})
	require.Equal(t, Difference{3.5, 16.5}, d)
	require.Equal(t, 1, ArgMax([]float64{0, 2, 2, 1}))
	require.Equal(t, -1, ArgMax([]float32{0, float32(nan), 2}))
}
