package npy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// maxDims is the number of dimensions that NumPy allows.
const maxDims = 64

// header describes an array.
type header struct {
	typ       dtype
	bigEndian bool
	fortran   bool // the first dimension runs fastest
	shape     []int
}

// bytes returns what the elements take.
func (h *header) bytes() (int64, error) {
	n := int64(h.typ.size)
	if slices.Contains(h.shape, 0) {
		return 0, nil
	}
	for _, d := range h.shape {
		if int64(d) > math.MaxInt64/n {
			return 0, fmt.Errorf("an array %v of %v takes more than %d bytes", h.shape, h.typ, int64(math.MaxInt64))
		}
		n *= int64(d)
	}
	return n, nil
}

// parseHeader reads the dictionary of the three keys, a literal of Python.
func parseHeader(s string) (*header, error) {
	p := &parser{rest: strings.TrimRight(s, " \n")}
	h := &header{}
	seen := map[string]bool{}
	p.expect('{')
	for p.err == nil && !p.accept('}') {
		key := p.string()
		p.expect(':')
		if seen[key] {
			p.fail("the key %s occurs twice", text.Quote(key))
		}
		seen[key] = true
		switch key {
		case "descr":
			if p.peek() == '[' {
				return nil, errors.New("record arrays are not supported")
			}
			descr := p.string()
			if p.err == nil {
				p.err = h.parseType(descr)
			}
		case "fortran_order":
			h.fortran = p.bool()
		case "shape":
			h.shape = p.shape()
		default:
			p.fail("unknown key %s", text.Quote(key))
		}
		if !p.accept(',') && p.peek() != '}' {
			p.fail("no comma")
		}
	}
	if p.err == nil && p.rest != "" {
		p.fail("%s after the end", text.Quote(p.rest))
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("it lacks one of descr, fortran_order and shape")
	}
	return h, p.err
}

// parseType reads a type such as <f4.
func (h *header) parseType(s string) error {
	for _, t := range []dtype{
		{'f', 2}, {'f', 4}, {'f', 8}, {'b', 1},
		{'i', 1}, {'i', 2}, {'i', 4}, {'i', 8}, {'u', 1}, {'u', 2}, {'u', 4}, {'u', 8},
	} {
		order, rest := "", s
		if len(s) > 0 {
			order, rest = s[:1], s[1:]
		}
		if rest != fmt.Sprintf("%c%d", t.kind, t.size) || !strings.Contains("<>|", order) || order == "|" && t.size > 1 {
			continue
		}
		h.typ, h.bigEndian = t, order == ">" && t.size > 1
		return nil
	}
	return fmt.Errorf("elements of type %s are not supported, want bool, integers or floats of 16 to 64 bits", text.Quote(s))
}

// parser takes pieces from the front of a text. The first error stays.
type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// peek returns the next character behind spaces, 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.fail("no %q", c)
	}
}

// string takes a literal without escapes.
func (p *parser) string() string {
	quote := p.peek()
	if quote != '\'' && quote != '"' {
		p.fail("no quoted name")
		return ""
	}
	s, rest, ok := strings.Cut(p.rest[1:], string(rune(quote)))
	if !ok || strings.Contains(s, `\`) {
		p.fail("no quoted name")
		return ""
	}
	p.rest = rest
	return s
}

func (p *parser) bool() bool {
	p.peek()
	for word, v := range map[string]bool{"True": true, "False": false} {
		if rest, ok := strings.CutPrefix(p.rest, word); ok {
			p.rest = rest
			return v
		}
	}
	p.fail("fortran_order is neither True nor False")
	return false
}

// shape takes a tuple of numbers.
func (p *parser) shape() []int {
	shape := []int{}
	p.expect('(')
	for p.err == nil && !p.accept(')') {
		p.peek()
		digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			p.fail("a dimension is not a number that fits")
			break
		}
		p.rest = strings.TrimPrefix(p.rest[len(digits):], "L") // of Python 2
		shape = append(shape, n)
		if len(shape) > maxDims {
			p.fail("more than %d dimensions", maxDims)
		}
		if !p.accept(',') && (p.peek() != ')' || len(shape) == 1) {
			p.fail("the shape is not a tuple")
		}
	}
	return shape
}
