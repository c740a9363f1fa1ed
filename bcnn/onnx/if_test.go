package onnx

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// The nodes of the branch that a constant condition takes are part of the graph: the
// network is the one without If. What stands in the other branch does not matter.
func TestIf(t *testing.T) {
	inner := testModel{nodes: []testNode{op("Add", "a bias", "b")}, inits: []testTensor{floats("bias", []int{3, 1, 1}, 1, 2, 3)}, output: "b"}
	other := testModel{nodes: []testNode{op("LSTM", "a", "b2")}, output: "b2"}
	plain := testModel{
		input: image(3, 4, 4), inits: append(inner.inits, number("one", 1), number("two", 2)), output: "y",
		nodes: []testNode{op("Mul", "x two", "a"), inner.nodes[0], op("Relu", "b", "y")},
	}
	want, _, err := Decode(t.Context(), plain.encode(), Options{Name: "n"})
	require.NoError(t, err)
	for _, condition := range []bool{true, false} {
		for _, depth := range []int{1, 2, 8} {
			t.Run(fmt.Sprint(condition, depth), func(t *testing.T) {
				attrs, compare := []any{"then_branch", inner, "else_branch", other}, "Equal"
				if !condition {
					attrs, compare = []any{"then_branch", other, "else_branch", inner}, "Less"
				}
				out := "b"
				node := op("If", "c", "b1", attrs...)
				for k := range depth {
					out = fmt.Sprint("b", k+1)
					if k > 0 {
						branch := testModel{nodes: []testNode{node}, output: node.out[0]}
						node = op("If", "c", out, "then_branch", branch, "else_branch", branch)
					}
				}
				m := plain
				m.inits = plain.inits[1:]
				m.nodes = []testNode{op("Mul", "x two", "a"), op(compare, "one one", "c"), node, op("Relu", out, "y")}
				net, _, err := Decode(t.Context(), m.encode(), Options{Name: "n"})
				require.NoError(t, err)
				require.Len(t, net.Layers, len(want.Layers))
				for i, l := range want.Layers {
					require.Equal(t, l.Op, net.Layers[i].Op)
					require.Equal(t, l.Inputs, net.Layers[i].Inputs)
				}
			})
		}
	}
	// What is read in a branch alone is needed, and computed with.
	m := testModel{
		input: image(3, 4, 4), inits: []testTensor{number("one", 1)}, output: "y",
		nodes: []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("Softmax", "x", "s", "axis", 1),
			op("If", "c", "y", "then_branch", testModel{nodes: []testNode{op("Mul", "s x", "t")}, output: "t"})},
	}
	net, _, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, "mul", net.Layers[len(net.Layers)-1].Op.Kind())
}

// The names in a branch are its own: those of another If may be the same.
func TestBranchesOfSameNames(t *testing.T) {
	bias := func(name string, v float64) testTensor { return floats(name, []int{3, 1, 1}, v, 2*v, 3*v) }
	for name, branches := range map[string][2]testModel{
		"initialisers": {
			{nodes: []testNode{op("Add", "a k", "t")}, inits: []testTensor{bias("k", 1)}, output: "t"},
			{nodes: []testNode{op("Add", "b k", "t")}, inits: []testTensor{bias("k", 2)}, output: "t"},
		},
		"a node and an initialiser": {
			{nodes: []testNode{op("Relu", "a", "k"), op("Add", "k one", "t")}, output: "t"},
			{nodes: []testNode{op("Add", "b k", "t")}, inits: []testTensor{bias("k", 2)}, output: "t"},
		},
		"an initialiser and a node": {
			{nodes: []testNode{op("Add", "a k", "t")}, inits: []testTensor{bias("k", 1)}, output: "t"},
			{nodes: []testNode{op("Relu", "b", "k"), op("Add", "k one", "t")}, output: "t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{
				input: image(3, 4, 4), inits: []testTensor{number("one", 1)}, output: "y",
				nodes: []testNode{op("Cast", "one", "c", "to", int(pb.Bool)), op("Neg", "x", "a"),
					op("If", "c", "b", "then_branch", branches[0]), op("If", "c", "y", "then_branch", branches[1])},
			}
			got, _, err := Decode(t.Context(), m.encode(), Options{Name: "n"})
			require.NoError(t, err)
			// The same, written out.
			plain := m
			plain.nodes = m.nodes[1:2]
			for i, out := range []string{"b", "y"} {
				own := func(name string) string {
					if name == "k" || name == "t" {
						return fmt.Sprint(name, i)
					}
					return name
				}
				for _, n := range branches[i].nodes {
					n.in, n.out = slices.Clone(n.in), []string{own(n.out[0])}
					for k := range n.in {
						n.in[k] = own(n.in[k])
					}
					if n.out[0] == own("t") {
						n.out[0] = out
					}
					plain.nodes = append(plain.nodes, n)
				}
				for _, k := range branches[i].inits {
					k.name = own(k.name)
					plain.inits = append(plain.inits, k)
				}
			}
			want, _, err := Decode(t.Context(), plain.encode(), Options{Name: "n"})
			require.NoError(t, err)
			require.Len(t, got.Layers, len(want.Layers))
			for i, l := range want.Layers {
				require.Equal(t, l.Op, got.Layers[i].Op)
				require.Equal(t, l.Inputs, got.Layers[i].Inputs)
			}
		})
	}
}
