package onnx

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// many is the length of lists that take few bytes.
const many = 1 << 18

// kinds are hostile files, each of which shows that a charge is missing that drawn
// files do not show.
func kinds() []costtest.Kind[hostile] {
	two, plus, minus := filled("two", []int{1, 2, 1, 1}, 2), number("plus", 1), number("minus", -1)
	few := weightsOf("c", 1<<6, 1<<6)
	limit := append(long("list", 0), op("Cast", "list", "limit", "to", int(pb.Float)), op("Clip", "x minus plus", "b"))
	of := func(name, ends, opType, in string, inits []testTensor, attrs ...any) costtest.Kind[hostile] {
		return costtest.Kind[hostile]{Name: name + " of one constant", N: 3, Ends: ends, Make: models(func(n int) testModel {
			m := reach(n, func(_ int, to string) []testNode { return []testNode{op(opType, in, to, attrs...)} }, append(inits, few)...)
			m.opset = 20
			return m
		})}
	}
	return []costtest.Kind[hostile]{
		{Name: "negatives in sums", N: 100, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Neg", from, to+"a"), op("Neg", to+"a", to+"b"), op("Sigmoid", from, to+"c"), op("Sum", to+"b "+to+"c "+to+"a", to)}
			})
		})},
		{Name: "integers that are moved", N: 100, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("QuantizeLinear", from+" plus", to+"a"), op("Concat", to+"a "+to+"a", to+"b", "axis", 1), op("MaxPool", to+"b", to+"c", "kernel_shape", []int{1, 1}),
					op("Split", to+"c", to+"d "+to+"e", "axis", 1), op("DequantizeLinear", to+"d plus", to)}
			}, plus)
		})},
		{Name: "assignments", N: 30, Make: models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("ScatterND", from+" i u", to)} },
				testTensor{name: "i", typ: pb.Int64, dims: []int{1, 1, 4}, values: []float64{0, 1, 0, 1}}, floats("u", []int{1, 1}, 1))
			m.input.dims[0] = 1
			return m
		})},
		{Name: "assignments to a wide image", N: 4, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("ScatterND", from+" i u", to)} },
				testTensor{name: "i", typ: pb.Int64, dims: []int{1, 1, 2}, values: []float64{0, 1}}, floats("u", []int{1, 1}, 1))
			m.input.dims = []any{1, 1 << 20}
			return m
		})},
		{Name: "lists of pixels that are joined", N: 30, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Reshape", from+" flat", to+"a"), op("Concat", to+"a "+to+"a", to+"b", "axis", 2), op("Slice", to+"b", to+"c", "axes", []int{2}, "starts", []int{1}, "ends", []int{5}),
					op("Reshape", to+"c square", to)}
			}, ints("flat", 0, 2, -1), ints("square", 0, 2, 2, 2))
		})},
		{Name: "numbers rounded without limits", N: 30, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Add", from+" "+from, to+"a"), op("Floor", to+"a", to)}
			})
		})},
		{Name: "Pad and Conv", N: 30, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Pad", from+" p", to+"a"), op("Pad", to+"a p", to+"b"), op("Conv", to+"b w", to)}
			}, weightsOf("w", 2, 2, 3, 3), ints("p", 0, 0, 0, 0, 0, 0, 1, 1))
		})},
		{Name: "Transpose of a long constant", N: 10, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode { return []testNode{op("Transpose", "c", to)} }, weightsOf("c", 1<<8, 1<<8))
		})},
		{Name: "Gather of long lists into an empty tensor", N: 4, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("Gather", "e list", to)} },
				testTensor{name: "e", typ: pb.Float, dims: []int{1, 0}})
			return with(m, long("list", 0)...)
		})},
		{Name: "comparisons with a long list behind a Clip", N: 4, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := reach(n, func(_ int, to string) []testNode { return []testNode{op("Greater", "b limit", to)} }, minus, plus)
			return with(m, limit...)
		})},
		{Name: "thresholds of MultiThreshold", N: 30, Make: models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("qonnx.custom_op.general/MultiThreshold", from+" t", to)}
			}, weightsOf("t", 2, 100))
			return m
		})},
		{Name: "layers of many channels", N: 20, Make: models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Add", from+" plus", to)} }, plus)
			m.input.dims = []any{1, 1 << 20}
			return m
		})},
		{Name: "signs of three values of many channels", N: 7, Make: models(func(n int) testModel {
			integer := func(name string, v int) testTensor {
				return testTensor{name: name, typ: pb.Int64, dims: []int{}, values: []float64{float64(v)}}
			}
			m := testModel{input: image(2, 1, 1), output: "y", inits: []testTensor{integer("from", 1), integer("to", n<<10+1), integer("step", 1)}}
			m.input.dims = []any{1, n << 10}
			m.nodes = []testNode{op("Range", "from to step", "list"), op("Cast", "list", "scale", "to", int(pb.Float)), op("Sign", "x", "a"), op("Mul", "a scale", "b"), op("Relu", "b", "y")}
			return m
		})},
		{Name: "unused initialisers", N: 50, Make: func(n int) hostile {
			var g []byte
			for i := range n {
				g = message(g, 5, weightsOf(fmt.Sprint("u", i), 4).encode())
			}
			return one(g, nil)
		}},
		{Name: "empty inputs", N: 500, Ends: `two inputs of the graph are called ""`, Make: func(n int) hostile { return one(repeated(11, nil, n), nil) }},
		{Name: "value_info", N: 500, Make: func(n int) hostile { return one(repeated(13, image(2, 2, 2).encode(), n), nil) }},
		{Name: "inputs of one node", N: 500, Ends: "inputs, want 1", Make: func(n int) hostile { return one(nil, repeated(1, []byte("x"), n)) }},
		{Name: "attributes of one node", N: 500, Ends: "is not one that the operator has", Make: func(n int) hostile { return one(nil, repeated(5, message(nil, 1, []byte("a")), n)) }},
		{Name: "empty attributes", N: 500, Ends: "is not one that the operator has", Make: func(n int) hostile { return one(nil, repeated(5, nil, n)) }},
		{Name: "floats of an attribute", N: 500, Ends: "is not one that the operator has", Make: func(n int) hostile {
			return one(nil, message(nil, 5, message(nil, 7, make([]byte, 4*n))))
		}},
		{Name: "integers of an attribute", N: 500, Ends: "is not one that the operator has", Make: func(n int) hostile {
			return one(nil, message(nil, 5, message(nil, 8, make([]byte, n))))
		}},
		{Name: "integers of an attribute, one by one", N: 500, Ends: "is not one that the operator has", Make: func(n int) hostile {
			return one(nil, message(nil, 5, repeatedInts(8, n)))
		}},
		{Name: "values of a tensor, one by one", N: 500, Make: func(n int) hostile {
			w := varint(varint(message(nil, 8, []byte("w")), 1, int64(n)), 2, int64(pb.Int32))
			return one(message(nil, 5, append(w, repeatedInts(5, n)...)), nil)
		}},
		{Name: "metadata", N: 500, Make: func(n int) hostile {
			h := one(nil, nil)
			for i := range n {
				h.model = message(h.model, 14, message(message(nil, 1, fmt.Append(nil, "k", i)), 2, []byte("value")))
			}
			return h
		}},
		{Name: "labels", N: 500, Ends: "labels for 8 outputs", Make: func(n int) hostile {
			b, _ := json.Marshal(make([]string, n))
			h := one(nil, nil)
			h.model = message(h.model, 14, message(message(nil, 1, []byte("labels")), 2, b))
			return h
		}},
		{Name: "heads", N: 500, Ends: `metadata "detection": head 0 is of kind ""`, Make: func(n int) hostile {
			h := one(nil, nil)
			b := `{"classes": 1, "heads": [{}` + strings.Repeat(",{}", n) + "]}"
			h.model = message(h.model, 14, message(message(nil, 1, []byte("detection")), 2, []byte(b)))
			return h
		}},
		{Name: "anchors", N: 500, Ends: `metadata "detection": head 0: an anchor of 0 numbers`, Make: func(n int) hostile {
			h := one(nil, nil)
			b := `{"classes": 1, "heads": [{"kind": "yolo", "params": {"anchors": [[]` + strings.Repeat(",[]", n) + "]}}]}"
			h.model = message(h.model, 14, message(message(nil, 1, []byte("detection")), 2, []byte(b)))
			return h
		}},
		{Name: "operator sets", N: 500, Make: func(n int) hostile {
			h := one(nil, nil)
			h.model = append(h.model, repeated(8, varint(nil, 2, 13), n)...)
			return h
		}},
		{Name: "tensors of one file", N: 10, Ends: costtest.Exceeds, Make: func(n int) hostile {
			m := fan(n, func(i int, to string) []testNode { return []testNode{op("Neg", fmt.Sprint("e", i), to)} })
			return fromData(m, n, 1<<14)
		}},
		{Name: "a step of many thresholds in many sums", N: 10, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := chain(n+200, func(i int, from, to string) []testNode {
				if i >= 200 {
					return []testNode{op("Add", from+" two", to)}
				}
				return []testNode{
					op("Constant", "", to+"c", "value", number("", float64(i))), op("Greater", "x "+to+"c", to+"g"),
					op("Cast", to+"g", to+"a", "to", int(pb.Float)), op("Add", from+" "+to+"a", to),
				}
			}, two)
			m.nodes[3].in[0] = m.nodes[2].out[0]
			return m
		})},
		{Name: "a list that grows", N: 20, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					return []testNode{op("SequenceConstruct", "x", to)}
				}
				return []testNode{op("SequenceInsert", from+" x", to)}
			})
			m.nodes = append(m.nodes, op("ConcatFromSequence", m.output, "y", "axis", 1))
			m.output = "y"
			return m
		})},
		{Name: "reductions of a long list", N: 10, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("ReduceMax", "list", to, "keepdims", 1)} })
			return with(m, long("list", 1)...)
		})},
		{Name: "Split into many", N: 10, Make: models(func(n int) testModel {
			var outs []string
			for i := range n {
				outs = append(outs, fmt.Sprint("o", i))
			}
			return testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("c", 1<<12)}, nodes: []testNode{
				op("Split", "c", strings.Join(outs, " ")), op("ReduceMin", outs[0], "g"), op("Add", "x g", "y")}}
		})},
		{Name: "channels picked by a long list", N: 10, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			return with(fan(n, func(_ int, to string) []testNode {
				return []testNode{op("Gather", "x list", to+"g", "axis", 1), op("ReduceMax", to+"g", to, "axes", []int{2, 3})}
			}), long("list", 0)...)
		})},
		{Name: "channels of zeros", N: 10, Ends: costtest.Exceeds, Make: models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Pad", from+" wide", to+"a"), op("Slice", to+"a at end axis", to)}
			}, ints("wide", 0, many, 0, 0, 0, 0, 0, 0), ints("at", many), ints("end", many+2), ints("axis", 1))
		})},
		of("NonZero", "", "NonZero", "c", nil),
		of("Unique", costtest.Exceeds, "Unique", "c", nil),
		of("Pad", costtest.Exceeds, "Pad", "c by", []testTensor{ints("by", 0, 0, 1<<20, 0)}),
		of("Einsum", costtest.Exceeds, "Einsum", "c c", nil, "equation", "ij,kl->"),
		of("Gemm", costtest.Exceeds, "Gemm", "c c", nil),
		of("Conv", costtest.Exceeds, "Conv", "i w", []testTensor{weightsOf("i", 1, 4, 32, 32), weightsOf("w", 16, 4, 3, 3)}),
		of("MaxPool", costtest.Exceeds, "MaxPool", "i", []testTensor{weightsOf("i", 1, 4, 32, 32)}, "kernel_shape", []int{9, 9}),
	}
}

// models are the files of models.
func models(f func(n int) testModel) func(int) hostile {
	return func(n int) hostile { return hostile{model: f(n).encode()} }
}

// chain makes a model of nodes, one behind the other: node i reads what node i-1
// wrote, or x.
func chain(n int, node func(i int, from, to string) []testNode, inits ...testTensor) testModel {
	m := testModel{input: image(2, 2, 2), inits: inits, output: "x"}
	for i := range n {
		to := fmt.Sprint("t", i)
		m.nodes = append(m.nodes, node(i, m.output, to)...)
		m.output = to
	}
	return m
}

// fan makes a model of nodes that write constants and do not read each other. All
// are joined, so that the output depends on them.
func fan(n int, node func(i int, to string) []testNode, inits ...testTensor) testModel {
	m := testModel{input: image(2, 2, 2), inits: inits, output: "y"}
	var all []string
	for i := range n {
		to := fmt.Sprint("t", i)
		m.nodes = append(m.nodes, node(i, to)...)
		all = append(all, to)
	}
	m.nodes = append(m.nodes, op("Concat", strings.Join(all, " "), "all"), op("Add", "x all", "y"))
	return m
}

// reach makes a model of nodes that nobody reads, though the output may depend on them: they are the
// inputs of a branch that is not taken.
func reach(n int, node func(i int, to string) []testNode, inits ...testTensor) testModel {
	m := fan(n, node, inits...)
	all := m.nodes[len(m.nodes)-2]
	m.inits = append(slices.Clone(m.inits), testTensor{name: "never", typ: pb.Bool, dims: []int{}, values: []float64{0}})
	m.nodes = append(m.nodes[:len(m.nodes)-2], op("If", "never", "z",
		"then_branch", testModel{nodes: []testNode{all}, output: "all"},
		"else_branch", testModel{nodes: []testNode{op("Identity", "x", "z0")}, output: "z0"}), op("Relu", "z", "y"))
	return m
}

// with puts nodes before those of a model.
func with(m testModel, nodes ...testNode) testModel {
	m.nodes = append(slices.Clone(nodes), m.nodes...)
	return m
}

// one is a model of one Relu, with bytes put before the fields of the graph and
// behind those of the node.
func one(graph, node []byte) hostile {
	g := message(graph, 1, append(op("Relu", "x", "y").encode(), node...))
	g = message(g, 11, image(2, 2, 2).encode())
	g = message(g, 12, testInput{name: "y", typ: pb.Float}.encode())
	return hostile{model: message(message(nil, 7, g), 8, varint(nil, 2, 13))}
}

// long writes a list of many equal integers.
func long(name string, value float64) []testNode {
	return []testNode{
		op("Constant", "", name+"n", "value_ints", []int{many}),
		op("ConstantOfShape", name+"n", name, "value", ints("", value)),
	}
}

// fromData adds n tensors e0, e1 … of size values to a model: the same bytes of
// the file "data".
func fromData(m testModel, n, size int) hostile {
	where := map[string]string{"location": "data", "length": fmt.Sprint(4 * size)}
	for i := range n {
		m.inits = append(m.inits, testTensor{name: fmt.Sprint("e", i), typ: pb.Float, dims: []int{size}, external: where})
	}
	return hostile{m.encode(), make([]byte, 4*size)}
}

// named gives nodes a name.
func named(name string, nodes ...testNode) []testNode {
	for i := range nodes {
		nodes[i].name = name
	}
	return nodes
}

func filled(name string, dims []int, v float64) testTensor {
	return floats(name, dims, slices.Repeat([]float64{v}, size(dims...))...)
}

// weights are whole numbers from −3 to 3.
func weightsOf(name string, dims ...int) testTensor {
	t := filled(name, dims, 0)
	for i := range t.values {
		t.values[i] = float64(i%7) - 3
	}
	return t
}

// repeated is a field n times.
func repeated(num protowire.Number, content []byte, n int) []byte {
	return slices.Repeat(message(nil, num, content), n)
}

// repeatedInts is a field of the integer 1 n times, not packed.
func repeatedInts(num protowire.Number, n int) []byte {
	return slices.Repeat(varint(nil, num, 1), n)
}
