package onnx

// The messages of onnx.proto3, as far as they are needed. Unknown fields are
// skipped.

type model struct {
	producer string
	opset    int64 // of the default domain
	graph    *graph
	metadata map[string]string
}

type graph struct {
	nodes        []*node
	initializers map[string]*tensorProto
	inputs       []valueInfo
	outputs      []valueInfo
}

type valueInfo struct {
	name string
	typ  elemType
	dims []dim
	// ranked tells a shape without dimensions from none.
	ranked bool
}

// dim is a dimension of a graph input: a size, or a name for a dynamic one.
type dim struct {
	size int64
	name string
}

type node struct {
	index                int
	name, opType, domain string
	inputs, outputs      []string
	attrs                []attribute
}

type attribute struct {
	name string
	typ  int64
	f    float32
	i    int64
	s    []byte
	t    *tensorProto
	fs   []float32
	is   []int64
}

type tensorProto struct {
	name     string
	dims     []int64
	typ      elemType
	raw      []byte // raw_data, little-endian
	hasRaw   bool
	f32, f64 []byte // float_data, double_data, little-endian
	ints     []int64
	external map[string]string // nil unless the data is in another file
}
