package bitcnn

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/bmxnet"
	"github.com/bitcnn/bitcnn/bcnn/darknet"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/openvino"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
)

// relu is an ONNX file with one node, Relu, of a float input of 1×2×3×4.
func relu() []byte {
	field := func(n int, content ...[]byte) []byte {
		all := bytes.Join(content, nil)
		return append(binary.AppendUvarint([]byte{byte(n<<3 | 2)}, uint64(len(all))), all...)
	}
	number := func(n, v int) []byte { return binary.AppendUvarint([]byte{byte(n << 3)}, uint64(v)) }
	text := func(n int, s string) []byte { return field(n, []byte(s)) }
	value := func(n int, name string) []byte {
		var dims [][]byte
		for _, d := range []int{1, 2, 3, 4} {
			dims = append(dims, field(1, number(1, d)))
		}
		return field(n, text(1, name), field(2, field(1, number(1, 1), field(2, dims...))))
	}
	graph := field(7,
		field(1, text(1, "x"), text(2, "y"), text(4, "Relu")), text(2, "graph"), value(11, "x"), value(12, "y"))
	return bytes.Join([][]byte{number(1, 8), text(2, "hand"), graph, field(8, number(2, 13))}, nil)
}

// symbol is the graph of a network of BMXNet with one node, relu, and params the weights
// that it does not need.
const (
	symbol = `{"nodes": [{"op": "null", "name": "data"}, {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}], "heads": [[1, 0, 0]]}`
	params = "\x12\x01\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"
)

// cfg is a network of Darknet with one layer of one filter, and cfgWeights its weights, all 0.
const (
	cfg        = "[net]\nheight=1\nwidth=2\nchannels=3\n[convolutional]\nactivation=relu\n"
	cfgWeights = "\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// weights is a folder of weights of BinCNN, all −1.
func weights() fstest.MapFS {
	dir := fstest.MapFS{}
	for name, words := range map[string]int{
		"pkwConv1.bin": 96, "pkwConv2.bin": 1024, "pkwD1.bin": 57600, "pkwD2.bin": 400, "pkwD3.bin": 16,
	} {
		dir["wgt/"+name] = &fstest.MapFile{Data: make([]byte, 4*words)}
	}
	dir["wgt/wConv1.bin"] = &fstest.MapFile{Data: bytes.Repeat([]byte{255}, 4*96*25)}
	return dir
}

// Every format is read from a path, a file system and, where it is one file, from a
// reader, whatever it is called.
func TestLoad(t *testing.T) {
	fsys := weights()
	digits := bundled(t, "digits")
	encoded, err := modelfile.Encode(digits)
	require.NoError(t, err)
	fsys["digits.onnx"] = &fstest.MapFile{Data: encoded}
	fsys["relu.bcnn"] = &fstest.MapFile{Data: relu()}
	files, err := zip.OpenReader("bcnn/tflite/testdata/lce.zip")
	require.NoError(t, err)
	defer files.Close()
	larq, err := fs.ReadFile(files, "net_chain.tflite")
	require.NoError(t, err)
	fsys["larq.jpeg"] = &fstest.MapFile{Data: larq}
	fsys["mx/net-symbol.json"] = &fstest.MapFile{Data: []byte(symbol)}
	fsys["mx/net-0007.params"] = &fstest.MapFile{Data: []byte(params)}
	fsys["dk/net.cfg"] = &fstest.MapFile{Data: []byte(cfg)}
	fsys["dk/net.weights"] = &fstest.MapFile{Data: []byte(cfgWeights)}
	for _, ext := range []string{".xml", ".bin"} {
		data, err := os.ReadFile("bcnn/openvino/testdata/bc_pad_plus1" + ext)
		require.NoError(t, err)
		fsys["ov/net"+ext] = &fstest.MapFile{Data: data}
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, fsys))

	opts := LoadOptions{
		BinCNN: bincnn.Int, ONNX: onnx.Options{Name: "given"}, BMXNet: bmxnet.Options{InputShape: Shape{H: 1, W: 2, C: 3}},
		Darknet: darknet.Options{InputType: bcnn.Uint8}, OpenVINO: openvino.Options{InputType: Uint8},
		TFLite: tflite.Options{Name: "chain"},
	}
	for name, check := range map[string]func(m *Model){
		"digits.onnx": func(m *Model) { require.Equal(t, digits, m) },
		"relu.bcnn": func(m *Model) {
			require.Equal(t, Shape{H: 3, W: 4, C: 2}, m.Inputs[0].Shape)
			require.Equal(t, "given", m.Name)
		},
		"mx/net-symbol.json": func(m *Model) {
			require.Equal(t, Shape{H: 1, W: 2, C: 3}, m.Inputs[0].Shape)
			require.Equal(t, "net", m.Name)
		},
		"dk/net.cfg": func(m *Model) {
			require.Equal(t, Shape{H: 1, W: 2, C: 3}, m.Inputs[0].Shape)
			require.Equal(t, bcnn.Uint8, m.Inputs[0].DType)
		},
		"ov/net.xml": func(m *Model) {
			require.Equal(t, Shape{H: 8, W: 8, C: 16}, m.Inputs[0].Shape)
			require.Equal(t, Uint8, m.Inputs[0].DType)
			require.Equal(t, "net", m.Name)
		},
		"larq.jpeg": func(m *Model) {
			require.Equal(t, Shape{H: 8, W: 9, C: 64}, m.Inputs[0].Shape)
			require.Equal(t, "chain", m.Name)
		},
		"wgt": func(m *Model) { require.Equal(t, "bincnn-int", m.Name) },
	} {
		m, err := Load(t.Context(), filepath.Join(dir, name), opts)
		require.NoError(t, err, name)
		check(m)
		for _, fsys := range []fs.FS{fsys, os.DirFS(dir)} {
			m, err = LoadFS(t.Context(), fsys, name, opts)
			require.NoError(t, err, name)
			check(m)
		}
		// A graph alone is no model.
		if data, err := fs.ReadFile(fsys, name); err == nil && string(data) != symbol && string(data) != cfg && path.Ext(name) != ".xml" {
			m, err = Read(t.Context(), iotest.OneByteReader(bytes.NewReader(data)), opts)
			require.NoError(t, err, name)
			check(m)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	fsys := weights()
	fsys["keras"] = &fstest.MapFile{Data: []byte("\x89HDF\r\n\x1a\n")}
	fsys["empty"] = &fstest.MapFile{}
	fsys["relu"] = &fstest.MapFile{Data: relu()}
	fsys["cut.bcnn"] = &fstest.MapFile{Data: []byte("\x99\x00\x00\x00\x00\x00\x00\x00{")}
	fsys["other/x"] = &fstest.MapFile{}
	fsys["saved/saved_model.pb"] = &fstest.MapFile{}
	fsys["part/pkwConv1.bin"] = &fstest.MapFile{}
	fsys["x-symbol.json"] = &fstest.MapFile{Data: []byte(symbol)}
	fsys["x.cfg"] = &fstest.MapFile{Data: []byte(cfg)}
	fsys["y.weights"] = &fstest.MapFile{Data: []byte(cfgWeights)}
	fsys["y.params"] = &fstest.MapFile{Data: []byte(params)}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, fsys))
	small := LoadOptions{Limits: Limits{FileBytes: 7}}
	for _, c := range []struct {
		name string
		opts LoadOptions
		want string
	}{
		{"keras", LoadOptions{}, ": a Keras model (HDF5), not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; "},
		{"empty", LoadOptions{}, ": an empty file"},
		{"cut.bcnn", LoadOptions{}, ": truncated or not a .bcnn file"},
		{"other", LoadOptions{}, ": a folder without a model"},
		{"saved", LoadOptions{}, ": a TensorFlow SavedModel, "},
		{"wgt", LoadOptions{}, ": a BinCNN weights folder, which does not say"},
		{"wgt", LoadOptions{BinCNN: "grey"}, `unknown mode "grey"`},
		{"part", LoadOptions{BinCNN: bincnn.Int}, "pkwConv1.bin: the file has only 0 bytes, want 384"},
		{"x-symbol.json", LoadOptions{}, ": there are no weights beside it"},
		{"x.cfg", LoadOptions{}, ": there are no weights beside it"},
		{"x.cfg", small, "at most 7 are read"},
		{"y.weights", LoadOptions{}, ": Darknet weights, not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; name the description that they belong to: NAME.cfg"},
		{"y.params", LoadOptions{}, ": BMXNet or MXNet weights (.params), not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; name the graph that they belong to: NAME-symbol.json"},
		{"relu", small, "7 bytes that are allowed"},
		{"cut.bcnn", small, ": "},
		{"cut.bcnn", LoadOptions{Limits: Limits{Layers: -1}}, "a limit is negative"},
		{"relu", LoadOptions{Limits: Limits{Layers: -1}}, "a limit is negative"},
	} {
		path := filepath.Join(dir, c.name)
		_, err := Load(t.Context(), path, c.opts)
		require.ErrorContains(t, err, c.want, c.name)
		require.NotContains(t, err.Error(), path+": "+path)
		_, err = LoadFS(t.Context(), fsys, c.name, c.opts)
		require.ErrorContains(t, err, c.want, c.name)
	}
	_, err := Load(t.Context(), filepath.Join(dir, "absent"), LoadOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = LoadFS(t.Context(), fsys, "absent", LoadOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"relu", "wgt"} {
		_, err = Load(ended, filepath.Join(dir, name), LoadOptions{BinCNN: bincnn.Int})
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestReadRefuses(t *testing.T) {
	read := func(ctx context.Context, r io.Reader, limit int64) error {
		_, err := Read(ctx, r, LoadOptions{Limits: Limits{FileBytes: limit}})
		return err
	}
	data := relu()
	require.NoError(t, read(t.Context(), bytes.NewReader(data), int64(len(data))))
	require.ErrorContains(t, read(t.Context(), bytes.NewReader(data), int64(len(data))-1), "Limits.FileBytes allows more")
	// What has no end is not read for ever.
	require.ErrorContains(t, read(t.Context(), endless{}, 5<<20), "more than 5242880 bytes")
	require.ErrorContains(t, read(t.Context(), endless{}, -1), "a limit is negative")
	require.EqualError(t, read(t.Context(), nil, 0), "there is no reader")
	require.ErrorContains(t, read(t.Context(), bytes.NewReader([]byte("hello")), 0), "plain text")
	require.ErrorContains(t, read(t.Context(), strings.NewReader(symbol), 0), "whose weights are in another file")
	broken := errors.New("broken")
	require.ErrorIs(t, read(t.Context(), iotest.ErrReader(broken), 0), broken)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, read(ended, bytes.NewReader(data), 0), context.Canceled)
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestBundled(t *testing.T) {
	require.Contains(t, BundledNames(), "vehiclenet")
	for _, name := range BundledNames() {
		m, err := Bundled(name)
		require.NoError(t, err)
		require.NoError(t, m.Check())
	}
	_, err := Bundled("planenet")
	require.ErrorContains(t, err, "available: vehiclenet, ")
}

func TestLoadFirstWeights(t *testing.T) {
	net := &bcnn.Network{Name: "first", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 3}, DType: bcnn.Uint8}}}
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: []float32{0.1, -0.2, 0.31415}}}) // no multiples
	data, err := modelfile.Encode(net)
	require.NoError(t, err)
	opts := LoadOptions{FirstWeights: 16}
	check := func(m *Model, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Len(t, m.Layers, 2)
		require.Equal(t, []float32{10390, -20779, 32639}, m.Layers[0].Op.(bcnn.Dense).Weights.F32)
	}
	check(Read(t.Context(), bytes.NewReader(data), opts))
	check(LoadFS(t.Context(), fstest.MapFS{"m": {Data: data}}, "m", opts))
	path := filepath.Join(t.TempDir(), "m.bcnn")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	check(Load(t.Context(), path, opts))
	opts.FirstWeights = 1
	_, err = Load(t.Context(), path, opts)
	require.ErrorContains(t, err, path+": first weights of 1 bits, want 2 to 16")
}

// A network that was made by hand, with real numbers, is binary when it is opened: every way to
// compile it makes the same plan.
func TestNetworkByHand(t *testing.T) {
	net := &Model{Name: "hand", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 2}, DType: bcnn.Float32}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	w := make([]float32, 3*9*2)
	for i := range w {
		w[i] = 0.5 - float32(i%3%2)
	}
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 3, Weights: bcnn.Weights{F32: w}})
	s, err := Open(t.Context(), net, Options{Device: "cpu"})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, "output", s.Outputs()[0].Name)
	out := NewTensor(Float32, 1, s.Outputs()[0].Shape)
	in := NewTensor(Float32, 1, s.Inputs()[0].Shape)
	for i := range in.F32 {
		in.F32[i] = float32(i%5) - 2
	}
	require.NoError(t, s.Run(t.Context(), []Tensor{out}, []Tensor{in}))
	for i, y := range out.F32 {
		want := float32(0)
		for k := range 18 {
			x := in.F32[((i/6+k/6)*4+i/3%2+k/2%3)*2+k%2]
			if k := w[i%3*18+k]; x >= 0 {
				want += k
			} else {
				want -= k
			}
		}
		require.Equal(t, want, y, i)
	}
	data, err := modelfile.Encode(net)
	require.NoError(t, err)
	read, err := Read(t.Context(), bytes.NewReader(data), LoadOptions{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "hand.bcnn")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	loaded, err := Load(t.Context(), path, LoadOptions{})
	require.NoError(t, err)
	program, err := lower.Compile(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, plan.Binary, plan.Summarize(program.Network, program.Plan)[0].Precision)
	device, err := backend.Open("cpu")
	require.NoError(t, err)
	exe, err := device.Compile(t.Context(), program.Plan, backend.Options{})
	require.NoError(t, err)
	defer exe.Close()
	require.Equal(t, exe.Explain(), s.Explain())
	for _, m := range []*Model{read, loaded, program.Network} {
		s, err := Open(t.Context(), m, Options{Device: "cpu"})
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, program.Plan, s.engines.plan)
		require.Equal(t, exe.Explain(), s.Explain())
	}
}
