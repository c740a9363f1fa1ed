package tflite

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
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
	// extra are fields of all tables of a name, by slot: uint8, int, uint64, float32, a vector of
	// []byte or []int32, or a table without fields, struct{}{}.
	extra map[string]map[int]any
	// graphs is how many sub-graphs there are besides, and signatures are of which ones.
	graphs     int
	signatures []int
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
	sparsity  *testSparsity
}

// testSparsity are the parameters of a sparse tensor.
type testSparsity struct {
	order, blocks []int32
	levels        []testLevel
}

// testLevel is a level of one: with a size, or sparse.
type testLevel struct {
	size              int
	segments, indices []int32
}

type testOperator struct {
	name            string // a custom one if it is that of LCE or begins with a small letter
	inputs, outputs []int32
	// fields of the options, as those of extra.
	options map[int]any
	custom  []byte
	code    int32       // instead of the name's
	version int32       // 0 is none
	kind    int         // of the options, instead of that of the name; −1 is none
	more    map[int]any // fields of the operator's table
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
	// object writes a table with fields, and those of extra.
	object := func(table string, fields map[int]any) flatbuffers.UOffsetT {
		all := maps.Clone(fields)
		if all == nil {
			all = map[int]any{}
		}
		maps.Copy(all, g.extra[table])
		refers := map[int]flatbuffers.UOffsetT{}
		for _, slot := range slices.Sorted(maps.Keys(all)) {
			switch v := all[slot].(type) {
			case []byte:
				refers[slot] = b.CreateByteVector(v)
			case []int32:
				refers[slot] = int32s(v)
			case struct{}:
				b.StartObject(0)
				refers[slot] = b.EndObject()
			case flatbuffers.UOffsetT:
				refers[slot] = v
			}
		}
		const most = 64
		b.StartObject(most)
		for slot := range most {
			switch v := all[slot].(type) {
			case nil:
			case int:
				b.PrependInt32(int32(v))
				b.Slot(slot)
			case uint8:
				b.PrependByte(v)
				b.Slot(slot)
			case uint64:
				b.PrependUint64(v)
				b.Slot(slot)
			case float32:
				b.PrependFloat32(v)
				b.Slot(slot)
			default:
				b.PrependUOffsetTSlot(slot, refers[slot], 0)
			}
		}
		return b.EndObject()
	}
	var buffers, tensors, operators, codes []flatbuffers.UOffsetT
	buffers = append(buffers, object("", nil))
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
				buffers = append(buffers, object("Buffer", map[int]any{0: t.data}))
				buffer = uint32(len(buffers) - 1)
				number[string(t.data)] = buffer
			}
		}
		fields := map[int]any{0: t.dims, 1: byte(t.typ), 2: int(buffer), 3: []byte(t.name)}
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
			fields[4] = object("QuantizationParameters", map[int]any{2: scale, 3: zero, 6: int(t.axis)})
		}
		if s := t.sparsity; s != nil {
			var levels []flatbuffers.UOffsetT
			for _, l := range s.levels {
				fields := map[int]any{1: l.size}
				if l.segments != nil {
					fields = map[int]any{0: uint8(1), 1: l.size, 2: uint8(1), 3: object("", map[int]any{0: l.segments}), 4: uint8(1), 5: object("", map[int]any{0: l.indices})}
				}
				levels = append(levels, object("DimensionMetadata", fields))
			}
			list := vector(levels)
			fields[6] = object("SparsityParameters", map[int]any{0: s.order, 1: s.blocks, 2: list})
		}
		if t.sparse {
			fields[6] = struct{}{}
		}
		if t.signature != nil {
			fields[7] = t.signature
		}
		last = object("Tensor", fields)
		tensors = append(tensors, last)
	}
	known := map[string]uint32{} // codes by name
	var lastInputs flatbuffers.UOffsetT
	for i, o := range g.operators {
		code, ok := known[o.name]
		if !ok || o.code != 0 || o.version != 0 {
			builtin := schema.Code(o.name)
			if o.code != 0 {
				builtin = o.code
			}
			fields := map[int]any{}
			if builtin < 0 {
				builtin, fields[1] = 32, []byte(o.name)
			}
			if fields[0], fields[3] = byte(min(builtin, 127)), int(builtin); o.version != 0 {
				fields[2] = int(o.version)
			}
			codes = append(codes, object("OperatorCode", fields))
			code = uint32(len(codes) - 1)
			known[o.name] = code
		}
		if i == 0 || !g.shared {
			lastInputs = int32s(o.inputs)
		}
		fields := map[int]any{0: int(code), 1: lastInputs, 2: o.outputs}
		kind := o.kind
		if table := optionTables()[o.name]; kind == 0 && table != nil {
			kind = int(table.number)
		}
		if o.options != nil && kind > 0 {
			fields[3] = byte(kind)
		}
		if o.options != nil {
			fields[4] = object("options", o.options)
		}
		if o.custom != nil {
			fields[5] = o.custom
		}
		maps.Copy(fields, o.more)
		operators = append(operators, object("Operator", fields))
	}
	graphs := []flatbuffers.UOffsetT{object("SubGraph", map[int]any{0: vector(tensors), 1: g.inputs, 2: g.outputs, 3: vector(operators)})}
	for range g.graphs {
		graphs = append(graphs, object("", nil))
	}
	model := map[int]any{0: int(g.version), 1: vector(codes), 2: vector(graphs), 4: vector(buffers)}
	if g.signatures != nil {
		var list []flatbuffers.UOffsetT
		for i, of := range g.signatures {
			list = append(list, object("SignatureDef", map[int]any{2: []byte("signature " + strconv.Itoa(i)), 4: of}))
		}
		model[7] = vector(list)
	}
	b.FinishWithFileIdentifier(object("Model", model), []byte("TFL3"))
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
