package onnx

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A hostile file: the model, and the file "data" beside it.
type hostile struct {
	model, data []byte
}

// A kind of hostile files grows with n; what its import takes must not grow
// faster.
type kind struct {
	name string
	n    int // the smallest size; the others are 10 and 100 times as large
	make func(n int) hostile
	// ends says how the import of the largest ends: "" well, exceeds because it
	// asks for more work than the budget has, or with an error that contains it.
	ends string
}

const exceeds = "far more work"

// many is the length of lists that take few bytes.
const many = 1 << 18

func kinds() []kind {
	two := filled("two", []int{1, 2, 1, 1}, 2)
	zero, plus, minus := number("zero", 0), number("plus", 1), number("minus", -1)
	sign := func(from, to string) []testNode {
		return []testNode{op("Greater", from+" zero", to+"a"), op("Where", to+"a plus minus", to)}
	}
	limit := append(long("list", 0), op("Cast", "list", "limit", "to", int(pb.Float)), op("Clip", "x minus plus", "b"))
	mixed := append(long("list", 0), op("Shape", "x", "shape"), op("Gather", "shape list", "mixed"))
	return []kind{
		// Chains and names.
		{"chain of Relu", 200, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Relu", from, to)} })
		}), ""},
		{"one name", 200, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode { return named("a", op("Add", from+" two", to)) }, two)
		}), ""},
		{"names that the numbers of another take", 50, models(func(n int) testModel {
			return chain(n, func(i int, from, to string) []testNode {
				name := "a"
				if i < n/2 {
					name = fmt.Sprint("a_", i+2)
				}
				return named(name, op("Add", from+" two", to))
			}, two)
		}), ""},
		{"long names of one beginning", 20, models(func(n int) testModel {
			return chain(n, func(i int, from, to string) []testNode {
				return named(strings.Repeat("ä", 150)+fmt.Sprint(i), op("Add", from+" two", to))
			}, two)
		}), ""},
		{"signs", 30, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode { return sign(from, to) }, zero, plus, minus)
		}), ""},
		{"signs of one value", 30, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return append(sign("b", to+"s"), op("Add", from+" "+to+"s", to))
			}, zero, plus, minus)
			return with(m, op("Relu", "x", "b"))
		}), ""},
		{"copies of one sign", 30, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Identity", "s", to+"s"), op("Add", from+" "+to+"s", to)}
			}, zero, plus, minus)
			return with(m, sign("x", "s")...)
		}), ""},
		{"a long name that many signs use", 10, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				nodes := []testNode{op("Greater", "f t", to+"g"), op("Where", to+"g plus minus", to+"s"), op("MatMul", to+"s v", to+"m"), op("Add", from+" "+to+"m", to)}
				if i == 0 {
					nodes[3] = op("Relu", to+"m", to)
				}
				return nodes
			}, floats("t", []int{8}, slices.Repeat([]float64{1, 2}, 4)...), weightsOf("v", 8, 8), plus, minus)
			return with(m, append(named(strings.Repeat("n", 1<<16), op("Relu", "x", "b")), op("Flatten", "b", "f"))...)
		}), ""},
		{"views", 20, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Transpose", from, to+"a", perm(0, 2, 3, 1)...), op("Reshape", to+"a s", to+"b"), op("Reshape", to+"b r", to+"c"),
					op("Transpose", to+"c", to+"d", perm(0, 3, 1, 2)...), op("Relu", to+"d", to)}
			}, ints("s", -1, 2, 2, 1, 2), ints("r", -1, 2, 2, 2))
		}), ""},
		{"Pad and Conv", 30, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Pad", from+" p", to+"a"), op("Pad", to+"a p", to+"b"), op("Conv", to+"b w", to)}
			}, weightsOf("w", 2, 2, 3, 3), ints("p", 0, 0, 0, 0, 0, 0, 1, 1))
		}), ""},

		// One tensor that many nodes read.
		{"sums with one long constant", 20, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Add", from+" c", to)} }, weightsOf("c", 1, 1<<9))
			m.input.dims = []any{1, 1 << 9}
			return m
		}), ""},
		{"weights that many nodes read", 5, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Conv", from+" w", to+"a", "pads", []int{1, 1, 1, 1}), op("Conv", to+"a v", to)}
			}, weightsOf("w", 256, 2, 3, 3), weightsOf("v", 2, 256, 1, 1))
		}), ""},
		{"Transpose of a long constant", 10, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode { return []testNode{op("Transpose", "c", to)} }, weightsOf("c", 1<<8, 1<<8))
		}), exceeds},
		{"Reshape and Identity of a long constant", 20, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					from = "list"
				}
				return []testNode{op("Unsqueeze", from, to+"a", "axes", []int{0}), op("Reshape", to+"a s", to+"b"), op("Identity", to+"b", to)}
			}, ints("s", 4, -1))
			m = with(m, long("list", 1)...)
			m.nodes = append(m.nodes, op("Slice", m.output, "p", "starts", []int{0, 0}, "ends", []int{1, 1}), op("Cast", "p", "q", "to", int(pb.Float)), op("Add", "x q", "y"))
			m.output = "y"
			return m
		}), ""},

		// Lists that are long and take few bytes.
		{"Gather of long lists into an empty tensor", 4, models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("Gather", "e list", to)} },
				testTensor{name: "e", typ: pb.Float, dims: []int{1, 0}})
			return with(m, long("list", 0)...)
		}), exceeds},
		{"long lists of the batch size", 2, models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("Cast", "mixed", to, "to", int(pb.Int32))} })
			return with(m, mixed...)
		}), exceeds},
		{"long lists of the batch size that do not move", 20, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					from = "mixed"
				}
				return []testNode{op("Cast", from, to+"a", "to", int(pb.Int64)), op("Unsqueeze", to+"a", to+"b", "axes", []int{0}), op("Squeeze", to+"b", to, "axes", []int{0})}
			})
			return with(m, mixed...)
		}), "it is constant"},
		{"Slice with long steps", 2, models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("Slice", "c list list _ list", to)} }, ints("c", 1, 2, 3))
			return with(m, long("list", 1)...)
		}), "steps"},
		{"Pad by long lists", 2, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Pad", from+" list", to)} })
			return with(m, long("list", 0)...)
		}), "pads for"},
		{"comparisons with a long list behind a Clip", 4, models(func(n int) testModel {
			m := reach(n, func(_ int, to string) []testNode { return []testNode{op("Greater", "b limit", to)} }, minus, plus)
			return with(m, limit...)
		}), exceeds},
		{"one of a long list of the batch size", 4, models(func(n int) testModel {
			m := reach(n, func(i int, to string) []testNode {
				if i%2 == 0 {
					return []testNode{op("Gather", "mixed first", to)}
				}
				return []testNode{op("Slice", "mixed", to, "starts", []int{7}, "ends", []int{8})}
			}, ints("first", 0))
			return with(m, mixed...)
		}), ""},
		{"thresholds behind a Clip", 2, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				nodes := []testNode{op("Greater", "b limit", to+"a"), op("Where", to+"a plus minus", to+"b"), op("Mul", to+"b "+from, to)}
				if i == 0 {
					nodes[2] = op("Identity", to+"b", to)
				}
				return nodes
			}, minus, plus)
			return with(m, limit...)
		}), exceeds},
		{"thresholds of MultiThreshold", 30, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("qonnx.custom_op.general/MultiThreshold", from+" t", to)}
			}, weightsOf("t", 2, 100))
			return m
		}), ""},
		{"scales of Quant", 2, models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode {
				return []testNode{op("onnx.brevitas/Quant", "plus limit zero plus", to, "signed", 1, "narrow", 0)}
			}, zero, plus, minus)
			return with(m, limit...)
		}), exceeds},
		{"scales of Quant of a value", 1, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("onnx.brevitas/Quant", from+" scale zero plus", to, "signed", 1, "narrow", 0)}
			}, zero, plus)
			return with(m, append(long("list", 1), op("Cast", "list", "scale", "to", int(pb.Float)))...)
		}), exceeds},

		// Constants that unpack.
		{"doubling Concat", 1, models(func(n int) testModel {
			return chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					from = "plus"
				}
				return []testNode{op("Concat", from+" "+from, to, "axis", 0)}
			}, filled("plus", []int{1}, 1))
		}), exceeds},
		{"Concat of empty tensors", 50, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), inits: []testTensor{ints("s", 1<<28, 0)}, output: "y"}
			m.nodes = []testNode{op("ConstantOfShape", "s", "e"), op("Concat", strings.Repeat("e ", n), "c", "axis", 1), op("Add", "x c", "y")}
			return m
		}), "a constant is empty"},
		{"Concat of empty tensors and one with values", 50, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), inits: []testTensor{ints("s", many, 0), ints("r", many, 1)}, output: "y"}
			m.nodes = []testNode{op("ConstantOfShape", "s", "e"), op("ConstantOfShape", "r", "f"), op("Concat", strings.Repeat("e ", n)+"f", "c", "axis", 1), op("Add", "x c", "y")}
			return m
		}), "does not fit"},
		{"Concat of one tensor", 50, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), inits: []testTensor{ints("s", 1<<9, 1)}, output: "y"}
			m.nodes = []testNode{op("ConstantOfShape", "s", "e"), op("Concat", strings.Repeat("e ", n), "c", "axis", 1), op("Add", "x c", "y")}
			return m
		}), "does not fit"},
		{"huge empty tensors", 10, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode {
				return []testNode{op("ConstantOfShape", "s", to+"a"), op("Transpose", to+"a", to+"b"), op("Slice", to+"b", to+"c", "starts", []int{0}, "ends", []int{1 << 30}),
					op("Neg", to+"c", to+"d"), op("Add", to+"d "+to+"c", to+"e"), op("Expand", to+"e r", to)}
			}, ints("s", 0, 1<<28), ints("r", 1<<28, 0))
		}), "values along dimension"},
		{"broadcast", 1, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode { return []testNode{op("Pow", "a b", to)} }, weightsOf("a", many/1024, 1), weightsOf("b", 1, 1024))
		}), exceeds},
		{"large weights", 1500, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), inits: []testTensor{weightsOf("w", n, 2, 3, 3)}, output: "y"}
			m.nodes = []testNode{op("Conv", "x w", "y", "pads", []int{1, 1, 1, 1})}
			return m
		}), ""},
		{"large binary weights", 1500, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), inits: []testTensor{floats("w", []int{8, n}, slices.Repeat([]float64{1, -1}, 4*n)...)}, output: "y"}
			m.nodes = []testNode{op("Flatten", "x", "a"), op("MatMul", "a w", "y")}
			return m
		}), ""},
		{"quantised weights", 700, models(func(n int) testModel { return quantised(n, false) }), ""},
		{"quantised weights as varints", 700, models(func(n int) testModel { return quantised(n, true) }), ""},

		// Claims about the network.
		{"layers of many channels", 20, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Add", from+" plus", to)} }, plus)
			m.input.dims = []any{1, 1 << 20}
			return m
		}), ""},
		{"layers of many channels with values of their own", 1, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Add", from+" c", to)} })
			m.input.dims = []any{1, 2 * many}
			lists := append(long("list", 0), long("other", 1)...)
			return with(m, append(lists, op("Concat", "list other", "both", "axis", 0), op("Cast", "both", "c", "to", int(pb.Float)))...)
		}), exceeds},
		{"channels in another order", 2, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					return []testNode{op("Conv", "c w", to)}
				}
				return []testNode{op("Conv", "c w", to+"a"), op("Add", from+" "+to+"a", to)}
			}, weightsOf("w", 1, 1<<10, 1, 1), ints("s", -1, 2, 1<<9, 1), ints("r", -1, 1<<10, 1, 1))
			m.input.dims = []any{1, 1 << 10, 1, 1}
			return with(m, op("Reshape", "x s", "a"), op("Transpose", "a", "b", perm(0, 2, 1, 3)...), op("Reshape", "b r", "c"))
		}), ""},
		{"signs of three values of many channels", 7, models(func(n int) testModel {
			integer := func(name string, v int) testTensor {
				return testTensor{name: name, typ: pb.Int64, dims: []int{}, values: []float64{float64(v)}}
			}
			m := testModel{input: image(2, 1, 1), output: "y", inits: []testTensor{integer("from", 1), integer("to", n<<10+1), integer("step", 1)}}
			m.input.dims = []any{1, n << 10}
			m.nodes = []testNode{op("Range", "from to step", "list"), op("Cast", "list", "scale", "to", int(pb.Float)), op("Sign", "x", "a"), op("Mul", "a scale", "b"), op("Relu", "b", "y")}
			return m
		}), ""},
		{"a convolution across channels", 100, models(func(n int) testModel {
			m := testModel{opset: 11, input: image(n, 1, 1), output: "y", inits: []testTensor{weightsOf("w", 1, 1, 3), weightsOf("bias", 1)}}
			m.nodes = []testNode{op("Squeeze", "x", "a", "axes", []int{3}), op("Transpose", "a", "b", "perm", []int{0, 2, 1}), op("Conv", "b w bias", "y", "pads", []int{1, 1})}
			return m
		}), ""},
		{"long windows", 10, models(func(n int) testModel {
			m := testModel{input: image(1, 1, 1), inits: []testTensor{weightsOf("w", 1, 1, n, 100)}, output: "y"}
			m.nodes = []testNode{op("Conv", "x w", "y", "pads", []int{n, 100, n, 100})}
			return m
		}), ""},
		{"wide windows", 10, models(func(n int) testModel {
			m := testModel{input: image(1, 1, 1), output: "y"}
			m.nodes = []testNode{op("MaxPool", "x", "y", "kernel_shape", []int{n, n}, "pads", []int{n - 1, n - 1, n - 1, n - 1})}
			return m
		}), ""},

		// What the decoder reads.
		{"unused initialisers", 50, func(n int) hostile {
			var g []byte
			for i := range n {
				g = message(g, 5, weightsOf(fmt.Sprint("u", i), 4).encode())
			}
			return one(g, nil)
		}, ""},
		{"unused nodes", 50, func(n int) hostile {
			var g []byte
			for i := range n {
				g = message(g, 1, op("LSTM", "x x x", fmt.Sprint("u", i)).encode())
			}
			return one(g, nil)
		}, ""},
		{"empty nodes", 500, func(n int) hostile { return one(repeated(1, nil, n), nil) }, ""},
		{"too many nodes", 700, func(n int) hostile { return one(repeated(1, nil, n), nil) }, "70001 nodes, at most 65536"},
		{"empty tensors", 500, func(n int) hostile { return one(repeated(5, nil, n), nil) }, "two initialisers"},
		{"empty inputs", 500, func(n int) hostile { return one(repeated(11, nil, n), nil) }, `two inputs of the graph are called ""`},
		{"empty outputs", 500, func(n int) hostile { return one(repeated(12, nil, n), nil) }, "outputs, want 1 to 64"},
		{"value_info", 500, func(n int) hostile { return one(repeated(13, image(2, 2, 2).encode(), n), nil) }, ""},
		{"doc_string", 500, func(n int) hostile { return one(message(nil, 10, make([]byte, 100*n)), nil) }, ""},
		{"names of one node", 500, func(n int) hostile { return one(nil, repeated(3, []byte("name"), n)) }, ""},
		{"a long name", 1 << 10, func(n int) hostile { return one(nil, message(nil, 3, make([]byte, n))) }, "a name of 102400 bytes"},
		{"inputs of one node", 500, func(n int) hostile { return one(nil, repeated(1, []byte("x"), n)) }, "inputs, want 1"},
		{"outputs of one node", 500, func(n int) hostile { return one(nil, repeated(2, []byte("y"), n)) }, "too"},
		{"attributes of one node", 500, func(n int) hostile { return one(nil, repeated(5, message(nil, 1, []byte("a")), n)) }, "is not one that the operator has"},
		{"empty attributes", 500, func(n int) hostile { return one(nil, repeated(5, nil, n)) }, "is not one that the operator has"},
		{"subgraphs", 500, func(n int) hostile {
			inner := message(nil, 6, repeated(1, op("Relu", "a", "b").encode(), 3))
			return one(nil, repeated(5, inner, n))
		}, "is not one that the operator has"},
		{"nested subgraphs", 5, func(n int) hostile {
			var inner []byte
			for range n {
				inner = message(nil, 5, message(nil, 6, message(nil, 1, inner)))
			}
			return one(nil, inner)
		}, "is not one that the operator has"},
		{"floats of an attribute", 500, func(n int) hostile {
			return one(nil, message(nil, 5, message(nil, 7, make([]byte, 4*n))))
		}, "is not one that the operator has"},
		{"integers of an attribute", 500, func(n int) hostile {
			return one(nil, message(nil, 5, message(nil, 8, make([]byte, n))))
		}, "is not one that the operator has"},
		{"integers of an attribute, one by one", 500, func(n int) hostile {
			return one(nil, message(nil, 5, repeatedInts(8, n)))
		}, "is not one that the operator has"},
		{"values of a tensor, one by one", 500, func(n int) hostile {
			w := varint(varint(message(nil, 8, []byte("w")), 1, int64(n)), 2, int64(pb.Int32))
			return one(message(nil, 5, append(w, repeatedInts(5, n)...)), nil)
		}, ""},
		{"values of a tensor in pieces", 3000, func(n int) hostile {
			w := varint(varint(message(nil, 8, []byte("w")), 1, int64(n)), 2, int64(pb.Float))
			return one(message(nil, 5, append(w, repeated(4, make([]byte, 4), n)...)), nil)
		}, ""},
		{"groups", 500, func(n int) hostile {
			return one(slices.Concat(slices.Repeat([]byte{100<<3&0x7f | 3}, n), slices.Repeat([]byte{100<<3&0x7f | 4}, n)), nil)
		}, "groups"},
		{"metadata", 500, func(n int) hostile {
			h := one(nil, nil)
			for i := range n {
				h.model = message(h.model, 14, message(message(nil, 1, fmt.Append(nil, "k", i)), 2, []byte("value")))
			}
			return h
		}, ""},
		{"labels", 500, func(n int) hostile {
			b, _ := json.Marshal(make([]string, n))
			h := one(nil, nil)
			h.model = message(h.model, 14, message(message(nil, 1, []byte("labels")), 2, b))
			return h
		}, "labels for 8 outputs"},
		{"operator sets", 500, func(n int) hostile {
			h := one(nil, nil)
			h.model = append(h.model, repeated(8, varint(nil, 2, 13), n)...)
			return h
		}, ""},

		// Other files.
		{"tensors of one file that nobody reads", 10, func(n int) hostile {
			m := chain(1, func(_ int, from, to string) []testNode { return []testNode{op("Relu", from, to)} })
			return fromData(m, n, 1<<14)
		}, ""},
		{"tensors of one file", 10, func(n int) hostile {
			m := fan(n, func(i int, to string) []testNode { return []testNode{op("Neg", fmt.Sprint("e", i), to)} })
			return fromData(m, n, 1<<14)
		}, exceeds},
		{"empty tensors of one file", 10, func(n int) hostile {
			m := fan(n, func(i int, to string) []testNode { return []testNode{op("Neg", fmt.Sprint("e", i), to)} })
			return fromData(m, n, 0)
		}, "a constant is empty"},
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

// quantised makes a model of a convolution whose weights are computed of INT8.
func quantised(n int, typed bool) testModel {
	q := testTensor{name: "q", typ: pb.Int8, dims: []int{n, 2, 3, 3}, values: slices.Repeat([]float64{1, -1, 2}, n*6), typed: typed}
	m := testModel{input: image(2, 2, 2), inits: []testTensor{q, filled("scale", []int{1}, 0.5)}, output: "y"}
	m.nodes = []testNode{op("Cast", "q", "f", "to", int(pb.Float)), op("Sub", "f scale", "g"), op("Mul", "g scale", "h"), op("Conv", "x h", "y", "pads", []int{1, 1, 1, 1})}
	return m
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
