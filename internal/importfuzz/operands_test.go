package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// elsewhere are operators of ONNX that operands.py leaves out, with the reason.
var elsewhere = map[string]string{
	"BipolarQuant":       "of QONNX: quantizers.py",
	"Constant":           "around all others",
	"FMod":               "Mod with an attribute",
	"If":                 "has graphs, which are no attributes to draw",
	"ConcatFromSequence": "of sequences",
	"SequenceAt":         "of sequences",
	"SequenceConstruct":  "of sequences",
	"SequenceEmpty":      "of sequences",
	"SequenceErase":      "of sequences",
	"SequenceInsert":     "of sequences",
	"SequenceLength":     "of sequences",
	"SplitToSequence":    "of sequences",
	"Im2Col":             "of QONNX: has no other form in ONNX",
	"IntQuant":           "of QONNX: quantizers.py",
	"MultiThreshold":     "of QONNX: quantizers.py",
	"Quant":              "of QONNX: quantizers.py",
	"Trunc":              "of QONNX: quantizers.py",
}

// TestOperands sees that operands.py says of every operator of the importer what it takes: of
// others no attributes are drawn.
func TestOperands(t *testing.T) {
	drawn, err := os.ReadFile("operands.py")
	require.NoError(t, err)
	name := regexp.MustCompile(`"([A-Z][A-Za-z0-9]+)"`)
	known := map[string]bool{}
	for _, m := range name.FindAllSubmatch(drawn, -1) {
		known[string(m[1])] = true
	}
	key := regexp.MustCompile(`(?m)^\s*"([A-Z][A-Za-z0-9]+)":`)
	found := 0
	for _, file := range []string{"operators.go", "fold.go", "internal/eval/pointwise.go", "internal/eval/reduce.go"} {
		code, err := os.ReadFile(filepath.Join(testenv.Root(t), "bcnn", "onnx", filepath.FromSlash(file)))
		require.NoError(t, err)
		for _, m := range key.FindAllSubmatch(code, -1) {
			found++
			op := string(m[1])
			require.True(t, known[op] != (elsewhere[op] != ""), "%s of %s must be in operands.py, or in elsewhere with the reason", op, file)
		}
	}
	require.Greater(t, found, 150)
}
