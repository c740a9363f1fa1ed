// Package pb decodes the messages of onnx.proto3, as far as an importer needs them: nodes with
// their attributes, tensors, inputs and outputs, metadata. Unknown fields are skipped. What a
// message claims is not believed: the values of tensors stay as they are in the file until eval
// unpacks them.
//
// The format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
package pb

// Model is a ModelProto.
type Model struct {
	Producer string
	Opset    int64 // of the default domain
	Graph    *Graph
	// Functions are the operators that the file defines itself, as Node.Operator has them.
	Functions map[string]bool
	Metadata  map[string][]byte
}

// Graph is a GraphProto.
type Graph struct {
	Nodes        []*Node
	Initializers map[string]*Tensor
	Inputs       []ValueInfo
	Outputs      []ValueInfo
	infos        []field // ValueInfoProtos of tensors in between, undecoded
}

// ValueInfo is a ValueInfoProto of a tensor.
type ValueInfo struct {
	Name string
	Type DataType
	Dims []Dim
	// Ranked says that the file gives a shape, which may have no dimensions.
	Ranked bool
}

// Dim is a dimension: a size, or a name for a dynamic one, or neither.
type Dim struct {
	Size int64
	Name string
}

// onnxDomain is the domain of ONNX's own operators, which may be empty as well.
const onnxDomain = "ai.onnx"

// Node is a NodeProto. Its Domain is empty for ONNX's own operators.
type Node struct {
	Index                int // in the graph
	Name, OpType, Domain string
	Inputs, Outputs      []string
	Attrs                []*Attribute
	module               string // of PyTorch, "" if unknown
	alone                bool   // in the module, but for nodes on constants
	reads                *reads
}

// Attribute is an AttributeProto. Type says which value it has; old files leave it 0.
type Attribute struct {
	Name string
	Type int64
	F    float32
	I    int64
	S    []byte
	T    *Tensor
	Fs   []float32
	Is   []int64

	graph   []byte // a GraphProto
	decoded *Graph
}

// Tensor is a TensorProto. Its values are in one of Raw, F32, F64, Varints and External.
type Tensor struct {
	Name     string
	Dims     []int64
	Type     DataType
	Raw      []byte // raw_data, little-endian
	HasRaw   bool
	F32, F64 []byte // float_data, double_data, little-endian
	// Varints are int32_data, int64_data or uint64_data, packed.
	Varints  []byte
	External *External // nil unless the data is in another file
}

// External is external_data: where the data of a tensor is. Offset and Length are numbers, empty if
// they are not given.
type External struct {
	Location, Offset, Length string
}
