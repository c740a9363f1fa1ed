// Package arrays lays the arrays of NumPy out as the tensors of networks and back, with
// the names, dimensions and order that they have in the model that a network was
// imported from.
package arrays

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Port is a tensor of a network as arrays have it.
type Port struct {
	Name  string
	Shape bcnn.Shape // of an image, NHWC
	// Dims are the dimensions of an array behind the batch.
	Dims []int
	// ChannelsFirst says that the values of an array are in the order channel, row,
	// column (NCHW), else NHWC.
	ChannelsFirst bool
	// How the elements hold the values, and how many of them an image has.
	form     bcnn.SourceType
	offset   int
	scale    float32 // of an integer
	elements int
	// softmax makes what an array has of the channels of a pixel; nil where they are that.
	softmax func(logits []float32) []float64
}

// newPort describes a tensor with this source. Without one arrays are NHWC, and vectors
// have one dimension.
func newPort(name string, shape bcnn.Shape, s *bcnn.Source) Port {
	p := Port{Name: name, Shape: shape, Dims: []int{shape.H, shape.W, shape.C}}
	if shape.Pixels() == 1 {
		p.Dims = []int{shape.C}
	}
	if s != nil {
		p.Dims, p.ChannelsFirst, p.form, p.offset, p.scale = s.Dims, s.ChannelsFirst, s.Type, s.Offset, cmp.Or(s.Scale, 1)
	}
	p.elements = s.Elements(shape)
	return p
}

// Ports are those of a network.
type Ports struct {
	Inputs, Outputs []Port
	// Layers are the outputs of other layers that the model which the network was
	// imported from has as well, by index; of a network that was not imported, all.
	Layers map[int]Port
}

// PortsOf describes the inputs, the outputs and the layers of a network. The names are those of
// Network.InputName and OutputName; of other layers, that of the source, else that of the layer.
func PortsOf(net *bcnn.Network) (*Ports, error) {
	shapes, err := net.Shapes()
	if err != nil {
		return nil, err
	}
	p := &Ports{Layers: map[int]Port{}}
	for i, in := range net.Inputs {
		p.Inputs = append(p.Inputs, newPort(net.InputName(i), in.Shape, in.Source))
	}
	imported := net.Inputs[0].Source != nil
	for i, l := range net.Layers {
		switch {
		case l.Source != nil && l.Source.Name != "":
			p.Layers[i] = newPort(l.Source.Name, shapes[i], l.Source)
		case !imported:
			p.Layers[i] = newPort(l.Name, shapes[i], l.Source)
		}
	}
	for i, l := range net.OutputLayers() {
		port := newPort(net.OutputName(i), shapes[l], net.Layers[l].Source)
		if op, ok := net.Layers[l].Op.(bcnn.Softmax); ok {
			port.softmax = bcnn.Probabilities
			if op.Log {
				port.softmax = bcnn.LogProbabilities
			}
		}
		p.Outputs = append(p.Outputs, port)
		delete(p.Layers, l)
	}
	return p, nil
}

// Find returns a reader of the array that belongs to the port: that of its name, else, if
// the port is the only one, the only one of the file.
func (p Port) Find(f *npy.File, only bool) (*npy.Reader, error) {
	a, err := f.Array(p.Name)
	names := f.Names()
	if errors.Is(err, fs.ErrNotExist) {
		if len(names) != 1 || !only {
			return nil, fmt.Errorf("no array %s; there are %s", text.Quote(p.Name), Quoted(names))
		}
		a, err = f.Array(names[0])
	}
	return a, err
}

// Quoted lists names, not too many of them.
func Quoted(names []string) string {
	const most = 8
	var list []string
	for i, name := range names {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		list = append(list, text.Quote(name))
	}
	return strings.Join(list, ", ")
}

// Batch returns the number of images of an array of a shape, whose other dimensions must be
// those of the port.
func (p Port) Batch(shape []int) (int, error) {
	if len(shape) == 0 || !slices.Equal(shape[1:], p.Dims) {
		return 0, fmt.Errorf("%s: an array of %s, want %s, images first", text.Quote(p.Name), Dims(shape), Batches(p.Dims))
	}
	if shape[0] == 0 {
		return 0, fmt.Errorf("%s: an array without images, %s", text.Quote(p.Name), Dims(shape))
	}
	return shape[0], nil
}

// Flat reports whether an array of a shape has the vectors of so many images in one row, as a
// file gives them whose last node joins the batch with what is behind it.
func (p Port) Flat(shape []int, images int) bool {
	return len(shape) == 1 && p.Shape.Pixels() == 1 && len(p.Dims) > 0 && p.elements > 0 &&
		shape[0]/p.elements == images && shape[0]%p.elements == 0
}

// Next reads the next n images of an array, which may be Flat.
func (p Port) Next(r *npy.Reader, n int) (*npy.Array, error) {
	if len(r.Shape()) == 1 && len(p.Dims) > 0 {
		n *= p.elements
	}
	return r.Next(n)
}

// Batches writes dimensions behind the batch: N×2×3.
func Batches(list []int) string {
	if len(list) == 0 {
		return "N"
	}
	return "N×" + Dims(list)
}

// Dims writes dimensions: 2×3.
func Dims(list []int) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = fmt.Sprint(d)
	}
	return strings.Join(words, "×")
}

// Fill fills a tensor with the images of an array. Values that the type of the tensor cannot
// hold exactly are errors.
func (p Port) Fill(t bcnn.Tensor, a *npy.Array) error {
	var err error
	switch t.DType {
	case bcnn.Uint8:
		err = fill(p, t.U8, a)
	case bcnn.Float32:
		err = fill(p, t.F32, a)
	default:
		err = fmt.Errorf("a tensor of %v", t.DType)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", text.Quote(p.Name), err)
	}
	return nil
}

func fill[T npy.Number](p Port, dst []T, a *npy.Array) error {
	if p.form != bcnn.SourceValues {
		numbers, err := p.Numbers(a)
		if err != nil {
			return err
		}
		for i, v := range numbers {
			v -= float64(p.offset)
			if dst[i] = T(v); float64(dst[i]) != v {
				return fmt.Errorf("element %d is %v, which is out of range", a.Index(i), v+float64(p.offset))
			}
		}
	} else if err := npy.Values(dst, a, 0); err != nil {
		return err
	}
	if p.ChannelsFirst {
		eachImage(dst, p.Shape, func(nhwc, nchw int, dst, src []T) { dst[nhwc] = src[nchw] })
	}
	return nil
}

// Values writes the values of a tensor in the order of arrays, behind a softmax where the
// network ends in one.
func (p Port) Values(dst []float32, t bcnn.Tensor) {
	switch t.DType {
	case bcnn.Bits:
		c := t.Shape.C
		for i := range t.N * t.Shape.Pixels() {
			bits.Unpack(dst[i*c:(i+1)*c], t.Words[i*bits.Words(c):(i+1)*bits.Words(c)], c)
		}
	default:
		copy(dst, t.F32)
	}
	if p.softmax != nil {
		for channels := range slices.Chunk(dst, p.Shape.C) {
			for i, v := range p.softmax(channels) {
				channels[i] = float32(v)
			}
		}
	}
	if p.ChannelsFirst {
		eachImage(dst, p.Shape, func(nhwc, nchw int, dst, src []float32) { dst[nchw] = src[nhwc] })
	}
}

// eachImage moves the values of each image, given a copy of them.
func eachImage[T any](values []T, s bcnn.Shape, move func(nhwc, nchw int, dst, src []T)) {
	n, pixels := s.Values(), s.Pixels()
	src := make([]T, n)
	for ; len(values) > 0; values = values[n:] {
		copy(src, values)
		for c := range s.C {
			for i := range pixels {
				move(i*s.C+c, c*pixels+i, values, src)
			}
		}
	}
}

// Form says how the elements of an array hold the values.
func (p Port) Form() bcnn.SourceType { return p.form }

// Elements returns the number of elements of an image.
func (p Port) Elements() int { return p.elements }
