package bcnn

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Limits that keep a hostile description from claiming absurd memory: values
// of one tensor, its channels, and its rows and columns, which are also those
// of kernel, padding, stride and dilation.
const (
	maxValues   = 1 << 28
	maxChannels = 1 << 22
	maxSide     = 1 << 16
	maxName     = 256
)

type valueKind uint8

const (
	byteValue valueKind = iota // the network's uint8 input itself
	signValue                  // ±1
	realValue
)

// valueType is the type of a layer's output.
type valueType struct {
	shape Shape
	kind  valueKind
}

// Check reports whether the network is well formed: the graph is in order and
// wholly used, shapes fit, weights have the right lengths and finite values,
// names and labels are plain text: UTF-8 without control characters, separators
// of lines and characters that set the direction of writing. The error names
// the layer.
func (n *Network) Check() error {
	_, err := n.infer(budget.New(context.Background(), 0))
	return err
}

// Shapes returns the output shape of every layer.
func (n *Network) Shapes() ([]Shape, error) {
	types, err := n.infer(budget.New(context.Background(), 0))
	if err != nil {
		return nil, err
	}
	shapes := make([]Shape, len(types))
	for i, t := range types {
		shapes[i] = t.shape
	}
	return shapes, nil
}

// infer checks the network and returns the type of every layer's output. The
// budget grows by what the network's size allows, and is charged for the check.
func (n *Network) infer(b *budget.Budget) ([]valueType, error) {
	if n == nil {
		return nil, errors.New("no network")
	}
	spend := func(size int64) error {
		b.Grow(workPerByte * size)
		return b.Charge(size)
	}
	if err := spend(int64(len(n.Name))); err != nil {
		return nil, err
	}
	if err := checkText(n.Name); err != nil {
		return nil, fmt.Errorf("the network's name %w", err)
	}
	var largest int64
	values := 0
	if len(n.Inputs) == 0 {
		return nil, fmt.Errorf("network %s has no inputs", text.Quote(n.Name))
	}
	for i, in := range n.Inputs {
		if err := spend(int64(min(i, 1))*bytesOfLayer + in.Source.size()); err != nil {
			return nil, err
		}
		if err := in.check(); err != nil {
			return nil, fmt.Errorf("network %s: %s: %w", text.Quote(n.Name), inputName(i), err)
		}
		largest = max(largest, in.Shape.sides())
		if values += in.Shape.Values(); values > maxValues {
			return nil, fmt.Errorf("network %s: the inputs have more than %d values together", text.Quote(n.Name), maxValues)
		}
	}
	if len(n.Layers) == 0 {
		return nil, fmt.Errorf("network %s has no layers", text.Quote(n.Name))
	}
	types := make([]valueType, len(n.Layers))
	names := make(map[string]bool, len(n.Layers))
	used := make([]bool, len(n.Layers)) // by others, or as outputs
	for i, l := range n.Layers {
		fail := func(err error) ([]valueType, error) {
			return nil, fmt.Errorf("network %s: layer %d %s: %w", text.Quote(n.Name), i, text.Quote(l.Name), err)
		}
		if err := spend(l.size()); err != nil {
			return fail(err)
		}
		if err := checkText(l.Name); err != nil {
			return nil, fmt.Errorf("network %s: layer %d: the name %w", text.Quote(n.Name), i, err)
		}
		switch {
		case l.Name == "" || len(l.Name) > maxName:
			return fail(fmt.Errorf("the name must have 1 to %d bytes", maxName))
		case names[l.Name]:
			return fail(errors.New("another layer has this name"))
		case l.Op == nil:
			return fail(errors.New("no operation"))
		case reflect.TypeOf(l.Op).Kind() == reflect.Pointer: // perhaps a nil one
			return fail(fmt.Errorf("the operation is a pointer, %T", l.Op))
		}
		names[l.Name] = true
		in := make([]valueType, len(l.Inputs))
		for j, source := range l.Inputs {
			switch {
			case source <= NetworkInput && NetworkInput-source < len(n.Inputs):
				in[j] = n.Inputs[NetworkInput-source].valueType()
			case source < 0 || source >= i:
				return fail(fmt.Errorf("input %d is layer %d, which is not an earlier one", j, source))
			default:
				if _, softmax := n.Layers[source].Op.(Softmax); softmax {
					return fail(errors.New("softmax must stand at the end"))
				}
				in[j] = types[source]
				used[source] = true
			}
		}
		if least, most := operands(l.Op); len(in) < least || len(in) > most {
			return fail(fmt.Errorf("%s has %d inputs, want %s", l.Op.Kind(), len(in), counted(least, most)))
		}
		t, err := l.Op.output(in)
		if err == nil {
			err = t.shape.check()
		}
		if err == nil {
			err = l.Source.check(t.shape)
		}
		if err != nil {
			return fail(err)
		}
		types[i] = t
		largest = max(largest, t.shape.sides())
	}
	if err := spend(largest); err != nil {
		return nil, err
	}
	if err := spend(8 * int64(len(n.Outputs))); err != nil {
		return nil, err
	}
	isOutput := make([]bool, len(n.Layers))
	values = 0
	for i, l := range n.OutputLayers() {
		if l < 0 || l >= len(n.Layers) || isOutput[l] {
			return nil, fmt.Errorf("network %s: output %d is layer %d, which does not exist or is an output already", text.Quote(n.Name), i, l)
		}
		isOutput[l] = true
		if values += types[l].shape.Values(); values > maxValues {
			return nil, fmt.Errorf("network %s: the outputs have more than %d values together", text.Quote(n.Name), maxValues)
		}
		used[l] = true
	}
	for i, u := range used {
		if !u {
			return nil, fmt.Errorf("network %s: layer %d %q: its output is not used", text.Quote(n.Name), i, n.Layers[i].Name)
		}
	}
	out := types[n.OutputLayers()[0]].shape
	if len(n.Labels) != 0 && len(n.Labels) != out.Values() {
		return nil, fmt.Errorf("network %s has %d labels for %d outputs", text.Quote(n.Name), len(n.Labels), out.Values())
	}
	for i, label := range n.Labels {
		if err := spend(int64(len(label))); err != nil {
			return nil, err
		}
		if err := checkText(label); err != nil {
			return nil, fmt.Errorf("network %s: label %d: %w", text.Quote(n.Name), i, err)
		}
	}
	for _, name := range n.Absorbed {
		if err := spend(int64(len(name)) + nameUnits); err != nil {
			return nil, err
		}
		if err := checkText(name); err != nil {
			return nil, fmt.Errorf("network %s: an absorbed tensor: %w", text.Quote(n.Name), err)
		}
		if len(name) > maxName {
			return nil, fmt.Errorf("network %s: the name of an absorbed tensor has %d bytes, at most %d are allowed", text.Quote(n.Name), len(name), maxName)
		}
	}
	return types, nil
}

// operands returns how many inputs an operation has, at least and at most.
func operands(op Op) (least, most int) {
	switch op.(type) {
	case Add, Mul, Min, Max:
		return 2, 2
	case Concat:
		return 2, maxChannels
	}
	return 1, 1
}

func counted(least, most int) string {
	if least < most {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprint(least)
}

// inputName is what input number k is called: the first "input", then "input 2".
func inputName(k int) string {
	if k == 0 {
		return "input"
	}
	return fmt.Sprintf("input %d", k+1)
}

func (in Input) valueType() valueType {
	if in.DType == Uint8 {
		return valueType{in.Shape, byteValue}
	}
	return valueType{in.Shape, realValue}
}

func (in Input) check() error {
	if in.DType != Uint8 && in.DType != Float32 {
		return fmt.Errorf("type is %v, want uint8 or float32", in.DType)
	}
	if in.Resize != 0 && (in.Resize < max(in.Shape.H, in.Shape.W) || in.Resize > maxSide) {
		return fmt.Errorf("resize %d is less than the crop of %v or absurd", in.Resize, in.Shape)
	}
	if err := in.Shape.check(); err != nil {
		return err
	}
	return in.Source.check(in.Shape)
}

func (s Shape) check() error {
	if s.H < 1 || s.W < 1 || s.C < 1 {
		return fmt.Errorf("shape %v is empty", s)
	}
	if s.H > maxSide || s.W > maxSide || s.C > maxChannels {
		return fmt.Errorf("shape %v is larger than %d×%d×%d", s, maxSide, maxSide, maxChannels)
	}
	if int64(s.H)*int64(s.W)*int64(s.C) > maxValues {
		return fmt.Errorf("shape %v has more than %d values", s, maxValues)
	}
	return nil
}
