package onnx

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// rewriteKinds are hostile files for what the importer looks for behind other
// nodes: sums that cancel, zeros in front of a sign, obstacles.
func rewriteKinds() []kind {
	two := filled("two", []int{1, 2, 1, 1}, 2)
	return []kind{
		{"obstacles", 100, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Log", from, to)} })
		}), "10000 nodes stand in the way"},
		{"obstacles of unknown dimensions", 100, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Twist", from, to)} })
		}), "nodes stand in the way"},
		{"obstacles that read many others", 20, models(func(n int) testModel {
			names := "x"
			return chain(n, func(i int, from, to string) []testNode {
				reads := names + " " + from
				if i < 20 {
					names += " " + to
				}
				return []testNode{op("Twist", reads, to)}
			})
		}), "nodes stand in the way"},
		{"an obstacle with many outputs", 100, models(func(n int) testModel {
			m := chain(1, func(_ int, from, to string) []testNode {
				var outs []string
				for i := range n {
					outs = append(outs, fmt.Sprint("o", i))
				}
				return []testNode{op("Twist", strings.Join([]string{"x", "x", "x"}, " "), strings.Join(outs, " ")), op("Relu", outs[n-1], to)}
			})
			return m
		}), "(Twist, index 0)"},
		{"steps at many thresholds", 15, models(func(n int) testModel {
			at := func(i int, from, to string) []testNode {
				return []testNode{
					op("Constant", "", to+"c", "value", number("", float64(i))), op("Greater", "x "+to+"c", to+"g"),
					op("Cast", to+"g", to+"a", "to", int(pb.Float)), op("Add", from+" "+to+"a", to),
				}
			}
			m := chain(n, at)
			m.nodes[3].in[0] = m.nodes[2].out[0] // not x
			return m
		}), ""},
		{"a step of many thresholds in many sums", 10, models(func(n int) testModel {
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
		}), exceeds},
		{"truth values that are joined", 30, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				return []testNode{op("Relu", to+"r", to+"s"), op("Greater", to+"s zero", to+"g"), op("And", from+" "+to+"g", to), op("Where", to+" zero two", to+"r")}
			}, two, number("zero", 0))
			for i := range n { // of what was chosen by the one before
				if i > 0 {
					m.nodes[4*i].in[0] = m.nodes[4*i-1].out[0]
				}
			}
			m.nodes[0].in[0] = "x"
			m.nodes[2].in[0] = m.nodes[1].out[0]
			m.output = m.nodes[4*n-1].out[0]
			return m
		}), ""},
		{"many dilated pools", 20, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("MaxPool", from, to, "kernel_shape", []int{2, 2}, "dilations", []int{2, 2}, "pads", []int{1, 1, 1, 1})}
			})
			m.input = image(2, 300, 300)
			return m
		}), ""},
		{"rows and columns that are gathered", 20, models(func(n int) testModel {
			places := make([]float64, 40)
			for i := range places {
				places[i] = float64(39 - i)
			}
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Transpose", from, to+"t", "perm", []int{2, 3, 0, 1}), op("GatherND", to+"t at", to+"g"), op("Transpose", to+"g", to, "perm", []int{2, 3, 0, 1})}
			}, rowsAndColumns([][]float64{places}, [][]float64{places}, false))
			m.inits[0].dims = []int{40, 40, 2}
			m.input = image(2, 40, 40)
			return m
		}), exceeds},
		{"a list that grows", 20, models(func(n int) testModel {
			m := chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					return []testNode{op("SequenceConstruct", "x", to)}
				}
				return []testNode{op("SequenceInsert", from+" x", to)}
			})
			m.nodes = append(m.nodes, op("ConcatFromSequence", m.output, "y", "axis", 1))
			m.output = "y"
			return m
		}), exceeds},
		{"many parts of constants", 20, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode {
				return []testNode{op("SplitToSequence", "list", to+"l"), op("SequenceAt", to+"l first", to)}
			}, ints("list", make([]float64, 100)...), ints("first", 0))
		}), exceeds},
		{"sums that cancel", 30, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Relu", from, to+"r"), op("Sub", to+"r "+from, to+"s"), op("Add", from+" "+to+"s", to)}
			})
		}), ""},
		{"sums that do not", 30, models(func(n int) testModel {
			return chain(n, func(i int, from, to string) []testNode {
				if i == 0 {
					return []testNode{op("Sub", "x two", to)}
				}
				return []testNode{op("Sub", from+" c", to)}
			}, two, weightsOf("c", 1, 2, 2, 1))
		}), ""},
		{"sums of long constants that are equal", 20, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode {
				return []testNode{op("Neg", "c", to+"n"), op("Neg", to+"n", to+"c"), op("Add", "c "+to+"n", to+"a"), op("Sub", to+"a "+to+"c", to)}
			}, weightsOf("c", 1<<16))
		}), exceeds},
		{"signs behind a long chain", 30, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode { return []testNode{op("Mul", from+" two", to)} }, filled("two", []int{1, 2, 1, 1}, 0.5))
			last := m.output
			for i := range n {
				to := fmt.Sprint("s", i)
				m.nodes = append(m.nodes, op("Sub", last+" two", to+"m"), op("Sign", to+"m", to))
				if i > 0 {
					m.nodes = append(m.nodes, op("Add", m.output+" "+to, to+"y"))
					to += "y"
				}
				m.output = to
			}
			return m
		}), ""},
		{"signs behind sums of sums", 20, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Sign", from, to+"s"), op("Mul", to+"s third", to+"t"), op("Add", to+"t "+to+"t", to+"u"), op("Add", to+"u "+to+"t", to)}
			}, number("third", 0.3))
		}), ""},
		{"signs of many channels", 10, models(func(n int) testModel {
			m := chain(1, func(_ int, from, to string) []testNode {
				return []testNode{op("Add", "x c", "a"), op("Mul", "a c", "b"), op("Sign", "b", to)}
			}, filled("c", []int{1, 100 * n}, 0.5))
			m.input.dims = []any{1, 100 * n}
			return m
		}), ""},
		{"constants that were expanded", 4, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Expand", "c shape", to+"e"), op("Add", from+" "+to+"e", to)}
			}, weightsOf("c", 1, 2, 1, 1), ints("shape", 1, 2, 2, 2))
		}), ""},
		{"reductions of a long list", 10, models(func(n int) testModel {
			m := fan(n, func(_ int, to string) []testNode { return []testNode{op("ReduceMax", "list", to, "keepdims", 1)} })
			return with(m, long("list", 1)...)
		}), exceeds},
		{"Tile of Tile", 3, models(func(n int) testModel {
			return fan(n, func(_ int, to string) []testNode {
				return []testNode{op("Tile", "c repeats", to+"a"), op("Tile", to+"a repeats", to)}
			}, weightsOf("c", 16, 16), ints("repeats", 32, 32))
		}), exceeds},
		{"Split into many", 10, models(func(n int) testModel {
			var outs []string
			for i := range n {
				outs = append(outs, fmt.Sprint("o", i))
			}
			return testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("c", 1<<12)}, nodes: []testNode{
				op("Split", "c", strings.Join(outs, " ")), op("ReduceMin", outs[0], "g"), op("Add", "x g", "y")}}
		}), ""},
		{"Concat of many", 10, models(func(n int) testModel {
			return testModel{input: image(2, 2, 2), output: "y", nodes: []testNode{op("Concat", strings.Repeat("x ", n), "y", "axis", 1)}}
		}), ""},
		{"joined with itself", 2, models(func(n int) testModel {
			m := chain(min(n, 60), func(_ int, from, to string) []testNode { return []testNode{op("Concat", from+" "+from, to, "axis", 1)} })
			return with(m, long("list", 0)...)
		}), "have more than"},
		{"channels picked by a long list", 10, models(func(n int) testModel {
			return with(fan(n, func(_ int, to string) []testNode {
				return []testNode{op("Gather", "x list", to+"g", "axis", 1), op("ReduceMax", to+"g", to, "axes", []int{2, 3})}
			}), long("list", 0)...)
		}), exceeds},
		{"channels of zeros", 10, models(func(n int) testModel {
			return chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Pad", from+" wide", to+"a"), op("Slice", to+"a at end axis", to)}
			}, ints("wide", 0, many, 0, 0, 0, 0, 0, 0), ints("at", many), ints("end", many+2), ints("axis", 1))
		}), exceeds},
		{"Split of a value into many", 10, models(func(n int) testModel {
			var outs []string
			for i := range n {
				outs = append(outs, fmt.Sprint("o", i))
			}
			return testModel{input: image(n, 2, 2), output: "y", nodes: []testNode{op("Split", "x", strings.Join(outs, " "), "axis", 1), op("Relu", outs[n-1], "y")}}
		}), ""},
		{"shuffles", 20, models(func(n int) testModel {
			m := chain(n, func(_ int, from, to string) []testNode {
				return []testNode{op("Reshape", from+" s", to+"a"), op("Transpose", to+"a", to+"b", perm(0, 2, 1, 3, 4)...), op("Reshape", to+"b r", to+"c"), op("Add", to+"c x", to)}
			}, ints("s", 0, 4, 16, 2, 2), ints("r", 0, 64, 2, 2))
			m.input = image(64, 2, 2)
			return m
		}), ""},
		{"signs behind a tree of joins", 20, models(func(n int) testModel {
			m := testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("w", 2, 128, 1, 1)}}
			last := "x"
			for range 6 {
				m.nodes = append(m.nodes, op("Concat", last+" "+last, last+"c", "axis", 1))
				last += "c"
			}
			m.nodes = append(m.nodes, op("Conv", last+" w", "y0"))
			for i := range n {
				s := fmt.Sprint("s", i)
				m.nodes = append(m.nodes, op("Sign", last, s), op("Conv", s+" w", s+"v"), op("Add", fmt.Sprint("y", i, " ", s, "v"), fmt.Sprint("y", i+1)))
			}
			m.output = fmt.Sprint("y", n)
			return m
		}), ""},
		{"slopes in front of a sign", 10, models(func(n int) testModel {
			m := chain(3, func(_ int, from, to string) []testNode { return []testNode{op("PRelu", from+" c", to)} }, filled("c", []int{1, 100 * n}, 0.5))
			m.nodes = append(m.nodes, op("Sign", m.output, "y"))
			m.input.dims, m.output = []any{1, 100 * n}, "y"
			return m
		}), ""},
		{"Max of many", 30, models(func(n int) testModel {
			return testModel{input: image(2, 2, 2), output: "y", inits: []testTensor{weightsOf("c", 1<<10)},
				nodes: []testNode{op("Max", strings.Repeat("c ", n), "a"), op("ReduceMax", "a", "b"), op("Add", "x b", "y")}}
		}), ""},
	}
}
