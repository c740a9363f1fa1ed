package tflite

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// small is a file around one operator, with which tests try what a file may say of it.
type small struct {
	op, form string      // of what kind its values are: FLOAT32, INT8, bits, or constant
	options  map[int]any // those that have not the default
	// others are other values of options than one more, which mean another thing.
	others map[int]any
	make   func(b *smallGraph)
}

func (s small) String() string { return s.op + " of " + s.form }

// smallGraph is what it is written to.
type smallGraph struct {
	*testGraph
	small
	at int // the operator
}

// graph writes the file with options.
func (s small) graph(options map[int]any) *smallGraph {
	b := &smallGraph{newGraph(1, 4, 4, 2), s, 0}
	b.options = options
	b.make(b)
	return b
}

// input gives the input its dimensions.
func (b *smallGraph) input(dims ...int32) int32 {
	b.tensors[0].dims = dims
	if b.form == "INT8" {
		b.quantised(0, 0.1, 3)
	}
	return 0
}

// weights adds a constant of numbers that differ.
func (b *smallGraph) weights(dims ...int32) int32 {
	n := sizeOf(dims)
	if b.form != "INT8" {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(i%5) - 1.75
		}
		return b.floats(dims, list...)
	}
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(int8(7*i%19) - 8)
	}
	k := b.tensor(testTensor{name: "k", dims: dims, data: data})
	b.quantised(k, 0.1, 0)
	return k
}

// result adds the operator, whose outputs have these dimensions.
func (b *smallGraph) result(dims []int32, inputs ...int32) { b.results(1, dims, inputs...) }

func (b *smallGraph) results(n int, dims []int32, inputs ...int32) {
	o := testOperator{name: b.op, inputs: inputs, options: b.options}
	for range n {
		t := b.tensor(testTensor{name: "result", dims: dims})
		if b.form == "INT8" {
			b.quantised(t, 0.1, 3)
		}
		o.outputs = append(o.outputs, t)
	}
	b.at = len(b.operators)
	b.operators = append(b.operators, o)
	b.outputs = o.outputs
}

// folded adds the operator on constants, and what reads its output.
func (b *smallGraph) folded(inputs ...int32) {
	x := b.input(1, 3)
	b.result([]int32{3}, inputs...)
	y := b.add("ADD", nil, []int32{1, 3}, x, b.outputs[0])
	b.outputs = []int32{y}
}

// smalls are files for each operator that is supported, in each form whose options are read
// in another place.
func smalls() []small {
	image, pixel := []int32{1, 4, 4, 2}, []int32{1, 2, 2, 3}
	window := func(more map[int]any) map[int]any {
		for slot, v := range map[int]any{0: uint8(0), 1: 1, 2: 1} {
			if more[slot] == nil {
				more[slot] = v
			}
		}
		return more
	}
	var all []small
	put := func(op string, forms []string, options, others map[int]any, f func(b *smallGraph)) {
		for _, form := range forms {
			all = append(all, small{op, form, options, others, f})
		}
	}
	both, floats, eight, constant := []string{"FLOAT32", "INT8"}, []string{"FLOAT32"}, []string{"INT8"}, []string{"constant"}
	same := func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x) }
	put("CONV_2D", both, window(map[int]any{4: 1, 5: 1}), map[int]any{6: uint8(schema.Int64)}, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 4, 4, 3}, x, b.weights(3, 3, 3, 2), -1)
	})
	put("DEPTHWISE_CONV_2D", both, window(map[int]any{3: 2, 5: 1, 6: 1}), nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 4, 4, 4}, x, b.weights(1, 3, 3, 4), -1)
	})
	put("TRANSPOSE_CONV", both, window(map[int]any{1: 2, 2: 2}), map[int]any{4: uint8(schema.Int64)}, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 8, 8, 3}, b.ints(1, 8, 8, 3), b.weights(3, 3, 3, 2), x)
	})
	put("FULLY_CONNECTED", both, nil, map[int]any{4: uint8(schema.Int64)}, func(b *smallGraph) {
		x := b.input(pixel...)
		b.result([]int32{1, 2}, x, b.weights(2, 12), -1)
	})
	for _, op := range []string{"MAX_POOL_2D", "AVERAGE_POOL_2D"} {
		put(op, both, window(map[int]any{3: 2, 4: 2}), nil, func(b *smallGraph) { x := b.input(image...); b.result(image, x) })
	}
	for _, op := range []string{"MEAN", "REDUCE_MAX"} {
		put(op, both, nil, nil, func(b *smallGraph) { x := b.input(image...); b.result([]int32{1, 2}, x, b.ints(1, 2)) })
	}
	for _, op := range []string{"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"} {
		put(op, both, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x, x) })
		put(op, both, nil, nil, func(b *smallGraph) {
			x := b.input(pixel...)
			k := b.weights(3)
			if b.form == "INT8" {
				b.tensors[k].zero[0] = 3
			}
			b.result(pixel, x, k)
		})
	}
	for _, op := range []string{"ABS", "ELU", "EXP", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "LOG_SOFTMAX", "RELU", "RELU6", "RELU_N1_TO_1", "SOFTMAX", "TANH"} {
		options := map[string]map[int]any{"LEAKY_RELU": {0: float32(0.5)}, "SOFTMAX": {0: float32(1)}}[op]
		put(op, both, options, nil, same)
	}
	put("GELU", floats, nil, nil, same)
	put("GELU", eight, nil, nil, func(b *smallGraph) { // in steps fine enough to tell both forms apart
		same(b)
		b.quantised(0, 0.01, 3)
		b.quantised(b.outputs[0], 0.01, 3)
	})
	for _, op := range []string{"L2_NORMALIZATION", "NEG", "SIGN"} {
		put(op, floats, nil, nil, same)
	}
	for _, op := range []string{"CEIL", "FLOOR", "ROUND"} {
		put(op, floats, nil, nil, func(b *smallGraph) { x := b.add("RELU6", nil, pixel, b.input(pixel...)); b.result(pixel, x) })
	}
	for _, op := range []string{"ARG_MAX", "ARG_MIN"} {
		put(op, floats, map[int]any{0: uint8(schema.Int32)}, nil, func(b *smallGraph) {
			x := b.input(pixel...)
			b.result(pixel[:3], x, b.ints(3))
			b.tensors[b.outputs[0]].typ = schema.Int32
		})
	}
	put("PRELU", both, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.result(pixel, x, b.weights(3)) })
	put("CONCATENATION", floats, map[int]any{0: 3}, nil, func(b *smallGraph) { x := b.input(pixel...); b.result([]int32{1, 2, 2, 6}, x, x) })
	put("CONCATENATION", eight, map[int]any{0: 3}, nil, func(b *smallGraph) { x := b.input(pixel...); b.result([]int32{1, 2, 2, 6}, x, x) })
	put("DEPTH_TO_SPACE", both, map[int]any{0: 2}, nil, func(b *smallGraph) { x := b.input(1, 2, 2, 4); b.result([]int32{1, 4, 4, 1}, x) })
	put("DEQUANTIZE", floats, nil, nil, func(b *smallGraph) { x := b.input(pixel...); b.quantised(x, 0.1, 3); b.result(pixel, x) })
	put("QUANTIZE", floats, nil, nil, func(b *smallGraph) {
		x := b.input(pixel...)
		b.result(pixel, x)
		b.quantised(b.outputs[0], 0.1, 3)
	})
	put("QUANTIZE", eight, nil, nil, same)
	put("EXPAND_DIMS", both, nil, nil, func(b *smallGraph) {
		x := b.input(1, 2, 3)
		b.result([]int32{1, 2, 1, 3}, b.add("RELU6", nil, nil, x), b.ints(2))
		b.relu6()
	})
	put("RESHAPE", both, map[int]any{0: []int32{1, 12}}, nil, func(b *smallGraph) {
		x := b.input(pixel...)
		b.result([]int32{1, 12}, b.add("RELU6", nil, nil, x))
		b.relu6()
	})
	put("SQUEEZE", both, map[int]any{0: []int32{1}}, nil, func(b *smallGraph) {
		x := b.input(1, 1, 2, 3)
		b.result([]int32{1, 2, 3}, b.add("RELU6", nil, []int32{1, 1, 2, 3}, x))
		b.relu6()
	})
	put("TRANSPOSE", both, nil, nil, func(b *smallGraph) {
		x := b.input(1, 1, 2, 3)
		b.result([]int32{1, 2, 1, 3}, b.add("RELU6", nil, []int32{1, 1, 2, 3}, x), b.ints(0, 2, 1, 3))
		b.relu6()
	})
	put("MIRROR_PAD", both, nil, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 6, 4, 2}, x, b.ints(0, 0, 1, 1, 0, 0, 0, 0))
	})
	put("PAD", both, nil, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 6, 4, 2}, x, b.ints(0, 0, 1, 1, 0, 0, 0, 0))
	})
	put("PADV2", floats, nil, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 6, 4, 2}, x, b.ints(0, 0, 1, 1, 0, 0, 0, 0), b.floats(nil, 2))
	})
	for _, op := range []string{"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"} {
		put(op, both, nil, nil, func(b *smallGraph) { x := b.input(1, 3, 3, 2); b.result([]int32{1, 5, 5, 2}, x, b.ints(5, 5)) })
	}
	put("SLICE", both, nil, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 2, 2, 2}, x, b.ints(0, 1, 1, 0), b.ints(1, 2, 2, 2))
	})
	put("STRIDED_SLICE", both, nil, map[int]any{0: 2, 1: 2}, func(b *smallGraph) {
		x := b.input(image...)
		b.result([]int32{1, 2, 2, 2}, x, b.ints(0, 1, 1, 0), b.ints(1, 3, 3, 2), b.ints(1, 1, 1, 1))
	})
	put("SPLIT", both, map[int]any{0: 2}, nil, func(b *smallGraph) { x := b.input(image...); b.results(2, []int32{1, 4, 4, 1}, b.ints(3), x) })
	put("SPLIT_V", both, map[int]any{0: 2}, nil, func(b *smallGraph) {
		x := b.input(image...)
		b.results(2, []int32{1, 4, 4, 1}, x, b.ints(1, 1), b.ints(3))
	})
	for _, op := range []string{"ABS", "DEQUANTIZE", "NEG", "RELU", "RELU6", "RELU_N1_TO_1"} {
		put(op, constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(3)) })
	}
	for _, op := range []string{"ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB"} {
		put(op, constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(3), b.weights(3)) })
	}
	put("EXPAND_DIMS", constant, nil, nil, func(b *smallGraph) {
		b.folded(b.weights(3), b.ints(0))
		b.tensors[b.operators[b.at].outputs[0]].dims = []int32{1, 3}
	})
	put("MEAN", constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(3, 2), b.ints(1)) })
	put("RESHAPE", constant, map[int]any{0: []int32{3}}, nil, func(b *smallGraph) { b.folded(b.weights(1, 3)) })
	put("SQUEEZE", constant, map[int]any{0: []int32{0}}, nil, func(b *smallGraph) { b.folded(b.weights(1, 3)) })
	put("TRANSPOSE", constant, nil, nil, func(b *smallGraph) { b.folded(b.weights(1, 3), b.ints(0, 1)) })
	return append(append(all, customs()...), smallShapes()...)
}

// relu6 makes the input of the operator one of its form.
func (b *smallGraph) relu6() {
	in := b.operators[b.at-1].outputs[0]
	b.tensors[in].dims = b.tensors[0].dims
	if b.form == "INT8" {
		b.quantised(in, 0.1, 3)
	}
}

// customs are those of LCE's operators.
func customs() []small {
	words := []int32{1, 4, 4, 1}
	packed := func(b *smallGraph) int32 {
		x := b.add("LceQuantize", nil, words, b.input(1, 4, 4, 32))
		b.tensors[x].typ = schema.Int32
		return x
	}
	all := []small{
		{op: "LceQuantize", form: "FLOAT32", make: func(b *smallGraph) {
			x := b.input(1, 4, 4, 32)
			b.result(words, x)
			b.tensors[b.outputs[0]].typ = schema.Int32
		}},
		{op: "LceDequantize", form: "bits", make: func(b *smallGraph) { b.result([]int32{1, 4, 4, 32}, packed(b)) }},
		{op: "LceBMaxPool2d", form: "bits", make: func(b *smallGraph) {
			b.result([]int32{1, 2, 2, 1}, packed(b))
			b.tensors[b.outputs[0]].typ = schema.Int32
			b.operators[b.at].custom = flexMap([]string{"filter_height", "filter_width", "padding", "stride_height", "stride_width"}, []int32{2, 2, 0, 2, 2})
		}},
		{op: "LceQuantize", form: "constant", make: func(b *smallGraph) {
			b.folded(b.weights(3))
			q := b.operators[b.at].outputs[0]
			b.operators[b.at+1].inputs[1] = b.add("LceDequantize", nil, []int32{3}, q)
			n := len(b.operators)
			b.operators[n-1], b.operators[n-2] = b.operators[n-2], b.operators[n-1]
		}},
		{op: "LceDequantize", form: "constant", make: func(b *smallGraph) { b.folded(b.words([]int32{1}, 5)) }},
	}
	for i, typ := range []schema.Type{schema.Float32, schema.Int8, schema.Int32} {
		all = append(all, small{op: "LceBconv2d", form: fmt.Sprint("bits to ", typ), make: func(b *smallGraph) {
			filter := b.words([]int32{4, 3, 3, 1}, slices.Repeat([]uint32{0x12345678, 0xffff}, 18)...)
			numbers := b.floats([]int32{4}, 1, 2, 3, 4)
			more := []int32{numbers, numbers, -1}
			if i == 2 {
				more = []int32{-1, -1, b.ints(10, 20, 30, 40)}
			}
			b.result([]int32{1, 4, 4, 4 - 3*int32(i/2)}, append([]int32{packed(b), filter}, more...)...)
			b.tensors[b.outputs[0]].typ = typ
			if typ == schema.Int8 {
				b.quantised(b.outputs[0], 0.1, 3)
			}
			b.operators[b.at].custom = bconvOptions(32, 0)
		}})
	}
	return all
}
