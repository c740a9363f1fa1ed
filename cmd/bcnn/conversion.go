package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/internal/text"
)

// conversion is the object of convert --json.
type conversion struct {
	Input  string           `json:"input"`
	Output string           `json:"output"`
	Bytes  int64            `json:"bytes"`
	Layers []convertedLayer `json:"layers"`
	// MACs are the multiplications for one image; some of them are of ±1.
	MACs       int64 `json:"macs"`
	BinaryMACs int64 `json:"binary_macs"`
	Float      int64 `json:"float_bytes"`
	Stored     int64 `json:"stored_bytes"`
	// Warning says that little became binary; empty otherwise.
	Warning string `json:"warning,omitempty"`
	// Of an ONNX model.
	Nodes        int            `json:"nodes,omitempty"`
	Folded       int            `json:"folded,omitempty"`
	Cancelled    []string       `json:"cancelled,omitempty"`
	Zeros        []changedZero  `json:"zeros,omitempty"`
	NearlyBinary []nearlyBinary `json:"nearly_binary,omitempty"`
}

type convertedLayer struct {
	Name string `json:"name"`
	layerBytes
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

// newConversion reports on a network that was made of in. nodes is nil unless that
// was an ONNX model.
func newConversion(in, out string, net *bcnn.Network, plan *bcnn.Plan, nodes *onnx.Report) *conversion {
	c := &conversion{Input: in, Output: out, Layers: []convertedLayer{}}
	binary := 0
	for _, l := range summarize(net, plan) {
		c.Layers = append(c.Layers, convertedLayer{l.layer, l})
		c.MACs += l.MACs
		c.Float += l.Float
		c.Stored += l.Stored
		if l.Binary {
			binary++
			c.BinaryMACs += l.MACs
		}
	}
	switch {
	case binary == 0:
		c.Warning = "no layer is binary: nothing gets smaller or faster"
	case 2*c.BinaryMACs < c.MACs:
		c.Warning = fmt.Sprintf("only %.1f %% of the multiplications are binary", 100*float64(c.BinaryMACs)/float64(c.MACs))
	}
	if nodes == nil {
		return c
	}
	c.Nodes, c.Folded, c.Cancelled = nodes.Nodes, len(nodes.Folded), nodes.Cancelled
	for _, z := range nodes.Zeros {
		c.Zeros = append(c.Zeros, changedZero(z))
	}
	for _, n := range nodes.NearlyBinary {
		c.NearlyBinary = append(c.NearlyBinary, nearlyBinary(n))
	}
	return c
}

func (c *conversion) print(out *output) {
	rows := []row{"layer\tweights\tfloat32 bytes\tstored bytes\twhy float"}
	for _, l := range c.Layers {
		rows = append(rows, rowf("%s\t%s\t%d\t%d\t%s", l.Name, precision(l.Binary), l.Float, l.Stored, l.WhyFloat))
	}
	out.table(append(rows, rowf("all\t\t%d\t%d\t", c.Float, c.Stored)))
	if c.Nodes > 0 {
		out.printf("%d ONNX nodes, %d of which became part of another layer or were constant\n", c.Nodes, c.Folded)
	}
	if n := len(c.Cancelled); n > 0 {
		out.printf("%s with parts that cancel, as in x + (f(x) - x), taken as what is left: %s\n",
			quantity(n, "sum", "sums"), strings.Join(c.Cancelled, ", "))
	}
	for _, z := range c.Zeros {
		often := ""
		if z.Frequent {
			often = ", which its input often is: another network"
		}
		out.printf("%s: --sign-zero changes what it gives for 0%s\n", z.Node, often)
	}
	for _, n := range c.NearlyBinary {
		if n.Taken {
			out.printf("%s: its weights differ from ±α by up to %.2g of α, and are taken as ±α\n", n.Layer, n.Deviation)
		} else {
			out.printf("%s: its weights differ from ±α by only %.2g of α; --weight-tolerance %.0e takes them as ±α\n",
				n.Layer, n.Deviation, math.Pow(10, math.Ceil(math.Log10(n.Deviation))))
		}
	}
	out.printf("%s -> %s, %d bytes\n", c.Input, c.Output, c.Bytes)
	if c.Warning != "" {
		out.printf("WARNING: %s\n", c.Warning)
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
			advice = "export the sign as Where(x >= 0, 1, -1) if that is what was trained, or accept the other network with 'bcnn convert --override-zeros'"
		}
		lines = append(lines, text.Escape(file+o.Text(advice)))
	}
	return lines
}
