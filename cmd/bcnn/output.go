package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/text"
)

// output is where a command prints. It escapes what others wrote, such as names
// and labels, so that they cannot do anything to a terminal. It remembers the
// first error of writing, so that a command may print without looking and long
// jobs can stop.
type output struct {
	w   io.Writer
	err error
}

// Write writes text of the command's own.
func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	o.err = err
	return n, err
}

// printf prints the format as it is, and everything but numbers escaped.
func (o *output) printf(format string, args ...any) {
	fmt.Fprintf(o, format, escape(args)...)
}

func escape(args []any) []any {
	escaped := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case int, int64, float64:
			escaped[i] = arg
		default:
			escaped[i] = text.Escape(fmt.Sprint(arg))
		}
	}
	return escaped
}

// json writes one object on one line.
func (o *output) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	o.Write(append(text.EscapeJSON(b), '\n'))
	return o.err
}

// maxCell is the width of a cell that a column of a table grows to. The name of a
// step joins those of its layers, any number of them.
const maxCell = 80

// row is a row of a table: cells separated by tabs, with nothing in them that does
// not print.
type row string

// rowf makes a row, or some cells of one, as printf prints.
func rowf(format string, args ...any) row { return row(fmt.Sprintf(format, escape(args)...)) }

// table writes rows with aligned columns. Longer cells than maxCell are cut, but
// for those of the last column.
func (o *output) table(rows []row) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cells := strings.Split(string(r), "\t")
		for i := range cells[:len(cells)-1] {
			cells[i] = cut(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(o, strings.TrimRight(line, " \n")) // which keeps the error
	}
}

// cut shortens a text to maxCell characters.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxCell {
		return s
	}
	r := []rune(s)
	return string(r[:maxCell-1]) + "…"
}

// nameBytes returns a name for JSON, where its text is not enough to find the
// file again: the bytes of a name that is not UTF-8, else nil.
func nameBytes(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// report writes an error in one line, or each of the obstacles of an import in one.
func report(stderr io.Writer, err error) {
	for _, line := range errorLines(err) {
		fmt.Fprintln(stderr, "bcnn:", line)
	}
}

// oneLine returns the text of an error with the lines that drivers write joined,
// and what does not print escaped.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")); line != "" {
			lines = append(lines, line)
		}
	}
	return text.Escape(strings.Join(lines, "; "))
}
