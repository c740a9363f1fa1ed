// Package summary says what became of the layers of a network: which of them are binary,
// why others are not, and what that is worth.
package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Report is about the layers of a network and its plan.
type Report struct {
	Layers []Layer `json:"layers"` // those that multiply
	// FloatSteps are the steps without weights that compute in float32, by their kinds.
	FloatSteps []Steps `json:"float_steps"`
	// MACs are the multiplications for one image, and ByBits those of each precision.
	MACs       int64                `json:"macs"`
	BinaryMACs int64                `json:"binary_macs"`
	ByBits     plan.Multiplications `json:"macs_by_bits"`
	Shares     string               `json:"multiplications"` // ByBits in words
	// Float are the bytes of the weights as float32, Stored those in a model file, or in memory where
	// the network is too large for a file.
	Float       int64   `json:"float_bytes"`
	Stored      int64   `json:"stored_bytes"`
	Compression float64 `json:"compression"` // Float / Stored; 0 without weights
	// Tables are the bytes of other numbers in a model file, such as those of batch norms,
	// Metadata those of its text, and File all bytes of it; all are 0 where a network is too
	// large for a file.
	Tables   int64 `json:"table_bytes"`
	Metadata int64 `json:"metadata_bytes"`
	File     int64 `json:"file_bytes"`
	// Deviations are those of the network.
	Deviations []string `json:"deviations,omitempty"`
	// Warning says that little is computed with integers; empty otherwise.
	Warning string `json:"warning,omitempty"`
}

// Layer is a layer with weights, or a product of two layers.
type Layer struct {
	Name        string         `json:"name"`
	Kind        string         `json:"kind"`
	Precision   plan.Precision `json:"bits"`
	Words       string         `json:"precision"`           // Precision in words
	Products    int            `json:"products,omitempty"`  // of bits for each multiplication, where more than one
	FewZeros    int            `json:"few_zeros,omitempty"` // weights that are 0, which alone make it more than binary
	Params      int64          `json:"params"`
	MACs        int64          `json:"macs"`
	Float       int64          `json:"float_bytes"`
	Stored      int64          `json:"stored_bytes"`
	Compression float64        `json:"compression"`
	WhyFloat    string         `json:"why_float,omitempty"`
}

// Steps are so many steps of a kind.
type Steps struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// New reports on a network and the plan that it has been lowered to.
func New(net *bcnn.Network, p *plan.Plan) *Report {
	layers := plan.Summarize(net, p)
	r := &Report{Layers: []Layer{}, FloatSteps: []Steps{}, Deviations: net.Deviations, ByBits: plan.Count(layers)}
	r.MACs, r.BinaryMACs, r.Shares = r.ByBits.All(), r.ByBits.Of(plan.Binary), r.ByBits.String()
	size, sizeErr := modelfile.Size(net)
	for _, l := range layers {
		stored := l.BytesPacked
		if sizeErr == nil {
			stored = size.Weights[l.Layer]
		}
		products, zeros := 0, 0
		if l.Planes > 1 {
			products, zeros = l.Planes, l.FewZeros
		}
		r.Layers = append(r.Layers, Layer{
			Name: l.Layer, Kind: l.Kind, Precision: l.Precision, Words: l.Precision.String(), Products: products, FewZeros: zeros, Params: l.Params, MACs: l.MACs,
			Float: l.BytesFloat, Stored: stored, Compression: ratio(l.BytesFloat, stored), WhyFloat: l.WhyFloat,
		})
		r.Float += l.BytesFloat
		r.Stored += stored
	}
	r.Compression = ratio(r.Float, r.Stored)
	if sizeErr == nil {
		r.Tables, r.Metadata, r.File = size.Tensors-r.Stored, size.Metadata, size.Tensors+size.Metadata
	}
	for _, s := range p.Steps {
		switch s.Op.(type) {
		case *plan.Conv, *plan.MatMul, *plan.Flatten:
			continue
		}
		if p.Tensors[s.Out].DType != bcnn.Float32 {
			continue
		}
		i := slices.IndexFunc(r.FloatSteps, func(k Steps) bool { return k.Kind == s.Kind() })
		if i < 0 {
			i = len(r.FloatSteps)
			r.FloatSteps = append(r.FloatSteps, Steps{Kind: s.Kind()})
		}
		r.FloatSteps[i].Count++
	}
	if float := r.ByBits.Of(plan.Float); float == r.MACs {
		r.Warning = "no layer is binary or integer: nothing gets smaller or faster"
	} else if 2*float > r.MACs {
		r.Warning = "most multiplications are float32: " + r.Shares
	}
	return r
}

// CheckBinary returns an error if less than half of the multiplications are binary.
func (r *Report) CheckBinary() error {
	if 2*r.BinaryMACs < r.MACs || r.MACs == 0 {
		return fmt.Errorf("less than half of the multiplications are binary: %s", r.Shares)
	}
	return nil
}

// Table returns the layers as rows of cells, with a head, the sums, and what else is in the
// model file.
func (r *Report) Table() [][]string {
	rows := [][]string{{"layer", "operator", "precision", "multiplications", "", "float32 bytes", "", "stored bytes", "", "smaller", "why float"}}
	numbers := func(macs, float, stored int64, compression float64) []string {
		cells := []string{fmt.Sprint(macs), percent(macs, r.MACs), fmt.Sprint(float), percent(float, r.Float), fmt.Sprint(stored), percent(stored, r.Stored)}
		smaller := ""
		if float > 0 {
			smaller = fmt.Sprintf("%.1f times", compression)
		}
		return append(cells, smaller)
	}
	for _, l := range r.Layers {
		row := append([]string{l.Name, l.Kind, l.Words}, numbers(l.MACs, l.Float, l.Stored, l.Compression)...)
		rows = append(rows, append(row, l.WhyFloat))
	}
	rows = append(rows, append(append([]string{"all", "", ""}, numbers(r.MACs, r.Float, r.Stored, r.Compression)...), ""))
	for _, of := range []struct {
		name  string
		bytes int64
	}{{"other tables", r.Tables}, {"metadata", r.Metadata}, {"file", r.File}} {
		if r.File == 0 {
			break
		}
		row := make([]string, len(rows[0]))
		row[0], row[7] = of.name, fmt.Sprint(of.bytes)
		rows = append(rows, row)
	}
	return rows
}

// Lines returns what the table does not say. The warning is not among them: it belongs
// to the end.
func (r *Report) Lines() []string {
	var lines []string
	if len(r.Layers) > 0 {
		lines = append(lines, "multiplications: "+r.Shares)
	}
	if len(r.FloatSteps) > 0 {
		var kinds []string
		for _, s := range r.FloatSteps {
			kinds = append(kinds, fmt.Sprintf("%d %s", s.Count, s.Kind))
		}
		lines = append(lines, "steps without weights in float32: "+strings.Join(kinds, ", "))
	}
	var zeros []string
	for _, l := range r.Layers {
		if l.FewZeros > 0 {
			zeros = append(zeros, fmt.Sprintf("%s (%d)", l.Name, l.FewZeros))
		}
	}
	if len(zeros) > 0 {
		lines = append(lines, "weights of -1 and +1 with a few zeros, which double the binary products and take 8 times the bytes; Where(w >= 0, 1, -1) in the model avoids that: "+strings.Join(zeros, ", "))
	}
	for _, d := range r.Deviations {
		lines = append(lines, "deviates from the file: "+d)
	}
	return lines
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func percent(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*ratio(part, all)) }
