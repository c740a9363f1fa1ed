package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestVolumes pools over depth, height and width.
func TestVolumes(t *testing.T) {
	r := rand.New(rand.NewPCG(563, 564))
	in := [4]int{2, 4, 5, 3} // channels, depth, height, width
	for _, kind := range []string{"MaxPool", "AveragePool"} {
		for _, c := range []struct {
			kernel, strides, pads []int
			count, ceil           int
		}{
			{[]int{2, 2, 2}, []int{1, 1, 1}, []int{0, 0, 0, 0, 0, 0}, 0, 0},
			{[]int{2, 3, 1}, []int{2, 1, 1}, []int{0, 0, 0, 0, 0, 0}, 0, 0},
			{[]int{3, 2, 2}, []int{1, 2, 1}, []int{1, 0, 1, 2, 1, 0}, 0, 0},
			{[]int{3, 2, 2}, []int{1, 2, 1}, []int{1, 0, 1, 2, 1, 0}, 1, 0},
			{[]int{1, 1, 3}, []int{3, 2, 1}, []int{0, 0, 1, 0, 0, 1}, 1, 0},
			{[]int{3, 3, 2}, []int{2, 3, 2}, []int{0, 0, 0, 0, 0, 0}, 0, 1},
		} {
			if kind == "MaxPool" && c.count == 1 {
				continue
			}
			t.Run(fmt.Sprint(kind, c), func(t *testing.T) {
				attrs := []any{"kernel_shape", c.kernel, "strides", c.strides, "pads", c.pads, "ceil_mode", c.ceil}
				if c.count == 1 {
					attrs = append(attrs, "count_include_pad", 1)
				}
				m := testModel{input: testInput{"x", pb.Float, []any{"n", in[0], in[1], in[2], in[3]}}, output: "y", inits: []testTensor{number("two", 2)},
					nodes: []testNode{op("Mul", "x two", "a"), op(kind, "a", "y", attrs...)}}
				net, _, err := Decode(t.Context(), m.encode(), Options{})
				require.NoError(t, err)
				require.Equal(t, []int{2, 4, 5, 3}, net.Inputs[0].Source.Dims)
				plan, err := lower.Network(t.Context(), net, lower.Options{})
				require.NoError(t, err)
				x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
				for i := range x.F32 {
					x.F32[i] = float32(r.IntN(65) - 32)
				}
				out, err := ref.Run(t.Context(), plan, x, nil)
				require.NoError(t, err)
				of := func(channel, z, y, x0 int) float64 { // of the rows of all planes
					return 2 * float64(x.F32[((z*in[2]+y)*in[3]+x0)*in[0]+channel])
				}
				source := net.Layers[len(net.Layers)-1].Source
				require.Len(t, source.Dims, 4)
				got := planar(out, source)
				at := 0
				for channel := range source.Dims[0] {
					for z := range source.Dims[1] {
						for y := range source.Dims[2] {
							for x0 := range source.Dims[3] {
								most, sum, n := math.Inf(-1), 0.0, 0
								begin := [3]int{z*c.strides[0] - c.pads[0], y*c.strides[1] - c.pads[1], x0*c.strides[2] - c.pads[2]}
								for i := range c.kernel[0] {
									for j := range c.kernel[1] {
										for k := range c.kernel[2] {
											p := [3]int{begin[0] + i, begin[1] + j, begin[2] + k}
											inside, padded := true, true
											for d, v := range p {
												inside = inside && v >= 0 && v < in[d+1]
												padded = padded && v < in[d+1]+c.pads[d+3]
											}
											if inside {
												v := of(channel, p[0], p[1], p[2])
												most, sum = max(most, v), sum+v
											}
											if inside || padded && c.count == 1 {
												n++
											}
										}
									}
								}
								want := most
								if kind == "AveragePool" {
									want = sum / float64(n)
								}
								require.InDelta(t, want, got[at], 1e-4, "%d %d %d %d", channel, z, y, x0)
								at++
							}
						}
					}
				}
				require.Len(t, got, at)
			})
		}
	}
}

// planar returns the values of an image in the order of the file.
func planar(x bcnn.Tensor, source *bcnn.Source) []float32 {
	if !source.ChannelsFirst {
		return x.F32
	}
	out := make([]float32, len(x.F32))
	for i := range out {
		pixel, channel := i/x.Shape.C, i%x.Shape.C
		out[channel*x.Shape.Pixels()+pixel] = x.F32[i]
	}
	return out
}
