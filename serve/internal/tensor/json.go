package tensor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/internal/text"
)

// quote writes a string as JSON.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // strings have no errors
		return `""`
	}
	return string(b)
}

// appendArray appends the numbers of a JSON array to elements of a type: a flat array in
// row-major order, or arrays within arrays as the shape has them. The JSON must be valid. The end of ctx
// ends it.
func appendArray(ctx context.Context, dst, array []byte, datatype string, shape []int64) ([]byte, error) {
	if Size(datatype) == 0 {
		return dst, fmt.Errorf("datatype %s is not supported", text.Quote(datatype))
	}
	want, err := Elements(shape)
	if err != nil {
		return dst, err
	}
	s := scanner{ctx: ctx, rest: array, dst: dst, datatype: datatype, left: want}
	if s.next() != '[' {
		return dst, errors.New("data is no array")
	}
	if s.rest = s.rest[1:]; s.next() == '[' {
		s.rest = array
		err = s.nested(shape)
	} else {
		err = s.list(want)
	}
	return s.dst, err
}

// scanner reads the arrays of numbers in valid JSON.
type scanner struct {
	ctx      context.Context
	rest     []byte
	dst      []byte
	datatype string
	left     int // elements that the shape still has
}

// next returns the next character that is no space, 0 at the end.
func (s *scanner) next() byte {
	for i, c := range s.rest {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.rest = s.rest[i:]
			return c
		}
	}
	s.rest = nil
	return 0
}

// nested reads an array of the shape, from its bracket on.
func (s *scanner) nested(shape []int64) error {
	if s.next() != '[' {
		return fmt.Errorf("data has a number where the shape has %d more dimensions", len(shape))
	}
	s.rest = s.rest[1:]
	if len(shape) == 0 {
		return errors.New("data has more dimensions than the shape")
	}
	if len(shape) == 1 {
		return s.list(int(shape[0]))
	}
	for i := int64(0); ; i++ {
		switch c := s.next(); {
		case c == ']' && i == shape[0]:
			s.rest = s.rest[1:]
			return nil
		case c == ']' || i == shape[0]:
			return fmt.Errorf("data has not as many rows as the shape, which has %d of them", shape[0])
		case c == ',':
			s.rest = s.rest[1:]
			i--
		default:
			if err := s.nested(shape[1:]); err != nil {
				return err
			}
		}
	}
}

// list reads n numbers, behind the bracket and with the one at the end.
func (s *scanner) list(n int) error {
	for i := 0; ; i++ {
		c := s.next()
		if c == ',' {
			s.rest = s.rest[1:]
			c = s.next()
		}
		switch {
		case c == ']' && i == n:
			s.rest = s.rest[1:]
			return nil
		case c == ']':
			return fmt.Errorf("data has %d elements in a row, the shape has %d", i, n)
		case i == n:
			return fmt.Errorf("data has more elements than the shape, which has %d in a row", n)
		case s.left == 0:
			return errors.New("data has more elements than the shape")
		}
		end := 0
		for end < len(s.rest) && !isEnd(s.rest[end]) {
			end++
		}
		if end == 0 {
			return errors.New("data has something else than numbers where the shape has its last dimension")
		}
		if end > maxNumber {
			return fmt.Errorf("element %d of a row of data is a number of %d characters, want at most %d", i, end, maxNumber)
		}
		const often = 1 << 10
		if s.left%often == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		var err error
		if s.dst, err = appendNumber(s.dst, s.datatype, string(s.rest[:end])); err != nil {
			return fmt.Errorf("element %d of a row of data: %w", i, err)
		}
		s.rest = s.rest[end:]
		s.left--
	}
}

// maxNumber is the length of a number at the most. The longest float32 has 112 significant digits.
const maxNumber = 1 << 10

// isEnd reports whether a character ends a number.
func isEnd(c byte) bool {
	switch c {
	case ',', ']', '[', '{', '}', '"', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}
