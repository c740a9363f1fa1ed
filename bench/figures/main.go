// The command figures writes the tables of pages, and charts of them: what engines.json says about
// the speed of bcnn beside that of other engines, for docs/performance.md, and what photos.json
// says about accuracy by the number of photos, for docs/photos.md, and what one_bit.json says about
// networks of one bit and of eight, for docs/when-one-bit-pays.md. Figures stand in the files by
// hand, but for the last, which bench/engines/one_bit.py writes; the pages tell how they were
// measured.
//
//	go run ./bench/figures
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/internal/chart"
	"github.com/bitcnn/bitcnn/internal/files"
)

//go:embed engines.json
var engines []byte

//go:embed photos.json
var photos []byte

//go:embed one_bit.json
var bits []byte

func main() {
	read := func(name string) ([]byte, error) { return files.ReadAll(name, 1<<20) }
	written, err := pages(read)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if err == nil {
			err = files.Replace(name, func(w io.Writer) error {
				_, err := w.Write(written[name])
				return err
			})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// pages returns all pages and charts, by name.
func pages(read func(string) ([]byte, error)) (map[string][]byte, error) {
	written := map[string][]byte{}
	for _, of := range []func() (map[string][]byte, error){
		func() (map[string][]byte, error) { return speed(engines, read) },
		func() (map[string][]byte, error) { return accuracy(photos, read) },
		func() (map[string][]byte, error) { return oneBit(bits, read) },
	} {
		more, err := of()
		if err != nil {
			return nil, err
		}
		maps.Copy(written, more)
	}
	return written, nil
}

// figures is what engines.json has.
type figures struct {
	Engines []string // columns of the table
	Rows    []row
	Notes   []string // each begins with its mark
	Charts  []struct {
		File, Title, Machine string
		Networks             []string
	}
}

// row is a network on a machine.
type row struct {
	Network, Machine string
	Ms               map[string]string // milliseconds by engine, with the mark of a note behind a space
}

// speed returns the page and the charts of engines.json, by name.
func speed(data []byte, read func(string) ([]byte, error)) (map[string][]byte, error) {
	const page = "docs/performance.md"
	var f figures
	if err := decode("engines.json", data, &f); err != nil {
		return nil, err
	}
	text, err := withTable(page, "engines.json", f.table(), read)
	if err != nil {
		return nil, err
	}
	written := map[string][]byte{page: text}
	for _, c := range f.Charts {
		drawn := chart.Chart{Title: c.Title, Axis: "ms"}
		marks := map[string]bool{}
		for _, network := range c.Networks {
			i := slices.IndexFunc(f.Rows, func(r row) bool { return r.Network == network && r.Machine == c.Machine })
			if i < 0 {
				return nil, fmt.Errorf("engines.json: no row has %s on %s", network, c.Machine)
			}
			panel, err := f.panel(f.Rows[i], marks)
			if err != nil {
				return nil, err
			}
			drawn.Panels = append(drawn.Panels, panel)
		}
		for _, note := range f.Notes {
			if mark, _, _ := strings.Cut(note, " "); marks[mark] {
				drawn.Footer = append(drawn.Footer, note)
			}
		}
		if written[c.File], err = svg(drawn); err != nil {
			return nil, err
		}
	}
	return written, nil
}

func decode(name string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func svg(c chart.Chart) ([]byte, error) {
	var b bytes.Buffer
	err := chart.WriteSVG(&b, []chart.Chart{c})
	return b.Bytes(), err
}

// panel returns the bars of a row, and adds the marks of its notes.
func (f *figures) panel(r row, marks map[string]bool) (chart.Panel, error) {
	panel := chart.Panel{Title: strings.Trim(r.Network, "`")}
	for _, engine := range f.Engines {
		figure, ok := r.Ms[engine]
		if !ok {
			continue
		}
		number, mark, _ := strings.Cut(figure, " ")
		ms, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return panel, fmt.Errorf("engines.json: %s, %s: %q is no number that a bar can show", r.Network, engine, figure)
		}
		if mark != "" {
			marks[mark] = true
		}
		kind := "others"
		if engine == "bcnn" {
			kind = engine
		}
		panel.Bars = append(panel.Bars, chart.Bar{Label: engine, Note: figure, Parts: []chart.Part{part(ms, kind)}})
	}
	return panel, nil
}

// table returns the table in Markdown, with its notes.
func (f *figures) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| network or layer | machine | %s |\n|---|---%s|\n", strings.Join(f.Engines, " | "), strings.Repeat("|---", len(f.Engines)))
	for _, r := range f.Rows {
		fmt.Fprintf(&b, "| %s | %s |", r.Network, r.Machine)
		for _, engine := range f.Engines {
			figure := r.Ms[engine]
			if figure == "" {
				figure = "–"
			}
			fmt.Fprintf(&b, " %s |", figure)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(f.Notes, " "))
	return b.String()
}

// withTable returns a page with a table between its marks.
func withTable(page, source, table string, read func(string) ([]byte, error)) ([]byte, error) {
	text, err := read(page)
	if err != nil {
		return nil, err
	}
	first, last := fmt.Sprintf("<!-- bench/figures/%s, by go run ./bench/figures -->\n", source), "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(text), first)
	_, after, ended := strings.Cut(rest, last)
	if !ok || !ended {
		return nil, fmt.Errorf("%s has no table between %q and %q", page, first, last)
	}
	return []byte(before + first + "\n" + table + "\n" + last + after), nil
}

// colours are those of kinds in all figures.
var colours = map[string]string{
	"bcnn": chart.Palette[0], "1 bit, bcnn": chart.Palette[0], "others": chart.Palette[1],
	"8 bits, OpenVINO": chart.Palette[2], "8 bits, ONNX Runtime": chart.Palette[3], "8 bits, bcnn": chart.Palette[4],
}

// part is a part of a bar.
func part(length float64, kind string) chart.Part {
	return chart.Part{Length: length, Kind: kind, Colour: colours[kind]}
}
