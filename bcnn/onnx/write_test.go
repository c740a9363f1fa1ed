package onnx

import (
	"encoding/binary"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A model as tests write it down: serialised by encode, executed by execute,
// with nothing in common with the importer.
type testModel struct {
	opset     int64
	input     testInput
	nodes     []testNode
	inits     []testTensor
	output    string
	metadata  map[string]string
	extra     []testInput // more graph inputs
	also      []string    // more graph outputs
	infos     []testInput // what it declares of other tensors
	rounds    bool        // its functions have no exact value
	regrouped bool        // its output may have other dimensions in memory
}

type testInput struct {
	name string
	typ  pb.DataType
	dims []any // int or string
}

type testNode struct {
	domain, op, name string
	scopes           string // as PyTorch's newer exporter writes them
	in, out          []string
	attrs            map[string]any // float64, int, string, []int, []int64, []float64, testTensor
}

type testTensor struct {
	name     string
	typ      pb.DataType
	dims     []int
	values   []float64
	typed    bool              // typed field instead of raw_data
	external map[string]string // data elsewhere
}

// op makes a node; in and out are names separated by spaces, "_" for none.
// attrs are names and values.
func op(opType, in, out string, attrs ...any) testNode {
	n := testNode{op: opType, name: "n_" + out, out: strings.Fields(out), attrs: map[string]any{}}
	if i := strings.LastIndex(opType, "/"); i >= 0 {
		n.domain, n.op = opType[:i], opType[i+1:]
	}
	for _, s := range strings.Fields(in) {
		n.in = append(n.in, strings.ReplaceAll(s, "_", ""))
	}
	for i := 0; i < len(attrs); i += 2 {
		n.attrs[attrs[i].(string)] = attrs[i+1]
	}
	return n
}

func floats(name string, dims []int, values ...float64) testTensor {
	return testTensor{name: name, typ: pb.Float, dims: dims, values: values}
}

func ints(name string, values ...float64) testTensor {
	return testTensor{name: name, typ: pb.Int64, dims: []int{len(values)}, values: values}
}

func number(name string, v float64) testTensor { return floats(name, []int{}, v) }

func message(b []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), content)
}

func varint(b []byte, num protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

// graph is the graph of a model; without an input it is a branch.
func (m testModel) graph() []byte {
	var g []byte
	for _, n := range m.nodes {
		g = message(g, 1, n.encode())
	}
	for _, t := range m.inits {
		g = message(g, 5, t.encode())
	}
	for _, in := range append([]testInput{m.input}, m.extra...) {
		if in.name != "" {
			g = message(g, 11, in.encode())
		}
	}
	for _, info := range m.infos {
		g = message(g, 13, info.encode())
	}
	for _, out := range append([]string{m.output}, m.also...) {
		g = message(g, 12, testInput{name: out, typ: pb.Float}.encode())
	}
	return g
}

func (m testModel) encode() []byte {
	g := m.graph()
	b := varint(nil, 1, 8)
	b = message(b, 2, []byte("test"))
	b = message(b, 7, g)
	opset := m.opset
	if opset == 0 {
		opset = 13
	}
	b = message(b, 8, varint(message(nil, 1, nil), 2, opset))
	b = message(b, 8, varint(message(nil, 1, []byte("bitcnn")), 2, 1))
	for k, v := range m.metadata {
		b = message(b, 14, message(message(nil, 1, []byte(k)), 2, []byte(v)))
	}
	return b
}

func (in testInput) encode() []byte {
	var shape []byte
	for _, d := range in.dims {
		switch d := d.(type) {
		case string:
			shape = message(shape, 1, message(nil, 2, []byte(d)))
		case int64: // which int may not hold
			shape = message(shape, 1, varint(nil, 1, d))
		default:
			shape = message(shape, 1, varint(nil, 1, int64(d.(int))))
		}
	}
	typ := message(nil, 1, message(varint(nil, 1, int64(in.typ)), 2, shape))
	return message(message(nil, 1, []byte(in.name)), 2, typ)
}

func (n testNode) encode() []byte {
	var b []byte
	for _, s := range n.in {
		b = message(b, 1, []byte(s))
	}
	for _, s := range n.out {
		b = message(b, 2, []byte(s))
	}
	b = message(b, 3, []byte(n.name))
	b = message(b, 4, []byte(n.op))
	if n.scopes != "" {
		b = message(b, 9, message(message(nil, 1, []byte("pkg.torch.onnx.name_scopes")), 2, []byte(n.scopes)))
	}
	for k, v := range n.attrs {
		if strings.HasPrefix(k, "oracle.") { // of no file
			continue
		}
		a := message(nil, 1, []byte(k))
		switch v := v.(type) {
		case float64:
			a = protowire.AppendFixed32(protowire.AppendTag(a, 2, protowire.Fixed32Type), math.Float32bits(float32(v)))
			a = varint(a, 20, pb.AttrFloat)
		case int:
			a = varint(varint(a, 3, int64(v)), 20, pb.AttrInt)
		case string:
			a = varint(message(a, 4, []byte(v)), 20, pb.AttrString)
		case testTensor:
			a = varint(message(a, 5, v.encode()), 20, pb.AttrTensor)
		case testModel: // its graph
			a = varint(message(a, 6, v.graph()), 20, pb.AttrGraph)
		case []int:
			for i, x := range v {
				if i%2 == 0 { // both ways to write a repeated field
					a = varint(a, 8, int64(x))
				} else {
					a = message(a, 8, protowire.AppendVarint(nil, uint64(int64(x))))
				}
			}
			a = varint(a, 20, pb.AttrInts)
		case []int64: // which int may not hold
			for _, x := range v {
				a = varint(a, 8, x)
			}
			a = varint(a, 20, pb.AttrInts)
		case []float64:
			var p []byte
			for _, x := range v {
				p = binary.LittleEndian.AppendUint32(p, math.Float32bits(float32(x)))
			}
			a = varint(message(a, 7, p), 20, pb.AttrFloats)
		}
		b = message(b, 5, a)
	}
	return message(b, 7, []byte(n.domain))
}

func (t testTensor) encode() []byte {
	var b []byte
	for _, d := range t.dims {
		b = varint(b, 1, int64(d))
	}
	b = varint(b, 2, int64(t.typ))
	b = message(b, 8, []byte(t.name))
	switch {
	case t.external != nil:
		for k, v := range t.external {
			b = message(b, 13, message(message(nil, 1, []byte(k)), 2, []byte(v)))
		}
		return varint(b, 14, 1)
	case !t.typed:
		return message(b, 9, t.raw())
	}
	var packed []byte
	if t.typ.Bits() < 8 {
		for _, v := range t.raw() {
			packed = protowire.AppendVarint(packed, uint64(v))
		}
		return message(b, 5, packed)
	}
	for _, v := range t.values {
		switch t.typ {
		case pb.Float:
			packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(float32(v)))
		case pb.Double:
			packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(v))
		case pb.Float16:
			packed = protowire.AppendVarint(packed, uint64(toFloat16(v)))
		default:
			packed = protowire.AppendVarint(packed, uint64(int64(v)))
		}
	}
	field := map[pb.DataType]protowire.Number{pb.Float: 4, pb.Double: 10, pb.Int64: 7, pb.Uint64: 11, pb.Uint32: 11}[t.typ]
	if field == 0 {
		field = 5
	}
	return message(b, field, packed)
}

func (t testTensor) raw() []byte {
	var b []byte
	for i, v := range t.values {
		switch t.typ {
		case pb.Uint4, pb.Int4, pb.Uint2, pb.Int2:
			width := t.typ.Bits()
			if i*width%8 == 0 {
				b = append(b, 0)
			}
			b[len(b)-1] |= byte(int64(v)) << (8 - width) >> (8 - width) << (i * width % 8)
		case pb.Float:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case pb.Double:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case pb.Float16:
			b = binary.LittleEndian.AppendUint16(b, toFloat16(v))
		case pb.Int64, pb.Uint64:
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
		case pb.Int32, pb.Uint32:
			b = binary.LittleEndian.AppendUint32(b, uint32(int64(v)))
		case pb.Int16, pb.Uint16:
			b = binary.LittleEndian.AppendUint16(b, uint16(int64(v)))
		default:
			b = append(b, byte(int64(v)))
		}
	}
	return b
}

// toFloat16 converts normal numbers that binary16 holds exactly.
func toFloat16(v float64) uint16 {
	if v == 0 {
		return 0
	}
	bits := math.Float64bits(v)
	return uint16(bits>>63)<<15 | uint16(int(bits>>52&2047)-1023+15)<<10 | uint16(bits>>42&1023)
}
