package bmxnet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// node is a node of a graph: an operator, or with the operator "null" the input, a
// weight or a label.
type node struct {
	index int
	op    string
	name  string
	attrs map[string]string
	// inputs are the index of a node, of its output, and a version.
	inputs [][3]int
}

// nodeUnits is what a node costs besides its text.
const nodeUnits = 1024

// jsonUnits is what a byte of JSON costs.
const jsonUnits = 96

// decodeSymbol reads a graph, and the index of the node that makes its output.
func decodeSymbol(data []byte, most int, b *budget.Budget) (nodes []node, head int, err error) {
	defer try.Recover(&err)
	fail := func(err error) ([]node, int, error) {
		return nil, 0, fmt.Errorf("not a graph of MXNet (symbol.json): %w", err)
	}
	// What JSON takes to become values is in proportion to it: lists of empty lists
	// take the most.
	if err := b.Charge(jsonUnits * int64(len(data))); err != nil {
		return nil, 0, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := expect(d, '{'); err != nil {
		return fail(err)
	}
	var heads [][3]int
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail(err)
		}
		switch key {
		case "nodes":
			nodes, err = decodeNodes(d, most, b)
			var ended *endedError
			if errors.As(err, &ended) {
				return nil, 0, ended.err
			}
		case "heads":
			err = d.Decode(&heads)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return fail(err)
		}
	}
	if err := expect(d, '}'); err != nil {
		return fail(err)
	}
	switch {
	case len(nodes) == 0:
		return fail(errors.New("it has no nodes"))
	case len(heads) == 0:
		return fail(errors.New("it has no heads"))
	case len(heads) > 1:
		return nil, 0, fmt.Errorf("the graph has %d outputs, a network has one", len(heads))
	case heads[0][0] < 0 || heads[0][0] >= len(nodes) || heads[0][1] != 0:
		return fail(fmt.Errorf("its head is output %d of node %d, want output 0 of a node of the graph", heads[0][1], heads[0][0]))
	}
	return nodes, heads[0][0], nil
}

// endedError is an error that does not say that the file is no graph.
type endedError struct{ err error }

func (e *endedError) Error() string { return e.err.Error() }

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("%v where %v is expected", t, want)
	}
	return err
}

func decodeNodes(d *json.Decoder, most int, b *budget.Budget) ([]node, error) {
	if err := expect(d, '['); err != nil {
		return nil, err
	}
	var nodes []node
	for d.More() {
		if len(nodes) == most {
			return nil, &endedError{fmt.Errorf("the graph has more than %d nodes; Limits.Layers allows more", most)}
		}
		if err := b.Charge(nodeUnits); err != nil {
			return nil, &endedError{err}
		}
		// Attributes of operators are called param before MXNet 0.9, attr before 1.0.
		var j struct {
			Op, Name           string
			Param, Attr, Attrs map[string]string
			Inputs             [][3]int
		}
		if err := d.Decode(&j); err != nil {
			return nil, fmt.Errorf("node %d: %w", len(nodes), err)
		}
		n := node{index: len(nodes), op: j.Op, name: j.Name, attrs: j.Param, inputs: j.Inputs}
		for _, more := range []map[string]string{j.Attr, j.Attrs} {
			if n.attrs == nil {
				n.attrs = more
			} else {
				maps.Copy(n.attrs, more)
			}
		}
		for _, in := range n.inputs {
			if in[0] < 0 || in[0] >= n.index {
				return nil, fmt.Errorf("node %d reads node %d, which does not come before it", n.index, in[0])
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, expect(d, ']')
}
