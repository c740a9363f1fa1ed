package main

import (
	"errors"
	"math"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/internal/summary"
	"github.com/bitcnn/bitcnn/internal/text"
)

// conversion is the object of convert --json.
type conversion struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	*summary.Report
	// Of an ONNX or TensorFlow Lite model.
	kind         string         // what its nodes are called
	Nodes        int            `json:"nodes,omitempty"`
	Folded       int            `json:"folded,omitempty"`
	Cancelled    []string       `json:"cancelled,omitempty"`
	Zeros        []changedZero  `json:"zeros,omitempty"`
	Ternary      []changedZero  `json:"ternary,omitempty"`
	NearlyBinary []nearlyBinary `json:"nearly_binary,omitempty"`
	Rounded      []roundedLayer `json:"rounded,omitempty"`
	Findings     []finding      `json:"findings,omitempty"`
}

type roundedLayer struct {
	Layer  string  `json:"layer"`
	Bits   int     `json:"bits"`
	Weight float64 `json:"weight"`
	Output float64 `json:"output"`
}

type changedZero struct {
	Node     string `json:"node"`
	Frequent bool   `json:"frequent"`
}

type nearlyBinary struct {
	Layer     string  `json:"layer"`
	Deviation float64 `json:"deviation"`
	Taken     bool    `json:"taken"`
}

// finding is what a rule of package simplify has found.
type finding struct {
	Layer     string  `json:"layer"`
	Rule      string  `json:"rule"`
	Text      string  `json:"text"`
	Deviation float64 `json:"deviation,omitempty"`
	Nearly    bool    `json:"nearly,omitempty"`
}

// ofONNX adds what the import of an ONNX model says.
func (c *conversion) ofONNX(nodes *onnx.Report) {
	c.kind, c.Nodes, c.Folded, c.Cancelled = "ONNX nodes", nodes.Nodes, len(nodes.Folded), nodes.Cancelled
	for _, z := range nodes.Zeros {
		c.Zeros = append(c.Zeros, changedZero(z))
	}
	for _, z := range nodes.Ternary {
		c.Ternary = append(c.Ternary, changedZero(z))
	}
	for _, n := range nodes.NearlyBinary {
		c.NearlyBinary = append(c.NearlyBinary, nearlyBinary(n))
	}
}

// ofTFLite adds what the import of a TensorFlow Lite model says.
func (c *conversion) ofTFLite(operators *tflite.Report) {
	c.kind, c.Nodes, c.Folded = "TensorFlow Lite operators", operators.Operators, operators.Folded
}

func (c *conversion) print(out *output) {
	printReport(out, c.Report)
	if c.Nodes > 0 {
		out.printf("%d %s, of which %d were fused or constant-folded\n", c.Nodes, c.kind, c.Folded)
	}
	if n := len(c.Cancelled); n > 0 {
		out.printf("%s with parts that cancel, as in x + (f(x) - x), simplified: %s\n",
			text.Count(n, "sum"), strings.Join(c.Cancelled, ", "))
	}
	for _, z := range c.Zeros {
		often := ""
		if z.Frequent {
			often = ", which is frequent in its input: this changes what the network computes"
		}
		out.printf("%s: --sign-zero changes its result for 0%s\n", z.Node, often)
	}
	for _, often := range []bool{false, true} {
		var signs []string
		for _, z := range c.Ternary {
			if z.Frequent == often {
				signs = append(signs, z.Node)
			}
		}
		options := "--sign-zero plus or minus"
		if often {
			options += " with --override-zeros"
		}
		if n := len(signs); n > 0 {
			out.printf("%s of three values (-1, 0, +1): %s\n"+
				"layers that read one are 2-bit, twice the work of binary ones; Where(x >= 0, 1, -1) in the model, or %s, makes them binary, which changes what the network computes\n",
				text.Count(n, "sign"), strings.Join(signs, ", "), options)
		}
	}
	for _, n := range c.NearlyBinary {
		if n.Taken {
			out.printf("%s: its weights differ from ±α, or multiples of it, by up to %.2g of α, and are treated as such\n", n.Layer, n.Deviation)
		} else {
			out.printf("%s: its weights differ from ±α, or multiples of it, by only %.2g of α; --weight-tolerance %.0e accepts them\n",
				n.Layer, n.Deviation, math.Pow(10, math.Ceil(math.Log10(n.Deviation))))
		}
	}
	for _, r := range c.Rounded {
		out.printf("%s: --first-weights rounded its weights to %d-bit integers times a scale: weights change by up to %.2g of the largest in their filter, outputs by at most %.2g of the largest possible\n",
			r.Layer, r.Bits, r.Weight, r.Output)
	}
	for _, f := range c.Findings {
		out.printf("%s: %s (rule %s)\n", f.Layer, f.Text, f.Rule)
	}
	out.printf("%s -> %s, %d bytes\n", c.Input, c.Output, c.File)
	printWarning(out, c.Report)
}

// printReport prints what became of the layers.
func printReport(out *output, r *summary.Report) {
	var rows []row
	for _, cells := range r.Table() {
		var line []string
		for _, cell := range cells {
			line = append(line, string(rowf("%s", cell)))
		}
		rows = append(rows, row(strings.Join(line, "\t")))
	}
	out.table(rows)
	for _, line := range r.Lines() {
		out.printf("%s\n", line)
	}
}

// printWarning says at the end of a report that little is computed with integers.
func printWarning(out *output, r *summary.Report) {
	if r.Warning != "" {
		out.printf("WARNING: %s\n", r.Warning)
	}
}

// errorLines returns the text of an error: one line, or for obstacles of an import
// one each, with what to do in flags of convert.
func errorLines(err error) []string {
	var list *bcnn.ObstaclesError
	if !errors.As(err, &list) {
		return []string{oneLine(err)}
	}
	file := strings.TrimSuffix(err.Error(), list.Error())
	var lines []string
	for _, o := range list.Obstacles {
		advice := o.Advice
		switch o.Option {
		case "InputShape":
			advice = "give its size with 'bcnn convert --shape'"
		case "SignOfZero":
			advice = "export the sign as Where(x >= 0, 1, -1), or choose with 'bcnn convert --sign-zero plus' or minus"
		case "OverrideZeros":
			advice = "export the sign as Where(x >= 0, 1, -1) if that is what was trained, or use 'bcnn convert --override-zeros', which changes what the network computes"
		}
		lines = append(lines, text.Escape(file+o.Text(advice)))
	}
	return lines
}
