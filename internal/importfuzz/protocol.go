package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// A request is the length of a header (uint32, little-endian), the header, which is JSON,
// the bytes of the model, and those of each array, in C order and little-endian. An answer
// is the same without a model.

// request is the header of a request, and what follows it.
type request struct {
	ID         int     `json:"id"`
	ModelBytes int     `json:"model_bytes"`
	Options    options `json:"options"`
	Inputs     []array `json:"inputs"`
	// Checks are those that the first result is compared with: see checks.
	Checks  []string `json:"checks"`
	Seconds float64  `json:"seconds"` // that it may take; 0 is the default

	model []byte
	data  [][]byte // of Inputs
}

// array describes an array. DType is a name of NumPy, such as float32.
type array struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Dims  []int  `json:"dims"`
}

// What became of a request.
const (
	ok      = "ok"
	refused = "refused" // by the importer, or when the network was lowered
	failed  = "failed"  // what never may be: a panic, a time-out, an error of a converted model
)

// answer is the header of an answer, and what follows it.
type answer struct {
	ID      int    `json:"id"`
	Status  string `json:"status"`
	Stage   string `json:"stage"` // that it came to: convert, lower, inputs, run, or the name of a check
	Message string `json:"message"`
	// Obstacles are those of a refusal.
	Obstacles []obstacle `json:"obstacles"`
	Outputs   []array    `json:"outputs"`
	// Differences are where a check gave other bits.
	Differences []string `json:"differences"`
	// Report is what the conversion reports of what it has changed.
	Report []string `json:"report"`
	// Last says that the process ends, since the request did not.
	Last bool `json:"last"`

	data [][]byte // of Outputs
}

type obstacle struct {
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// Limits of requests: beyond them a stream is none of requests.
const (
	maxHeader = 1 << 20
	maxModel  = 1 << 30
)

// readRequest reads the next request. The error is io.EOF where there is none.
func readRequest(r io.Reader) (*request, error) {
	var length uint32
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, err
	}
	if length > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes, at most %d are allowed", length, maxHeader)
	}
	header, err := readAll(r, int(length))
	if err != nil {
		return nil, err
	}
	q := &request{}
	d := json.NewDecoder(bytes.NewReader(header))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	if q.ModelBytes < 0 || q.ModelBytes > maxModel {
		return nil, fmt.Errorf("a model of %d bytes", q.ModelBytes)
	}
	if q.model, err = readAll(r, q.ModelBytes); err != nil {
		return nil, err
	}
	for _, a := range q.Inputs {
		n, err := a.bytes()
		if err != nil {
			return nil, err
		}
		data, err := readAll(r, n)
		if err != nil {
			return nil, err
		}
		q.data = append(q.data, data)
	}
	return q, nil
}

func readAll(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func writeAnswer(w io.Writer, a *answer) error {
	header, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, uint32(len(header))); err != nil {
		return err
	}
	for _, part := range append([][]byte{header}, a.data...) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// types are the codes that files of NumPy have for types.
var types = map[string]string{
	"float32": "<f4", "float64": "<f8", "float16": "<f2", "bool": "|b1",
	"int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
	"uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
}

// bytes is the size of the array.
func (a array) bytes() (int, error) {
	code, known := types[a.DType]
	if !known {
		return 0, fmt.Errorf("array %q of unknown type %q", a.Name, a.DType)
	}
	n := int(code[2] - '0')
	for _, d := range a.Dims {
		if d < 0 || d > maxModel || n*d > maxModel {
			return 0, fmt.Errorf("array %q of %v", a.Name, a.Dims)
		}
		n *= d
	}
	return n, nil
}

// toNPY makes an array of the bytes of one.
func (a array) toNPY(data []byte) (*npy.Array, error) {
	var dims strings.Builder
	for _, d := range a.Dims {
		fmt.Fprintf(&dims, "%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", types[a.DType], strings.TrimSuffix(dims.String(), " "))
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(header)))
	b.WriteString(header)
	b.Write(data)
	f, err := npy.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return nil, err
	}
	return f.Read("")
}

// fromNPY describes an array and returns its bytes.
func fromNPY(name string, a *npy.Array) (array, []byte, error) {
	made := array{Name: name, DType: a.Type(), Dims: a.Shape}
	n, err := made.bytes()
	if err != nil {
		return made, nil, err
	}
	var b bytes.Buffer
	if err := npy.WriteOne(&b, a); err != nil {
		return made, nil, err
	}
	if b.Len() < n {
		return made, nil, errors.New("an .npy file shorter than its array")
	}
	return made, b.Bytes()[b.Len()-n:], nil
}
