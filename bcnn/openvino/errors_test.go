package openvino

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// simple is a graph in which files of TestBad change one place: x of 1×16×8×8, a FakeQuantize, a
// BinaryConvolution, a Multiply and an Add.
func simple(t testing.TB) pair {
	xml, err := os.ReadFile("testdata/bc_pad_plus1.xml")
	require.NoError(t, err)
	bin, err := os.ReadFile("testdata/bc_pad_plus1.bin")
	require.NoError(t, err)
	return pair{string(xml), bin}
}

// TestBad imports files that are broken, or ask for what is not read: errors say where and why.
func TestBad(t *testing.T) {
	f := simple(t)
	_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	for _, c := range []struct{ old, changed, want string }{
		// The file.
		{`<?xml version="1.0"?>`, `<?xml version="1.0" encoding="latin1"?>`, "latin1"},
		{`<?xml version="1.0"?>`, `<!DOCTYPE net [<!ENTITY a "b">]>`, "a declaration <!…> is not supported"},
		{`name="bc_pad_plus1"`, `name="&a;"`, "invalid character entity &a;"},
		{`<net `, `<nets `, "its element is <nets>, want <net>"},
		{`</net>`, ``, "unexpected EOF"},
		{`</net>`, `</net><net/>`, "something follows </net>"},
		{`</net>`, `</net>x`, "text where an element is expected"},
		{`version="11"`, `version="9"`, `its version is "9", want 4 to 7, 10 or 11`},
		{`version="11"`, `version="11" version="11"`, "the attribute version twice"},
		{`version="11"`, `version="11" more="1"`, "the attribute more, which is not supported"},
		{`<rt_info>`, `<pre-process/><rt_info>`, "an element <pre-process> is not supported in <net>"},
		{`<rt_info>`, strings.Repeat("<rt_info>", 70), "elements are nested more than 64 deep"},
		{`<layers>`, `<layers/><layers>`, "it has <layers> twice"},
		{`<layers>`, `<layers>text`, `text where an element is expected: "text`},
		{`<layers>`, `<layers><body/>`, "an element <body> is not supported in <layers>"},
		// Layers and ports.
		{`<layer id="1"`, `<layer id="0"`, `both have the id "0"`},
		{`<layer id="1" `, `<layer `, "a layer without an id or a type"},
		{`<data levels="2" auto`, `<body/><data levels="2" auto`, "an element <body> is not supported in layer"},
		{`<data levels="2" auto`, `<data/><data levels="2" auto`, "<data> comes twice in layer"},
		{`<data levels="2" auto`, `<blobs/><data levels="2" auto`, "an element <blobs> is not supported in layer"},
		{`<dim>1</dim>`, `<dim>one</dim>`, `a dimension is "one"`},
		{`<dim>1</dim>`, `<dim>-2</dim>`, `a dimension is "-2"`},
		{`<dim>1</dim>`, `<dim>99999999999</dim>`, `a dimension is "99999999999"`},
		{`<dim>1</dim>`, strings.Repeat(`<dim>1</dim>`, 9), "more than 8 dimensions"},
		{`<port id="1" precision="FP32">`, `<port id="0" precision="FP32">`, "two ports have the id"},
		// Edges.
		{`from-layer="0"`, `from-layer="77"`, `an edge begins at a layer with the id "77", which there is not`},
		{`from-layer="0" from-port="0"`, `from-layer="0" from-port="9"`, `an edge begins at port "9" of layer "x", which has no such port`},
		{`to-layer="5" to-port="0"`, `to-layer="5" to-port="5"`, `an edge ends at port "5"`},
		{`to-layer="5" to-port="0"`, `to-layer="5" to-port="1"`, "two edges end at port"},
		{`<edge from-layer="0" from-port="0" to-layer="5" to-port="0" />`, ``, "input 0 is missing"},
		{`from-layer="0" from-port="0" to-layer="5"`, `from-layer="11" from-port="2" to-layer="5"`, "is part of a cycle, or reads one"},
		{`<edge from-layer="11" from-port="2" to-layer="12" to-port="0" />`, ``, "the Result layer"},
		{`type="Result"`, `type="Sink"`, "it has no outputs"},
		{`from-layer="11" from-port="2" to-layer="12"`, `from-layer="1" from-port="0" to-layer="12"`, "is constant"},
		// Constants.
		{`offset="0" size="64"`, `offset="300" size="64"`, "its values are the 64 bytes from byte 300 of the .bin, which has 280 bytes"},
		{`offset="0" size="64"`, `offset="18446744073709551615" size="64"`, "want numbers"},
		{`offset="0" size="64"`, `offset="9223372036854775807" size="64"`, "from byte 9223372036854775807"},
		{`offset="0" size="64"`, `offset="-1" size="64"`, `offset "-1"`},
		{`offset="0" size="64"`, `offset="0" size="60"`, "takes 64 bytes, but its size is 60"},
		{`shape="1, 16, 1, 1"`, `shape="65536, 65536, 65536"`, "has too many values"},
		{`shape="1, 16, 1, 1"`, `shape="1, x"`, `its attribute shape is "1, x"`},
		{`element_type="u1"`, `element_type="u4"`, `its attribute element_type is "u4"`},
		// Operators.
		{`type="BinaryConvolution" version="opset1"`, `type="BinaryConvolution" version="opset9"`,
			`version "opset9" of it is not supported, want opset1`},
		{`type="BinaryConvolution"`, `type="Einsum"`, `(Einsum opset1, index 7): this operator is not supported`},
		{`mode="xnor-popcount" `, ``, "its attribute mode is missing"},
		{`mode="xnor-popcount" `, `mode="and" `, `its attribute mode is "and", want xnor-popcount`},
		{`pad_value="1" `, ``, "its attribute pad_value is missing"},
		{`pad_value="1" `, `pad_value="NaN" `, "want a finite number"},
		{`pad_value="1" `, `pad_value="1" groups="2" `, `its attribute groups, "2", is not supported`},
		{`strides="1, 1"`, `strides="1"`, "one-dimensional"},
		{`strides="1, 1"`, `strides="0, 1"`, `its attribute strides is "0, 1"`},
		{`auto_pad="explicit"`, `auto_pad="other"`, `its attribute auto_pad is "other"`},
		{`levels="2"`, `levels="1"`, `its attribute levels is "1"`},
		{`levels="2" auto_broadcast="numpy"`, `levels="2" auto_broadcast="pdpd"`, `its attribute auto_broadcast is "pdpd"`},
		{`type="FakeQuantize"`, `type="PReLU"`, "its attribute"},
		{`shape="1,16,8,8" element_type="f32"`, `shape="1,16,8,8" element_type="f16"`, `its attribute element_type is "f16"`},
		{`shape="1,16,8,8" element_type="f32"`, `shape="1,16,8,9" element_type="f32"`, "its output has shape [1 16 8 8] in the file, but is computed as [1 16 8 9]"},
		{`shape="1,16,8,8" element_type="f32"`, `shape="16" element_type="f32"`, "it has 1 dimensions"},
		{`shape="1,16,8,8" element_type="f32"`, `shape="1,16,?,8" element_type="f32"`, `input "x": the file does not say how large it is, its shape is [16 -1 8]; give its size with Options.InputShape`},
	} {
		changed := strings.Replace(f.xml, c.old, c.changed, 1)
		require.NotEqual(t, f.xml, changed, c.old)
		net, report, err := Decode(t.Context(), []byte(changed), f.bin, Options{})
		require.ErrorContains(t, err, c.want, "%s -> %s", c.old, c.changed)
		require.NotErrorIs(t, err, try.ErrPanic)
		require.Nil(t, net)
		require.Nil(t, report)
	}
	// Cut anywhere, files are errors.
	for n := range len(f.bin) {
		_, _, err := Decode(t.Context(), []byte(f.xml), f.bin[:n], Options{})
		require.ErrorContains(t, err, "of the .bin, which has", "%d bytes", n)
	}
	for n := 0; n < len(f.xml)-8; n += 7 {
		_, _, err := Decode(t.Context(), []byte(f.xml[:n]), f.bin, Options{})
		require.ErrorContains(t, err, "not a network of OpenVINO (IR): line ", "%d bytes", n)
	}
}

// What a layer reads that cannot be made is not said twice.
func TestObstacles(t *testing.T) {
	w := newWriter()
	x := w.parameter(1, 4, 2, 2)
	a := w.op("LRN", "", nil, x)
	b := w.op("ReLU", "", nil, a)
	c := w.op("Abs", "", nil, x)
	w.op("Add", "", nil, b, c)
	f := w.last()
	_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	var o *bcnn.ObstaclesError
	require.ErrorAs(t, err, &o)
	require.Len(t, o.Obstacles, 2)
	require.Equal(t, "lrn_1", o.Obstacles[0].Node)
	require.Equal(t, "LRN opset1", o.Obstacles[0].Op)
	require.Equal(t, "abs_3", o.Obstacles[1].Node)
}

// Refused are graphs that are well formed, but have no exact counterpart.
func TestRefused(t *testing.T) {
	for want, write := range map[string]func(w *writer, x int){
		"its input must be a FakeQuantize of two levels": func(w *writer, x int) { w.binary(w.op("ReLU", "", nil, x), 4, "1") },
		"outputs 0 and 3, want 0 and 1 or −1 and 1":      func(w *writer, x int) { w.binary(w.quantize(x, 2, 0, 0, 0, 3), 4, "1") },
		"which is not supported with a pad_value of 1": func(w *writer, x int) {
			dims := []int{4, 1, 1}
			q := w.op("FakeQuantize", `levels="2"`, nil, x, w.number(0), w.number(0), w.floats(dims, 0, 1, 0, 1), w.floats(dims, 1, 0, 1, 0))
			w.binary(q, 4, "1")
		},
		"input_low, 1, is above input_high, 0": func(w *writer, x int) { w.quantize(x, 2, 1, 0, 0, 1) },
		"65536 levels are not supported":       func(w *writer, x int) { w.quantize(x, 65536, 0, 1, 0, 1) },
		"behind which nothing can be computed": func(w *writer, x int) { w.op("ReLU", "", nil, w.op("SoftMax", `axis="1"`, nil, x)) },
		"it moves the batch":                   func(w *writer, x int) { w.op("Transpose", "", nil, x, w.ints(1, 0, 2, 3)) },
		"a division by what is computed":       func(w *writer, x int) { w.op("Divide", "", nil, x, x) },
		"it joins dimension 0 of 4":            func(w *writer, x int) { w.op("Concat", `axis="0"`, nil, x, x) },
		"input 2 is not supported":             func(w *writer, x int) { w.op("Add", "", nil, x, x, x) },
		"its weights are f32 of shape [4 4 1 1], want u1": func(w *writer, x int) {
			q := w.quantize(x, 2, 0, 0, 0, 1)
			w.op("BinaryConvolution", explicit(1, 0)+` mode="xnor-popcount" pad_value="0"`, nil, q, w.floats([]int{4, 4, 1, 1}, make([]float32, 16)...))
		},
		"a StridedSlice is supported only of shapes": func(w *writer, x int) { w.op("StridedSlice", "", nil, x, w.ints(0), w.ints(1)) },
		"a DetectionOutput is supported only as":     func(w *writer, x int) { w.op("ReLU", "", nil, w.op("DetectionOutput", "", nil, x, x, x)) },
		"windows reach beyond the padding": func(w *writer, x int) {
			w.op("AvgPool", `kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0" rounding_type="ceil" exclude-pad="false"`, nil, x)
		},
		"a window of the pool lies wholly in the padding": func(w *writer, x int) {
			w.op("MaxPool", `kernel="2,2" strides="1,1" pads_begin="2,2" pads_end="0,0"`, nil, x)
		},
		"a constant of shape [6] is not broadcast to batches of [4 5 5]": func(w *writer, x int) { w.op("Add", "", nil, x, w.floats([]int{6}, 1, 2, 3, 4, 5, 6)) },
	} {
		w := newWriter()
		write(w, w.parameter(1, 4, 5, 5))
		f := w.last()
		_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, try.ErrPanic)
	}
}

// Load and Read find the .bin beside the .xml, and name the file that is wrong.
func TestFiles(t *testing.T) {
	f := simple(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	xml := write("net.v1.xml", f.xml)
	_, _, err := Load(t.Context(), xml, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "net.v1.bin")
	require.ErrorContains(t, err, "name their file with Options.Params, or 'bcnn convert --params'")
	bin := write("net.v1.bin", string(f.bin))
	net, report, err := Load(t.Context(), xml, Options{})
	require.NoError(t, err)
	require.Equal(t, "net.v1", net.Name)
	require.Equal(t, 11, report.Version)
	moved := write("moved", f.xml)
	other, _, err := Load(t.Context(), moved, Options{Params: bin, Name: "net.v1"})
	require.NoError(t, err)
	require.Equal(t, net, other)
	fsys := fstest.MapFS{"a/net.v1.xml": {Data: []byte(f.xml)}, "a/net.v1.bin": {Data: f.bin}}
	other, _, err = Read(t.Context(), fsys, "a/net.v1.xml", Options{})
	require.NoError(t, err)
	require.Equal(t, net, other)
	_, _, err = Load(t.Context(), write("cut.xml", f.xml[:100]), Options{Params: bin})
	require.ErrorContains(t, err, "cut.xml: not a network of OpenVINO (IR): line 4: unexpected EOF")
	_, _, err = Load(t.Context(), xml, Options{Limits: bcnn.Limits{FileBytes: int64(len(f.xml)) + 10}})
	require.Error(t, err)
	_, _, err = Load(t.Context(), xml, Options{Limits: bcnn.Limits{Layers: 5}})
	require.ErrorContains(t, err, "more than 5 layers; Limits.Layers allows more")
	_, _, err = Load(t.Context(), xml, Options{Limits: bcnn.Limits{TensorBytes: 100}})
	require.ErrorContains(t, err, "Limits.TensorBytes allows more")
}

// Options say what a file leaves open, and what becomes of its input.
func TestOptions(t *testing.T) {
	f := simple(t)
	open := strings.Replace(f.xml, `shape="1,16,8,8"`, `shape="-1,16,?,8"`, 1)
	net, _, err := Decode(t.Context(), []byte(open), f.bin, Options{InputShape: bcnn.Shape{H: 8, W: 8, C: 16}})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 8, W: 8, C: 16}, net.Inputs[0].Shape)
	_, _, err = Decode(t.Context(), []byte(open), f.bin, Options{InputShape: bcnn.Shape{H: 8, W: 9, C: 16}})
	require.ErrorContains(t, err, "is 8, Options.InputShape says 9")
	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{
		InputType: bcnn.Uint8, Mean: []float32{2}, Scale: []float32{0.5}, Name: "n", Labels: nil, Resize: 9,
	})
	require.NoError(t, err)
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Equal(t, 9, net.Inputs[0].Resize)
	require.Equal(t, "n", net.Name)
	require.Equal(t, bcnn.Affine{Bias: []float32{-2}}, net.Layers[0].Op)
	require.Equal(t, bcnn.Affine{Scale: []float32{0.5}}, net.Layers[1].Op)
	_, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{Mean: []float32{1, 2, 3}})
	require.ErrorContains(t, err, "Options.Mean has 3 values, the input has 16 channels")
	_, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{InputType: bcnn.Bits})
	require.ErrorContains(t, err, "want uint8 or float32")
	_, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{Limits: bcnn.Limits{Layers: -1}})
	require.ErrorContains(t, err, "a limit is negative")
}
