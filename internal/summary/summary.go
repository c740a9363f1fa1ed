// Package summary says what became of the layers of a network: which of them are binary,
// why others are not, and what that is worth.
package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Report is about the layers of a network and its plan.
type Report struct {
	Layers []Layer `json:"layers"` // those that multiply
	// FloatSteps are the steps without weights that compute in float32, by their kinds.
	FloatSteps []Steps `json:"float_steps"`
	// MACs are the multiplications for one image; some of them are of ±1.
	MACs       int64 `json:"macs"`
	BinaryMACs int64 `json:"binary_macs"`
	// Int8MACs are those of bytes, levels of few bits aside, and Int16MACs those of bytes
	// and weights of 16 bits.
	Int8MACs  int64 `json:"int8_macs,omitempty"`
	Int16MACs int64 `json:"int16_macs,omitempty"`
	// Float are the bytes of the weights as float32, Stored those in a model file.
	Float       int64   `json:"float_bytes"`
	Stored      int64   `json:"stored_bytes"`
	Compression float64 `json:"compression"` // Float / Stored; 0 without weights
	// Deviations are those of the network.
	Deviations []string `json:"deviations,omitempty"`
	// Warning says that little is binary, or of bytes; empty otherwise.
	Warning string `json:"warning,omitempty"`
}

// Layer is a layer with weights, or a product of two layers.
type Layer struct {
	Name        string  `json:"name"`
	Kind        string  `json:"kind"`
	Binary      bool    `json:"binary"`
	Int8        bool    `json:"int8,omitempty"`      // products of bytes
	Int16       bool    `json:"int16,omitempty"`     // and weights of 16 bits
	Products    int     `json:"products,omitempty"`  // of bits for each multiplication, where more than one
	FewZeros    int     `json:"few_zeros,omitempty"` // weights that are 0, which alone make it more than binary
	Params      int64   `json:"params"`
	MACs        int64   `json:"macs"`
	Float       int64   `json:"float_bytes"`
	Stored      int64   `json:"stored_bytes"`
	Compression float64 `json:"compression"`
	WhyFloat    string  `json:"why_float,omitempty"`
}

// Steps are so many steps of a kind.
type Steps struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// New reports on a network and the plan that it has been lowered to.
func New(net *bcnn.Network, p *plan.Plan) *Report {
	r := &Report{Layers: []Layer{}, FloatSteps: []Steps{}, Deviations: net.Deviations}
	binary, bytes := false, false
	for _, l := range plan.Summarize(net, p) {
		products, zeros := 0, 0
		if l.Binary && l.Planes > 1 {
			products, zeros = l.Planes, l.FewZeros
		}
		r.Layers = append(r.Layers, Layer{
			Name: l.Layer, Kind: l.Kind, Products: products, Binary: l.Binary, Int8: l.Int8, Int16: l.Int16, FewZeros: zeros, Params: l.Params, MACs: l.MACs,
			Float: l.BytesFloat, Stored: l.BytesStored, Compression: ratio(l.BytesFloat, l.BytesStored), WhyFloat: l.WhyFloat,
		})
		r.MACs += l.MACs
		r.Float += l.BytesFloat
		r.Stored += l.BytesStored
		if l.Binary {
			binary = true
			r.BinaryMACs += l.MACs
		} else if l.Int16 {
			bytes = true
			r.Int16MACs += l.MACs
		} else if l.Int8 {
			bytes = true
			r.Int8MACs += l.MACs
		}
	}
	r.Compression = ratio(r.Float, r.Stored)
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
	switch {
	case !binary && !bytes:
		r.Warning = "no layer is binary: nothing gets smaller or faster"
	case 2*(r.BinaryMACs+r.Int8MACs+r.Int16MACs) < r.MACs:
		r.Warning = "only " + r.exact()
	}
	return r
}

// Precision says in a few words what the layer computes with.
func (l Layer) Precision() string {
	switch {
	case l.Products > 1:
		return fmt.Sprintf("low-bit (%d products)", l.Products)
	case l.Int8 && l.Binary:
		return "low-bit (bytes)"
	case l.Int16:
		return "16-bit"
	case l.Int8:
		return "8-bit"
	case l.Binary:
		return "binary"
	}
	return "float"
}

// Table returns the layers as rows of cells, with a head and the sums.
func (r *Report) Table() [][]string {
	rows := [][]string{{"layer", "operator", "weights", "multiplications", "", "float32 bytes", "", "stored bytes", "", "smaller", "why float"}}
	numbers := func(macs, float, stored int64, compression float64) []string {
		cells := []string{fmt.Sprint(macs), percent(macs, r.MACs), fmt.Sprint(float), percent(float, r.Float), fmt.Sprint(stored), percent(stored, r.Stored)}
		smaller := ""
		if float > 0 {
			smaller = fmt.Sprintf("%.1f times", compression)
		}
		return append(cells, smaller)
	}
	for _, l := range r.Layers {
		row := append([]string{l.Name, l.Kind, l.Precision()}, numbers(l.MACs, l.Float, l.Stored, l.Compression)...)
		rows = append(rows, append(row, l.WhyFloat))
	}
	return append(rows, append(append([]string{"all", "", ""}, numbers(r.MACs, r.Float, r.Stored, r.Compression)...), ""))
}

// Lines returns what the table does not say. The warning is not among them: it belongs
// to the end.
func (r *Report) Lines() []string {
	var lines []string
	if len(r.Layers) > 0 {
		lines = append(lines, r.exact())
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
		lines = append(lines, "weights of -1 and +1 but for a few that are 0, which double the products of bits and take 8 times the bytes; avoid that by Where(w >= 0, 1, -1) in the model: "+strings.Join(zeros, ", "))
	}
	for _, d := range r.Deviations {
		lines = append(lines, "deviates from the file: "+d)
	}
	return lines
}

// exact says how many multiplications are of integers.
func (r *Report) exact() string {
	text := percent(r.BinaryMACs, r.MACs) + " of the multiplications are binary"
	if r.Int8MACs > 0 {
		text += ", " + percent(r.Int8MACs, r.MACs) + " of 8 bits"
	}
	if r.Int16MACs > 0 {
		text += ", " + percent(r.Int16MACs, r.MACs) + " of bytes and 16 bits"
	}
	return text
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func percent(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*ratio(part, all)) }
