package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A panic in the import of an operator is an error that names the node, in whichever branch it lies
// and whatever stands in front of it.
func TestPanic(t *testing.T) {
	const domain = "test.panics"
	handlers[domain] = map[string]func(*importer, *pb.Node) build.Operand{
		"Beyond": func(_ *importer, n *pb.Node) build.Operand {
			return build.Operand{Constant: nil, Value: []*build.Value{}[len(n.Inputs)]}
		},
	}
	defer delete(handlers, domain)
	branch := testModel{nodes: []testNode{op(domain+"/Beyond", "x", "z")}, output: "z"}
	for name, nodes := range map[string][]testNode{
		"alone":              {op(domain+"/Beyond", "x", "y")},
		"in a branch":        {op("Cast", "one", "c", "to", int(pb.Bool)), op("If", "c", "y", "then_branch", branch)},
		"behind an obstacle": {op("Greater", "x list", "a"), op(domain+"/Beyond", "a", "y")},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 4), output: "y", inits: []testTensor{number("one", 1), floats("list", []int{7}, make([]float64, 7)...)}, nodes: nodes}
			net, report, err := Decode(t.Context(), m.encode(), Options{})
			require.ErrorIs(t, err, try.ErrPanic)
			require.Nil(t, net)
			require.Nil(t, report)
			require.ErrorContains(t, err, "test.panics.Beyond, index ")
			require.ErrorContains(t, err, "panic_test.go")
		})
	}
}
