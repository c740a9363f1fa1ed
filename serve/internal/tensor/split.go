package tensor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// splitter takes the JSON of a request apart: its data stay where they are, and the rest is small.
type splitter struct {
	parser
	most    Most
	request jsonRequest
	inputs  []jsonInput
	data    [][]byte // of the inputs; nil if there are none
	outputs []jsonOutput
}

func (s *splitter) split() error {
	if s.next(); s.peek() != '{' {
		return s.unlike("")
	}
	rest, seen := []byte("{"), map[string]bool{}
	err := s.object(func(key []byte) error {
		if string(key) != `"inputs"` && string(key) != `"outputs"` {
			return s.member(&rest, "the request has", key)
		}
		name := strings.Trim(string(key), `"`)
		if seen[name] {
			return fmt.Errorf("the JSON of the request has %s twice", name)
		}
		seen[name] = true
		switch s.next() {
		case '[':
		case 'n': // null
			_, err := s.value()
			return err
		default:
			return s.unlike(name)
		}
		if name == "inputs" { // all are counted, and no more read than there may be
			n := 0
			err := s.array(func() error {
				if n++; n > s.most.Inputs {
					_, err := s.value()
					return err
				}
				return s.input()
			})
			if err == nil && n > s.most.Inputs {
				err = fmt.Errorf("the request has %d inputs, want at most %d", n, s.most.Inputs)
			}
			return err
		}
		array, err := s.small("the outputs of the request have")
		if err != nil {
			return err
		}
		list := list[jsonOutput]{what: name, most: s.most.Outputs}
		err = list.UnmarshalJSON(array)
		s.outputs = list.elements
		return jsonError(err, name)
	})
	if err != nil {
		return err
	}
	if s.next(); s.at < len(s.json) {
		return errors.New("there is something behind the JSON of the request; " +
			"binary data need the header Inference-Header-Content-Length")
	}
	return jsonError(json.Unmarshal(append(rest, '}'), &s.request), "")
}

// input reads an input.
func (s *splitter) input() error {
	if s.next() != '{' {
		return s.unlike("inputs")
	}
	rest, data := []byte("{"), []byte(nil)
	err := s.object(func(key []byte) (err error) {
		if string(key) != `"data"` {
			return s.member(&rest, "an input of the request has", key)
		}
		data, err = s.value()
		return err
	})
	if err != nil {
		return err
	}
	var in jsonInput
	if err := json.Unmarshal(append(rest, '}'), &in); err != nil {
		return jsonError(err, "inputs")
	}
	s.inputs, s.data = append(s.inputs, in), append(s.data, data)
	return nil
}

// member reads the value of a member, and appends the member to others.
func (s *splitter) member(to *[]byte, of string, key []byte) error {
	value, err := s.small(of)
	if err != nil {
		return err
	}
	if len(*to)+len(key)+len(value) > maxSmall {
		return tooLarge(of)
	}
	if len(*to) > 1 {
		*to = append(*to, ',')
	}
	*to = append(append(append(*to, key...), ':'), value...)
	return nil
}

// small reads a value that has to be small.
func (s *splitter) small(of string) ([]byte, error) {
	value, err := s.value()
	if err == nil && len(value) > maxSmall {
		err = tooLarge(of)
	}
	return value, err
}

func tooLarge(of string) error {
	return fmt.Errorf("%s more than %d bytes of JSON that are no data", of, maxSmall)
}

// unlike is the error of a value that is none of those that may be there.
func (s *splitter) unlike(field string) error {
	from := s.at
	if _, err := s.value(); err != nil {
		return err
	}
	return fmt.Errorf("the JSON of the request has %s as %q", kindOf(s.json[from]), field)
}

// kindOf says what a value is that begins with c.
func kindOf(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '{':
		return "an object"
	case '"':
		return "a string"
	case 't', 'f':
		return "a bool"
	case 'n':
		return "null"
	}
	return "a number"
}

// jsonError says what is wrong with JSON without the names of Go's types. within is the field that it
// was in.
func jsonError(err error, within string) error {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return err
	}
	field := typed.Field
	if within != "" && field != "" {
		within += "."
	}
	value := typed.Value
	const most = 64
	if len(value) > most {
		value = value[:most] + "…"
	}
	return fmt.Errorf("the JSON of the request has a %s as %q", value, within+field)
}
