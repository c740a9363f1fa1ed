package tensor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// jsonRequest is a request in JSON.
type jsonRequest struct {
	ID         string `json:"id"`
	Parameters struct {
		Binary bool `json:"binary_data_output"`
	} `json:"parameters"`
	Inputs []struct {
		Name       string  `json:"name"`
		Shape      []int64 `json:"shape"`
		Datatype   string  `json:"datatype"`
		Parameters struct {
			Size   *int64 `json:"binary_data_size"`
			Shared string `json:"shared_memory_region"`
		} `json:"parameters"`
		Data json.RawMessage `json:"data"`
	} `json:"inputs"`
	Outputs []struct {
		Name       string `json:"name"`
		Parameters struct {
			Binary  *bool  `json:"binary_data"`
			Classes int    `json:"classification"`
			Shared  string `json:"shared_memory_region"`
		} `json:"parameters"`
	} `json:"outputs"`
}

// ErrShared is the error of tensors in shared memory.
var ErrShared = errors.New("shared memory is not supported: send the data with the request")

// Parse reads the body of a request. Its JSON has headerLength bytes, and the binary data of
// the inputs are behind it in their order; a negative headerLength says that all is JSON.
// Tensors keep parts of body.
func Parse(body []byte, headerLength int) (*Request, error) {
	header, data := body, []byte(nil)
	if headerLength >= 0 {
		if headerLength > len(body) {
			return nil, fmt.Errorf("the JSON has %d bytes by the header Inference-Header-Content-Length, the body %d",
				headerLength, len(body))
		}
		header, data = body[:headerLength], body[headerLength:]
	}
	var j jsonRequest
	d := json.NewDecoder(bytes.NewReader(header))
	if err := d.Decode(&j); err != nil {
		return nil, jsonError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is something behind the JSON of the request; " +
			"binary data need the header Inference-Header-Content-Length")
	}
	r := &Request{ID: j.ID, Binary: j.Parameters.Binary}
	for _, in := range j.Inputs {
		t := Tensor{Name: in.Name, Datatype: in.Datatype, Shape: in.Shape}
		size := in.Parameters.Size
		switch {
		case in.Parameters.Shared != "":
			return nil, fmt.Errorf("input %s: %w", text.Quote(in.Name), ErrShared)
		case size == nil:
			t.Read = func(dst []byte) ([]byte, error) { return appendArray(dst, in.Data, in.Datatype, in.Shape) }
		case in.Data != nil:
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
	for _, out := range j.Outputs {
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

// jsonError says what is wrong with JSON without the names of Go's types.
func jsonError(err error) error {
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed):
		return fmt.Errorf("the JSON of the request has a %s as %q", typed.Value, typed.Field)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON of the request ends too early")
	}
	return fmt.Errorf("the request is not valid JSON: %w", err)
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
