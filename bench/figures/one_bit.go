package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/chart"
)

// front is what one_bit.json has, which bench/engines/one_bit.py writes: networks of one bit in bcnn
// beside networks of eight in other engines.
type front struct {
	Processor, Date string
	Rows            []network
}

// network is a network in an engine, on the processor that an instruction set of bcnn stands for.
type network struct {
	Network, Engine, ISA string
	Bits                 int
	Top1                 *float64 // per cent on ImageNet, as published; nil where nobody has said
	Ms                   float64
	File, Memory         float64 // bytes
}

// processors are what the instruction sets stand for.
var processors = []struct{ isa, name string }{
	{"avx512amx", "AVX-512 and AMX"}, {"avx512vpopcnt", "AVX-512"}, {"avx2", "AVX2"},
}

// oneBit returns the page and the chart of one_bit.json, by name.
func oneBit(data []byte, read func(string) ([]byte, error)) (map[string][]byte, error) {
	const page, picture = "docs/when-one-bit-pays.md", "docs/images/one-bit.svg"
	var f front
	if err := decode("one_bit.json", data, &f); err != nil {
		return nil, err
	}
	text, err := withTable(page, "one_bit.json", f.table(), read)
	if err != nil {
		return nil, err
	}
	var drawn bytes.Buffer
	if err := chart.WriteSVG(&drawn, f.charts()); err != nil {
		return nil, err
	}
	return map[string][]byte{page: text, picture: drawn.Bytes()}, nil
}

// table returns a line for each network and engine, the most accurate first.
func (f *front) table() string {
	var b strings.Builder
	b.WriteString("| network | top-1, % | bits | engine | file, MB | memory, MB |")
	for _, p := range processors {
		fmt.Fprintf(&b, " %s, ms |", p.name)
	}
	fmt.Fprintf(&b, "\n|---|---|---|---|---|---|%s\n", strings.Repeat("---|", len(processors)))
	for _, r := range f.of(processors[0].isa) {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %.1f | %.0f |", r.Network, r.accuracy(), r.Bits, r.Engine, r.File/1e6, r.Memory/1e6)
		for _, p := range processors {
			for _, other := range f.Rows {
				if other.Network == r.Network && other.Engine == r.Engine && other.ISA == p.isa {
					fmt.Fprintf(&b, " %.2f |", other.Ms)
				}
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s, %s.\n", f.Processor, f.Date)
	return b.String()
}

// charts returns a chart for each processor, of the fastest engine for each network.
func (f *front) charts() (all []chart.Chart) {
	for _, p := range processors {
		panel := chart.Panel{}
		rows := f.of(p.isa)
		for _, r := range rows {
			if r.Top1 == nil || slices.ContainsFunc(rows, func(o network) bool { return o.Network == r.Network && o.Ms < r.Ms }) {
				continue
			}
			kind := fmt.Sprintf("%d bits, %s", r.Bits, r.Engine)
			if r.Bits == 1 {
				kind = "1 bit, " + r.Engine
			}
			panel.Bars = append(panel.Bars, chart.Bar{
				Label: fmt.Sprintf("%s, %.1f %%", r.Network, *r.Top1), Note: fmt.Sprintf("%.2f ms", r.Ms),
				Parts: []chart.Part{part(r.Ms, kind)},
			})
		}
		all = append(all, chart.Chart{Title: p.name, Axis: "ms", Panels: []chart.Panel{panel}})
	}
	return all
}

// of returns the rows of a processor, the most accurate first.
func (f *front) of(isa string) (rows []network) {
	for _, r := range f.Rows {
		if r.ISA == isa {
			rows = append(rows, r)
		}
	}
	accuracy := func(r network) float64 {
		if r.Top1 == nil {
			return 0
		}
		return *r.Top1
	}
	slices.SortStableFunc(rows, func(a, b network) int { return cmp.Compare(accuracy(b), accuracy(a)) })
	return rows
}

// accuracy returns the accuracy as it stands in a table.
func (r network) accuracy() string {
	if r.Top1 == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *r.Top1)
}
