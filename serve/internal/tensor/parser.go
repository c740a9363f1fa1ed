package tensor

import (
	"context"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/internal/text"
)

const (
	maxDepth = 128 // of arrays and objects within each other: a tensor has fewer dimensions
	piece    = 64 << 10
)

// parser reads JSON as RFC 8259 has it, once from the beginning to the end, and copies nothing. Package
// encoding/json goes over values several times, and cannot be called off: seconds for a body of 32 MiB.
type parser struct {
	ctx  context.Context
	json []byte
	at   int
	look int // where the context is looked at again
}

// errEnd is the error of JSON that ends too early.
var errEnd = errors.New("the JSON of the request ends too early")

// wrong is the error of a byte that cannot be where it is.
func (p *parser) wrong() error {
	if p.at >= len(p.json) {
		return errEnd
	}
	return fmt.Errorf("the request is not valid JSON: %s at byte %d",
		text.Quote(string(p.json[p.at:min(len(p.json), p.at+1)])), p.at)
}

// next returns the next byte that is no space, 0 at the end.
func (p *parser) next() byte {
	for ; p.at < len(p.json); p.at++ {
		switch c := p.json[p.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// byte reads a byte that has to come, behind spaces.
func (p *parser) byte(want byte) error {
	if p.next() != want {
		return p.wrong()
	}
	p.at++
	return nil
}

// object reads an object. It calls member behind the colon of each, to read the value.
func (p *parser) object(member func(key []byte) error) error {
	return p.list('{', '}', func() error {
		key, err := p.key()
		if err != nil {
			return err
		}
		return member(key)
	})
}

// array reads an array. It calls element to read each.
func (p *parser) array(element func() error) error { return p.list('[', ']', element) }

func (p *parser) list(open, shut byte, element func() error) error {
	if err := p.byte(open); err != nil {
		return err
	}
	if p.next() == shut {
		p.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch p.next() {
		case ',':
			p.at++
		case shut:
			p.at++
			return nil
		default:
			return p.wrong()
		}
	}
}

// value reads a value and returns it as it stands.
func (p *parser) value() ([]byte, error) {
	p.next()
	from := p.at
	var shuts [maxDepth]byte // of what is open
	depth := 0
	for {
		if p.at >= p.look {
			if err := p.ctx.Err(); err != nil {
				return nil, err
			}
			p.look = p.at + piece
		}
		// A value, or what opens one.
		switch c := p.next(); c {
		case '[', '{':
			if depth == maxDepth {
				return nil, fmt.Errorf("the JSON of the request has more than %d arrays or objects within each other", maxDepth)
			}
			shuts[depth] = c + 2 // ] or }
			depth++
			p.at++
			if p.next() != c+2 {
				if c == '{' {
					if _, err := p.key(); err != nil {
						return nil, err
					}
				}
				continue
			}
			p.at++
			depth--
		default:
			if err := p.scalar(c); err != nil {
				return nil, err
			}
		}
		// What is behind it, up to the next one.
		for {
			if depth == 0 {
				return p.json[from:p.at], nil
			}
			c := p.next()
			if c == shuts[depth-1] {
				p.at++
				depth--
				continue
			}
			if c != ',' {
				return nil, p.wrong()
			}
			p.at++
			if shuts[depth-1] == '}' {
				if _, err := p.key(); err != nil {
					return nil, err
				}
			}
			break
		}
	}
}

// key reads the key of a member and its colon, and returns the key with its quotes.
func (p *parser) key() ([]byte, error) {
	p.next()
	from := p.at
	if err := p.string(); err != nil {
		return nil, err
	}
	key := p.json[from:p.at]
	return key, p.byte(':')
}

// scalar reads a value that begins with c and has no others in it.
func (p *parser) scalar(c byte) error {
	switch {
	case c == '"':
		return p.string()
	case c == '-' || isDigit(c):
		return p.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if c == word[0] {
			return p.word(word)
		}
	}
	return p.wrong()
}

func (p *parser) word(word string) error {
	for i := range len(word) {
		if p.at >= len(p.json) || p.json[p.at] != word[i] {
			return p.wrong()
		}
		p.at++
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.json) {
		return p.json[p.at]
	}
	return 0
}

func (p *parser) number() error {
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if err := p.digits(); err != nil {
		return err
	}
	if p.peek() == '.' {
		p.at++
		if err := p.digits(); err != nil {
			return err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		return p.digits()
	}
	return nil
}

// digits reads one digit or more.
func (p *parser) digits() error {
	from := p.at
	for p.at < len(p.json) && isDigit(p.json[p.at]) {
		p.at++
	}
	if p.at == from {
		return p.wrong()
	}
	return nil
}

// string reads a string, with its quotes.
func (p *parser) string() error {
	if p.peek() != '"' {
		return p.wrong()
	}
	p.at++
	for ; p.at < len(p.json); p.at++ {
		switch c := p.json[p.at]; {
		case c == '"':
			p.at++
			return nil
		case c < ' ':
			return p.wrong()
		case c == '\\':
			p.at++
			if err := p.escaped(); err != nil {
				return err
			}
		}
	}
	return errEnd
}

// escaped reads what is behind a backslash, but for its last byte.
func (p *parser) escaped() error {
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			p.at++
			if c := p.peek() | 0x20; !isDigit(p.peek()) && (c < 'a' || c > 'f') {
				return p.wrong()
			}
		}
		return nil
	}
	return p.wrong()
}
