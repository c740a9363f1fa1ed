package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// response is LRN: x/(bias + alpha·mean)^beta of the squares of neighbouring channels, those
// that there are not as 0.
func (n testNode) response(x array) array {
	size, out := n.int("size", 0), newArray(x.dims...)
	i := 0
	each(x.dims, func(at []int) {
		sum := 0.0
		for c := max(at[1]-(size-1)/2, 0); c <= min(at[1]+size/2, x.dims[1]-1); c++ {
			v := x.at(at[0], c, at[2], at[3])
			sum += v * v
		}
		out.v[i] = x.v[i] / math.Pow(n.float("bias", 1)+n.float("alpha", 0.0001)*sum/float64(size), n.float("beta", 0.75))
		i++
	})
	return out
}

// A mean over the depth of a volume, which is the channels of an image, computed here.
func TestMeansAcrossChannels(t *testing.T) {
	for _, c := range []struct{ channels, size, before, after int }{
		{1, 1, 0, 0}, {1, 2, 1, 1}, {1, 3, 2, 2}, {1, 3, 1, 1}, {4, 3, 1, 1}, {4, 2, 0, 1}, {4, 2, 1, 1}, {4, 4, 0, 0}, {2, 5, 3, 4},
	} {
		for _, count := range []int{0, 1} {
			t.Run(fmt.Sprint(c, count), func(t *testing.T) {
				m := testModel{
					input: image(c.channels, 3, 4), output: "y", inits: []testTensor{ints("one", 1)},
					nodes: []testNode{op("Unsqueeze", "x one", "a"), op("AveragePool", "a", "b", "kernel_shape", []int{c.size, 1, 1}, "pads", []int{c.before, 0, 0, c.after, 0, 0}, "count_include_pad", count),
						op("Squeeze", "b one", "c"), op("Relu", "c", "y")},
				}
				net, _, err := Decode(t.Context(), m.encode(), Options{})
				require.NoError(t, err)
				plan, err := lower.Network(t.Context(), net, lower.Options{})
				require.NoError(t, err)
				in, x := batchOf(rand.New(rand.NewPCG(1, 2)), m, net.Inputs[0], false)
				got, err := ref.Run(t.Context(), plan, x, nil)
				require.NoError(t, err)
				channels := c.channels + c.before + c.after - c.size + 1
				require.Equal(t, bcnn.Shape{H: 3, W: 4, C: channels}, got.Shape)
				for i, v := range got.F32 {
					n, pixel, o := i/channels/12, i/channels%12, i%channels
					sum, taps := 0.0, 0
					for k := o - c.before; k < o-c.before+c.size; k++ {
						if k >= 0 && k < c.channels {
							sum, taps = sum+in.v[(n*c.channels+k)*12+pixel], taps+1
						}
					}
					if count == 1 {
						taps = c.size
					}
					require.InDelta(t, max(sum/float64(taps), 0), v, 1e-6, "output %d", i)
				}
			})
		}
	}
}

// A mean over more than the depth of a volume is none over channels, but one of the volume.
func TestMeansAcrossMore(t *testing.T) {
	for _, c := range []struct {
		kernel  []int
		more    []any
		refused bool
	}{
		{[]int{3, 1, 1}, nil, false}, {[]int{3, 2, 1}, nil, false}, {[]int{3, 1, 2}, nil, false},
		{[]int{3, 1}, nil, true}, {[]int{0, 1, 1}, nil, true},
		{[]int{3, 1, 1}, []any{"pads", []int{1, 0, 0, 1}}, true}, {[]int{3, 1, 1}, []any{"pads", []int{-1, 0, 0, 1, 0, 0}}, true},
		{[]int{3, 1, 1}, []any{"pads", []int{1, 0, 0, 0, 0, 0}}, false},
		{[]int{3, 1, 1}, []any{"strides", []int{2, 1, 1}}, false}, {[]int{3, 1, 1}, []any{"strides", []int{2, 1}}, true},
		{[]int{3, 1, 1}, []any{"ceil_mode", 1}, false}, {[]int{3, 1, 1}, []any{"auto_pad", "SAME_UPPER"}, false},
	} {
		m := testModel{
			input: image(5, 3, 4), output: "y", inits: []testTensor{ints("one", 1)},
			nodes: []testNode{op("Unsqueeze", "x one", "a"), op("AveragePool", "a", "b", append([]any{"kernel_shape", c.kernel}, c.more...)...), op("Squeeze", "b one", "y")},
		}
		_, _, err := Decode(t.Context(), m.encode(), Options{})
		if c.refused {
			require.ErrorContains(t, err, "(AveragePool, index 1)", fmt.Sprint(c))
		} else {
			require.NoError(t, err, fmt.Sprint(c))
		}
	}
}
