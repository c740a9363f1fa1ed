package tflite

import (
	"encoding/binary"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// adds adds an operator that gives values of the form of the file.
func (b *smallGraph) adds(name string, options map[int]any, dims []int32, inputs ...int32) int32 {
	t := b.add(name, options, dims, inputs...)
	if b.form == "INT8" {
		b.quantised(t, 0.1, 3)
	}
	return t
}

// holds makes the output of the operator one of BOOL, and turns it into numbers.
func (b *smallGraph) holds(dims []int32) {
	t := b.outputs[0]
	b.tensors[t].typ, b.tensors[t].scale, b.tensors[t].zero = schema.Bool, nil, nil
	b.outputs = []int32{b.add("CAST", nil, dims, t)}
}

// above adds a comparison.
func (b *smallGraph) above(x int32, dims []int32, by float32) int32 {
	t := b.add("GREATER", nil, dims, x, b.number(by))
	b.tensors[t].typ = schema.Bool
	return t
}

// number adds a constant without dimensions.
func (b *smallGraph) number(v float32) int32 {
	if b.form == "INT8" {
		k := b.tensor(testTensor{name: "k", data: []byte{byte(int8(v))}})
		b.quantised(k, 0.1, 0)
		return k
	}
	return b.floats(nil, v)
}

// whole adds the operator on constant integers, of one or three numbers, and FILL, which takes them.
func (b *smallGraph) whole(dims []int32, inputs ...int32) {
	x := b.input(1, 3)
	b.result(dims, inputs...)
	b.tensors[b.outputs[0]].typ = schema.Int32
	y := b.add("FILL", nil, []int32{3}, b.outputs[0], b.floats(nil, 2))
	b.outputs = []int32{b.add("ADD", nil, []int32{1, 3}, x, y)}
}

// count adds a constant integer without dimensions.
func (b *smallGraph) count(n int32) int32 {
	k := b.ints(n)
	b.tensors[k].dims = []int32{}
	return k
}

// smallShapes are those of shapes, blocks and comparisons.
func smallShapes() []small {
	image, pixel := []int32{1, 4, 4, 2}, []int32{1, 2, 2, 3}
	var all []small
	put := func(op string, forms []string, options, others map[int]any, make func(b *smallGraph)) {
		for _, form := range forms {
			all = append(all, small{op, form, options, others, make})
		}
	}
	both, floats, constant := []string{"FLOAT32", "INT8"}, []string{"FLOAT32"}, []string{"constant"}
	put("SPACE_TO_BATCH_ND", both, nil, nil, func(b *smallGraph) {
		x := b.adds("RELU6", nil, image, b.input(image...))
		b.result([]int32{4, 3, 3, 2}, x, b.ints(2, 2), b.ints(1, 1, 1, 1))
		b.outputs = []int32{b.adds("BATCH_TO_SPACE_ND", nil, image, b.outputs[0], b.ints(2, 2), b.ints(1, 1, 1, 1))}
	})
	put("BATCH_TO_SPACE_ND", both, nil, nil, func(b *smallGraph) {
		x := b.adds("RELU6", nil, image, b.input(image...))
		y := b.adds("SPACE_TO_BATCH_ND", nil, []int32{4, 3, 2, 2}, x, b.ints(2, 2), b.ints(1, 1, 0, 0))
		b.result([]int32{1, 5, 4, 2}, y, b.ints(2, 2), b.ints(1, 0, 0, 0))
	})
	put("SPACE_TO_DEPTH", both, map[int]any{0: 2}, nil, func(b *smallGraph) { x := b.input(image...); b.result([]int32{1, 2, 2, 8}, x) })
	for _, op := range []string{"GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"} {
		put(op, both, nil, nil, func(b *smallGraph) {
			x := b.input(pixel...)
			b.result(pixel, x, b.number(0))
			b.holds(pixel)
		})
	}
	for _, op := range []string{"EQUAL", "NOT_EQUAL"} {
		put(op, floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x, b.number(0)); b.holds(pixel) })
	}
	for _, op := range []string{"LOGICAL_AND", "LOGICAL_OR"} {
		put(op, floats, nil, nil, func(b *smallGraph) {
			x := b.input(pixel...)
			b.result(pixel, b.above(x, pixel, 1), b.above(x, pixel, -1))
			b.holds(pixel)
		})
	}
	put("LOGICAL_NOT", floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, b.above(x, pixel, 1)); b.holds(pixel) })
	put("CAST", floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, b.above(x, pixel, 1)) })
	for _, op := range []string{"SELECT", "SELECT_V2"} {
		put(op, both, nil, nil, func(b *smallGraph) {
			x := b.input(pixel...)
			c := b.above(x, pixel, 1)
			k, l := b.weights(3), b.weights(1)
			if b.form == "INT8" {
				b.tensors[k].zero[0], b.tensors[l].zero[0] = 3, 3
			}
			b.result(pixel, c, k, l)
		})
	}
	for _, op := range []string{"RSQRT", "SQRT", "SQUARE"} {
		put(op, floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x) })
	}
	put("TILE", both, nil, nil, func(b *smallGraph) {
		x := b.adds("RELU6", nil, []int32{1, 1, 2, 3}, b.input(1, 1, 2, 3))
		b.result([]int32{1, 3, 2, 3}, x, b.ints(1, 3, 1, 1))
	})
	put("SQUARED_DIFFERENCE", floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x, b.weights(3)) })
	put("ADD_N", floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x, x, b.weights(3)) })
	put("SUM", floats, nil, nil, func(b *smallGraph) { x := b.input(image...); b.result([]int32{1, 2}, x, b.ints(1, 2)) })
	put("REDUCE_MIN", both, nil, nil, func(b *smallGraph) { x := b.input(image...); b.result([]int32{1, 2}, x, b.ints(1, 2)) })
	put("SHAPE", floats, map[int]any{0: uint8(schema.Int32)}, map[int]any{0: uint8(schema.Int64)}, func(b *smallGraph) {
		x := b.input(pixel...)
		b.result([]int32{4}, x)
		b.tensors[b.outputs[0]].typ = schema.Int32
		y := b.add("FILL", nil, pixel, b.outputs[0], b.floats(nil, 2))
		b.outputs = []int32{b.add("ADD", nil, pixel, x, y)}
	})
	put("Convolution2DTransposeBias", floats, nil, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 8, 8, 3}, x, b.weights(3, 2, 2, 2), b.weights(3))
		o := &b.operators[b.at]
		for _, v := range []uint32{2, 2, 2} {
			o.custom = binary.LittleEndian.AppendUint32(o.custom, v)
		}
	})
	put("BROADCAST_TO", constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(1), b.ints(3)) })
	put("FILL", constant, nil, nil, func(b *smallGraph) { b.folded(b.ints(3), b.floats(nil, 2)) })
	put("SQUARE", constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(3)) })
	put("DENSIFY", constant, nil, nil, func(b *smallGraph) {
		k := b.weights(2)
		b.tensors[k].dims = []int32{3}
		b.tensors[k].sparsity = &testSparsity{order: []int32{0}, levels: []testLevel{{segments: []int32{0, 2}, indices: []int32{0, 2}}}}
		b.folded(k)
	})
	for _, op := range []string{"ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB"} {
		put(op, constant, nil, nil, func(b *smallGraph) {
			of := map[string][2]int32{"ADD": {1, 2}, "MAXIMUM": {3, 1}, "MINIMUM": {3, 5}, "MUL": {1, 3}, "SUB": {5, 2}}[op]
			b.whole([]int32{1}, b.ints(of[0]), b.ints(of[1]))
		})
	}
	put("CAST", constant, nil, nil, func(b *smallGraph) { b.whole([]int32{1}, b.ints(3)) })
	put("CONCATENATION", constant, map[int]any{0: 0}, map[int]any{0: 1}, func(b *smallGraph) { b.whole([]int32{1}, b.ints(3)) })
	put("EXPAND_DIMS", constant, nil, nil, func(b *smallGraph) { b.whole([]int32{1}, b.count(3), b.ints(0)) })
	put("GATHER", constant, nil, nil, func(b *smallGraph) { b.whole([]int32{1}, b.ints(1, 3), b.ints(1)) })
	put("PACK", constant, map[int]any{0: 1, 1: 0}, nil, func(b *smallGraph) { b.whole([]int32{1}, b.count(3)) })
	put("REDUCE_PROD", constant, nil, nil, func(b *smallGraph) { b.whole([]int32{}, b.ints(1, 3), b.ints(0)) })
	put("RESHAPE", constant, map[int]any{0: []int32{1}}, nil, func(b *smallGraph) { b.whole([]int32{1}, b.count(3)) })
	put("SQUEEZE", constant, map[int]any{0: []int32{0}}, nil, func(b *smallGraph) { b.whole([]int32{}, b.ints(3)) })
	put("STRIDED_SLICE", constant, nil, map[int]any{4: 1}, func(b *smallGraph) { b.whole([]int32{1}, b.ints(1, 3, 5), b.ints(1), b.ints(2), b.ints(1)) })
	return all
}
