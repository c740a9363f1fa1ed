package simplify_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

var updateExamples = flag.Bool("update-examples", false, "write testdata/rules.txt")

// examples are the texts of testdata/rules.txt, which shows what each rule makes of a small network.
type examples struct {
	texts map[string]string // by name
	order []string
}

const (
	examplesFile = "testdata/rules.txt"
	examplesHead = `What the rules of simplify make of small networks. Written by

    go test ./bcnn/simplify -run TestRules -update-examples
`
)

func readExamples(t *testing.T) *examples {
	t.Helper()
	e := &examples{texts: map[string]string{}}
	if *updateExamples {
		t.Cleanup(func() {
			all := examplesHead
			for _, name := range e.order {
				all += "\n== " + name + "\n" + e.texts[name]
			}
			require.NoError(t, os.WriteFile(examplesFile, []byte(all), 0o644))
		})
		return e
	}
	file, err := os.ReadFile(examplesFile)
	require.NoError(t, err)
	for _, part := range strings.Split(string(file), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		e.texts[name] = strings.TrimSuffix(text, "\n") + "\n"
	}
	return e
}

// require checks the text of an example.
func (e *examples) require(t *testing.T, name, text string) {
	t.Helper()
	if *updateExamples {
		e.texts[name] = text
		e.order = append(e.order, name)
		return
	}
	require.Equal(t, e.texts[name], text, "-update-examples writes it")
}

// text shows a network, what it becomes, and what the rules say of it.
func text(t *testing.T, n, m *bcnn.Network, found []simplify.Finding) string {
	t.Helper()
	out := layers(t, n) + "becomes\n" + layers(t, m)
	for _, f := range found {
		out += fmt.Sprintf("%s, rule %s: %s\n", f.Layer, f.Rule, f.Text)
	}
	return out
}

// layers lists the layers of a network with their numbers.
func layers(t *testing.T, n *bcnn.Network) string {
	t.Helper()
	shapes, err := n.Shapes()
	require.NoError(t, err)
	var out strings.Builder
	for i, l := range n.Layers {
		var in []string
		for _, from := range l.Inputs {
			name := "input"
			if from > bcnn.NetworkInput {
				name = n.Layers[from].Name
			}
			in = append(in, name)
		}
		fmt.Fprintf(&out, "    %s = %s(%s)%s: %v\n", l.Name, l.Op.Kind(), strings.Join(in, ", "), numbers(l.Op), shapes[i])
	}
	return out.String()
}

// numbers describes the parameters of a layer.
func numbers(op bcnn.Op) string {
	switch op := op.(type) {
	case bcnn.Sign:
		return " " + op.Zero.String()
	case bcnn.Affine:
		return values(" ×", op.Scale) + values(" +", op.Bias)
	case bcnn.Quantize:
		return fmt.Sprintf(" %d to %d at%s", op.Low, op.Low+op.Levels-1, values("", op.Thresholds))
	case bcnn.Clip:
		return fmt.Sprintf(" %v to %v", op.Min, op.Max)
	case bcnn.PReLU:
		return values(" ×", op.Slope) + " below 0"
	case bcnn.Channels:
		return fmt.Sprintf(" %v", op.Index)
	case bcnn.Pixels:
		return fmt.Sprintf(" rows %v, columns %v, %v for -1", op.Rows, op.Cols, op.Fill)
	case bcnn.Conv2D:
		return fmt.Sprintf(" %d×%d%s, padding %d of %v%s", op.KH, op.KW, weights(op.Weights), op.Pad.Top, op.PadValue, values(", bias", op.Bias))
	case bcnn.Dense:
		return weights(op.Weights) + values(", bias", op.Bias)
	}
	return ""
}

func weights(w bcnn.Weights) string {
	switch {
	case w.Bits != nil:
		return ", weights of ±1"
	case w.Int8 != nil:
		return values(", weights of", w.Int8)
	}
	return values(", weights of", w.F32)
}

// values lists the different ones of some numbers, at most six.
func values[T int8 | float32](what string, list []T) string {
	if list == nil {
		return ""
	}
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	for i, v := range list {
		if i == 6 {
			return what + " …"
		}
		what += fmt.Sprintf(" %v", v)
	}
	return what
}
