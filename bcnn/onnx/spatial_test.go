package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/resize"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// Operators that move pixels, for the interpreter.

// blocks are DepthToSpace and SpaceToDepth.
func (n testNode) blocks(x array) array {
	b := n.int("blocksize", 1)
	deep, wide := x.dims, x.dims // of the many channels, of the many pixels
	if n.op == "DepthToSpace" {
		wide = []int{deep[0], deep[1] / (b * b), deep[2] * b, deep[3] * b}
	} else {
		deep = []int{wide[0], wide[1] * b * b, wide[2] / b, wide[3] / b}
	}
	from, to := newArray(deep...), newArray(wide...)
	each(wide, func(i []int) {
		c := (i[2]%b*b+i[3]%b)*wide[1] + i[1]
		if mode, _ := n.attrs["mode"].(string); mode == "CRD" {
			c = i[1]*b*b + i[2]%b*b + i[3]%b
		}
		place := from.place([]int{i[0], c, i[2] / b, i[3] / b})
		if n.op == "DepthToSpace" {
			to.v[to.place(i)] = x.v[place]
		} else {
			from.v[place] = x.v[to.place(i)]
		}
	})
	if n.op == "DepthToSpace" {
		return to
	}
	return from
}

// convTranspose adds what every pixel makes of the taps.
func (n testNode) convTranspose(in []array) array {
	x, w, groups := in[0], in[1], n.int("group", 1)
	s, d, p, more := n.list("strides", 1, 1), n.list("dilations", 1, 1), n.list("pads", 0, 0, 0, 0), n.list("output_padding", 0, 0)
	dims := []int{x.dims[0], w.dims[1] * groups, 0, 0}
	begin := make([]int, 2)
	for i := range 2 {
		whole := s[i]*(x.dims[2+i]-1) + d[i]*(w.dims[2+i]-1) + 1 + more[i]
		begin[i], dims[2+i] = p[i], whole-p[i]-p[2+i]
		auto, _ := n.attrs["auto_pad"].(string)
		if size := n.list("output_shape"); size != nil || auto != "" {
			if dims[2+i] = s[i] * x.dims[2+i]; size != nil {
				dims[2+i] = size[i]
			}
			total := max(0, whole-dims[2+i])
			if begin[i] = total - total/2; auto == "SAME_UPPER" {
				begin[i] = total / 2
			}
		}
	}
	out := newArray(dims...)
	channels := x.dims[1] / groups
	each(x.dims, func(i []int) {
		each(w.dims[1:], func(k []int) {
			y, z := i[2]*s[0]+k[1]*d[0]-begin[0], i[3]*s[1]+k[2]*d[1]-begin[1]
			if y >= 0 && z >= 0 && y < dims[2] && z < dims[3] {
				o := i[1]/channels*w.dims[1] + k[0]
				out.v[out.place([]int{i[0], o, y, z})] += x.at(i...) * w.at(i[1], k[0], k[1], k[2])
			}
		})
	})
	if len(in) > 2 {
		each(dims, func(i []int) { out.v[out.place(i)] += in[2].v[i[1]] })
	}
	return out
}

// best are the values of TopK over channels.
func (n testNode) best(in []array) array {
	dims, k := slices.Clone(in[0].dims), 1
	if len(in) > 1 {
		k = int(in[1].v[0])
	}
	dims[1] = k
	out := newArray(dims...)
	each(dims, func(i []int) {
		order := make([]int, in[0].dims[1])
		value := func(c int) float64 { return in[0].at(append([]int{i[0], c}, i[2:]...)...) }
		for c := range order {
			order[c] = c
		}
		slices.SortStableFunc(order, func(a, b int) int {
			sign := 1.0
			if n.int("largest", 1) == 0 {
				sign = -1
			}
			return int(math.Copysign(1, sign*(value(b)-value(a)))) * int(min(1, 1e9*math.Abs(value(a)-value(b))))
		})
		out.v[out.place(i)] = value(order[i[1]])
	})
	return out
}

// TestSpatialLayers compares with the interpreter: of real values, and of ±1.
func TestSpatialLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	inits := []testTensor{
		number("zero", 0), number("plus", 1), number("minus", -1), number("half", 0.5), ints("k3", 3),
		randomTensor(r, "w1", []int{4, 4, 1, 1}, -1, 0.5, 1), randomTensor(r, "w4", []int{3, 4, 1, 1}, -1, 1), randomTensor(r, "w3", []int{2, 4, 3, 3}, -1, 1),
		randomTensor(r, "t4", []int{4, 3, 4, 4}, -1, 1), randomTensor(r, "t3", []int{4, 2, 3, 3}, -1, 1), randomTensor(r, "t2", []int{4, 3, 2, 3}, -1, 1),
		randomTensor(r, "g3", []int{4, 2, 3, 3}, -1, 1), randomTensor(r, "bias", []int{3}, -1, 1, 0.5),
		ints("crop", 0, 0, -1, -2, 0, 0, 0, -1), ints("mixed", 0, 0, -1, 2, 0, 0, 1, 0), ints("around", 0, 0, 1, 2, 0, 0, 1, 0), ints("i1", 1), ints("i3", 3), ints("i5", 5), ints("i2", 2), ints("far", 1<<40), ints("rows", 2, 0, 5, 5, -1),
	}
	tests := []struct {
		name  string
		nodes []testNode // from a, of 4 channels, 6×6, to y
		made  map[string]int
	}{
		{"depth to space", []testNode{op("DepthToSpace", "a", "y", "blocksize", 2)}, map[string]int{"pixels": 1}},
		{"depth to space of channels", []testNode{op("Concat", "a a", "b", "axis", 1), op("DepthToSpace", "b", "y", "blocksize", 2, "mode", "CRD")}, map[string]int{"concat": 1, "channels": 1, "pixels": 1}},
		{"space to depth", []testNode{op("SpaceToDepth", "a", "y", "blocksize", 2)}, map[string]int{"pixels": 4, "concat": 1}},
		{"space to depth of channels", []testNode{op("SpaceToDepth", "a", "y", "blocksize", 2, "mode", "CRD")}, map[string]int{"pixels": 4, "concat": 1, "channels": 1}},
		{"there and back in channels", []testNode{op("SpaceToDepth", "a", "b", "blocksize", 3, "mode", "CRD"), op("DepthToSpace", "b", "c", "blocksize", 3, "mode", "CRD"), op("Conv", "c w4", "y")}, map[string]int{"pixels": 10, "concat": 1, "channels": 2, "conv2d": 1}},
		{"there and back", []testNode{op("SpaceToDepth", "a", "b", "blocksize", 3), op("DepthToSpace", "b", "c", "blocksize", 3), op("Conv", "c w4", "y")}, map[string]int{"pixels": 10, "concat": 1, "conv2d": 1}},
		{"transposed", []testNode{op("ConvTranspose", "a t4 bias", "y", "strides", []int{2, 2}, "pads", []int{1, 1, 1, 1})}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"transposed without stride", []testNode{op("ConvTranspose", "a t3", "y", "pads", []int{1, 0, 1, 2})}, map[string]int{"conv2d": 1}},
		{"transposed, dilated", []testNode{op("ConvTranspose", "a t3", "y", "strides", []int{2, 3}, "dilations", []int{3, 2}, "output_padding", []int{1, 0})}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"transposed in groups", []testNode{op("ConvTranspose", "a g3", "y", "strides", []int{2, 1}, "group", 2)}, map[string]int{"conv2d": 1, "channels": 1, "pixels": 1}},
		{"transposed to a size", []testNode{op("ConvTranspose", "a t3", "y", "strides", []int{2, 2}, "output_shape", []int{11, 12})}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"transposed to a size, valid", []testNode{op("ConvTranspose", "a t3", "y", "strides", []int{2, 2}, "output_shape", []int{11, 12}, "auto_pad", "VALID")}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"transposed, same", []testNode{op("ConvTranspose", "a t4", "y", "strides", []int{2, 2}, "auto_pad", "SAME_UPPER")}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"transposed, the same lower", []testNode{op("ConvTranspose", "a t2", "y", "strides", []int{1, 2}, "auto_pad", "SAME_LOWER")}, map[string]int{"conv2d": 1, "pixels": 1}},
		{"largest channel", []testNode{op("ArgMax", "a", "b", "axis", 1), op("Cast", "b", "y", "to", 1)}, map[string]int{"topk": 1}},
		{"smallest channel", []testNode{op("ArgMin", "a", "b", "axis", -3), op("Cast", "b", "y", "to", 1)}, map[string]int{"affine": 1, "topk": 1}},
		{"three largest", []testNode{op("TopK", "a k3", "y n", "axis", 1)}, map[string]int{"topk": 1}},
		{"three smallest", []testNode{op("TopK", "a k3", "y", "axis", 1, "largest", 0)}, map[string]int{"affine": 2, "topk": 1}},
		{"cropped", []testNode{op("Pad", "a crop", "y")}, map[string]int{"pixels": 1}},
		{"cropped and padded", []testNode{op("Pad", "a mixed half", "y")}, map[string]int{"pixels": 1}},
		{"padded by halves", []testNode{op("Pad", "a around half", "b"), op("Conv", "b w4", "y")}, map[string]int{"pixels": 1, "conv2d": 1}},
		{"padded, then padded", []testNode{op("Pad", "a around plus", "b"), op("Conv", "b w3", "y", "pads", []int{1, 1, 1, 1})}, map[string]int{"pixels": 1, "conv2d": 1}},
		{"padded, then not convolved", []testNode{op("Pad", "a around", "b"), op("Relu", "b", "y")}, map[string]int{"pixels": 1, "relu": 1}},
		{"padded pool", []testNode{op("Pad", "a around minus", "b"), op("MaxPool", "b", "y", "kernel_shape", []int{2, 2})}, map[string]int{"pixels": 1, "maxpool": 1}},
		{"part of an image", []testNode{op("Slice", "a i1 i5 i2", "b"), op("Slice", "b i2 far i3 i2", "c"), op("Conv", "c w4", "y")}, map[string]int{"pixels": 2, "conv2d": 1}},
		{"split rows", []testNode{op("Split", "a", "b c", "axis", 2), op("Add", "b c", "y")}, map[string]int{"pixels": 2, "add": 1}},
		{"pools of a turned image", []testNode{op("Transpose", "a", "b", perm(0, 1, 3, 2)...), op("MaxPool", "b", "c", "kernel_shape", []int{3, 2}, "strides", []int{1, 2}, "pads", []int{1, 0, 0, 1}),
			op("AveragePool", "c", "d", "kernel_shape", []int{1, 2}, "strides", []int{2, 1}), op("Transpose", "d", "e", perm(0, 1, 3, 2)...), op("Conv", "e w4", "y")},
			map[string]int{"maxpool": 1, "avgpool": 1, "conv2d": 1}},
		{"pools of a turned image, the same size", []testNode{op("Transpose", "a", "b", perm(0, 1, 3, 2)...), op("MaxPool", "b", "c", "kernel_shape", []int{4, 3}, "auto_pad", "SAME_UPPER"),
			op("AveragePool", "c", "d", "kernel_shape", []int{2, 4}, "strides", []int{3, 1}, "pads", []int{0, 1, 1, 2}, "count_include_pad", 1), op("Transpose", "d", "e", perm(0, 1, 3, 2)...), op("Conv", "e w4", "y")},
			map[string]int{"maxpool": 1, "avgpool": 1, "conv2d": 1}},
		{"pool of a column", []testNode{op("ReduceMax", "a", "b", "axes", []int{2}, "keepdims", 0), op("Unsqueeze", "b", "c", "axes", []int{3}), op("MaxPool", "c", "d", "kernel_shape", []int{2, 1}, "strides", []int{2, 1}),
			op("Squeeze", "d", "e", "axes", []int{3}), op("Unsqueeze", "e", "f", "axes", []int{2}), op("Conv", "f w4", "y")},
			map[string]int{"maxpool": 2, "conv2d": 1}},
		{"rows in another order", []testNode{op("Gather", "a rows", "y", "axis", 2)}, map[string]int{"pixels": 1}},
	}
	for _, test := range tests {
		for _, signs := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, signs), func(t *testing.T) {
				m := testModel{input: image(4, 6, 6), output: "y", inits: inits}
				want := map[string]int{}
				if signs {
					m.nodes = append(m.nodes, op("GreaterOrEqual", "x zero", "s"), op("Where", "s plus minus", "q"), op("MaxPool", "q", "a", "kernel_shape", []int{1, 1}))
					want["sign"]++
					want["maxpool"]++
				} else {
					m.nodes = append(m.nodes, op("Conv", "x w1", "a"))
					want["conv2d"]++
				}
				for kind, n := range test.made {
					want[kind] += n
				}
				m.nodes = append(m.nodes, test.nodes...)
				net, _ := compare(t, r, m, Options{}, false)
				require.Equal(t, want, layersOf(net))
			})
		}
	}
}

// TestResizing compares with what ONNX Runtime makes of the numbers 0, 1, 2 …
func TestResizing(t *testing.T) {
	for _, c := range []struct {
		mode, coordinates, nearest string
		from                       int
		scale                      float32
		want                       []float64
	}{
		{"nearest", "half_pixel", "round_prefer_floor", 4, 7. / 4, []float64{0, 0, 1, 1, 2, 3, 3}},
		{"nearest", "half_pixel", "round_prefer_ceil", 4, 7. / 4, []float64{0, 0, 1, 2, 2, 3, 3}},
		{"nearest", "half_pixel", "floor", 5, 3. / 5, []float64{0, 2, 3}},
		{"nearest", "half_pixel", "ceil", 6, 1.6, []float64{0, 1, 2, 2, 3, 3, 4, 5, 5}},
		{"nearest", "half_pixel", "round_prefer_floor", 4, 1. / 4, []float64{1}},
		{"nearest", "half_pixel", "round_prefer_ceil", 4, 1. / 4, []float64{2}},
		{"nearest", "half_pixel_symmetric", "round_prefer_floor", 5, 3. / 5, []float64{0, 2, 4}},
		{"nearest", "half_pixel_symmetric", "floor", 3, 1. / 3, []float64{0}},
		{"nearest", "half_pixel_symmetric", "floor", 5, 3. / 5, []float64{0, 1, 3}},
		{"nearest", "half_pixel_symmetric", "ceil", 4, 7. / 4, []float64{0, 1, 1, 2, 3, 3, 3}},
		{"nearest", "pytorch_half_pixel", "round_prefer_ceil", 4, 1. / 4, []float64{0}},
		{"nearest", "pytorch_half_pixel", "floor", 6, 1.6, []float64{0, 0, 1, 1, 2, 2, 3, 4, 4}},
		{"nearest", "align_corners", "round_prefer_floor", 4, 7. / 4, []float64{0, 0, 1, 1, 2, 2, 3}},
		{"nearest", "align_corners", "round_prefer_ceil", 4, 7. / 4, []float64{0, 1, 1, 2, 2, 3, 3}},
		{"nearest", "align_corners", "ceil", 6, 1.6, []float64{0, 1, 2, 2, 3, 4, 4, 5, 5}},
		{"nearest", "align_corners", "floor", 4, 1. / 4, []float64{0}},
		{"nearest", "asymmetric", "floor", 4, 7. / 4, []float64{0, 0, 1, 1, 2, 2, 3}},
		{"nearest", "asymmetric", "ceil", 5, 3. / 5, []float64{0, 2, 4}},
		{"nearest", "asymmetric", "round_prefer_ceil", 6, 1.6, []float64{0, 1, 1, 2, 3, 3, 4, 4, 5}},
		{"nearest", "asymmetric", "round_prefer_ceil", 7, 8. / 7, []float64{0, 1, 2, 3, 4, 4, 5, 6}},
		{"nearest", "asymmetric", "round_prefer_floor", 7, 8. / 7, []float64{0, 1, 2, 3, 3, 4, 5, 6}},
		{"nearest", "asymmetric", "round_prefer_ceil", 7, 8 / (3.5 - 2e-6), []float64{0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 6}},
		{"nearest", "asymmetric", "round_prefer_floor", 7, 8 / (3.5 + 9e-7), []float64{0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 6}},
		{"nearest", "tf_half_pixel_for_nn", "floor", 4, 7. / 4, []float64{0, 0, 1, 2, 2, 3, 3}},
		{"nearest", "tf_half_pixel_for_nn", "ceil", 6, 1.6, []float64{1, 1, 2, 3, 3, 4, 5, 5, 5}},
		{"linear", "half_pixel", "", 4, 7. / 4, []float64{0, 0.3571429, 0.9285715, 1.5, 2.071429, 2.642857, 3}},
		{"linear", "half_pixel", "", 5, 3. / 5, []float64{0.3333333, 2, 3.666667}},
		{"linear", "half_pixel", "", 4, 1. / 4, []float64{1.5}},
		{"linear", "half_pixel_symmetric", "", 6, 1.6, []float64{0, 0.625, 1.25, 1.875, 2.5, 3.125, 3.75, 4.375, 5}},
		{"linear", "pytorch_half_pixel", "", 6, 1.6, []float64{0, 0.4375, 1.0625, 1.6875, 2.3125, 2.9375, 3.5625, 4.1875, 4.8125}},
		{"linear", "pytorch_half_pixel", "", 4, 1. / 4, []float64{0}},
		{"linear", "align_corners", "", 6, 1.6, []float64{0, 0.625, 1.25, 1.875, 2.5, 3.125, 3.75, 4.375, 5}},
		{"linear", "asymmetric", "", 4, 7. / 4, []float64{0, 0.5714286, 1.142857, 1.714286, 2.285714, 2.857143, 3}},
		{"linear", "half_pixel", "", 1, 3, []float64{0, 0, 0}},
		{"cubic", "half_pixel", "", 4, 7. / 4, []float64{-0.09921622, 0.2792454, 0.8965921, 1.5, 2.103408, 2.720755, 3.099215}},
		{"cubic", "half_pixel", "", 6, 1.6, []float64{-0.09283447, 0.3490601, 1.088135, 1.647217, 2.352783, 2.911865, 3.547119, 4.256531, 4.857727}},
		{"cubic", "align_corners", "", 4, 7. / 4, []float64{0, 0.40625, 1, 1.5, 2, 2.59375, 3}},
		{"cubic", "asymmetric", "", 5, 3. / 5, []float64{0, 1.629629, 3.425927}},
	} {
		r := resize.Method{Mode: c.mode, Coordinates: c.coordinates, Nearest: c.nearest, Cubic: -0.75, Tie: tie}
		got := make([]float64, len(c.want))
		if c.mode == "nearest" {
			for i, p := range r.Positions(c.from, len(c.want), c.scale) {
				got[i] = float64(p)
			}
		} else {
			taps := r.Taps(c.from, len(c.want), c.scale)
			for i, k := range taps.Index {
				got[i/taps.N] += float64(k) * float64(taps.Weight[i])
			}
		}
		require.InDeltaSlice(t, c.want, got, 5e-6, "%+v", c)
	}
	outside := resize.Method{Mode: "cubic", Coordinates: "half_pixel", Cubic: -0.5, Exclude: true}
	for i, w := range outside.Taps(3, 9, 3).Weight { // sums of 1 without the taps outside
		sum := float32(0)
		for _, v := range outside.Taps(3, 9, 3).Weight[i/4*4:][:4] {
			sum += v
		}
		require.InDelta(t, 1, sum, 1e-6, "%d: %v", i, w)
	}
}

// TestSequences imports networks of one dimension.
func TestSequences(t *testing.T) {
	r := rand.New(rand.NewPCG(93, 94))
	inits := []testTensor{number("zero", 0), number("plus", 1), number("minus", -1), randomTensor(r, "w", []int{4, 3, 3}, -1, 1), randomTensor(r, "u", []int{4, 2, 2}, -1, 1)}
	m := testModel{input: testInput{"x", pb.Float, []any{"batch", 3, 10}}, output: "y", inits: inits, nodes: []testNode{
		op("GreaterOrEqual", "x zero", "s"), op("Where", "s plus minus", "a"), op("Conv", "a w", "b", "pads", []int{1, 1}, "strides", []int{2}),
		op("GreaterOrEqual", "b zero", "c"), op("Where", "c plus minus", "d"), op("ConvTranspose", "d u", "e", "strides", []int{2}), op("GlobalMaxPool", "e", "f"), op("Flatten", "f", "y"),
	}}
	net, _, err := Load(t.Context(), write(t, m.encode()), Options{})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 1, W: 10, C: 3}, net.Inputs[0].Shape)
	require.Equal(t, &bcnn.Source{Name: "x", Dims: []int{3, 10}, ChannelsFirst: true}, net.Inputs[0].Source)
	require.Equal(t, map[string]int{"sign": 2, "conv2d": 2, "pixels": 1, "maxpool": 1}, layersOf(net))
}

// TestAcrossChannels imports convolutions along the channels of one pixel, as efficient
// channel attention has them.
func TestAcrossChannels(t *testing.T) {
	const channels = 7
	taps := []float64{2, -3, 0.5}
	for _, c := range []struct {
		stride, dilation, left, right int
		bias                          float64
	}{{1, 1, 1, 1, 0}, {2, 1, 0, 1, 0.25}, {1, 2, 3, 2, -1}, {3, 3, 0, 0, 0}} {
		node := op("Conv", "c k", "d", "pads", []int{c.left, c.right}, "strides", []int{c.stride}, "dilations", []int{c.dilation})
		if c.bias != 0 {
			node.in = append(node.in, "bias")
		}
		m := testModel{opset: 11, input: image(channels, 2, 3), output: "y",
			nodes: []testNode{op("GlobalMaxPool", "x", "a"), op("Squeeze", "a", "b", "axes", []int{3}), op("Transpose", "b", "c", perm(0, 2, 1)...), node,
				op("Transpose", "d", "e", perm(0, 2, 1)...), op("Flatten", "e", "y")},
			inits: []testTensor{floats("k", []int{1, 1, 3}, taps...), floats("bias", []int{1}, c.bias)},
		}
		net, _, err := Decode(t.Context(), m.encode(), Options{})
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape)
		for i := range channels {
			x.F32[i] = float32(10 + i*i)
		}
		y, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		var want []float32
		for o := -c.left; o+2*c.dilation < channels+c.right; o += c.stride {
			sum := c.bias
			for k, tap := range taps {
				if i := o + k*c.dilation; i >= 0 && i < channels {
					sum += tap * float64(10+i*i)
				}
			}
			want = append(want, float32(sum))
		}
		require.Equal(t, want, y.F32)
		layers := map[string]int{"maxpool": 1, "pixels": 1, "conv2d": 1}
		if len(want) > 1 {
			layers["flatten"] = 1
		}
		require.Equal(t, layers, layersOf(net))
	}
}

// A convolution along one channel is that of a sequence of one position.
func TestAcrossOneChannel(t *testing.T) {
	m := testModel{input: image(1, 2, 3), output: "y", opset: 11,
		nodes: []testNode{op("GlobalMaxPool", "x", "a"), op("Squeeze", "a", "b", "axes", []int{3}), op("Transpose", "b", "c", perm(0, 2, 1)...), op("Conv", "c k", "d", "pads", []int{1, 1}), op("Flatten", "d", "y")},
		inits: []testTensor{floats("k", []int{1, 1, 3}, 2, -3, 0.5)}}
	net, _, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"maxpool": 1, "conv2d": 1}, layersOf(net))
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	y, err := ref.Run(t.Context(), plan, bcnn.Tensor{DType: bcnn.Float32, N: 1, Shape: net.Inputs[0].Shape, F32: []float32{1, 2, 7, 3, 4, 5}}, nil)
	require.NoError(t, err)
	require.Equal(t, []float32{-21}, y.F32)
}

// Groups of a transposed convolution may have weights of ±α, another α for each output.
func TestTransposedGroupsOfSigns(t *testing.T) {
	r := rand.New(rand.NewPCG(95, 96))
	alpha := []float64{0.5, 2, 1, 0.25}
	w := randomTensor(r, "w", []int{6, 2, 2, 2}, -1, 1) // [channel][output of the group]
	for i := range w.values {
		w.values[i] *= alpha[i/(3*2*4)*2+i/4%2]
	}
	m := testModel{input: image(6, 3, 4), output: "y", inits: []testTensor{w, number("zero", 0), number("plus", 1), number("minus", -1)},
		nodes: []testNode{op("GreaterOrEqual", "x zero", "s"), op("Where", "s plus minus", "q"), op("ConvTranspose", "q w", "y", "strides", []int{2, 2}, "group", 2)}}
	net, _ := compare(t, r, m, Options{}, false)
	require.True(t, summarize(t, net)[0].small)
}
