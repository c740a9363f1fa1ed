package tflite

import (
	"encoding/binary"
	"math"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// testGraph is a file that tests write, whatever sense it makes.
type testGraph struct {
	version         uint32
	tensors         []testTensor
	operators       []testOperator
	inputs, outputs []int32
	// shared makes tensors, and operators, that are alike refer to the same tables.
	shared bool
}

type testTensor struct {
	name      string
	typ       schema.Type
	dims      []int32
	data      []byte
	scale     []float32
	zero      []int64
	axis      int32 // of several scales
	signature []int32
	sparse    bool
}

type testOperator struct {
	name            string // a custom one if it is that of LCE or begins with a small letter
	inputs, outputs []int32
	// fields of the options: uint8, int32, float32 or []int32.
	options map[int]any
	custom  []byte
	code    int32 // instead of the name's
}

// newGraph returns a graph that reads a float image and gives tensor 1.
func newGraph(dims ...int32) *testGraph {
	return &testGraph{
		version: 3, inputs: []int32{0}, outputs: []int32{1},
		tensors: []testTensor{{name: "x", dims: dims}, {name: "y", dims: dims}},
	}
}

// tensor adds a tensor and returns its index.
func (g *testGraph) tensor(t testTensor) int32 {
	g.tensors = append(g.tensors, t)
	return int32(len(g.tensors) - 1)
}

// floats adds a constant.
func (g *testGraph) floats(dims []int32, values ...float32) int32 {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return g.tensor(testTensor{name: "c", dims: dims, data: data})
}

// ints adds a constant list of INT32.
func (g *testGraph) ints(values ...int32) int32 {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return g.tensor(testTensor{name: "i", typ: schema.Int32, dims: []int32{int32(len(values))}, data: data})
}

// add adds an operator that writes a new tensor of the dimensions, whose index it returns.
func (g *testGraph) add(name string, options map[int]any, dims []int32, inputs ...int32) int32 {
	out := g.tensor(testTensor{name: strings.ToLower(name), dims: dims})
	g.operators = append(g.operators, testOperator{name: name, inputs: inputs, outputs: []int32{out}, options: options})
	return out
}

func (g *testGraph) encode() []byte {
	b := flatbuffers.NewBuilder(1 << 12)
	vector := func(offsets []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
		b.StartVector(4, len(offsets), 4)
		for i := len(offsets) - 1; i >= 0; i-- {
			b.PrependUOffsetT(offsets[i])
		}
		return b.EndVector(len(offsets))
	}
	int32s := func(list []int32) flatbuffers.UOffsetT {
		b.StartVector(4, len(list), 4)
		for i := len(list) - 1; i >= 0; i-- {
			b.PrependInt32(list[i])
		}
		return b.EndVector(len(list))
	}
	var buffers, tensors, operators, codes []flatbuffers.UOffsetT
	b.StartObject(3)
	buffers = append(buffers, b.EndObject())
	number := map[string]uint32{} // of buffers with content
	var last flatbuffers.UOffsetT
	for i, t := range g.tensors {
		if g.shared && i > 2 && alike(t, g.tensors[i-1]) {
			tensors = append(tensors, last)
			continue
		}
		buffer := uint32(0)
		if t.data != nil {
			if buffer = number[string(t.data)]; buffer == 0 {
				data := b.CreateByteVector(t.data)
				b.StartObject(3)
				b.PrependUOffsetTSlot(0, data, 0)
				buffers = append(buffers, b.EndObject())
				buffer = uint32(len(buffers) - 1)
				number[string(t.data)] = buffer
			}
		}
		name, shape := b.CreateString(t.name), int32s(t.dims)
		var quantization, sparsity, signature flatbuffers.UOffsetT
		if t.scale != nil {
			b.StartVector(4, len(t.scale), 4)
			for i := len(t.scale) - 1; i >= 0; i-- {
				b.PrependFloat32(t.scale[i])
			}
			scale := b.EndVector(len(t.scale))
			b.StartVector(8, len(t.zero), 8)
			for i := len(t.zero) - 1; i >= 0; i-- {
				b.PrependInt64(t.zero[i])
			}
			zero := b.EndVector(len(t.zero))
			b.StartObject(7)
			b.PrependUOffsetTSlot(2, scale, 0)
			b.PrependUOffsetTSlot(3, zero, 0)
			b.PrependInt32Slot(6, t.axis, 0)
			quantization = b.EndObject()
		}
		if t.sparse {
			b.StartObject(3)
			sparsity = b.EndObject()
		}
		if t.signature != nil {
			signature = int32s(t.signature)
		}
		b.StartObject(10)
		b.PrependUOffsetTSlot(0, shape, 0)
		b.PrependByteSlot(1, byte(t.typ), 0)
		b.PrependUint32Slot(2, buffer, 0)
		b.PrependUOffsetTSlot(3, name, 0)
		b.PrependUOffsetTSlot(4, quantization, 0)
		b.PrependUOffsetTSlot(6, sparsity, 0)
		b.PrependUOffsetTSlot(7, signature, 0)
		last = b.EndObject()
		tensors = append(tensors, last)
	}
	known := map[string]uint32{} // codes by name
	var lastInputs flatbuffers.UOffsetT
	for i, o := range g.operators {
		code, ok := known[o.name]
		if !ok || o.code != 0 {
			builtin := schema.Code(o.name)
			if o.code != 0 {
				builtin = o.code
			}
			var custom flatbuffers.UOffsetT
			if builtin < 0 {
				builtin, custom = 32, b.CreateString(o.name)
			}
			b.StartObject(4)
			b.PrependByteSlot(0, byte(min(builtin, 127)), 0)
			b.PrependUOffsetTSlot(1, custom, 0)
			b.PrependInt32Slot(3, builtin, 0)
			codes = append(codes, b.EndObject())
			code = uint32(len(codes) - 1)
			known[o.name] = code
		}
		if i == 0 || !g.shared {
			lastInputs = int32s(o.inputs)
		}
		outputs := int32s(o.outputs)
		var options, custom flatbuffers.UOffsetT
		if o.options != nil {
			b.StartObject(16)
			for slot := range 16 {
				switch v := o.options[slot].(type) {
				case int:
					b.PrependInt32(int32(v))
					b.Slot(slot)
				case uint8:
					b.PrependByte(v)
					b.Slot(slot)
				case float32:
					b.PrependFloat32(v)
					b.Slot(slot)
				}
			}
			options = b.EndObject()
		}
		if o.custom != nil {
			custom = b.CreateByteVector(o.custom)
		}
		b.StartObject(13)
		b.PrependUint32Slot(0, code, 0)
		b.PrependUOffsetTSlot(1, lastInputs, 0)
		b.PrependUOffsetTSlot(2, outputs, 0)
		b.PrependUOffsetTSlot(4, options, 0)
		b.PrependUOffsetTSlot(5, custom, 0)
		operators = append(operators, b.EndObject())
	}
	inputs, outputs := int32s(g.inputs), int32s(g.outputs)
	allTensors, allOperators := vector(tensors), vector(operators)
	b.StartObject(5)
	b.PrependUOffsetTSlot(0, allTensors, 0)
	b.PrependUOffsetTSlot(1, inputs, 0)
	b.PrependUOffsetTSlot(2, outputs, 0)
	b.PrependUOffsetTSlot(3, allOperators, 0)
	graphs := vector([]flatbuffers.UOffsetT{b.EndObject()})
	allCodes, allBuffers := vector(codes), vector(buffers)
	b.StartObject(8)
	b.PrependUint32Slot(0, g.version, 0)
	b.PrependUOffsetTSlot(1, allCodes, 0)
	b.PrependUOffsetTSlot(2, graphs, 0)
	b.PrependUOffsetTSlot(4, allBuffers, 0)
	b.FinishWithFileIdentifier(b.EndObject(), []byte("TFL3"))
	return b.FinishedBytes()
}

// alike reports whether two tensors would be written alike.
func alike(x, y testTensor) bool {
	return x.name == y.name && x.typ == y.typ && len(x.dims) == len(y.dims) && string(x.data) == string(y.data) && (x.data == nil) == (y.data == nil)
}

// flexMap writes a FlexBuffer: a map of integers of 4 bytes each.
func flexMap(keys []string, values []int32) []byte {
	var b []byte
	at := make([]int, len(keys))
	for i, k := range keys {
		at[i] = len(b)
		b = append(append(b, k...), 0)
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	u32 := func(v int) { b = binary.LittleEndian.AppendUint32(b, uint32(v)) }
	u32(len(keys))
	vector := len(b)
	for i := range keys {
		u32(len(b) - at[i])
	}
	u32(len(b) - vector) // of the keys
	u32(4)               // their width
	u32(len(values))
	root := len(b)
	for _, v := range values {
		u32(int(v))
	}
	for range values {
		b = append(b, 1<<2|2) // integers of 4 bytes
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	u32(len(b) - root)
	return append(b, 9<<2|2, 4)
}
