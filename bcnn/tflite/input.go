package tflite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/text"
)

// begin sets up the network's inputs.
func (im *importer) begin() error {
	g := im.model.Graph
	if len(g.Inputs) == 0 {
		return errors.New("it has no input")
	}
	if n := len(g.Inputs); n > 1 && (im.opts.InputType != 0 || len(im.opts.Mean)+len(im.opts.Scale) > 0) {
		return fmt.Errorf("InputType, Mean and Scale are for files with one input; this one has %d", n)
	}
	if err := im.findPacked(); err != nil {
		return err
	}
	for i, index := range g.Inputs {
		if err := im.budget.Charge(operatorUnits); err != nil {
			return err
		}
		t, err := im.model.Tensor(index)
		if err != nil {
			return err
		}
		if r := im.env[index]; r != (operand{}) {
			return fmt.Errorf("tensor %d is an input twice", index)
		}
		im.net.Inputs = append(im.net.Inputs, bcnn.Input{})
		in := &im.net.Inputs[i]
		v, err := try.DoSafely(func() *value { return im.input(t, in, bcnn.NetworkInput-i) })
		if err != nil {
			return fmt.Errorf("input %s: %w", text.Quote(t.Name), err)
		}
		im.env[index] = operand{value: v}
		im.report.Inputs = append(im.report.Inputs, newTensor(t, v))
		in.Source = im.describeEnd(t, v)
	}
	return nil
}

// input describes an input, to which layers refer by a number.
func (im *importer) input(t *schema.Tensor, in *bcnn.Input, number int) *value {
	if t.Data != nil {
		try.Failf("it has values in the file")
	}
	if len(t.Dims) < 2 {
		try.Failf("it has %d dimensions, want a batch of images (4), rows (3) or vectors (2)", len(t.Dims))
	}
	for i, open := range t.Dynamic[1:] {
		if open {
			try.Failf("dimension %d is dynamic: convert the model with an input of a fixed size", i+1)
		}
	}
	if im.batch == 0 {
		im.batch, im.dynamic = t.Dims[0], t.Dynamic[0] && t.Dims[0] == 1
	}
	s := try.Value(im.shape(t.Dims))
	v := &value{layer: number, shape: s, rank: len(t.Dims), typ: t.Type}
	*in = bcnn.Input{Shape: s, DType: bcnn.Float32}
	if t.Type != schema.Float32 && (im.opts.InputType == bcnn.Uint8 || len(im.opts.Mean)+len(im.opts.Scale) > 0) {
		try.Failf("InputType, Mean and Scale are for files that take FLOAT32; this one takes %v", t.Type)
	}
	switch t.Type {
	case schema.Float32:
		if im.opts.InputType != 0 {
			in.DType = im.opts.InputType
		}
		v = im.prepared(v)
	case schema.Int32: // bits
		v.shape.C = im.channels(t.Index, s.C)
		in.Shape = v.shape
		v = im.emit(nil, "/sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus}, v.shape, v)
		v.rank, v.typ = len(t.Dims), schema.Int32
	case schema.Int8, schema.Uint8:
		in.DType = bcnn.Uint8
		if t.Type == schema.Int8 {
			v.offset = -128
		}
		try.Check(v.quantized(t))
	default:
		try.Failf("elements of %v are not supported, want FLOAT32, UINT8, INT8, or INT32 for packed bits", t.Type)
	}
	return v
}

// quantized takes what 8-bit values stand for from a tensor.
func (v *value) quantized(t *schema.Tensor) error {
	if len(t.Scale) != 1 {
		return fmt.Errorf("its quantisation has %d scales, want 1", len(t.Scale))
	}
	v.scale, v.zero = t.Scale[0], int(t.Zero[0])
	lo, hi := int64(0), int64(255)
	if t.Type == schema.Int8 {
		lo, hi = -128, 127
	}
	const least, most = 1e-37, 1e37 // whose reciprocals are no less exact
	if t.Zero[0] < lo || t.Zero[0] > hi || !(least < v.scale && v.scale < most) {
		return fmt.Errorf("its scale, %v, or its zero point, %d, is out of range", v.scale, t.Zero[0])
	}
	return nil
}

// prepared puts the scaling of the options behind an input of FLOAT32.
func (im *importer) prepared(v *value) *value {
	bias := make([]float32, len(im.opts.Mean))
	for i, m := range im.opts.Mean {
		bias[i] = -m
	}
	in := v
	for _, part := range []struct {
		name, suffix string
		scale, bias  []float32
	}{{"Mean", "/mean", nil, bias}, {"Scale", "/scale", im.opts.Scale, nil}} {
		if n := len(part.scale) + len(part.bias); n > 1 && n != v.shape.C {
			try.Failf("%s has %d values, the input has %s", part.name, n, text.Count(v.shape.C, "channel"))
		}
		v = im.affine(nil, part.suffix, v, part.scale, part.bias)
	}
	v.rank = in.rank
	return v
}

// finish makes a tensor an output of the network.
func (im *importer) finish(index int) error {
	t, err := im.model.Tensor(index)
	if err != nil {
		return err
	}
	r, err := im.tensor(index)
	if err == nil && r.value != nil {
		_, err = try.Do(func() *value {
			try.Check(r.value.checkBounded())
			return im.settled(r.value.undivided())
		})
	}
	if err == nil {
		switch v := r.value; {
		case v == nil:
			err = errors.New("it is constant")
		case v.layer <= bcnn.NetworkInput:
			err = errors.New("no layer computes it: it is an input of the model")
		case v.typ == schema.Bool:
			err = errors.New("it is BOOL, want numbers: cast it to FLOAT32")
		case slices.Contains(im.net.Outputs, v.layer):
			err = errors.New("another output is the same")
		default:
			im.net.Layers[v.layer].Source = im.describeEnd(t, v)
			im.net.Outputs = append(im.net.Outputs, v.layer)
			out := newTensor(t, v)
			out.Dims = im.known(t, v)
			im.report.Outputs = append(im.report.Outputs, out)
		}
	}
	if err != nil {
		return fmt.Errorf("output %s: %w", text.Quote(t.Name), err)
	}
	return nil
}

// findPacked finds how many channels packed tensors have of which only the words are
// known: what reads them tells.
func (im *importer) findPacked() error {
	im.packed = map[int]int{}
	g := im.model.Graph
	for i := len(g.Operators) - 1; i >= 0; i-- {
		o := &g.Operators[i]
		if !im.needed[i] || !o.Custom || !has(o, 0) || len(o.Outputs) == 0 {
			continue
		}
		if err := im.budget.Charge(operatorUnits + int64(len(o.CustomOptions))); err != nil {
			return err
		}
		switch o.Name {
		case "LceBconv2d":
			if options, err := flat.ReadMap(o.CustomOptions); err == nil {
				im.packed[o.Inputs[0]] = int(options["channels_in"])
			}
		case "LceBMaxPool2d":
			if c := im.packed[o.Outputs[0]]; c > 0 {
				im.packed[o.Inputs[0]] = c
			}
		case "LceDequantize":
			if t, err := im.model.Tensor(o.Outputs[0]); err == nil && len(t.Dims) > 0 {
				im.packed[o.Inputs[0]] = t.Dims[len(t.Dims)-1]
			}
		}
	}
	return nil
}

// channels returns how many channels a packed tensor of so many words has: all of the
// words where nothing tells.
func (im *importer) channels(index, words int) int {
	if c := im.packed[index]; c > 0 && wordsOf(c) == words {
		return c
	}
	return words * wordBits
}
