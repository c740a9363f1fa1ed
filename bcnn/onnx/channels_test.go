package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// take picks positions of a dimension.
func (a array) take(axis int, positions []int) array {
	dims := slices.Clone(a.dims)
	dims[axis] = len(positions)
	out := newArray(dims...)
	i := 0
	each(dims, func(index []int) {
		from := slices.Clone(index)
		from[axis] = positions[index[axis]]
		out.v[i] = a.at(from...)
		i++
	})
	return out
}

func span(from, to, step int) (list []int) {
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		list = append(list, i)
	}
	return list
}

func (n testNode) gather(in []array) array {
	a, axis := in[0], n.int("axis", 0)
	positions := toInts(in[1])
	for i := range positions {
		positions[i] = (positions[i] + a.dims[axis]) % a.dims[axis]
	}
	out := a.take(axis, positions)
	out.dims = slices.Concat(a.dims[:axis], in[1].dims, a.dims[axis+1:])
	return out
}

func (n testNode) slice(in []array) array {
	axes := n.list("axes")
	starts, ends := n.list("starts"), n.list("ends")
	steps := []int{1, 1, 1, 1}
	for i, list := range []*[]int{&starts, &ends, &axes, &steps} {
		if len(in) > i+1 {
			*list = toInts(in[i+1])
		}
	}
	out := in[0]
	for i := range starts {
		axis := i
		if axes != nil {
			axis = (axes[i] + len(out.dims)) % len(out.dims)
		}
		size := out.dims[axis]
		low, high := 0, size
		if steps[i] < 0 {
			low, high = -1, size-1
		}
		bound := func(v int) int {
			if v < 0 {
				v += size
			}
			return max(low, min(v, high))
		}
		out = out.take(axis, span(bound(starts[i]), bound(ends[i]), steps[i]))
	}
	return out
}

func (n testNode) split(in []array) (parts []array) {
	axis := (n.int("axis", 0) + len(in[0].dims)) % len(in[0].dims)
	at := 0
	for i := range n.out {
		size := (in[0].dims[axis] + len(n.out) - 1) / len(n.out)
		if len(in) > 1 {
			size = int(in[1].v[i])
		}
		parts = append(parts, in[0].take(axis, span(at, min(at+size, in[0].dims[axis]), 1)))
		at += size
	}
	return parts
}

func (n testNode) concat(in []array) array {
	axis := (n.int("axis", 0) + len(in[0].dims)) % len(in[0].dims)
	dims := slices.Clone(in[0].dims)
	dims[axis] = 0
	for _, a := range in {
		dims[axis] += a.dims[axis]
		dims[0] = max(dims[0], a.dims[0]) // constants have a batch of 1
	}
	out := newArray(dims...)
	i := 0
	each(dims, func(index []int) {
		from, part := slices.Clone(index), 0
		for from[axis] >= in[part].dims[axis] {
			from[axis] -= in[part].dims[axis]
			part++
		}
		out.v[i] = in[part].at(from...)
		i++
	})
	return out
}

func (n testNode) reduce(in []array) array {
	axes := n.list("axes")
	if len(in) > 1 {
		axes = toInts(in[1])
	}
	dims, count := slices.Clone(in[0].dims), 1
	var kept []int
	for d, size := range dims {
		if slices.Contains(axes, d) || slices.Contains(axes, d-len(dims)) {
			dims[d] = 1
			count *= size
		} else {
			kept = append(kept, size)
		}
	}
	out := newArray(dims...)
	if n.op == "ReduceMax" || n.op == "ReduceMin" {
		for i := range out.v {
			out.v[i] = math.Inf(1)
			if n.op == "ReduceMax" {
				out.v[i] = math.Inf(-1)
			}
		}
	}
	i := 0
	each(in[0].dims, func(index []int) {
		p := out.place(index)
		switch n.op {
		case "ReduceMax":
			out.v[p] = max(out.v[p], in[0].v[i])
		case "ReduceMin":
			out.v[p] = min(out.v[p], in[0].v[i])
		default:
			out.v[p] += in[0].v[i]
		}
		i++
	})
	if n.op == "ReduceMean" {
		for i := range out.v {
			out.v[i] = float64(float32(out.v[i] / float64(count))) // of an exact sum
		}
	}
	if n.int("keepdims", 1) == 0 {
		out.dims = kept
	}
	return out
}

// layersOf counts the layers of a network by their kind.
func layersOf(net *bcnn.Network) map[string]int {
	kinds := map[string]int{}
	for _, l := range net.Layers {
		kinds[l.Op.Kind()]++
	}
	return kinds
}

// TestChannelLayers checks clips, joins, products, channels and reductions of values,
// on real numbers and on ±1 values, against the interpreter; and which layers they
// become.
func TestChannelLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 82))
	inits := []testTensor{
		number("zero", 0), number("plus", 1), number("minus", -1), number("half", 0.5), number("six", 6), number("two", 2),
		ints("i0", 0), ints("i1", 1), ints("i2", 2), ints("i3", 3), ints("i4", 4), ints("far", 1<<40), ints("i-1", -1), ints("i-9", -9),
		ints("i23", 2, 3), ints("i00", 0, 0), ints("i22", 2, 2), ints("i99", 9, 9), ints("order", 2, -1, 0, 0), ints("parts", 1, 3),
		ints("wide", 0, 1, 0, 0, 0, 2, 0, 0), ints("both", 0, 1, 1, 1, 0, 0, 0, 1), ints("around", 0, 0, 1, 2, 0, 0, 1, 0),
		ints("groups", 0, 2, 2, 6, 6), ints("whole", 0, 4, 6, 6), ints("windows", 0, 4, 3, 2, 3, 2), ints("flat", 0, 4, 36),
		ints("i1211", 1, 2, 1, 1), randomTensor(r, "image", []int{1, 4, 6, 6}, -1, 0, 0.5, 2), randomTensor(r, "plane", []int{1, 1, 6, 6}, -1, 0.5, 2),
		randomTensor(r, "columns", []int{6}, -1, 0.5, 2), randomTensor(r, "halves", []int{6, 6}, -1, 0.5, 2), floats("three", []int{1, 3, 6, 6}, append(append(slices.Repeat([]float64{0.5}, 36), slices.Repeat([]float64{-1}, 36)...), slices.Repeat([]float64{2}, 36)...)...),
		randomTensor(r, "d4", []int{4, 3}, -1, 1), randomTensor(r, "slope", []int{4, 1, 1}, 0.5, -1, 2), randomTensor(r, "w1", []int{4, 4, 1, 1}, -1, 0.5, 1), randomTensor(r, "g", []int{4, 2, 1, 1}, -1, 1),
		randomTensor(r, "w4", []int{3, 4, 1, 1}, -1, 1), randomTensor(r, "w7", []int{3, 7, 1, 1}, -1, 1), randomTensor(r, "w5", []int{3, 5, 2, 2}, -1, 1), randomTensor(r, "k", []int{1, 4, 1, 1}, -1, 1),
		floats("same", []int{1, 4, 6, 6}, slices.Repeat([]float64{0.5}, 144)...),
		floats("k1", []int{2, 1, 1, 1}, 1, -1), randomTensor(r, "w8", []int{3, 8, 1, 1}, -1, 1), randomTensor(r, "d8", []int{8, 3}, -1, 1), randomTensor(r, "d288", []int{288, 3}, -1, 1),
	}
	tests := []struct {
		name  string
		nodes []testNode     // from a, of 4 channels, 6×6, to y
		real  map[string]int // layers made of them
		signs map[string]int // likewise where a is ±1, if others
	}{
		{"clip", []testNode{op("Clip", "a zero six", "y")}, map[string]int{"clip": 1}, nil},
		{"clip from below", []testNode{op("Max", "a half", "y")}, map[string]int{"clip": 1}, nil},
		{"clip in attributes", []testNode{op("Clip", "a", "y", "min", -0.5, "max", 0.5)}, map[string]int{"clip": 1}, nil},
		{"hard tanh", []testNode{op("Clip", "a minus plus", "b"), op("Conv", "b w4", "y")}, map[string]int{"clip": 1, "conv2d": 1}, map[string]int{"conv2d": 1}},
		{"clip, pool", []testNode{op("Clip", "a minus half", "b"), op("MaxPool", "b", "y", "kernel_shape", []int{2, 2})}, map[string]int{"clip": 1, "maxpool": 1}, nil},
		{"clip, pool, sign", []testNode{op("Clip", "a minus plus", "b"), op("MaxPool", "b", "c", "kernel_shape", []int{2, 2}), op("GreaterOrEqual", "c zero", "d"), op("Where", "d plus minus", "e"), op("Conv", "e w4", "y")},
			map[string]int{"maxpool": 1, "sign": 1, "conv2d": 1}, map[string]int{"maxpool": 1, "conv2d": 1}},
		{"clip, sign, and on", []testNode{op("Clip", "a minus plus", "b"), op("GreaterOrEqual", "b zero", "d"), op("Where", "d plus minus", "e"), op("Add", "e b", "y")}, map[string]int{"clip": 1, "sign": 1, "add": 1}, map[string]int{"add": 1}},
		{"clip below a threshold", []testNode{op("Clip", "a minus zero", "b"), op("GreaterOrEqual", "b half", "d"), op("Where", "d plus minus", "e"), op("Conv", "e w4", "y")}, map[string]int{"channels": 1, "affine": 1, "sign": 1, "conv2d": 1}, map[string]int{"affine": 1, "sign": 1, "conv2d": 1}},
		{"concat", []testNode{op("Relu", "a", "b"), op("Concat", "a b", "y", "axis", 1)}, map[string]int{"relu": 1, "concat": 1}, nil},
		{"the same twice", []testNode{op("Concat", "a a", "b", "axis", -3), op("Conv", "b w8", "y")}, map[string]int{"concat": 1, "conv2d": 1}, nil},
		{"concat of one", []testNode{op("Concat", "a", "b", "axis", 1), op("Relu", "b", "y")}, map[string]int{"relu": 1}, nil},
		{"concat of other channels", []testNode{op("Conv", "a w4", "b"), op("Concat", "b a", "c", "axis", 1), op("Conv", "c w7", "y")}, map[string]int{"conv2d": 2, "concat": 1}, nil},
		{"concat in NHWC", []testNode{op("Transpose", "a", "b", perm(0, 2, 3, 1)...), op("Neg", "b", "c"), op("Concat", "b c", "d", "axis", 3), op("Transpose", "d", "y", perm(0, 3, 1, 2)...)}, map[string]int{"affine": 1, "concat": 1}, nil},
		{"concat of vectors", []testNode{op("GlobalMaxPool", "a", "b"), op("Flatten", "b", "c"), op("Concat", "c c", "d", "axis", 1), op("MatMul", "d d8", "y")}, map[string]int{"maxpool": 1, "concat": 1, "dense": 1}, nil},
		{"concat of flattened images", []testNode{op("Flatten", "a", "b"), op("Concat", "b b", "c", "axis", 1), op("MatMul", "c d288", "y")}, map[string]int{"flatten": 2, "channels": 2, "concat": 1, "dense": 1}, nil},
		{"concat of rows", []testNode{op("Neg", "a", "b"), op("Concat", "b a", "c", "axis", 2), op("Conv", "c w4", "y")}, map[string]int{"affine": 1, "concat": 1, "pixels": 1, "conv2d": 1}, nil},
		{"concat of columns of other sizes", []testNode{op("Slice", "a i0 i2 i3", "b"), op("Slice", "a i3 i4 i3", "c"), op("Concat", "b a c", "d", "axis", -1), op("Conv", "d w4", "y")}, map[string]int{"pixels": 5, "concat": 1, "conv2d": 1}, nil},
		{"concat of a row", []testNode{op("ReduceMax", "a", "b", "axes", []int{2}), op("Concat", "a b", "c", "axis", 2), op("Conv", "c w4", "y")}, map[string]int{"maxpool": 1, "pixels": 2, "concat": 1, "conv2d": 1}, nil},
		{"square", []testNode{op("Mul", "a a", "y")}, map[string]int{"mul": 1}, nil},
		{"gate", []testNode{op("ReduceMax", "a", "b", "axes", []int{2, 3}), op("Mul", "b a", "y")}, map[string]int{"maxpool": 1, "mul": 1}, nil},
		{"gate of pixels", []testNode{op("Conv", "a k", "b"), op("Mul", "a b", "y")}, map[string]int{"conv2d": 1, "mul": 1}, nil},
		{"gate of one number", []testNode{op("Conv", "a k", "b"), op("GlobalMaxPool", "b", "c"), op("Mul", "a c", "y")}, map[string]int{"conv2d": 1, "maxpool": 1, "mul": 1}, nil},
		{"product with a row", []testNode{op("ReduceMax", "a", "b", "axes", []int{2}), op("Mul", "a b", "y")}, map[string]int{"maxpool": 1, "pixels": 1, "mul": 1}, nil},
		{"the larger of two", []testNode{op("Neg", "a", "b"), op("Max", "b a", "y")}, map[string]int{"affine": 1, "max": 1}, nil},
		{"the smaller of three", []testNode{op("Mul", "a two", "b"), op("Neg", "a", "c"), op("Min", "b c a", "y")}, map[string]int{"affine": 2, "min": 2}, nil},
		{"at least the mean", []testNode{op("ReduceMean", "a", "b", "axes", []int{2, 3}), op("Max", "b a", "y")}, map[string]int{"avgpool": 1, "max": 1}, nil},
		{"at most a channel", []testNode{op("Conv", "a k", "b"), op("Min", "a b", "y")}, map[string]int{"conv2d": 1, "min": 1}, nil},
		{"at most the largest of a column", []testNode{op("Neg", "a", "b"), op("ReduceMax", "b", "c", "axes", []int{2}), op("Min", "a c", "y")}, map[string]int{"affine": 1, "maxpool": 1, "pixels": 1, "min": 1}, nil},
		{"limits of channels", []testNode{op("Max", "slope a", "y")}, map[string]int{"pixels": 1, "channels": 1, "affine": 1, "max": 1}, nil},
		{"limits of pixels, and a number", []testNode{op("Min", "image a half", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 1, "min": 1, "clip": 1}, nil},
		{"limits that were expanded", []testNode{op("Max", "a same", "b"), op("Min", "six b", "y")}, map[string]int{"clip": 1}, nil},
		{"slice", []testNode{op("Slice", "a i1 i3 i1", "y")}, map[string]int{"channels": 1}, nil},
		{"slice of the whole", []testNode{op("Slice", "a i0 far i0", "b"), op("Slice", "b i0 far i1", "c"), op("Relu", "c", "y")}, map[string]int{"relu": 1}, nil},
		{"every second channel", []testNode{op("Slice", "a i1 far i1 i2", "y")}, map[string]int{"channels": 1}, nil},
		{"channels backwards", []testNode{op("Slice", "a i-1 i-9 i1 i-1", "b"), op("Conv", "b w4", "y")}, map[string]int{"channels": 1, "conv2d": 1}, nil},
		{"every second pixel", []testNode{op("Slice", "a i00 i99 i23 i22", "y")}, map[string]int{"maxpool": 1}, nil},
		{"pixels and channels", []testNode{op("Slice", "a i0 far i3 i2", "b"), op("Slice", "b i0 far i2 i3", "c"), op("Pad", "c wide", "y")}, map[string]int{"maxpool": 2, "channels": 1}, map[string]int{"maxpool": 2, "channels": 1}},
		{"split", []testNode{op("Split", "a", "b c", "axis", 1), op("Add", "b c", "y")}, map[string]int{"channels": 2, "add": 1}, nil},
		{"split to sizes", []testNode{op("Split", "a parts", "b c", "axis", -3), op("Concat", "c b", "d", "axis", 1), op("Conv", "d w4", "y")}, map[string]int{"channels": 2, "concat": 1, "conv2d": 1}, nil},
		{"gather", []testNode{op("Gather", "a order", "y", "axis", 1)}, map[string]int{"channels": 1}, nil},
		{"channels of zeros", []testNode{op("Pad", "a wide", "b"), op("Conv", "b w7", "y")}, map[string]int{"channels": 1, "conv2d": 1}, nil},
		{"zeros around an output", []testNode{op("Pad", "a around", "y")}, map[string]int{"pixels": 1}, nil},
		{"zeros all around", []testNode{op("Pad", "a both", "b"), op("Conv", "b w5", "y")}, map[string]int{"channels": 1, "conv2d": 1}, nil},
		{"shuffle", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "d"), op("Conv", "d w4", "y")}, map[string]int{"conv2d": 1}, nil},
		{"shuffle and sum", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "d"), op("Add", "d a", "y")}, map[string]int{"channels": 1, "add": 1}, nil},
		{"shuffle and concat", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "d"), op("Concat", "a d", "e", "axis", 1), op("Conv", "e w8", "y")}, map[string]int{"channels": 1, "concat": 1, "conv2d": 1}, nil},
		{"shuffle and groups", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "d"), op("Conv", "d g", "y", "group", 2)}, map[string]int{"channels": 1, "conv2d": 1}, nil},
		{"shuffle at the end", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "y")}, map[string]int{"channels": 1}, nil},
		{"shuffle of a vector", []testNode{op("Reshape", "a groups", "b"), op("Transpose", "b", "c", perm(0, 2, 1, 3, 4)...), op("Reshape", "c whole", "d"), op("GlobalMaxPool", "d", "e"), op("Flatten", "e", "y")}, map[string]int{"channels": 1, "maxpool": 1}, nil},
		{"mean", []testNode{op("ReduceMean", "a", "y", "axes", []int{2, 3})}, map[string]int{"avgpool": 1}, nil},
		{"absolute value", []testNode{op("Abs", "a", "y")}, map[string]int{"prelu": 1}, nil},
		{"mean over channels", []testNode{op("ReduceMean", "a", "y", "axes", []int{1})}, map[string]int{"conv2d": 1, "affine": 1}, nil},
		{"mean over channels, one dimension less", []testNode{op("ReduceMean", "a", "b", "axes", []int{1}, "keepdims", 0), op("Unsqueeze", "b", "c", "axes", []int{1}), op("Mul", "a c", "y")}, map[string]int{"conv2d": 1, "affine": 1, "mul": 1}, nil},
		{"mean over three channels, sign", []testNode{op("Conv", "a w4", "b"), op("ReduceMean", "b", "c", "axes", []int{1}), op("GreaterOrEqual", "c half", "d"), op("Where", "d plus minus", "e"), op("Conv", "e k1", "y")},
			map[string]int{"conv2d": 3, "batchnorm": 1, "affine": 1, "sign": 1}, nil},
		{"sum", []testNode{op("ReduceSum", "a i23", "y")}, map[string]int{"conv2d": 1}, nil},
		{"sum of rows, of columns", []testNode{op("ReduceSum", "a i3", "b", "keepdims", 0), op("ReduceSum", "b i2", "y", "keepdims", 0)}, map[string]int{"conv2d": 2}, nil},
		{"sum over channels", []testNode{op("ReduceSum", "a i1", "b"), op("Mul", "a b", "y")}, map[string]int{"conv2d": 1, "mul": 1}, nil},
		{"minimum", []testNode{op("ReduceMin", "a", "y", "axes", []int{2, 3})}, map[string]int{"affine": 2, "maxpool": 1}, nil},
		{"one pixel, repeated", []testNode{op("ReduceMax", "a", "b", "axes", []int{2, 3}), op("Add", "b a", "y")}, map[string]int{"maxpool": 1, "pixels": 1, "add": 1}, nil},
		{"a row, repeated", []testNode{op("ReduceMax", "a", "b", "axes", []int{2}), op("Sub", "a b", "y")}, map[string]int{"maxpool": 1, "pixels": 1, "affine": 1, "add": 1}, nil},
		{"a channel, repeated", []testNode{op("Conv", "a k", "b"), op("Add", "a b", "y")}, map[string]int{"conv2d": 1, "channels": 1, "add": 1}, nil},
		{"a number, repeated", []testNode{op("Conv", "a k", "b"), op("GlobalMaxPool", "b", "c"), op("Add", "a c", "y")}, map[string]int{"conv2d": 1, "maxpool": 1, "channels": 1, "pixels": 1, "add": 1}, nil},
		{"expanded", []testNode{op("ReduceMax", "a", "b", "axes", []int{2, 3}), op("Shape", "a", "c"), op("Expand", "b c", "y")}, map[string]int{"maxpool": 1, "pixels": 2}, nil},
		{"tiled", []testNode{op("Tile", "a i1211", "y")}, map[string]int{"channels": 1}, nil},
		{"a constant of an image", []testNode{op("Add", "a image", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 1, "add": 1}, nil},
		{"a constant of pixels", []testNode{op("Mul", "plane a", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 1, "mul": 1}, nil},
		{"a constant of columns", []testNode{op("Sub", "columns a", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 2, "add": 1}, nil},
		{"division by pixels", []testNode{op("Div", "a halves", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 1, "mul": 1}, nil},
		{"channels of a constant", []testNode{op("Concat", "three a", "b", "axis", 1), op("Conv", "b w7", "y")}, map[string]int{"channels": 1, "affine": 1, "concat": 1, "conv2d": 1}, nil},
		{"an image of a constant", []testNode{op("Concat", "a image", "b", "axis", 1), op("Conv", "b w8", "y")}, map[string]int{"pixels": 2, "channels": 1, "affine": 1, "concat": 1, "conv2d": 1}, nil},
		{"power", []testNode{op("Pow", "a two", "y")}, map[string]int{"mul": 1}, nil},
		{"product of the channels", []testNode{op("Transpose", "a", "b", perm(0, 2, 3, 1)...), op("MatMul", "b d4", "c"), op("Transpose", "c", "y", perm(0, 3, 1, 2)...)}, map[string]int{"conv2d": 1}, nil},
		{"mean as a vector", []testNode{op("ReduceMean", "a i23", "y", "keepdims", 0)}, map[string]int{"avgpool": 1}, nil},
		{"maximum of rows, of columns", []testNode{op("ReduceMax", "a", "b", "axes", []int{-1}, "keepdims", 0), op("ReduceMax", "b", "y", "axes", []int{2}, "keepdims", 0)}, map[string]int{"maxpool": 2}, nil},
		{"mean of a list of pixels", []testNode{op("Reshape", "a flat", "b"), op("ReduceMean", "b", "y", "axes", []int{2}, "keepdims", 0)}, map[string]int{"avgpool": 1}, nil},
		{"mean of windows", []testNode{op("Reshape", "a windows", "b"), op("ReduceMean", "b", "y", "axes", []int{3, 5}, "keepdims", 0)}, map[string]int{"avgpool": 1}, nil},
		{"padding around padding that counts", []testNode{op("Pad", "a around", "b"), op("AveragePool", "b", "y", "kernel_shape", []int{3, 3}, "pads", []int{1, 0, 0, 0})}, map[string]int{"pixels": 1, "avgpool": 1}, nil},
		{"padding that counts", []testNode{op("Pad", "a around", "b"), op("AveragePool", "b", "y", "kernel_shape", []int{2, 4}, "strides", []int{2, 1})}, map[string]int{"avgpool": 1}, nil},
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
				made := test.real
				if signs && test.signs != nil {
					made = test.signs
				}
				for kind, n := range made {
					want[kind] += n
				}
				m.nodes = append(m.nodes, test.nodes...)
				net, _ := compare(t, r, m, Options{}, false)
				require.Equal(t, want, layersOf(net))
			})
		}
	}
}

// TestBinaryThrough checks that ±1 values stay what they are through layers that move
// them.
func TestBinaryThrough(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 84))
	bits := func(in, out string) []testNode {
		return []testNode{op("Greater", in+" zero", out+"0"), op("Where", out+"0 gain loss", out)}
	}
	for i, nodes := range [][]testNode{
		append(bits("x", "a"), op("Concat", "a a", "b", "axis", 1)),
		append(append(bits("x", "a"), bits("c", "d")...), op("Concat", "a d", "b", "axis", 1)),
		append(bits("x", "a"), op("Gather", "a list", "b", "axis", 1)),
		append(bits("x", "a"), op("Slice", "a i00 i99 i23 i22", "d"), op("Concat", "d d", "b", "axis", 1)),
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := testModel{input: image(3, 5, 5), output: "y", nodes: append([]testNode{op("Neg", "x", "c")}, append(nodes, op("Conv", "b w", "y"))...), inits: []testTensor{
				number("zero", 0), number("gain", 0.25), number("loss", -0.25), randomTensor(r, "w", []int{4, 6, 2, 2}, -1, 1),
				ints("list", 2, 1, 0, 0, 1, 2), ints("i00", 0, 0), ints("i99", 9, 9), ints("i23", 2, 3), ints("i22", 2, 2)}}
			net, _ := compare(t, r, m, Options{}, false)
			layers := summarize(t, net)
			require.Len(t, layers, 1)
			require.True(t, layers[0].small, layers[0].WhyFloat)
		})
	}
}
