package modelfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/described"
	"github.com/bitcnn/bitcnn/internal/text"
)

// The network's JSON.
type networkJSON struct {
	Name   string      `json:"name"`
	Input  inputJSON   `json:"input"`
	Layers []layerJSON `json:"layers"`
	Labels []string    `json:"labels,omitempty"`
	// Since version sourceVersion.
	MoreInputs []inputJSON `json:"more_inputs,omitempty"`
	Outputs    []int       `json:"outputs,omitempty"` // indices of layers
	// Since version detectionVersion.
	Detection *described.Detection `json:"detection,omitempty"`
}

type inputJSON struct {
	Shape  []int            `json:"shape"` // height, width, channels
	DType  string           `json:"dtype"`
	Resize int              `json:"resize,omitempty"`
	Source *sourceJSON      `json:"source,omitempty"` // since version sourceVersion
	Photo  *described.Photo `json:"photo,omitempty"`  // since version detectionVersion
}

// sourceVersion is the first version of the format that has sources, and several inputs
// and outputs.
const sourceVersion = 3

// scaleVersion is the first version of the format whose sources may have a scale.
const scaleVersion = 6

type sourceJSON struct {
	Name          string `json:"name"`
	Dims          []int  `json:"dims"`
	ChannelsFirst bool   `json:"channels_first"`
	Type          string `json:"type,omitempty"`
	Offset        int    `json:"offset,omitempty"`
	// Since version scaleVersion.
	Scale float32 `json:"scale,omitempty"`
}

type layerJSON struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"`
	Inputs  []int             `json:"inputs"` // indices of layers; −1 is the network's input, −2 the second
	Params  json.RawMessage   `json:"params,omitempty"`
	Tensors map[string]string `json:"tensors,omitempty"` // role → name of the tensor
	Source  *sourceJSON       `json:"source,omitempty"`  // since version sourceVersion
}

// Roles of tensors.
const (
	weight        = "weight"
	bias          = "bias"
	scale         = "scale"
	thresholds    = "thresholds"
	gamma         = "gamma"
	beta          = "beta"
	mean          = "mean"
	variance      = "var"
	slope         = "slope"
	index         = "index"
	rows          = "rows"
	columns       = "columns"
	rowWeights    = "row_weights"
	columnWeights = "column_weights"
)

// layerWriter collects what describes a layer.
type layerWriter struct {
	version *int // of the file, which it raises to one that has the layer
	packs   bool // in as few bytes as it can
	layer   layerJSON
	params  any
	tensors []*tensor
}

// add adds a tensor unless it is empty. Its name is that of the layer and the
// role, "conv1.weight": unique, because names of layers are.
func (w *layerWriter) add(role string, t *tensor) {
	if t.bytes() == 0 {
		return
	}
	t.name = w.layer.Name + "." + role
	if w.layer.Tensors == nil {
		w.layer.Tensors = map[string]string{}
	}
	w.layer.Tensors[role] = t.name
	w.tensors = append(w.tensors, t)
}

// packed raises the version to the first one that has what is packed.
func (w *layerWriter) packed() { *w.version = max(*w.version, packedVersion) }

func (w *layerWriter) scalars(json any) { w.params = json }

func (w *layerWriter) floats(role string, v *[]float32) {
	w.add(role, w.numbers(&tensor{dtype: f32, shape: []int64{int64(len(*v))}, f32: *v}))
}

// numbers stores numbers in 16 bits if these give all of them back.
func (w *layerWriter) numbers(t *tensor) *tensor {
	if !w.packs || len(t.f32) == 0 {
		return t
	}
	if dtype, list, ok := narrowed(t.f32); ok {
		w.packed()
		return &tensor{dtype: dtype, shape: t.shape, u16: list}
	}
	return t
}

func (w *layerWriter) ints(role string, v *[]int32) {
	w.add(role, &tensor{dtype: i32, shape: []int64{int64(len(*v))}, i32: *v})
}

func (w *layerWriter) weights(v *bcnn.Weights, outer ...int) {
	t := &tensor{dtype: f32, f32: v.F32}
	length := len(v.F32)
	switch {
	case v.Binary():
		t = &tensor{dtype: u64, u64: v.Bits}
		length = len(v.Bits)
	case v.Int8 != nil:
		t = &tensor{dtype: i8, i8: v.Int8}
		length = len(v.Int8)
		*w.version = max(*w.version, integersVersion)
	}
	for _, d := range outer {
		t.shape = append(t.shape, int64(d))
		length /= d
	}
	if v.Binary() && w.packs {
		if bytes := rowBytes(v.Bits, length); bytes < 8*length {
			w.packed()
			t, length = &tensor{dtype: u8, shape: t.shape, u8: packedBits(v.Bits, length, bytes)}, bytes
		}
	}
	t.shape = append(t.shape, int64(length))
	w.add(weight, w.numbers(t))
}

// encodeNetwork describes a network that has passed its Check, in the first version
// that has all its kinds of layers. Packed it takes fewer bytes, for which it may need a later one.
func encodeNetwork(n *bcnn.Network, packs bool) (meta metadata, tensors []*tensor, err error) {
	version := 1
	out := networkJSON{
		Name:    n.Name,
		Input:   encodeInput(n.Inputs[0], &version),
		Labels:  n.Labels,
		Outputs: n.Outputs,
	}
	for _, in := range n.Inputs[1:] {
		out.MoreInputs = append(out.MoreInputs, encodeInput(in, &version))
	}
	if len(n.Inputs)-1+len(n.Outputs) > 0 {
		version = max(version, sourceVersion)
	}
	for _, l := range n.Layers {
		w := layerWriter{version: &version, packs: packs, layer: layerJSON{Name: l.Name, Kind: l.Op.Kind(), Inputs: l.Inputs}}
		w.layer.Source = encodeSource(l.Source, &version)
		if err := w.encode(l.Op); err != nil {
			return meta, nil, fmt.Errorf("layer %q: %w", l.Name, err)
		}
		if w.params != nil {
			raw, err := marshal(w.params)
			if err != nil {
				return meta, nil, fmt.Errorf("layer %q: %w", l.Name, err)
			}
			w.layer.Params = raw
		}
		out.Layers = append(out.Layers, w.layer)
		tensors = append(tensors, w.tensors...)
	}
	var boxes []*tensor
	if out.Detection, boxes, err = encodeDetection(n.Detection, &version); err != nil {
		return meta, nil, err
	}
	tensors = append(tensors, boxes...)
	b, err := marshal(out)
	if err != nil {
		return meta, nil, err
	}
	meta = metadata{Version: strconv.Itoa(version), Network: string(b)}
	if n.Absorbed != nil {
		b, err = marshal(n.Absorbed)
		meta.Absorbed = string(b)
	}
	if err == nil && len(n.Deviations) > 0 {
		b, err = marshal(n.Deviations)
		meta.Deviations = string(b)
	}
	return meta, tensors, err
}

func encodeInput(in bcnn.Input, version *int) inputJSON {
	return inputJSON{
		Shape:  []int{in.Shape.H, in.Shape.W, in.Shape.C},
		DType:  in.DType.String(),
		Resize: in.Resize,
		Source: encodeSource(in.Source, version),
		Photo:  encodePhoto(in.Photo, version),
	}
}

func (j inputJSON) decode(version int) (bcnn.Input, error) {
	if len(j.Shape) != 3 {
		return bcnn.Input{}, fmt.Errorf("%d dimensions, want height, width and channels", len(j.Shape))
	}
	in := bcnn.Input{Shape: bcnn.Shape{H: j.Shape[0], W: j.Shape[1], C: j.Shape[2]}, Resize: j.Resize}
	switch j.DType {
	case bcnn.Uint8.String():
		in.DType = bcnn.Uint8
	case bcnn.Float32.String():
		in.DType = bcnn.Float32
	default:
		return in, fmt.Errorf("unknown type %s", text.Quote(j.DType))
	}
	var err error
	if in.Photo, err = decodePhoto(j.Photo, version); err != nil {
		return in, err
	}
	in.Source, err = j.Source.decode(version)
	return in, err
}

// encodeSource describes a source, which the version of the file must have.
func encodeSource(s *bcnn.Source, version *int) *sourceJSON {
	if s == nil {
		return nil
	}
	*version = max(*version, sourceVersion)
	if s.Type == bcnn.SourceInt32 || s.Type == bcnn.SourceInt64 {
		*version = max(*version, spatialVersion)
	}
	if s.Scale != 0 {
		*version = max(*version, scaleVersion)
	}
	return &sourceJSON{s.Name, append([]int{}, s.Dims...), s.ChannelsFirst, string(s.Type), s.Offset, s.Scale}
}

func (j *sourceJSON) decode(version int) (*bcnn.Source, error) {
	switch {
	case j == nil:
		return nil, nil
	case version < sourceVersion:
		return nil, fmt.Errorf("sources need version %d of the format, this file has version %d", sourceVersion, version)
	case version < spatialVersion && (j.Type == string(bcnn.SourceInt32) || j.Type == string(bcnn.SourceInt64)):
		return nil, fmt.Errorf("sources of type %s need version %d of the format, this file has version %d", j.Type, spatialVersion, version)
	case version < scaleVersion && j.Scale != 0:
		return nil, fmt.Errorf("scales of sources need version %d of the format, this file has version %d", scaleVersion, version)
	case j.Dims == nil:
		return nil, errors.New("the source has no dims")
	}
	return &bcnn.Source{Name: j.Name, Dims: j.Dims, ChannelsFirst: j.ChannelsFirst, Type: bcnn.SourceType(j.Type), Offset: j.Offset, Scale: j.Scale}, nil
}

// encodeWindow writes the strides and dilations that are meant by 0 as 1.
func encodeWindow(w bcnn.Window) windowJSON {
	return windowJSON{
		Kernel:   []int{w.KH, w.KW},
		Stride:   []int{max(w.StrideH, 1), max(w.StrideW, 1)},
		Dilation: []int{max(w.DilationH, 1), max(w.DilationW, 1)},
		Pad:      []int{w.Pad.Top, w.Pad.Left, w.Pad.Bottom, w.Pad.Right},
	}
}

func (j windowJSON) decode(w *bcnn.Window) error {
	if len(j.Kernel) != 2 || len(j.Stride) != 2 || len(j.Dilation) != 2 || len(j.Pad) != 4 {
		return errors.New("kernel, stride and dilation need 2 values, pad needs 4")
	}
	if min(j.Stride[0], j.Stride[1], j.Dilation[0], j.Dilation[1]) < 1 {
		return fmt.Errorf("stride %v and dilation %v must be at least 1", j.Stride, j.Dilation)
	}
	*w = bcnn.Window{
		KH: j.Kernel[0], KW: j.Kernel[1],
		StrideH: j.Stride[0], StrideW: j.Stride[1],
		DilationH: j.Dilation[0], DilationW: j.Dilation[1],
		Pad: bcnn.Padding{Top: j.Pad[0], Left: j.Pad[1], Bottom: j.Pad[2], Right: j.Pad[3]},
	}
	return nil
}

// layerReader hands out what describes a layer and remembers what was used.
type layerReader struct {
	*decoder
	version int // of the file
	layer   layerJSON
	tensors map[string]*tensor // of the file; used ones are removed
	err     error              // the first one of its fields
}

// params decodes the parameters of the layer.
func (r *layerReader) params(v any) error {
	if r.layer.Params == nil {
		return errors.New("no params")
	}
	if err := r.unmarshal(r.layer.Params, v); err != nil {
		return fmt.Errorf("params: %w", err)
	}
	r.layer.Params = nil
	return nil
}

func (r *layerReader) scalars(json any) {
	if r.err == nil {
		r.err = r.params(json)
	}
}

// take returns the tensor of a role, nil if the layer has none.
func (r *layerReader) take(role string) (*tensor, error) {
	name, ok := r.layer.Tensors[role]
	if !ok {
		return nil, nil
	}
	delete(r.layer.Tensors, role)
	t := r.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("%s: tensor %s does not exist, or another layer uses it", role, text.Quote(name))
	}
	delete(r.tensors, name)
	return t, nil
}

// vector returns a tensor of one dimension and the given type, an empty one if the
// layer has none. Check knows the length that it must have.
func (r *layerReader) vector(role, dtype string) *tensor {
	if r.err != nil {
		return &tensor{}
	}
	t, err := r.take(role)
	if err == nil && t != nil && (t.dtype != dtype || len(t.shape) != 1) {
		err = fmt.Errorf("%s: tensor %s is %s %v, want %s with one dimension", role, text.Quote(t.name), t.dtype, t.shape, dtype)
	}
	if r.err = err; err != nil || t == nil {
		return &tensor{}
	}
	return t
}

func (r *layerReader) floats(role string, v *[]float32) { *v = r.vector(role, f32).f32 }

func (r *layerReader) ints(role string, v *[]int32) { *v = r.vector(role, i32).i32 }

func (r *layerReader) weights(v *bcnn.Weights, outer ...int) {
	if r.err == nil {
		*v, r.err = r.weightsOf(outer)
	}
}

// weightsOf returns the weights, whose dimensions but the last must be outer.
// Check knows what the last one must be.
func (r *layerReader) weightsOf(outer []int) (bcnn.Weights, error) {
	t, err := r.take(weight)
	if err != nil {
		return bcnn.Weights{}, err
	}
	if t == nil {
		return bcnn.Weights{}, errors.New("no weights")
	}
	want := make([]int64, len(outer))
	for i, d := range outer {
		want[i] = int64(d)
	}
	if len(t.shape) != len(want)+1 || !slices.Equal(t.shape[:len(want)], want) {
		return bcnn.Weights{}, fmt.Errorf("weights: tensor %s has shape %v, want %v and one more dimension", text.Quote(t.name), t.shape, want)
	}
	switch t.dtype {
	case u64:
		return bcnn.Weights{Bits: t.u64}, nil
	case f32:
		return bcnn.Weights{F32: t.f32}, nil
	case u8:
		bytes := t.shape[len(outer)]
		if err := r.room(8 * int64(len(t.u8)) / bytes * wordsOfBytes(bytes)); err != nil {
			return bcnn.Weights{}, err
		}
		return bcnn.Weights{Bits: unpackedBits(t.u8, int(bytes))}, nil
	case i8:
		if r.version < integersVersion {
			return bcnn.Weights{}, fmt.Errorf("weights: integers need version %d of the format, this file has version %d", integersVersion, r.version)
		}
		return bcnn.Weights{Int8: t.i8}, nil
	}
	return bcnn.Weights{}, fmt.Errorf("weights: tensor %s is %s, want %s, %s or %s", text.Quote(t.name), t.dtype, u64, i8, f32)
}

// network reads a file of the given size: it builds and checks the network that
// uses all the tensors, each exactly once.
func (d *decoder) network(r io.ReaderAt, size int64) (*bcnn.Network, error) {
	c, err := d.readContainer(r, size)
	if err != nil {
		return nil, err
	}
	var in networkJSON
	if err := d.unmarshal([]byte(c.Network), &in); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	n := &bcnn.Network{Name: in.Name, Labels: in.Labels, Inputs: make([]bcnn.Input, 1+len(in.MoreInputs)), Layers: make([]bcnn.Layer, len(in.Layers))}
	if n.Inputs[0], err = in.Input.decode(c.version()); err != nil {
		return nil, fmt.Errorf("network %s: input: %w", text.Quote(n.Name), err)
	}
	if c.version() < sourceVersion && len(in.MoreInputs)+len(in.Outputs) > 0 {
		return nil, fmt.Errorf("network %s: several inputs or outputs need version %d of the format, this file has version %d",
			text.Quote(n.Name), sourceVersion, c.version())
	}
	for i, more := range in.MoreInputs {
		if n.Inputs[1+i], err = more.decode(c.version()); err != nil {
			return nil, fmt.Errorf("network %s: input %d: %w", text.Quote(n.Name), i+2, err)
		}
	}
	n.Outputs = in.Outputs
	for i, l := range in.Layers {
		r := layerReader{decoder: d, version: c.version(), layer: l, tensors: c.tensors}
		op, err := r.decode()
		if err == nil {
			err = r.checkUsed()
		}
		var source *bcnn.Source
		if err == nil {
			source, err = l.Source.decode(c.version())
		}
		if err != nil {
			return nil, fmt.Errorf("network %s: layer %d %s: %w", text.Quote(n.Name), i, text.Quote(l.Name), err)
		}
		n.Layers[i] = bcnn.Layer{Name: l.Name, Inputs: l.Inputs, Op: op, Source: source}
	}
	if c.Absorbed != "" {
		if err := d.unmarshal([]byte(c.Absorbed), &n.Absorbed); err != nil {
			return nil, fmt.Errorf("metadata: absorbed: %w", err)
		}
	}
	if c.Deviations != "" {
		if err := d.unmarshal([]byte(c.Deviations), &n.Deviations); err != nil {
			return nil, fmt.Errorf("metadata: deviations: %w", err)
		}
	}
	boxes := layerReader{decoder: d, version: c.version(), tensors: c.tensors}
	if n.Detection, err = boxes.detection(in.Detection); err != nil {
		return nil, fmt.Errorf("network %s: detection: %w", text.Quote(n.Name), err)
	}
	if len(c.tensors) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(c.tensors))) // one file gives one error
		return nil, fmt.Errorf("network %s: no layer uses the tensor %s", text.Quote(n.Name), text.Quote(name))
	}
	if err := n.Check(); err != nil {
		return nil, err
	}
	return n, nil
}

// checkUsed refuses what decode did not ask for.
func (r *layerReader) checkUsed() error {
	if r.layer.Params != nil {
		return fmt.Errorf("a layer of kind %s takes no params", r.layer.Kind)
	}
	if len(r.layer.Tensors) > 0 {
		role := slices.Min(slices.Collect(maps.Keys(r.layer.Tensors))) // one file gives one error
		return fmt.Errorf("a layer of kind %s takes no tensor %s", r.layer.Kind, text.Quote(role))
	}
	return nil
}
