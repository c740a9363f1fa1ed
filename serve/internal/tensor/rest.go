package tensor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Output is what a request wants of an output.
type Output struct {
	Name    string
	Binary  bool
	Classes int // if it is not 0, the likeliest classes instead of the elements
}

// Request is a request for an inference.
type Request struct {
	ID      string
	Inputs  []Tensor
	Outputs []Output // none: all, as Binary says
	Binary  bool
}

// Response is what an inference has given.
type Response struct {
	Model, Version, ID string
	Outputs            []Tensor
	Binary             []bool // of each output: over HTTP as binary data
}

// Most is the most that a request may have of some things: what the model has, or the request
// makes no sense.
type Most struct{ Inputs, Outputs int }

// MaxID is the longest id of a request, in bytes: responses repeat it.
const MaxID = 1 << 10

// CheckID refuses ids that are too long.
func CheckID(id string) error {
	if len(id) > MaxID {
		return fmt.Errorf("the id has %d bytes, want at most %d", len(id), MaxID)
	}
	return nil
}

// jsonRequest is a request in JSON, without its inputs and outputs.
type jsonRequest struct {
	ID         string `json:"id"`
	Parameters struct {
		Binary bool `json:"binary_data_output"`
	} `json:"parameters"`
}

// jsonInput is an input in JSON, without its data.
type jsonInput struct {
	Name       string      `json:"name"`
	Shape      list[int64] `json:"shape"`
	Datatype   string      `json:"datatype"`
	Parameters struct {
		Size   *int64 `json:"binary_data_size"`
		Shared string `json:"shared_memory_region"`
	} `json:"parameters"`
}

type jsonOutput struct {
	Name       string `json:"name"`
	Parameters struct {
		Binary  *bool  `json:"binary_data"`
		Classes int    `json:"classification"`
		Shared  string `json:"shared_memory_region"`
	} `json:"parameters"`
}

// maxDimensions bounds shapes: no tensor has as many.
const maxDimensions = 64

// list is an array of at most so many elements. They are counted before anything is made of them:
// two bytes of JSON are a hundred bytes and more as a structure.
type list[T any] struct {
	what     string // "inputs"
	most     int    // 0 means maxDimensions
	elements []T
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(array []byte) error {
	most := l.most
	if l.what == "" {
		l.what, most = "dimensions", maxDimensions
	}
	if n := elements(array); n > most {
		return &countError{fmt.Sprintf("the request has %d %s, want at most %d", n, l.what, most)}
	}
	return json.Unmarshal(array, &l.elements)
}

// countError is the error of more elements than there may be.
type countError struct{ text string }

func (e *countError) Error() string { return e.text }

// elements counts those of an array in valid JSON, 0 if it is none.
func elements(array []byte) int {
	array = bytes.TrimSpace(array)
	if len(array) < 2 || array[0] != '[' || len(bytes.TrimSpace(array[1:len(array)-1])) == 0 {
		return 0
	}
	n, depth, quoted := 1, 0, false
	for i := 0; i < len(array); i++ {
		switch c := array[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	return n
}

// ErrShared is the error of tensors in shared memory.
var ErrShared = errors.New("shared memory is not supported: send the data with the request")

// maxSmall bounds what a request says of each input, of all outputs, and of the rest, in bytes of JSON. What
// is not data has a fraction of that, and package encoding/json reads it without an end in between.
const maxSmall = 64 << 10

// Parse reads the body of a request. Its JSON has headerLength bytes, and the binary data of
// the inputs are behind it in their order; a negative headerLength says that all is JSON.
// Tensors keep parts of body; beside it no more memory is taken than most and the names need. The
// end of ctx ends it, and the reading of data by the tensors.
func Parse(ctx context.Context, body []byte, headerLength int, most Most) (*Request, error) {
	header, data := body, []byte(nil)
	if headerLength >= 0 {
		if headerLength > len(body) {
			return nil, fmt.Errorf("the JSON has %d bytes by the header Inference-Header-Content-Length, the body %d",
				headerLength, len(body))
		}
		header, data = body[:headerLength], body[headerLength:]
	}
	s := splitter{parser: parser{ctx: ctx, json: header}, most: most}
	if err := s.split(); err != nil {
		return nil, err
	}
	if err := CheckID(s.request.ID); err != nil {
		return nil, err
	}
	r := &Request{ID: s.request.ID, Binary: s.request.Parameters.Binary}
	for i, in := range s.inputs {
		array, shape := s.data[i], in.Shape.elements
		t := Tensor{Name: in.Name, Datatype: in.Datatype, Shape: shape}
		size := in.Parameters.Size
		switch {
		case in.Parameters.Shared != "":
			return nil, fmt.Errorf("input %s: %w", text.Quote(in.Name), ErrShared)
		case size == nil:
			t.Read = func(dst []byte) ([]byte, error) { return appendArray(ctx, dst, array, in.Datatype, shape) }
		case array != nil:
			return nil, fmt.Errorf("input %s has data and binary_data_size; want one of them", text.Quote(in.Name))
		case *size < 0 || *size > int64(len(data)):
			return nil, fmt.Errorf("input %s has a binary_data_size of %d, and %d bytes are left of the body behind its JSON",
				text.Quote(in.Name), *size, len(data))
		default:
			t.Data, data = data[:*size:*size], data[*size:]
		}
		r.Inputs = append(r.Inputs, t)
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes of binary data belong to no input", len(data))
	}
	for _, out := range s.outputs {
		if out.Parameters.Shared != "" {
			return nil, fmt.Errorf("output %s: %w", text.Quote(out.Name), ErrShared)
		}
		o := Output{Name: out.Name, Binary: r.Binary, Classes: out.Parameters.Classes}
		if out.Parameters.Binary != nil {
			o.Binary = *out.Parameters.Binary
		}
		r.Outputs = append(r.Outputs, o)
	}
	return r, nil
}

// jsonTensor is an output in the JSON of a response.
type jsonTensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      []int64         `json:"shape"`
	Parameters *jsonBinarySize `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type jsonBinarySize struct {
	Size int `json:"binary_data_size"`
}

// Append appends the body of a response: JSON, and the binary data of the outputs behind it.
// headerLength is the length of the JSON, or -1 if there are no binary data.
func (r *Response) Append(dst []byte) (body []byte, headerLength int, err error) {
	j := struct {
		Model   string       `json:"model_name"`
		Version string       `json:"model_version"`
		ID      string       `json:"id,omitempty"`
		Outputs []jsonTensor `json:"outputs"`
	}{r.Model, r.Version, r.ID, make([]jsonTensor, len(r.Outputs))}
	headerLength = -1
	for i, t := range r.Outputs {
		j.Outputs[i] = jsonTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}
		if r.Binary[i] {
			j.Outputs[i].Parameters = &jsonBinarySize{len(t.Data)}
			headerLength = 0
		} else if j.Outputs[i].Data, err = AppendJSON(nil, t); err != nil {
			return dst, -1, err
		}
	}
	header, err := json.Marshal(j)
	if err != nil {
		return dst, -1, err
	}
	dst = append(dst, header...)
	if headerLength < 0 {
		return dst, -1, nil
	}
	for i, t := range r.Outputs {
		if r.Binary[i] {
			dst = append(dst, t.Data...)
		}
	}
	return dst, len(header), nil
}
