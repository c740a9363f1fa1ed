package openvino

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// pair is an .xml and its .bin.
type pair struct {
	xml string
	bin []byte
}

// writer writes a graph of IR 11, layer by layer.
type writer struct {
	layers, edges strings.Builder
	n             int
	bin           []byte
	dims          [][]int // of outputs
	ports         []int   // of outputs
}

func newWriter() *writer { return &writer{} }

func list[T any](values []T) string {
	var s []string
	for _, v := range values {
		s = append(s, fmt.Sprint(v))
	}
	return strings.Join(s, ",")
}

// op adds a layer, with attributes such as `axis="1"`, whose output has dimensions: nil for those
// of its first input.
func (w *writer) op(typ, attrs string, dims []int, inputs ...int) int {
	id := w.n
	w.n++
	version := "opset1"
	if typ, after, ok := strings.Cut(typ, " "); ok {
		return w.versioned(id, typ, after, attrs, dims, inputs)
	}
	return w.versioned(id, typ, version, attrs, dims, inputs)
}

func (w *writer) versioned(id int, typ, version, attrs string, dims []int, inputs []int) int {
	fmt.Fprintf(&w.layers, `<layer id="%d" name="%s_%d" type="%s" version="%s">`, id, strings.ToLower(typ), id, typ, version)
	if attrs != "" {
		fmt.Fprintf(&w.layers, `<data %s/>`, attrs)
	}
	if len(inputs) > 0 {
		w.layers.WriteString("<input>")
		for k, from := range inputs {
			w.port(k, w.dims[from])
			fmt.Fprintf(&w.edges, `<edge from-layer="%d" from-port="%d" to-layer="%d" to-port="%d"/>`, from, w.ports[from], id, k)
		}
		w.layers.WriteString("</input>")
		if dims == nil {
			dims = w.dims[inputs[0]]
		}
	}
	if typ != "Result" {
		w.layers.WriteString("<output>")
		w.port(len(inputs), dims)
		w.layers.WriteString("</output>")
	}
	w.layers.WriteString("</layer>")
	w.dims, w.ports = append(w.dims, dims), append(w.ports, len(inputs))
	return id
}

func (w *writer) port(id int, dims []int) {
	fmt.Fprintf(&w.layers, `<port id="%d">`, id)
	for _, d := range dims {
		fmt.Fprintf(&w.layers, "<dim>%d</dim>", d)
	}
	w.layers.WriteString("</port>")
}

func (w *writer) parameter(dims ...int) int {
	return w.op("Parameter", fmt.Sprintf(`shape="%s" element_type="f32"`, list(dims)), dims)
}

// data adds a constant of a type whose bytes are given.
func (w *writer) data(typ string, dims []int, data []byte) int {
	at := len(w.bin)
	w.bin = append(w.bin, data...)
	return w.at(typ, dims, at, len(data))
}

// at adds a constant at a place of the .bin.
func (w *writer) at(typ string, dims []int, offset, size int) int {
	return w.op("Const", fmt.Sprintf(`element_type="%s" shape="%s" offset="%d" size="%d"`, typ, list(dims), offset, size), append([]int{}, dims...))
}

func (w *writer) floats(dims []int, values ...float32) int {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return w.data("f32", dims, data)
}

func (w *writer) ints(values ...int64) int {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return w.data("i64", []int{len(values)}, data)
}

// number adds a scalar.
func (w *writer) number(v float32) int { return w.floats(nil, v) }

// quantize adds a FakeQuantize with numbers for all channels.
func (w *writer) quantize(x int, levels int, low, high, outLow, outHigh float32) int {
	return w.op("FakeQuantize", fmt.Sprintf(`levels="%d" auto_broadcast="numpy"`, levels), nil,
		x, w.number(low), w.number(high), w.number(outLow), w.number(outHigh))
}

// explicit are the attributes of a window with one padding on all sides.
func explicit(stride, pad int) string {
	return fmt.Sprintf(`strides="%d,%d" pads_begin="%d,%d" pads_end="%d,%d" dilations="1,1" auto_pad="explicit"`, stride, stride, pad, pad, pad, pad)
}

// binary adds a BinaryConvolution of a window of 3×3 over images that keeps their size.
func (w *writer) binary(x, out int, value string) int {
	dims := slices.Clone(w.dims[x])
	weights := []int{out, dims[1], 3, 3}
	data := make([]byte, (out*dims[1]*9+7)/8)
	for i := range data {
		data[i] = byte(37 * (i + 1))
	}
	c := w.data("u1", weights, data)
	dims[1] = out
	return w.op("BinaryConvolution", explicit(1, 1)+` mode="xnor-popcount" pad_value="`+value+`"`, dims, x, c)
}

func (w *writer) result(from int) { w.op("Result", "", nil, from) }

// files returns what was written.
func (w *writer) files() pair {
	return pair{
		xml: `<?xml version="1.0"?><net name="n" version="11"><layers>` + w.layers.String() + `</layers><edges>` + w.edges.String() + `</edges></net>`,
		bin: w.bin,
	}
}

// last makes a result of the last layer and returns what was written.
func (w *writer) last() pair {
	w.result(w.n - 1)
	return w.files()
}

// old is a graph of IR 4.
func old() pair {
	port := func(id int, dims ...int) string {
		s := fmt.Sprintf(`<port id="%d">`, id)
		for _, d := range dims {
			s += fmt.Sprintf("<dim>%d</dim>", d)
		}
		return s + "</port>"
	}
	layer := func(id int, typ, data, in, out, blobs string) string {
		if in != "" {
			in = "<input>" + in + "</input>"
		}
		return fmt.Sprintf(`<layer id="%d" name="l%d" precision="FP32" type="%s">%s%s<output>%s</output>%s</layer>`, id, id, typ, data, in, out, blobs)
	}
	x := []int{1, 8, 2, 2}
	var s, e strings.Builder
	s.WriteString(layer(0, "Input", "", "", port(0, x...), ""))
	s.WriteString(layer(1, "ScaleShift", "", port(0, x...), port(3, x...), `<blobs><weights offset="0" size="32"/><biases offset="32" size="32"/></blobs>`))
	for id, at := range []int{64, 64, 68, 72} { // thresholds 0, outputs 0 and 1
		s.WriteString(layer(2+id, "Const", "", "", port(1, 1), fmt.Sprintf(`<blobs><custom offset="%d" size="4"/></blobs>`, at)))
	}
	s.WriteString(layer(6, "Quantize", `<data levels="2"/>`, port(0, x...)+port(1, 1)+port(2, 1)+port(3, 1)+port(4, 1), port(5, x...), ""))
	s.WriteString(layer(7, "BinaryConvolution", `<data dilations="1,1" group="1" input="8" kernel="1,1" mode="xnor-popcount" output="4" pads_begin="0,0" pads_end="0,0" strides="1,1"/>`,
		port(0, x...), port(2, 1, 4, 2, 2), `<blobs><weights offset="76" size="4"/></blobs>`))
	s.WriteString(layer(8, "ReLU", `<data negative_slope="0.5"/>`, port(0, 1, 4, 2, 2), port(1, 1, 4, 2, 2), ""))
	s.WriteString(layer(9, "Permute", `<data order="0,2,3,1"/>`, port(0, 1, 4, 2, 2), port(1, 1, 2, 2, 4), ""))
	s.WriteString(layer(10, "Flatten", `<data axis="1" end_axis="-1"/>`, port(0, 1, 2, 2, 4), port(1, 1, 16), ""))
	for _, ends := range [][4]int{{0, 0, 1, 0}, {1, 3, 6, 0}, {2, 1, 6, 1}, {3, 1, 6, 2}, {4, 1, 6, 3}, {5, 1, 6, 4}, {6, 5, 7, 0}, {7, 2, 8, 0}, {8, 1, 9, 0}, {9, 1, 10, 0}} {
		fmt.Fprintf(&e, `<edge from-layer="%d" from-port="%d" to-layer="%d" to-port="%d"/>`, ends[0], ends[1], ends[2], ends[3])
	}
	var bin []byte
	for i := range 16 {
		bin = binary.LittleEndian.AppendUint32(bin, math.Float32bits(float32(i%8)-3))
	}
	for _, v := range []float32{0, 0, 1} {
		bin = binary.LittleEndian.AppendUint32(bin, math.Float32bits(v))
	}
	bin = append(bin, 0x0f, 0x55, 0x33, 0xff)
	return pair{`<net batch="1" name="old" version="4"><layers>` + s.String() + `</layers><edges>` + e.String() + `</edges></net>`, bin}
}
