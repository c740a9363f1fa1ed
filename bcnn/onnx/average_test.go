package onnx

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

func (n testNode) averagePool(x array, k []int) array {
	s, dil := n.list("strides", 1, 1), n.list("dilations", 1, 1)
	top, h := n.pads(0, x.dims[2], k[0])
	left, wd := n.pads(1, x.dims[3], k[1])
	out := newArray(x.dims[0], x.dims[1], h, wd)
	i := 0
	each(out.dims, func(index []int) {
		sum, inside := 0.0, 0
		for ky := range k[0] {
			for kx := range k[1] {
				y, xx := index[2]*s[0]-top+ky*dil[0], index[3]*s[1]-left+kx*dil[1]
				bottom, right := x.dims[2], x.dims[3] // of what counts
				if n.int("count_include_pad", 0) != 0 {
					pads := n.list("pads", 0, 0, 0, 0)
					bottom, right, y, xx = top+bottom+pads[2], left+right+pads[3], y+top, xx+left
				}
				if y >= 0 && xx >= 0 && y < bottom && xx < right {
					inside++
				}
				sum += x.padded(index[0], index[1], index[2]*s[0]-top+ky*dil[0], index[3]*s[1]-left+kx*dil[1], 0)
			}
		}
		out.v[i] = float64(float32(sum / float64(inside))) // of an exact sum
		i++
	})
	return out
}

// Average pools of every form, and the mean of an image, after what exporters write
// before and behind them.
func TestAveragePools(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	for i, attrs := range [][]any{
		{"kernel_shape", []int{2, 2}, "strides", []int{2, 2}},
		{"kernel_shape", []int{3, 2}, "strides", []int{1, 2}},
		{"kernel_shape", []int{3, 3}, "strides", []int{2, 2}, "pads", []int{1, 1, 1, 1}},
		{"kernel_shape", []int{3, 3}, "strides", []int{2, 2}, "pads", []int{1, 1, 1, 1}, "count_include_pad", 1},
		{"kernel_shape", []int{3, 3}, "pads", []int{0, 1, 2, 0}, "count_include_pad", 1},
		{"kernel_shape", []int{2, 2}, "strides", []int{2, 2}, "ceil_mode", 1},
		{"kernel_shape", []int{2, 2}, "strides", []int{2, 2}, "ceil_mode", 1, "count_include_pad", 1, "pads", []int{0, 0, 0, 0}}, // as PyTorch writes it
		{"kernel_shape", []int{2, 2}, "strides", []int{2, 2}, "auto_pad", "SAME_UPPER"},
		{"kernel_shape", []int{1, 1}, "ceil_mode", 1, "count_include_pad", 1}, // no window is partial
		{"kernel_shape", []int{3, 3}, "strides", []int{2, 2}, "pads", []int{1, 0, 0, 1}, "ceil_mode", 1, "count_include_pad", 1},
		{"kernel_shape", []int{4, 3}, "strides", []int{3, 3}, "pads", []int{1, 1, 1, 1}, "ceil_mode", 1, "count_include_pad", 1},
		nil, // GlobalAveragePool
	} {
		for _, before := range []string{"nothing", "relu", "sign"} {
			t.Run(fmt.Sprint(i, before), func(t *testing.T) {
				m := testModel{input: image(3, 7, 5), output: "y", inits: []testTensor{number("zero", 0), number("plus", 1), number("minus", -1)}}
				last := "x"
				switch before {
				case "relu":
					m.nodes, last = append(m.nodes, op("Relu", "x", "a")), "a"
				case "sign":
					m.nodes, last = append(m.nodes, op("GreaterOrEqual", "x zero", "s"), op("Where", "s plus minus", "a")), "a"
				}
				kind := "AveragePool"
				if attrs == nil {
					kind = "GlobalAveragePool"
				}
				m.nodes = append(m.nodes, op(kind, last, "y", attrs...))
				net, _ := compare(t, r, m, Options{}, false)
				require.IsType(t, bcnn.AvgPool{}, net.Layers[len(net.Layers)-1].Op)
			})
		}
	}
	flat := testModel{input: image(3, 4, 4), output: "y", inits: []testTensor{randomTensor(r, "v", []int{3, 6}, -1, 0.5)},
		nodes: []testNode{op("GlobalAveragePool", "x", "a"), op("Flatten", "a", "b"), op("MatMul", "b v", "y")}}
	compare(t, r, flat, Options{}, false)
}

// PRelu with one slope or one per channel, and LeakyRelu, before a sign and elsewhere.
func TestLeakyActivations(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 74))
	for i, node := range []testNode{
		op("PRelu", "a slope", "b"), op("PRelu", "a one", "b"), op("LeakyRelu", "a", "b", "alpha", 0.25), op("LeakyRelu", "a", "b"),
	} {
		for _, sign := range []bool{false, true} {
			t.Run(fmt.Sprint(i, sign), func(t *testing.T) {
				m := testModel{input: image(3, 5, 4), output: "y", nodes: []testNode{op("Conv", "x w", "a"), node},
					inits: []testTensor{randomTensor(r, "w", []int{4, 3, 2, 2}, -1, -0.5, 0.25, 1), floats("slope", []int{4, 1, 1}, 0.5, 0, -0.25, 2),
						number("one", 0.125), number("zero", 0), number("plus", 1), number("minus", -1), randomTensor(r, "v", []int{2, 4, 1, 1}, -1, 1)}}
				if sign {
					m.nodes = append(m.nodes, op("GreaterOrEqual", "b zero", "c"), op("Where", "c plus minus", "d"), op("Conv", "d v", "y"))
				} else {
					m.output = "b"
				}
				compare(t, r, m, Options{}, false)
			})
		}
	}
}

// Dilated max-pools: where the stride is a multiple of the dilation, the pixels of one phase are picked
// once, so that many positions and long windows cost no more than the image has pixels.
func TestPhasesOfPools(t *testing.T) {
	r := rand.New(rand.NewPCG(561, 562))
	for _, c := range []struct {
		h, w                       int
		kernel, strides, dilations []int
		pads                       []int
	}{
		{9, 11, []int{2, 3}, []int{2, 2}, []int{2, 2}, []int{0, 0, 0, 0}},
		{9, 11, []int{3, 2}, []int{4, 3}, []int{2, 3}, []int{1, 1, 1, 1}},
		{9, 11, []int{3, 3}, []int{1, 1}, []int{1, 2}, []int{1, 2, 2, 1}},
		{9, 11, []int{3, 3}, []int{3, 2}, []int{3, 4}, []int{2, 2, 2, 2}},
		{8, 12, []int{2, 2}, []int{6, 2}, []int{3, 1}, []int{1, 0, 0, 1}},
		{3, 13, []int{1, 5}, []int{2, 3}, []int{1, 3}, []int{0, 4, 0, 4}},
		{1, 60000, []int{1, 200}, []int{1, 10}, []int{1, 10}, []int{0, 100, 0, 100}},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			channels := 2
			if c.w > 1000 {
				channels = 1
			}
			m := testModel{input: image(channels, c.h, c.w), output: "y", nodes: []testNode{op("MaxPool", "x", "y", "kernel_shape", c.kernel, "strides", c.strides, "dilations", c.dilations, "pads", c.pads)}}
			compare(t, r, m, Options{}, false)
		})
	}
}
