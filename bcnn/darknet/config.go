package darknet

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// section is a part of a description: [net], or a layer.
type section struct {
	number  int    // of the layer, from 0; −1 for [net]
	kind    string // between the brackets
	line    int
	options map[string]*option

	// inputs are the layers that it reads, −1 for the input of the network.
	inputs []int
	layer  layer
	needed bool // by an output
}

// option is a line of a section.
type option struct {
	value string
	line  int
	read  bool
	// other is another value that a later line has for it; Darknet takes the first.
	other     string
	otherLine int
}

// name is what the layer is called.
func (s *section) name() string { return fmt.Sprintf("layer_%02d", s.number) }

// What a section and an option cost besides their text, and a byte of text.
const (
	sectionUnits = 1024
	optionUnits  = 256
	textUnits    = 32
)

// netNumber is the number of [net].
const netNumber = -1

// decodeConfig reads a description: [net], and the layers. Spaces and tabs mean nothing
// anywhere, as Darknet takes them away.
func decodeConfig(cfg []byte, most int, b *budget.Budget) (net *section, layers []*section, err error) {
	defer try.Recover(&err)
	try.Check(b.Charge(textUnits * int64(len(cfg))))
	if bytes.IndexByte(cfg, 0) >= 0 {
		try.Failf("not a description of Darknet (.cfg), which is text: it has a zero byte")
	}
	var current *section
	number := 0
	for raw := range bytes.Lines(cfg) {
		number++
		line := stripped(raw)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			try.Check(b.Charge(sectionUnits))
			current = &section{kind: kindOf(line, number), line: number, options: map[string]*option{}}
			if net == nil {
				if current.kind != "net" && current.kind != "network" {
					try.Failf("line %d: the first section is [%s], want [net] or [network]", number, short(current.kind))
				}
				current.number = netNumber
				net = current
				continue
			}
			if len(layers) == most {
				try.Failf("it has more than %d sections; Limits.Layers allows more", most)
			}
			current.number = len(layers)
			layers = append(layers, current)
		case current == nil:
			try.Failf("line %d: %s stands before the first section", number, text.Quote(line))
		default:
			try.Check(b.Charge(optionUnits))
			current.add(line, number)
		}
	}
	switch {
	case net == nil:
		try.Failf("it has no sections")
	case len(layers) == 0:
		try.Failf("it has no layers behind [net]")
	}
	return net, layers, nil
}

// stripped returns a line without white space.
func stripped(line []byte) string {
	rest := make([]byte, 0, len(line))
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			rest = append(rest, c)
		}
	}
	return string(rest)
}

// kindOf returns the kind of the section that a line begins.
func kindOf(line string, number int) string {
	kind, rest, closed := strings.Cut(line[1:], "]")
	if !closed || rest != "" || kind == "" {
		try.Failf("line %d: %s, want the kind of a section in brackets alone", number, text.Quote(line))
	}
	return kind
}

// add adds an option.
func (s *section) add(line string, number int) {
	key, value, ok := strings.Cut(line, "=")
	if !ok || key == "" || value == "" {
		try.Failf("line %d: %s, want option = value", number, text.Quote(line))
	}
	o := s.options[key]
	switch {
	case o == nil:
		s.options[key] = &option{value: value, line: number}
	case o.other == "" && o.value != value:
		o.other, o.otherLine = value, number
	}
}

// short returns what a file calls something, cut where that is too long for an error.
func short(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "…"
	}
	return text.Escape(s)
}
