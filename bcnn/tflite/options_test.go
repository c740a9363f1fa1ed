package tflite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Mean and Scale make (x − Mean)·Scale of the input, in front of all else.
func TestMeanAndScale(t *testing.T) {
	g := newGraph(1, 1, 2, 3)
	g.outputs[0] = g.add("NEG", nil, []int32{1, 1, 2, 3}, 0)
	x := of(1, 2, 3, 10, 20, 30)
	for _, c := range []struct {
		opts   Options
		layers []string
		want   []float32
		err    string
	}{
		{Options{}, []string{"neg"}, of(-1, -2, -3, -10, -20, -30), ""},
		{Options{Mean: of(1)}, []string{"input/mean", "neg"}, of(0, -1, -2, -9, -19, -29), ""},
		{Options{Mean: of(1, 2, 4)}, []string{"input/mean", "neg"}, of(0, 0, 1, -9, -18, -26), ""},
		{Options{Scale: of(0.5)}, []string{"input/scale", "neg"}, of(-0.5, -1, -1.5, -5, -10, -15), ""},
		{Options{Mean: of(1), Scale: of(1, 2, 4), InputType: bcnn.Uint8}, []string{"input/mean", "input/scale", "neg"}, of(0, -2, -8, -9, -38, -116), ""},
		{Options{Mean: of(1, 2)}, nil, nil, `input "x": Mean has 2 values, the input has 3 channels`},
		{Options{Scale: of(1, 2, 3, 4)}, nil, nil, `input "x": Scale has 4 values, the input has 3 channels`},
	} {
		c.opts.Name = "net"
		net, _, err := Decode(t.Context(), g.encode(), c.opts)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		var names []string
		for _, l := range net.Layers {
			names = append(names, l.Name)
		}
		require.Equal(t, c.layers, names)
		want := bcnn.Float32
		if c.opts.InputType != 0 {
			want = c.opts.InputType
		}
		require.Equal(t, want, net.Inputs[0].DType)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		in := bcnn.NewTensor(want, 1, net.Inputs[0].Shape)
		for i, v := range x {
			if want == bcnn.Uint8 {
				in.U8[i] = uint8(v)
			} else {
				in.F32[i] = v
			}
		}
		y, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, y.F32)
	}
	// They are for files of FLOAT32, and of one input.
	for _, opts := range []Options{{InputType: bcnn.Uint8}, {Mean: of(1)}, {Scale: of(1)}} {
		q := newGraph(1, 1, 2, 3)
		q.quantised(0, 1, 0)
		q.outputs[0] = q.add("DEQUANTIZE", nil, []int32{1, 1, 2, 3}, 0)
		_, _, err := Decode(t.Context(), q.encode(), opts)
		require.ErrorContains(t, err, "are for files that take FLOAT32; this one takes INT8")
		two := newGraph(1, 1, 2, 3)
		two.inputs = append(two.inputs, two.tensor(testTensor{name: "second", dims: []int32{1, 1, 2, 3}}))
		two.outputs[0] = two.add("ADD", nil, []int32{1, 1, 2, 3}, 0, two.inputs[1])
		_, _, err = Decode(t.Context(), two.encode(), opts)
		require.ErrorContains(t, err, "are for files with one input; this one has 2")
	}
	// FLOAT32 may be asked for of any.
	q := newGraph(1, 3)
	q.quantised(0, 1, 0)
	q.outputs[0] = q.add("DEQUANTIZE", nil, []int32{1, 3}, 0)
	_, _, err := Decode(t.Context(), q.encode(), Options{Name: "net", InputType: bcnn.Float32})
	require.NoError(t, err)
}

// Load and Read find the same file, and name it after themselves and in errors.
func TestLoadAndRead(t *testing.T) {
	g := newGraph(1, 1, 2, 1)
	g.outputs[0] = g.add("NEG", nil, []int32{1, 1, 2, 1}, 0)
	data := g.encode()
	dir := t.TempDir()
	files := fstest.MapFS{"in/a.tflite": {Data: data}, "in/bad.tflite": {Data: data[:20]}}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	for name, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), f.Data, 0o644))
	}
	for _, c := range []struct {
		file string
		opts Options
		name string // of the network
		err  string
	}{
		{"in/a.tflite", Options{}, "a", ""},
		{"in/a.tflite", Options{Name: "b", Labels: []string{"l", "m"}, Resize: 3}, "b", ""},
		{"in/a.tflite", Options{Limits: bcnn.Limits{FileBytes: int64(len(data))}}, "a", ""},
		{"in/a.tflite", Options{Limits: bcnn.Limits{FileBytes: int64(len(data)) - 1}}, "", "a.tflite"},
		{"in/a.tflite", Options{Limits: bcnn.Limits{Layers: -1}}, "", "a limit is negative"},
		{"in/bad.tflite", Options{}, "", "bad.tflite: not a valid TensorFlow Lite file: "},
		{"in/absent.tflite", Options{}, "", "absent.tflite"},
	} {
		loaded, report, err := Load(t.Context(), filepath.Join(dir, c.file), c.opts)
		read, report2, err2 := Read(t.Context(), files, c.file, c.opts)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			require.ErrorContains(t, err2, c.err)
			require.Nil(t, loaded)
			require.Nil(t, read)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, err2)
		require.Equal(t, c.name, loaded.Name)
		require.Equal(t, c.opts.Labels, loaded.Labels)
		require.Equal(t, c.opts.Resize, loaded.Inputs[0].Resize)
		require.Equal(t, loaded, read)
		require.Equal(t, report, report2)
	}
	_, _, err := Decode(t.Context(), data, Options{Limits: bcnn.Limits{FileBytes: 10}})
	require.ErrorContains(t, err, "bytes, at most 10 are allowed")
	_, _, err = Decode(t.Context(), data, Options{Limits: bcnn.Limits{ArenaBytes: -1}})
	require.ErrorContains(t, err, "a limit is negative")
}

// Limits hold exactly: what is as large as they allow is taken.
func TestLimits(t *testing.T) {
	dims := []int32{1, 2, 5, 3} // 120 bytes
	chained := func() *testGraph {
		g := newGraph(dims...)
		at := int32(0)
		for range 3 {
			at = g.add("NEG", nil, dims, at)
		}
		g.outputs[0] = at
		return g
	}
	grown := func() *testGraph { // a constant of 4·6·5 bytes
		g := newGraph(1, 30)
		k := g.add("ADD", nil, nil, g.floats([]int32{6, 1}, make([]float32, 6)...), g.floats([]int32{5}, make([]float32, 5)...))
		g.outputs[0] = g.add("ADD", nil, []int32{1, 30}, 0, g.add("RESHAPE", nil, []int32{30}, k))
		return g
	}
	for _, c := range []struct {
		g      *testGraph
		limits bcnn.Limits
		want   string
	}{
		{chained(), bcnn.Limits{TensorBytes: 120}, ""},
		{chained(), bcnn.Limits{TensorBytes: 119}, "a feature map of 2×5×3 takes 120 bytes, at most 119 are allowed; Limits.TensorBytes allows more"},
		{chained(), bcnn.Limits{Layers: 3}, ""},
		{chained(), bcnn.Limits{Layers: 2}, "3"},
		{grown(), bcnn.Limits{TensorBytes: 120}, ""},
		{grown(), bcnn.Limits{TensorBytes: 119}, "a constant of 120 bytes, at most 119 are allowed; Limits.TensorBytes allows more"},
	} {
		_, _, err := Decode(t.Context(), c.g.encode(), Options{Name: "net", Limits: c.limits})
		if c.want == "" {
			require.NoError(t, err, "%+v", c.limits)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	// Several layers come of one operator, too.
	g := newGraph(1, 4, 4, 1)
	g.outputs[0] = g.add("RESHAPE", nil, []int32{1, 2, 8, 1}, 0)
	_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net", Limits: bcnn.Limits{Layers: 1}})
	require.ErrorContains(t, err, "the network has more than 1 layers; Limits.Layers allows more")
	_, _, err = Decode(t.Context(), g.encode(), Options{Name: "net", Limits: bcnn.Limits{Layers: 2}})
	require.NoError(t, err)
}

// Layers are called what the first output of their operator is called, up to a semicolon,
// and differ; without a name that is short enough they are called after the operator.
func TestNamesOfLayers(t *testing.T) {
	dims := []int32{1, 1, 2, 1}
	for _, c := range []struct{ tensors, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a;b", "b;a"}, []string{"a", "b"}},
		{[]string{"a", "a", "a"}, []string{"a", "a_2", "a_3"}},
		{[]string{"a", "a_2", "a"}, []string{"a", "a_2", "a_3"}},
		{[]string{"", ";x"}, []string{"neg_0", "neg_1"}},
		{[]string{strings.Repeat("n", maxLabel), strings.Repeat("n", maxLabel+1)}, []string{strings.Repeat("n", maxLabel), "neg_1"}},
	} {
		g := newGraph(dims...)
		at := int32(0)
		for _, name := range c.tensors {
			at = g.add("NEG", nil, dims, at)
			g.tensors[at].name = name
		}
		g.outputs[0] = at
		net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
		var got []string
		for _, l := range net.Layers {
			got = append(got, l.Name)
		}
		require.Equal(t, c.want, got)
		require.Equal(t, len(c.tensors), report.Operators)
		require.Zero(t, report.Folded)
	}
}

// Sources name tensors of up to 256 bytes, and the report counts what made no layer.
func TestSourcesAndReport(t *testing.T) {
	dims := []int32{1, 1, 2, 1}
	g := newGraph(dims...)
	g.tensors[0].name = strings.Repeat("i", 256)
	long := g.add("NEG", nil, dims, 0)
	g.tensors[long].name = strings.Repeat("n", 257)
	same := g.add("RESHAPE", nil, dims, long)
	k := g.add("NEG", nil, nil, g.floats(nil, 1))
	g.outputs[0] = g.add("ADD", nil, dims, same, k)
	net, report, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	require.Equal(t, 4, report.Operators)
	require.Equal(t, 2, report.Folded)
	require.Equal(t, &bcnn.Source{Name: strings.Repeat("i", 256), Dims: []int{1, 2, 1}}, net.Inputs[0].Source)
	require.Equal(t, &bcnn.Source{Dims: []int{1, 2, 1}}, net.Layers[0].Source)
	require.Equal(t, &bcnn.Source{Name: "add", Dims: []int{1, 2, 1}}, net.Layers[1].Source)
	require.Nil(t, net.Outputs, "the last layer")
	require.Equal(t, []Tensor{{Name: strings.Repeat("i", 256), Type: "FLOAT32", Dims: []int{1, 1, 2, 1}, channels: 1}}, report.Inputs)

	// An output that is not the last layer is named.
	g.outputs = append(g.outputs, long)
	net, _, err = Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, net.Outputs)

	// Inputs that are no images.
	for _, c := range []struct {
		dims []int32
		typ  schema.Type
		want string
	}{
		{[]int32{3}, schema.Float32, "it has 1 dimensions, want a batch of images"},
		{[]int32{1, 1, 1, 1, 1}, schema.Float32, "5 dimensions, want a batch of images"},
		{[]int32{1, 2}, schema.Int64, "elements of INT64 are not supported"},
	} {
		g := newGraph(c.dims...)
		g.tensors[0].typ = c.typ
		g.outputs[0] = g.add("NEG", nil, c.dims, 0)
		refused(t, g.encode(), c.want)
	}
}
