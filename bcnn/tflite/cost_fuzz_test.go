package tflite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// grower makes a graph of a program.
type grower struct {
	program  []byte
	g        *testGraph
	value    int32 // the last that is computed, of the dimensions
	dims     []int32
	constant int32 // the last, of as many dimensions
	size     []int32
	known    map[string]int32 // constants, which many operators share
}

// floats returns a constant all of whose numbers are v.
func (g *grower) floats(v float32, dims ...int32) int32 {
	key := fmt.Sprint(v, dims)
	if t, ok := g.known[key]; ok {
		return t
	}
	n := 1
	for _, d := range dims {
		n *= int(d)
	}
	g.known[key] = g.g.floats(dims, slices.Repeat([]float32{v}, n)...)
	return g.known[key]
}

func (g *grower) next() int {
	if len(g.program) == 0 {
		return 0
	}
	b := g.program[0]
	g.program = g.program[1:]
	return int(b)
}

func (g *grower) choose(n int) int { return g.next() % n }

// set makes a tensor the value.
func (g *grower) set(name string, options map[int]any, dims []int32, inputs ...int32) {
	g.value = g.g.add(name, options, dims, inputs...)
	g.dims = dims
}

// fold makes a tensor the constant.
func (g *grower) fold(name string, options map[int]any, size []int32, inputs ...int32) {
	g.constant = g.g.add(name, options, size, inputs...)
	g.size = size
}

// small reports whether the value may grow.
func (g *grower) small() bool {
	n := int64(1)
	for _, d := range g.dims {
		n *= int64(d)
	}
	return n < 1<<20
}

// channels returns the dimensions of the value with other channels.
func (g *grower) channels(c int32) []int32 {
	d := slices.Clone(g.dims)
	d[len(d)-1] = c
	return d
}

// grow runs a program of at most 48 instructions, each of which adds up to 256 operators.
func grow(program []byte) *testGraph {
	g := &grower{program: program, known: map[string]int32{}}
	c := []int32{1, 2, 32, 1000, 60000}[g.choose(5)]
	g.dims = []int32{1, 4, 4, c}
	g.g = newGraph(g.dims...)
	g.g.shared = g.choose(4) == 0
	if g.choose(6) == 0 { // packed bits
		g.g = newGraph(1, 4, 4, 2)
		g.g.tensors[0].typ = schema.Int32
		g.dims = []int32{1, 4, 4, 64}
		g.set("LceDequantize", nil, g.dims, 0)
	}
	g.size = []int32{1, 1, 1, 1}
	g.constant = g.g.floats(g.size, 1)
	for range 48 {
		if len(g.program) == 0 {
			break
		}
		kind, times := g.choose(24), 1<<g.choose(9)
		for range times {
			g.instruction(kind)
			if len(g.g.tensors) > 1<<13 {
				break
			}
		}
	}
	g.set("RELU", nil, g.dims, g.value)
	g.g.outputs[0] = g.value
	if name := g.choose(4); name > 0 {
		for i := range g.g.tensors {
			g.g.tensors[i].name = []string{"a", strings.Repeat("b", 300), strings.Repeat("\x01", 900)}[name-1]
		}
	}
	return g.g
}

// instruction adds an operator.
func (g *grower) instruction(kind int) {
	last := g.dims[len(g.dims)-1]
	const large = 1 << 22 // then dimensions do not grow any more, nor where they have overflowed
	if last < 1 || last > large && kind != 6 || g.size[3] < 1 || g.size[3] > large {
		return
	}
	switch kind {
	case 0:
		g.set([]string{"RELU", "RELU6", "ABS", "NEG", "ELU"}[g.choose(5)], nil, g.dims, g.value)
	case 1:
		g.set([]string{"ADD", "MUL", "SUB", "MAXIMUM", "PRELU"}[g.choose(5)], nil, g.dims, g.value, g.constant)
	case 2:
		g.set([]string{"ADD", "MUL", "SUB", "MAXIMUM"}[g.choose(4)], nil, g.dims, g.value, g.value)
	case 3:
		n := int32(1 + g.choose(64))
		if d := g.dims; n%8 == 0 && g.small() { // rows
			g.set("CONCATENATION", map[int]any{0: 1}, []int32{1, n * d[1], d[2], d[3]}, slices.Repeat([]int32{g.value}, int(n))...)
			return
		}
		g.set("CONCATENATION", map[int]any{0: -1}, g.channels(n*last), slices.Repeat([]int32{g.value}, int(n))...)
	case 4: // bits, and back
		words := g.g.tensor(testTensor{name: "w", typ: schema.Int32, dims: g.channels((last + 31) / 32)})
		g.g.operators = append(g.g.operators, testOperator{name: "LceQuantize", inputs: []int32{g.value}, outputs: []int32{words}})
		g.set("LceDequantize", nil, g.dims, words)
	case 5:
		g.set("PAD", nil, g.channels(last+1000), g.value, g.g.ints(0, 0, 0, 0, 0, 0, 0, 1000))
	case 6:
		g.set("SLICE", nil, g.channels(1), g.value, g.g.ints(0, 0, 0, 0), g.g.ints(1, -1, -1, 1))
	case 7:
		g.set("MAX_POOL_2D", pool(0, 1, 3), g.dims, g.value)
	case 8:
		g.set("AVERAGE_POOL_2D", pool(0, 1, 2), g.dims, g.value)
	case 9:
		g.set("MEAN", map[int]any{0: uint8(1)}, []int32{1, 1, 1, last}, g.value, g.g.ints(1, 2))
	case 10, 11: // weights, of which many layers share one buffer
		out := []int32{1, 8, 64}[g.choose(3)]
		if int64(out)*int64(last) > 1<<17 {
			return
		}
		w := g.floats(0, out, 1, 1, last)
		g.set("CONV_2D", convOptions(1, 1), g.channels(out), g.value, w, -1)
	case 12:
		if last > 1<<12 {
			return
		}
		if d := g.dims; last <= 1<<8 && g.small() && g.choose(2) == 0 {
			stride := int32(1 + g.choose(8))
			w := g.floats(1, last, 3, 3, last)
			d = []int32{1, d[1] * stride, d[2] * stride, last}
			g.set("TRANSPOSE_CONV", map[int]any{0: uint8(0), 1: int(stride), 2: int(stride)}, d, g.g.ints(d...), w, g.value)
			return
		}
		w := g.floats(1, 1, 3, 3, last)
		g.set("DEPTHWISE_CONV_2D", map[int]any{0: uint8(0), 1: 1, 2: 1}, g.dims, g.value, w, -1)
	case 13: // a binary convolution
		out, words := int32(8), (last+31)/32
		if words > 64 {
			return
		}
		bits := g.g.tensor(testTensor{name: "w", typ: schema.Int32, dims: g.channels(words)})
		g.g.operators = append(g.g.operators, testOperator{name: "LceQuantize", inputs: []int32{g.value}, outputs: []int32{bits}})
		filter := g.g.tensor(testTensor{typ: schema.Int32, dims: []int32{out, 1, 1, words}, data: make([]byte, 4*out*words)})
		numbers := g.floats(0, out)
		y := g.g.tensor(testTensor{name: "y", dims: g.channels(out)})
		if g.choose(3) == 0 {
			g.g.tensors[y].typ, g.g.tensors[y].scale, g.g.tensors[y].zero = schema.Int8, []float32{0.3}, []int64{5}
		}
		g.g.operators = append(g.g.operators, testOperator{
			name: "LceBconv2d", inputs: []int32{bits, filter, numbers, numbers, -1}, outputs: []int32{y}, custom: bconvOptions(last, 1),
		})
		g.value, g.dims = y, g.channels(out)
	case 14:
		size := []int32{1, 2, 300, 5000}
		g.size = []int32{1, 1, 1, size[g.choose(4)]}
		g.constant = g.floats(-2, g.size...)
	case 15:
		g.fold([]string{"ADD", "MUL", "SUB", "MINIMUM"}[g.choose(4)], nil, g.size, g.constant, g.constant)
	case 16: // grows
		n := min(g.size[3], 1<<12)
		column := g.floats(0, n, 1)
		g.fold("ADD", nil, []int32{1, 1, n, n}, g.constant, column)
	case 17:
		g.fold([]string{"RELU", "ABS", "NEG", "RELU_N1_TO_1"}[g.choose(4)], nil, g.size, g.constant)
	case 18:
		d := g.size
		g.fold("TRANSPOSE", nil, []int32{d[3], d[0], d[2], d[1]}, g.constant, g.g.ints(3, 0, 2, 1))
	case 19:
		g.fold("MEAN", map[int]any{0: uint8(1)}, []int32{1, 1, 1, g.size[3]}, g.constant, g.g.ints(0, 1, 2))
	case 20:
		g.fold("LceDequantize", nil, g.size, g.g.add("LceQuantize", nil, g.size, g.constant))
	case 21:
		g.fold("RESHAPE", nil, []int32{g.size[3], 1, g.size[2], 1}, g.constant)
	case 22: // parts
		if last%2 == 0 {
			half := g.channels(last / 2)
			parts := []int32{g.g.tensor(testTensor{dims: half}), g.g.tensor(testTensor{dims: half})}
			g.g.operators = append(g.g.operators, testOperator{name: "SPLIT", inputs: []int32{g.g.ints(3), g.value}, outputs: parts})
			g.value, g.dims = parts[g.choose(2)], half
		}
	case 23:
		n := g.dims[1] * g.dims[2] * last
		g.set("RESHAPE", nil, []int32{1, 1, 1, n}, g.value)
	}
}
