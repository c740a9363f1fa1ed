package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
	"github.com/bitcnn/bitcnn/vision"
)

// raw makes a request of the elements of the one input of a model, without any JSON: what
// Triton's extension for binary data calls a raw binary request. How many images there are
// follows from their size. Its outputs are binary data.
func (m *model) raw(data []byte) (*tensor.Request, error) {
	if len(m.inputs) != 1 {
		return nil, fmt.Errorf("data without JSON is for models with one input; %s has %s", text.Quote(m.name), names(m.inputs))
	}
	p := m.inputs[0]
	image := p.Elements() * tensor.Size(p.datatype)
	n := len(data) / image
	if n == 0 || len(data)%image != 0 {
		return nil, fmt.Errorf("%d bytes of data without JSON; want a multiple of %d, the bytes of %s of %s",
			len(data), image, dimensions(p), p.datatype)
	}
	return &tensor.Request{
		Inputs: []tensor.Tensor{{Name: p.Name, Datatype: p.datatype, Shape: p.shape(n), Data: data}},
		Binary: true,
	}, nil
}

// infer runs a model on the inputs of a request. It calls read when those have been read.
func (m *model) infer(ctx context.Context, h *hold, r *tensor.Request, read func()) (*tensor.Response, error) {
	began := time.Now()
	wanted, err := m.wanted(r)
	if err != nil {
		return nil, err
	}
	in, err := m.tensors(h, r.Inputs)
	read()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err() // which may be why
	case err != nil:
		return nil, err
	}
	if err := h.take(m.answerBytes(wanted, in[0].N)); err != nil {
		return nil, err
	}
	filled := time.Now()
	var out []bitcnn.Tensor
	err = m.traced(ctx, "inference", func(ctx context.Context) (err error) {
		out, err = m.session.Predict(ctx, in...)
		return err
	})
	if err != nil {
		return nil, err
	}
	computed := time.Now()
	response := &tensor.Response{Model: m.name, Version: m.version, ID: r.ID}
	for _, w := range wanted {
		t, err := m.result(w, out[w.index])
		if err != nil {
			return nil, err
		}
		response.Outputs = append(response.Outputs, t)
		response.Binary = append(response.Binary, w.Binary)
	}
	m.counters.converted(filled.Sub(began), time.Since(computed))
	return response, nil
}

// jsonElement bounds the bytes of JSON that an element of a tensor takes: a number with all its
// digits, and what stands before it on a line of its own.
const jsonElement = 96

// largestBody is the size of a body of HTTP at the most that the model can make something of.
func (m *model) largestBody() int64 {
	const rest = 64 << 10 // names, parameters, shapes
	elements := int64(0)
	for _, p := range m.inputs {
		elements += int64(p.Elements())
	}
	return rest + jsonElement*elements*int64(m.session.MaxBatch())
}

// answerBytes bounds the memory that n images of outputs take, from the tensors of the session to
// the body of the answer.
func (m *model) answerBytes(wanted []wantedOutput, n int) int64 {
	const number = 16 // in JSON, with a comma
	bytes := int64(0)
	for _, p := range m.outputs {
		bytes += 4 * int64(p.Shape.Values()) // all are computed
	}
	for _, w := range wanted {
		p := m.outputs[w.index]
		size := tensor.Size(p.datatype)
		switch {
		case w.Classes > 0:
			const class = 512 // a label, twice, and what stands around it
			bytes += 4*int64(p.Shape.Values()) + class*int64(min(w.Classes, p.Shape.C))
		case w.Binary:
			bytes += int64(p.Shape.Values()) * int64(4+2*size)
		default:
			bytes += int64(p.Shape.Values()) * int64(4+size+3*number)
		}
	}
	return bytes * int64(n)
}

// wantedOutput is an output that a request asks for.
type wantedOutput struct {
	tensor.Output
	index int
}

func (m *model) wanted(r *tensor.Request) ([]wantedOutput, error) {
	var list []wantedOutput
	if len(r.Outputs) == 0 {
		for i, p := range m.outputs {
			list = append(list, wantedOutput{tensor.Output{Name: p.Name, Binary: r.Binary}, i})
		}
		return list, nil
	}
	seen := make([]bool, len(m.outputs))
	for _, o := range r.Outputs {
		i := slices.IndexFunc(m.outputs, func(p port) bool { return p.Name == o.Name })
		switch {
		case i < 0:
			return nil, badf("the model %s has no output %s; it has %s", text.Quote(m.name), text.Quote(o.Name),
				names(m.outputs))
		case seen[i]:
			return nil, badf("output %s is requested twice", text.Quote(o.Name))
		case o.Classes < 0:
			return nil, badf("output %s: %d classes, want 1 or more", text.Quote(o.Name), o.Classes)
		case o.Classes > 0 && (m.outputs[i].Shape.Pixels() != 1 || m.outputs[i].datatype != tensor.FP32):
			return nil, badf("output %s is not a list of classes", text.Quote(o.Name))
		}
		seen[i] = true
		list = append(list, wantedOutput{o, i})
	}
	return list, nil
}

func names(ports []port) string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = text.Quote(p.Name)
	}
	return strings.Join(list, ", ")
}

// tensors makes the inputs of the session of those of a request.
func (m *model) tensors(h *hold, inputs []tensor.Tensor) ([]bitcnn.Tensor, error) {
	in, images := make([]bitcnn.Tensor, len(m.inputs)), 0
	seen := make([]bool, len(m.inputs))
	for _, t := range inputs {
		i := slices.IndexFunc(m.inputs, func(p port) bool { return p.Name == t.Name })
		if i < 0 {
			return nil, badf("the model %s has no input %s; it has %s", text.Quote(m.name), text.Quote(t.Name), names(m.inputs))
		}
		if seen[i] {
			return nil, badf("input %s is given twice", text.Quote(t.Name))
		}
		seen[i] = true
		p := m.inputs[i]
		n, err := p.images(t, m.session.MaxBatch())
		if err != nil {
			return nil, err
		}
		if images > 0 && n != images {
			return nil, badf("input %s has %d images, others have %d", text.Quote(t.Name), n, images)
		}
		images = n
		// As they come, and in the form and order of the session, by way of an array.
		if err := h.take(int64(n) * int64(p.Elements()) * int64(2*tensor.Size(p.datatype)+8)); err != nil {
			return nil, err
		}
		if in[i], err = p.fill(t, n); err != nil {
			return nil, badf("input %s: %w", text.Quote(t.Name), err)
		}
	}
	for i, p := range m.inputs {
		if !seen[i] {
			return nil, badf("input %s is missing: %s of %s", text.Quote(p.Name), p.datatype, dimensions(p))
		}
	}
	return in, nil
}

// dimensions writes those of a port.
func dimensions(p port) string {
	list := []string{"N"}
	for _, d := range p.Dims {
		list = append(list, fmt.Sprint(d))
	}
	return strings.Join(list, "×")
}

// images checks the type and the shape of an input, and returns the number of its images.
func (p port) images(t tensor.Tensor, most int) (int, error) {
	name := text.Quote(t.Name)
	if t.Datatype != p.datatype {
		return 0, badf("input %s has datatype %s, want %s", name, text.Quote(t.Datatype), p.datatype)
	}
	if len(t.Shape) != 1+len(p.Dims) {
		return 0, badf("input %s has the shape %s, want %s", name, dims(t.Shape), dimensions(p))
	}
	for i, d := range p.Dims {
		if t.Shape[1+i] != int64(d) {
			return 0, badf("input %s has the shape %s, want %s", name, dims(t.Shape), dimensions(p))
		}
	}
	if n := t.Shape[0]; n < 1 || n > int64(most) {
		return 0, badf("input %s has a batch of %d images, want 1 to %d", name, n, most)
	}
	return int(t.Shape[0]), nil
}

// dims writes a shape, of which a request may have given many.
func dims(shape []int64) string {
	const most = 16
	var list []string
	for i, d := range shape {
		if i == most {
			list = append(list, "…")
			break
		}
		list = append(list, fmt.Sprint(d))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// fill makes a tensor of n images of the elements of an input. Bytes in the order of the
// session stay where they are.
func (p port) fill(t tensor.Tensor, n int) (bitcnn.Tensor, error) {
	want := n * p.Elements() * tensor.Size(p.datatype)
	data := t.Data
	if t.Read != nil {
		var err error
		if data, err = t.Read(make([]byte, 0, want)); err != nil {
			return bitcnn.Tensor{}, err
		}
	}
	if len(data) != want {
		return bitcnn.Tensor{}, fmt.Errorf("%d bytes of data, the shape %s of %s has %d", len(data), dims(t.Shape),
			p.datatype, want)
	}
	if p.Form() != bcnn.SourceValues {
		made := bitcnn.NewTensor(p.io.DType, n, p.io.Shape)
		return made, p.Fill(made, p.array(data, n))
	}
	if p.io.DType == bitcnn.Uint8 && !p.ChannelsFirst {
		return bitcnn.Tensor{DType: bitcnn.Uint8, N: n, Shape: p.io.Shape, U8: data}, nil
	}
	made := bitcnn.NewTensor(p.io.DType, n, p.io.Shape)
	for i := range made.U8 {
		made.U8[p.index(i)] = data[i]
	}
	for i := range made.F32 {
		made.F32[p.index(i)] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return made, nil
}

// index returns where element i of an array stands in the tensor of the session.
func (p port) index(i int) int {
	if !p.ChannelsFirst {
		return i
	}
	pixels := p.Shape.Pixels()
	image, i := i/(pixels*p.Shape.C), i%(pixels*p.Shape.C)
	c, pixel := i/pixels, i%pixels
	return (image*pixels+pixel)*p.Shape.C + c
}

// array makes an array of elements that hold values in another form.
func (p port) array(data []byte, n int) *npy.Array {
	shape := append([]int{n}, p.Dims...)
	switch p.datatype {
	case tensor.Int8:
		return npy.From(shape, decode(data, 1, func(b []byte) int8 { return int8(b[0]) }))
	case tensor.Uint8:
		return npy.From(shape, data)
	case tensor.Int32:
		return npy.From(shape, decode(data, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }))
	}
	return npy.From(shape, decode(data, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }))
}

func decode[T any](data []byte, size int, element func([]byte) T) []T {
	list := make([]T, 0, len(data)/size)
	for ; len(data) > 0; data = data[size:] {
		list = append(list, element(data))
	}
	return list
}

// result makes an output of a response of one of the session.
func (m *model) result(w wantedOutput, out bitcnn.Tensor) (tensor.Tensor, error) {
	p := m.outputs[w.index]
	values := make([]float32, out.N*p.Shape.Values())
	p.Values(values, out)
	if w.Classes > 0 {
		return m.classes(w, out, values)
	}
	p.Results(values)
	return tensor.Tensor{
		Name: p.Name, Datatype: p.datatype, Shape: p.shape(out.N), Data: p.Array(out.N, values).Bytes(),
	}, nil
}

// classes makes strings of the likeliest classes of each image, as Triton does:
// "value:index:label".
func (m *model) classes(w wantedOutput, out bitcnn.Tensor, values []float32) (tensor.Tensor, error) {
	n := m.outputs[w.index].Shape.C
	k := min(w.Classes, n)
	t := tensor.Tensor{Name: w.Name, Datatype: tensor.Bytes, Shape: []int64{int64(out.N), int64(k)}}
	for i := range out.N {
		of := values[i*n : (i+1)*n]
		for _, v := range of {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return t, badf("output %s has %v, not the scores of classes: request its values", text.Quote(w.Name), v)
			}
		}
		for _, c := range vision.TopK(of, nil, k) {
			s := fmt.Sprintf("%f:%d", of[c.Index], c.Index)
			if c.Index < len(m.labels) {
				s += ":" + m.labels[c.Index]
			}
			t.Data = tensor.AppendBytes(t.Data, s)
		}
	}
	return t, nil
}
