// Package schema reads the tables of a TensorFlow Lite file:
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/mlir/lite/schema/schema.fbs.
package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// What is charged for a table that is read, and for each of its elements.
const (
	tableUnits   = 256
	elementUnits = 8
)

// MaxSize is the largest dimension of a tensor, and the largest number of values.
const MaxSize = 1 << 28

// maxRank is how many dimensions a tensor may have, and maxName how many bytes of its
// name are read.
const (
	maxRank = 8
	maxName = 512
)

// nameUnits is what is charged for each byte of a name, which may have to be escaped.
const nameUnits = 24

// Type is the type of the elements of a tensor.
type Type uint8

// The types that are known by name here.
const (
	Float32 Type = 0
	Float16 Type = 1
	Int32   Type = 2
	Uint8   Type = 3
	Int64   Type = 4
	Bool    Type = 6
	Int8    Type = 9
)

var types = [...]string{
	"FLOAT32", "FLOAT16", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8", "FLOAT64",
	"COMPLEX128", "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4",
}

func (t Type) String() string {
	if int(t) < len(types) {
		return types[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// bytes returns the size of an element, 0 where it is not known here.
func (t Type) bytes() int {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Float16:
		return 2
	case Float32, Int32:
		return 4
	case Int64:
		return 8
	}
	return 0
}

// Code returns the code of a built-in operator, or −1 if there is none of the name.
func Code(name string) int32 { return int32(slices.Index(operators[:], name)) }

// Model is a file, of which the tables are read when they are asked for.
type Model struct {
	Version     int
	Description string
	Graph       *Graph // the first sub-graph, which is the main one

	buffer  *flat.Buffer
	data    []byte
	codes   flat.Tables
	buffers flat.Tables
	budget  *budget.Budget
}

// Graph is a sub-graph.
type Graph struct {
	Name            string
	Inputs, Outputs []int // tensors
	Operators       []Operator
	Tensors         int // how many there are
	tensors         flat.Tables
}

// Operator is a node of the graph.
type Operator struct {
	Index  int
	Name   string // such as CONV_2D, or that of a custom operator
	Custom bool
	// Version is that of the operator, which grows as it learns to do more: 1 or more.
	Version int
	// Inputs and Outputs are tensors; −1 is an input that is left out.
	Inputs, Outputs []int
	// Options are those of a built-in operator, which notes what is read of them, and
	// OptionsType is their number in the union BuiltinOptions, 0 if there are none.
	Options       flat.Table
	OptionsType   uint8
	CustomOptions []byte
	// Unread is an error where the file says more of the operator than is read here.
	Unread error
}

// Tensor is a tensor of the graph.
type Tensor struct {
	Index int
	Name  string
	Type  Type
	// Dims are its dimensions, and Dynamic says which of them are left open: their
	// size is that with which the file was made.
	Dims    []int
	Dynamic []bool
	// Scale and Zero say what 8-bit values stand for, (q − Zero)·Scale, for all of the
	// tensor or for each position of dimension Axis.
	Scale []float32
	Zero  []int64
	Axis  int
	// Data is that of a constant, in the file itself; nil for a tensor that is
	// computed.
	Data []byte
}

// Decode reads a file. Its operators are at most most.
func Decode(data []byte, most int, b *budget.Budget) (*Model, error) {
	buffer, root := flat.New(data, "the file")
	root = root.Tracked()
	m := &Model{
		Version: int(root.Int32(0, 0)), Description: text.Escape(string(cut(root.Bytes(3)))),
		buffer: buffer, data: data, budget: b,
		codes: root.Tables(1, "operator code"), buffers: root.Tables(4, "buffer"),
	}
	graphs := root.Tables(2, "sub-graph")
	switch {
	case buffer.Err() != nil:
		return nil, buffer.Err()
	case m.Version != 3:
		return nil, fmt.Errorf("version %d of the schema is not supported, want 3", m.Version)
	case graphs.Len() == 0:
		return nil, errors.New("it has no sub-graph")
	}
	var err error
	if m.Graph, err = m.graph(graphs.At(0).Tracked(), most); err == nil {
		err = buffer.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("sub-graph 0: %w", err)
	}
	if err := m.signatures(root.Tables(7, "signature")); err != nil {
		return nil, err
	}
	return m, m.unread(root, &modelFields)
}

// signatures checks that all signatures are of sub-graph 0, which the interpreter runs if it
// is not told which. Sub-graphs of none are the bodies of operators.
func (m *Model) signatures(list flat.Tables) error {
	for i := range list.Len() {
		if err := m.budget.Charge(tableUnits); err != nil {
			return err
		}
		s := list.At(i).Tracked()
		key := text.Quote(string(cut(s.Bytes(2))))
		if k := s.Int32(4, 0); k != 0 {
			return fmt.Errorf("signature %s is that of sub-graph %d: a file with signatures of several sub-graphs is not supported, convert each to a file of its own", key, k)
		}
		if err := m.unread(s, &signatureFields); err != nil {
			return fmt.Errorf("signature %s: %w", key, err)
		}
	}
	return m.buffer.Err()
}

// cut shortens what may be a whole file.
func cut(name []byte) []byte { return name[:min(len(name), maxName)] }

func (m *Model) graph(t flat.Table, most int) (*Graph, error) {
	g := &Graph{Name: text.Escape(string(cut(t.Bytes(4)))), tensors: t.Tables(0, "tensor")}
	g.Tensors = g.tensors.Len()
	operators := t.Tables(3, "operator")
	if operators.Len() > most {
		return nil, fmt.Errorf("it has %d operators, at most %d are allowed; Limits.Layers allows more", operators.Len(), most)
	}
	var err error
	if g.Inputs, err = m.indices(t.Int32s(1), g.Tensors, false); err != nil {
		return nil, fmt.Errorf("its inputs: %w", err)
	}
	if g.Outputs, err = m.indices(t.Int32s(2), g.Tensors, false); err != nil {
		return nil, fmt.Errorf("its outputs: %w", err)
	}
	if err := m.budget.Charge(tableUnits * int64(operators.Len())); err != nil {
		return nil, err
	}
	g.Operators = make([]Operator, operators.Len())
	for i := range g.Operators {
		o := &g.Operators[i]
		if err := m.operator(o, operators.At(i).Tracked(), i, g.Tensors); err != nil {
			return nil, fmt.Errorf("operator %d: %w", i, err)
		}
		if err := m.buffer.Err(); err != nil {
			return nil, err
		}
	}
	return g, m.unread(t, &graphFields)
}

// indices reads a list of tensors. −1, which stands for none, is allowed where
// optional is set.
func (m *Model) indices(list flat.Int32s, tensors int, optional bool) ([]int, error) {
	if err := m.budget.Charge(elementUnits * int64(list.Len())); err != nil {
		return nil, err
	}
	out := make([]int, list.Len())
	for i := range out {
		k := int(list.At(i))
		if k >= tensors || k < -1 || k < 0 && !optional {
			return nil, fmt.Errorf("there is no tensor %d, the sub-graph has %d tensors", k, tensors)
		}
		out[i] = k
	}
	return out, nil
}

func (m *Model) operator(o *Operator, t flat.Table, index, tensors int) error {
	o.Index = index
	code := m.codes.At(int(t.Int32(0, 0))).Tracked()
	if err := m.buffer.Err(); err != nil {
		return err
	}
	// Codes from 127 on are in the newer of two fields.
	const custom, newer = 32, 127
	builtin, name := code.Int32(3, 0), cut(code.Bytes(1))
	o.Version = int(code.Int32(2, 1))
	if old := int32(int8(code.Uint8(0, 0))); old < newer {
		builtin = max(builtin, old)
	}
	switch {
	case builtin == custom:
		if err := m.budget.Charge(nameUnits * int64(len(name))); err != nil {
			return err
		}
		o.Name, o.Custom = text.Escape(string(name)), true
		o.CustomOptions = t.Bytes(5)
	case builtin >= 0 && int(builtin) < len(operators):
		o.Name = operators[builtin]
		o.OptionsType, o.Options = t.Uint8(3, 0), t.Table(4, "options").Tracked()
	default:
		o.Name = fmt.Sprintf("operator code %d", builtin)
	}
	var err error
	if o.Inputs, err = m.indices(t.Int32s(1), tensors, true); err != nil {
		return fmt.Errorf("its inputs: %w", err)
	}
	if o.Outputs, err = m.indices(t.Int32s(2), tensors, false); err != nil {
		return fmt.Errorf("its outputs: %w", err)
	}
	mutates := t.Bytes(7)
	if err := m.budget.Charge(int64(len(mutates))); err != nil {
		return err
	}
	if slices.ContainsFunc(mutates, func(yes byte) bool { return yes != 0 }) {
		o.Unread = errors.New("it changes an input, which keeps its values between runs: that is not supported (mutating_variable_inputs)")
	}
	if o.Unread == nil {
		o.Unread = m.unread(t, &operatorFields)
	}
	if o.Unread == nil {
		o.Unread = m.unread(code, &codeFields)
	}
	return m.buffer.Err()
}

// Err returns the first contradiction of what has been read so far, such as options of
// operators.
func (m *Model) Err() error { return m.buffer.Err() }

// Tensor reads a tensor of the graph.
func (m *Model) Tensor(index int) (*Tensor, error) {
	if err := m.budget.Charge(tableUnits); err != nil {
		return nil, err
	}
	t, err := m.tensor(index)
	if err == nil {
		err = m.buffer.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %d: %w", index, err)
	}
	return t, nil
}

func (m *Model) tensor(index int) (*Tensor, error) {
	return m.tensorOf(m.Graph.tensors.At(index).Tracked(), index, false)
}

// tensorOf reads a table; the data of one that is sparse may be of less values.
func (m *Model) tensorOf(table flat.Table, index int, sparse bool) (*Tensor, error) {
	name := cut(table.Bytes(3))
	shape, signature := table.Int32s(0), table.Int32s(7)
	if err := m.budget.Charge(nameUnits * int64(len(name))); err != nil {
		return nil, err
	}
	t := &Tensor{Index: index, Name: text.Escape(string(name)), Type: Type(table.Uint8(1, 0))}
	if shape.Len() > maxRank {
		return nil, fmt.Errorf("it has %d dimensions, at most %d are supported", shape.Len(), maxRank)
	}
	values := 1
	for i := range shape.Len() {
		d := int(shape.At(i))
		open := signature.Len() == shape.Len() && signature.At(i) < 0
		switch {
		case d < 1 || d > MaxSize || values > MaxSize/d:
			return nil, fmt.Errorf("it has a dimension of %d, which is not positive, or too large", d)
		}
		values *= d
		t.Dims, t.Dynamic = append(t.Dims, d), append(t.Dynamic, open)
	}
	if n := signature.Len(); n != 0 && n != shape.Len() {
		return nil, fmt.Errorf("it has %d dimensions, of which its shape signature lists %d", shape.Len(), n)
	}
	if err := m.quantization(t, table.Table(4, "quantization").Tracked()); err != nil {
		return nil, err
	}
	buffer := table.Int32(2, 0)
	err := m.unread(table, &tensorFields)
	if err != nil {
		return nil, err
	}
	if t.Data, err = m.contents(buffer); err != nil || t.Data == nil {
		return t, err
	}
	if size := t.Type.bytes(); size > 0 && !sparse && len(t.Data) != values*size {
		return nil, fmt.Errorf("it has %d bytes of data, which do not fit %d values of %v", len(t.Data), values, t.Type)
	}
	return t, nil
}

func (m *Model) quantization(t *Tensor, q flat.Table) error {
	scale, zero := q.Float32s(2), q.Int64s(3)
	if zero.Len() != scale.Len() && zero.Len() != 0 {
		return fmt.Errorf("it has %d scales and %d zero points, want as many of both", scale.Len(), zero.Len())
	}
	t.Axis = int(q.Int32(6, 0))
	if err := m.budget.Charge(2 * elementUnits * int64(scale.Len())); err != nil {
		return err
	}
	for i := range scale.Len() {
		t.Scale, t.Zero = append(t.Scale, scale.At(i)), append(t.Zero, 0)
		if zero.Len() > 0 {
			t.Zero[i] = zero.At(i)
		}
	}
	return m.unread(q, &quantizationFields)
}

// contents returns the data of a buffer, nil if it has none.
func (m *Model) contents(index int32) ([]byte, error) {
	if index == 0 {
		return nil, nil // by convention
	}
	b := m.buffers.At(int(index)).Tracked()
	data, offset, size := b.Bytes(0), b.Uint64(1), b.Uint64(2)
	if err := m.unread(b, &bufferFields); err != nil {
		return nil, fmt.Errorf("buffer %d: %w", index, err)
	}
	// The data of large files lies behind the tables.
	if offset > 1 {
		if end := uint64(len(m.data)); offset > end || size > end-offset {
			return nil, fmt.Errorf("buffer %d lies outside of the file: %d bytes from %d on", index, size, offset)
		}
		return m.data[offset : offset+size], nil
	}
	if len(data) == 0 {
		return nil, nil
	}
	return data, nil
}

// Values returns the number of values of a tensor.
func (t *Tensor) Values() int {
	n := 1
	for _, d := range t.Dims {
		n *= d // at most MaxSize
	}
	return n
}

// Floats returns the numbers of a constant tensor of FLOAT32 or FLOAT16, or of 8-bit
// values that a scale and a zero point are given for. The caller has charged for them.
func (t *Tensor) Floats(b *budget.Budget) ([]float32, error) {
	n := t.Values()
	if err := b.Charge(4 * int64(n)); err != nil {
		return nil, err
	}
	var at func(i int) float32
	d := t.Data
	switch {
	case t.Type == Float32:
		v := flat.Float32s(d)
		at = v.At
	case t.Type == Float16:
		at = func(i int) float32 { return f32.FromHalf(uint16(d[2*i]) | uint16(d[2*i+1])<<8) }
	case (t.Type == Int8 || t.Type == Uint8) && len(t.Scale) > 0:
		var err error
		if at, err = t.dequantize(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("constants of %v are not supported here", t.Type)
	}
	out := make([]float32, n)
	err := b.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = at(i)
		}
	})
	return out, err
}

// dequantize returns a function that returns the number that 8-bit value i stands for.
func (t *Tensor) dequantize() (func(i int) float32, error) {
	per := 1 // values with one scale in a row
	if n := len(t.Scale); n > 1 {
		if t.Axis < 0 || t.Axis >= len(t.Dims) || t.Dims[t.Axis] != n {
			return nil, fmt.Errorf("its %d scales do not fit dimension %d of %v", n, t.Axis, t.Dims)
		}
		for _, d := range t.Dims[t.Axis+1:] {
			per *= d
		}
	}
	return func(i int) float32 {
		q := int64(int8(t.Data[i]))
		if t.Type == Uint8 {
			q = int64(t.Data[i])
		}
		k := i / per % len(t.Scale)
		return float32(q-t.Zero[k]) * t.Scale[k]
	}, nil
}

// Int32s returns the integers of a constant tensor, in the file itself.
func (t *Tensor) Int32s() (flat.Int32s, error) {
	if t.Type != Int32 {
		return nil, fmt.Errorf("constants of %v are not supported here, want INT32", t.Type)
	}
	return flat.Int32s(t.Data), nil
}

// Integers returns the numbers of a constant tensor of INT32 or INT64.
func (t *Tensor) Integers() ([]int64, error) {
	out := make([]int64, t.Values())
	for i := range out {
		switch t.Type {
		case Int32:
			out[i] = int64(flat.Int32s(t.Data).At(i))
		case Int64:
			out[i] = flat.Int64s(t.Data).At(i)
		default:
			return nil, fmt.Errorf("constants of %v are not supported here, want INT32 or INT64", t.Type)
		}
	}
	return out, nil
}
