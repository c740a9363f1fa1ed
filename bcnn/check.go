package bcnn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

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

// ValueKind says what the values of a layer's output are.
type ValueKind uint8

const (
	ByteValue ValueKind = iota // the network's uint8 input itself
	SignValue                  // ±1
	RealValue                  // anything else
)

// ValueType is the type of a layer's output.
type ValueType struct {
	Shape Shape
	Kind  ValueKind
}

// Check reports whether the network is well formed: the graph is in order and
// wholly used, shapes fit, weights have the right lengths and finite values,
// names and labels are plain text: UTF-8 without control characters, separators
// of lines and characters that set the direction of writing. The error names
// the layer.
func (n *Network) Check() error {
	_, err := n.Types(budget.New(context.Background(), 0))
	return err
}

// Shapes returns the output shape of every layer.
func (n *Network) Shapes() ([]Shape, error) {
	types, err := n.Types(budget.New(context.Background(), 0))
	if err != nil {
		return nil, err
	}
	shapes := make([]Shape, len(types))
	for i, t := range types {
		shapes[i] = t.Shape
	}
	return shapes, nil
}

// Types checks the network and returns the type of every layer's output. The
// budget grows by what the network's size allows, and is charged for the check.
func (n *Network) Types(b *budget.Budget) ([]ValueType, error) {
	if n == nil {
		return nil, errors.New("no network")
	}
	c := &checker{n: n, budget: b}
	if err := c.spend(int64(len(n.Name))); err != nil {
		return nil, err
	}
	if err := checkText(n.Name); err != nil {
		return nil, fmt.Errorf("the network's name %w", err)
	}
	for _, check := range []func() error{c.inputs, c.layers, c.outputs, c.detection, c.texts} {
		if err := check(); err != nil {
			return nil, fmt.Errorf("network %s: %w", text.Quote(n.Name), err)
		}
	}
	return c.types, nil
}

// checker checks a network.
type checker struct {
	n       *Network
	budget  *budget.Budget
	types   []ValueType // of the layers
	names   map[string]bool
	used    []bool // by other layers, or as outputs
	largest int64  // the sides of the largest shape, see Shape.sides
}

// spend charges the check of so many bytes of the network.
func (c *checker) spend(size int64) error {
	c.budget.Grow(WorkPerByte * size)
	return c.budget.Charge(size)
}

func (c *checker) inputs() error {
	if len(c.n.Inputs) == 0 {
		return errors.New("it has no inputs")
	}
	values := 0
	for i, in := range c.n.Inputs {
		if err := c.spend(int64(min(i, 1))*LayerBytes + in.Source.size()); err != nil {
			return err
		}
		if err := in.check(); err != nil {
			return fmt.Errorf("%s: %w", portName("input", i, nil), err)
		}
		c.largest = max(c.largest, in.Shape.sides())
		if values += in.Shape.Values(); values > maxValues {
			return fmt.Errorf("the inputs have more than %d values together", maxValues)
		}
	}
	return nil
}

func (c *checker) layers() error {
	if len(c.n.Layers) == 0 {
		return errors.New("it has no layers")
	}
	c.types, c.used = make([]ValueType, len(c.n.Layers)), make([]bool, len(c.n.Layers))
	c.names = make(map[string]bool, len(c.n.Layers))
	for i, l := range c.n.Layers {
		if err := c.spend(l.size()); err != nil {
			return err
		}
		if err := checkText(l.Name); err != nil {
			return fmt.Errorf("layer %d: the name %w", i, err)
		}
		t, err := c.layer(i, l)
		if err != nil {
			return fmt.Errorf("layer %d %s: %w", i, text.Quote(l.Name), err)
		}
		c.names[l.Name], c.types[i] = true, t
		c.largest = max(c.largest, t.Shape.sides())
	}
	return c.spend(c.largest)
}

// layer returns the type of a layer's output.
func (c *checker) layer(i int, l Layer) (ValueType, error) {
	switch {
	case l.Name == "" || len(l.Name) > maxName:
		return ValueType{}, fmt.Errorf("the name must have 1 to %d bytes", maxName)
	case c.names[l.Name]:
		return ValueType{}, errors.New("another layer has this name")
	case l.Op == nil:
		return ValueType{}, errors.New("it has no operation")
	case reflect.TypeOf(l.Op).Kind() == reflect.Pointer: // perhaps a nil one
		return ValueType{}, fmt.Errorf("the operation is a pointer, %T, want a value", l.Op)
	}
	in := make([]ValueType, len(l.Inputs))
	for k, source := range l.Inputs {
		var err error
		if in[k], err = c.source(i, k, source); err != nil {
			return ValueType{}, err
		}
	}
	if least, most := l.Op.inputs(); len(in) < least || len(in) > most {
		return ValueType{}, fmt.Errorf("%s has %d inputs, want %s", l.Op.Kind(), len(in), counted(least, most))
	}
	t, err := l.Op.output(in)
	if err == nil {
		err = t.Shape.Check()
	}
	if err == nil {
		err = l.Source.check(t.Shape)
	}
	return t, err
}

// source returns the type of what layer i reads as its input k.
func (c *checker) source(i, k, source int) (ValueType, error) {
	switch {
	case source <= NetworkInput && NetworkInput-source < len(c.n.Inputs):
		return c.n.Inputs[NetworkInput-source].valueType(), nil
	case source < 0 || source >= i:
		return ValueType{}, fmt.Errorf("input %d is layer %d, want an earlier layer or an input of the network", k, source)
	}
	if _, softmax := c.n.Layers[source].Op.(Softmax); softmax {
		return ValueType{}, errors.New("it reads a softmax, which must be the last layer")
	}
	c.used[source] = true
	return c.types[source], nil
}

func (c *checker) outputs() error {
	if err := c.spend(8 * int64(len(c.n.Outputs))); err != nil {
		return err
	}
	isOutput := make([]bool, len(c.n.Layers))
	values := 0
	for i, l := range c.n.OutputLayers() {
		if l < 0 || l >= len(c.n.Layers) || isOutput[l] {
			return fmt.Errorf("output %d is layer %d, which does not exist or is an output already", i, l)
		}
		isOutput[l], c.used[l] = true, true
		if values += c.types[l].Shape.Values(); values > maxValues {
			return fmt.Errorf("the outputs have more than %d values together", maxValues)
		}
	}
	if i := slices.Index(c.used, false); i >= 0 {
		return fmt.Errorf("layer %d %q: its output is not used", i, c.n.Layers[i].Name)
	}
	return nil
}

// texts checks the labels, the names of absorbed tensors and the deviations.
func (c *checker) texts() error {
	out := c.types[c.n.OutputLayers()[0]].Shape
	if labels, d := len(c.n.Labels), c.n.Detection; labels != 0 && d != nil && labels != d.Classes {
		return fmt.Errorf("it has %d labels for %d classes of boxes", labels, d.Classes)
	} else if labels != 0 && d == nil && labels != out.Values() {
		return fmt.Errorf("it has %d labels for %d outputs", labels, out.Values())
	}
	for i, label := range c.n.Labels {
		if err := c.spend(int64(len(label))); err != nil {
			return err
		}
		if err := checkText(label); err != nil {
			return fmt.Errorf("label %d: %w", i, err)
		}
	}
	for _, name := range c.n.Absorbed {
		if err := c.spend(int64(len(name)) + nameUnits); err != nil {
			return err
		}
		if err := checkText(name); err != nil {
			return fmt.Errorf("an absorbed tensor: %w", err)
		}
		if len(name) > maxName {
			return fmt.Errorf("the name of an absorbed tensor has %d bytes, at most %d are allowed", len(name), maxName)
		}
	}
	for i, d := range c.n.Deviations {
		if err := c.spend(int64(len(d)) + nameUnits); err != nil {
			return err
		}
		if err := checkText(d); err != nil {
			return fmt.Errorf("deviation %d: %w", i, err)
		}
	}
	return nil
}

func counted(least, most int) string {
	if least < most {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprint(least)
}

func portName(what string, k int, s *Source) string {
	switch {
	case s != nil && s.Name != "":
		return s.Name
	case k == 0:
		return what
	}
	return fmt.Sprintf("%s %d", what, k+1)
}

// InputName is what input number k is called, by whoever names it: as its source, else the first
// "input", then "input 2".
func (n *Network) InputName(k int) string { return portName("input", k, n.Inputs[k].Source) }

// OutputName is what output number k is called, which is that of layer OutputLayers()[k]: as its
// source, else the first "output", then "output 2".
func (n *Network) OutputName(k int) string {
	return portName("output", k, n.Layers[n.OutputLayers()[k]].Source)
}

func (in Input) valueType() ValueType {
	if in.DType == Uint8 {
		return ValueType{in.Shape, ByteValue}
	}
	return ValueType{in.Shape, RealValue}
}

func (in Input) check() error {
	if in.DType != Uint8 && in.DType != Float32 {
		return fmt.Errorf("type is %v, want uint8 or float32", in.DType)
	}
	if in.Resize != 0 && (in.Resize < max(in.Shape.H, in.Shape.W) || in.Resize > maxSide) {
		return fmt.Errorf("resize %d is less than a side of the input, %v, or too large", in.Resize, in.Shape)
	}
	if err := in.Shape.Check(); err != nil {
		return err
	}
	if err := in.Photo.check(in); err != nil {
		return err
	}
	return in.Source.check(in.Shape)
}

func (s Shape) Check() error {
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
