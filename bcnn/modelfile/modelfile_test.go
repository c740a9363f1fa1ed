package modelfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

var rng = rand.New(rand.NewPCG(11, 12))

func floats(n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = rng.Float32()*4 - 2
	}
	return f
}

func positive(n int) []float32 {
	f := floats(n)
	for i := range f {
		f[i] = f[i]*f[i] + 0.1
	}
	return f
}

// packed returns rows of n random ±1 weights.
func packed(rows, n int) []uint64 {
	values := make([]int8, rows*n)
	for i := range values {
		values[i] = int8(2*rng.IntN(2) - 1)
	}
	words := make([]uint64, rows*bits.Words(n))
	bits.Pack(words, values, n)
	return words
}

func window(k, stride, dilation, pad int) bcnn.Window {
	return bcnn.Window{KH: k, KW: k + 1, StrideH: stride, StrideW: stride, DilationH: dilation, DilationW: dilation,
		Pad: bcnn.Padding{Top: pad, Left: pad + 1, Bottom: pad, Right: pad}}
}

func norm(c int) bcnn.BatchNorm {
	return bcnn.BatchNorm{Gamma: floats(c), Beta: floats(c), Mean: floats(c), Var: positive(c), Epsilon: 1e-5}
}

// networks has every kind of layer with every kind of parameter.
func networks() map[string]*bcnn.Network {
	all := map[string]*bcnn.Network{}
	build := func(name string, in bcnn.Input) *bcnn.Network {
		n := &bcnn.Network{Name: name, Inputs: []bcnn.Input{in}}
		all[name] = n
		return n
	}
	image := bcnn.Input{Shape: bcnn.Shape{H: 9, W: 8, C: 3}, DType: bcnn.Uint8, Resize: 12}

	n := build("binary <image> \"é\"", image)
	n.Append("in", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{-5, 100, 300}})
	n.Append("conv1", bcnn.Conv2D{Window: window(3, 1, 1, 1), Out: 66, Groups: 1, PadValue: -1, Weights: bcnn.Weights{Bits: packed(66*3*4, 3)}})
	n.Append("norm1", norm(66))
	n.Append("sign1", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	n.Append("pool1", bcnn.MaxPool{Window: window(1, 2, 1, 0)})
	n.Append("conv2", bcnn.Conv2D{Window: window(2, 1, 2, 1), Out: 4, Groups: 2, PadValue: 1, Weights: bcnn.Weights{Bits: packed(4*2*3, 33)}, Bias: floats(4)})
	n.Append("sign2", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("flat", bcnn.Flatten{})
	shapes, err := n.Shapes()
	if err != nil {
		panic(err)
	}
	k := shapes[len(shapes)-1].C
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: packed(2, k)}, Bias: floats(2)})
	n.Append("softmax", bcnn.Softmax{})
	n.Labels = []string{"ship & boat", "véhicule"}

	n = build("sources", bcnn.Input{
		Shape: bcnn.Shape{H: 2, W: 3, C: 4}, DType: bcnn.Float32, Source: &bcnn.Source{Name: "x:0", Dims: []int{4, 2, 3}, ChannelsFirst: true},
	})
	n.Append("flat", bcnn.Flatten{})
	n.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: floats(24)}})
	n.Layers[0].Source = &bcnn.Source{Dims: []int{24}}
	n.Layers[1].Source = &bcnn.Source{Name: "scores", Dims: []int{}, Type: bcnn.SourceInt8, Offset: -3}
	n.Inputs = append(n.Inputs[:1], bcnn.Input{
		Shape: bcnn.Shape{H: 1, W: 2, C: 33}, DType: bcnn.Float32, Source: &bcnn.Source{Dims: []int{1, 2, 2}, Type: bcnn.SourceBits},
	})

	n = build("several ends", bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 4}, DType: bcnn.Float32})
	n.Inputs = append(n.Inputs[:1],
		bcnn.Input{Shape: bcnn.Shape{H: 8, W: 8, C: 1}, DType: bcnn.Uint8, Resize: 9},
		bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 4}, DType: bcnn.Float32, Source: &bcnn.Source{Name: "y", Dims: []int{4}}},
	)
	n.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{3}}, -2)
	n.Append("pixels", bcnn.Dense{Out: 4, Weights: bcnn.Weights{Bits: []uint64{1, 2, 3, 4}}})
	n.Append("first", bcnn.Add{}, 1, bcnn.NetworkInput)
	n.Append("second", bcnn.Mul{}, 2, -3)
	n.Outputs = []int{3, 0, 2}

	n = build("float", bcnn.Input{Shape: bcnn.Shape{H: 5, W: 5, C: 2}, DType: bcnn.Float32})
	a := n.Append("conv", bcnn.Conv2D{Window: window(1, 1, 1, 0), Out: 3, Groups: 1, Weights: bcnn.Weights{F32: floats(3 * 2 * 2)}})
	b := n.Append("relu", bcnn.ReLU{})
	n.Append("sum", bcnn.Add{}, a, b)
	n.Append("affine", bcnn.Affine{Scale: floats(3), Bias: floats(1)})
	n.Append("shift", bcnn.Affine{Bias: floats(3)})
	shapes, err = n.Shapes()
	if err != nil {
		panic(err)
	}
	n.Append("dense", bcnn.Dense{Out: 5, Weights: bcnn.Weights{F32: floats(5 * shapes[len(shapes)-1].Values())}})

	inf := float32(math.Inf(1))
	n = build("new in version 2", bcnn.Input{Shape: bcnn.Shape{H: 5, W: 6, C: 4}, DType: bcnn.Float32})
	n.Append("mean", bcnn.AvgPool{Window: window(2, 1, 1, 1), CountPadding: true})
	slopes := n.Append("prelu", bcnn.PReLU{Slope: floats(4)})
	n.Append("leaky", bcnn.PReLU{Slope: []float32{0.25}})
	n.Append("relu6", bcnn.Clip{Min: 0, Max: 6})
	n.Append("hardtanh", bcnn.Clip{Min: -1, Max: 1})
	n.Append("at most", bcnn.Clip{Min: -inf, Max: 0.1})
	all4 := n.Append("at least", bcnn.Clip{Min: float32(math.Copysign(0, -1)), Max: inf})
	gate := n.Append("gate", bcnn.AvgPool{Window: bcnn.Window{KH: 6, KW: 7, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}})
	n.Append("gated", bcnn.Mul{}, all4, gate)
	n.Append("both", bcnn.Concat{}, len(n.Layers)-1, slopes, all4)
	n.Append("picked", bcnn.Channels{Index: []int32{11, -1, 3, 3}})

	n = build("new in version 5", bcnn.Input{Shape: bcnn.Shape{H: 3, W: 2, C: 4}, DType: bcnn.Float32})
	n.Append("smaller", bcnn.Min{}, bcnn.NetworkInput, n.Append("channel", bcnn.Channels{Index: []int32{1}}))
	n.Append("larger", bcnn.Max{}, 1, bcnn.NetworkInput)

	n = build("masks", bcnn.Input{Shape: bcnn.Shape{H: 3, W: 2, C: 4}, DType: bcnn.Float32})
	n.Append("kept", bcnn.Mask{}, bcnn.NetworkInput, n.Append("channel", bcnn.Channels{Index: []int32{1}}))
	n.Append("kept again", bcnn.Mask{}, 1, bcnn.NetworkInput)

	n = build("new in version 6", bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 4}, DType: bcnn.Float32})
	n.Append("softmax", bcnn.Softmax{})
	n.Layers[0].Source = &bcnn.Source{Name: "p", Dims: []int{4}, Type: bcnn.SourceInt8, Offset: -128, Scale: 1. / 256}

	n = build("functions", bcnn.Input{Shape: bcnn.Shape{H: 1, W: 2, C: 4}, DType: bcnn.Float32})
	for _, name := range bcnn.FunctionNames() {
		n.Append(string(name), bcnn.Function{Name: name})
	}
	n.Append("flat", bcnn.Flatten{})
	n.Append("logarithms", bcnn.Softmax{Log: true})

	n = build("boxes of priors", bcnn.Input{
		Shape: bcnn.Shape{H: 1, W: 2, C: 3}, DType: bcnn.Float32, Photo: &bcnn.Photo{Fit: bcnn.FitLetterbox, BGR: true, Mean: []float32{1, 2, 3}, Scale: []float32{0.5}},
	})
	n.Append("locations", bcnn.Dense{Out: 8, Weights: bcnn.Weights{F32: floats(8 * 6)}}, bcnn.NetworkInput)
	n.Append("confidences", bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0, 1}, BlockH: 1, BlockW: 1}, bcnn.NetworkInput)
	n.Append("scores", bcnn.Softmax{})
	n.Outputs, n.Labels = []int{0, 2}, []string{"nothing", "face", "car"}
	n.Detection = &bcnn.Detection{Classes: 3, Threshold: 0.01, Overlap: 0.45, TopK: 400, Keep: 200, Heads: []bcnn.Head{
		bcnn.SSD{Confidences: 1, Softmax: true, Priors: floats(8), Variances: positive(4)},
	}}

	n = build("boxes of anchors", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 12}, DType: bcnn.Float32})
	n.Append("a", bcnn.ReLU{})
	n.Append("b", bcnn.Channels{Index: []int32{0, 1, 2, 3, 4, 5}}, 0)
	n.Outputs = []int{0, 1}
	n.Detection = &bcnn.Detection{Classes: 1, Background: -1, Threshold: 0.25, Overlap: 0.5, Heads: []bcnn.Head{
		bcnn.YOLO{Anchors: [][2]float32{{1, 2}, {3.5, 4}}, Cells: true, Centre: "logistic", Object: "logistic", Class: "softmax"},
		bcnn.YOLO{Output: 1, Anchors: [][2]float32{{9, 8}}, Squared: true},
	}}

	n = build("boxes of distributions", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 12}, DType: bcnn.Float32})
	n.Append("a", bcnn.ReLU{})
	n.Append("b", bcnn.Channels{Index: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, 0)
	n.Outputs = []int{0, 1}
	n.Detection = &bcnn.Detection{Classes: 4, Background: -1, Threshold: 0.25, Overlap: 0.7, Heads: []bcnn.Head{
		bcnn.DFL{Bins: 2, Class: "logistic"}, bcnn.DFL{Output: 1, Bins: 2},
	}}

	n = build("photos", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}})
	n.Append("in", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})

	n = build("borders", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 114, Corner: true}})
	n.Append("in", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})

	n = build("pixels", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 3, C: 4}, DType: bcnn.Float32})
	n.Append("shuffled", bcnn.Pixels{Rows: []int32{3, -1, 0}, Cols: []int32{2, 5}, Fill: 0.5, BlockH: 2, BlockW: 2})
	n.Append("padded", bcnn.Pixels{Rows: []int32{1, 0, 1}, Cols: []int32{1, 0, 1}, BlockH: 1, BlockW: 1})
	n.Append("resized", bcnn.Resample{
		Rows: bcnn.Taps{N: 2, Index: []int32{0, 1, 1, 2}, Weight: []float32{0.25, 0.75, 0.5, 0.5}},
		Cols: bcnn.Taps{N: 1, Index: []int32{1}, Weight: []float32{1}},
	})
	n.Append("best", bcnn.TopK{K: 1})
	n.Append("largest", bcnn.TopK{K: 1, Values: true}, 2)
	n.Outputs = []int{3, 4}

	n = build("attention", bcnn.Input{Shape: bcnn.Shape{H: 2, W: 3, C: 4}, DType: bcnn.Float32})
	n.Append("turned", bcnn.Transpose{})
	n.Append("back", bcnn.Transpose{})
	n.Append("product", bcnn.MatMul{}, bcnn.NetworkInput, 1)

	n = build("levels", bcnn.Input{Shape: bcnn.Shape{H: 5, W: 6, C: 4}, DType: bcnn.Float32})
	n.Append("ternary", bcnn.Ternary())
	n.Append("conv", bcnn.Conv2D{Window: window(1, 1, 1, 0), Out: 3, Groups: 1, Weights: bcnn.Weights{Int8: []int8{-1, 0, 1, 1, 0, -128, 127, 0, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, 0, 0, 0, 0}}})
	n.Append("each", bcnn.Quantize{Low: -2, Levels: 3, Thresholds: []float32{-1, 1, 0, 0, 0.5, 2}})
	n.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Int8: make([]int8, 5*6*3)}})
	n = build("integer weights", bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 2}, DType: bcnn.Float32})
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Int8: []int8{1, 0, -1, 1}}})

	for _, b := range []bcnn.Binarize{
		{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}},
		{Scheme: bcnn.SchemeLBP},
		{Scheme: bcnn.SchemeMinMax},
	} {
		n = build(string(b.Scheme), bcnn.Input{Shape: bcnn.Shape{H: 4, W: 4, C: 3}, DType: bcnn.Uint8})
		n.Append("in", b)
		channels := 3
		if b.Scheme == bcnn.SchemeGrey {
			channels = 1
		}
		n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: packed(2, 16*channels)}})
	}
	return all
}

func small() *bcnn.Network {
	n := &bcnn.Network{Name: "small", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Uint8, Resize: 12}}, Labels: []string{"a", "b"}}
	n.Append("in", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{9}})
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{5, 10}}, Bias: []float32{1, -1}})
	return n
}

func encode(t testing.TB, n *bcnn.Network) []byte {
	b, err := Encode(n)
	require.NoError(t, err)
	return b
}

// encodeAs returns the file of a network that is packed, or not, however little that saves.
func encodeAs(t testing.TB, n *bcnn.Network, packs bool) []byte {
	require.NoError(t, n.Check())
	meta, tensors, err := encodeNetwork(n, packs)
	require.NoError(t, err)
	b, err := writeContainer(meta, sorted(tensors))
	require.NoError(t, err)
	return b
}

func TestEveryKindOfLayerSurvivesARoundTrip(t *testing.T) {
	kinds := map[string]bool{}
	for name, n := range networks() {
		t.Run(name, func(t *testing.T) {
			b := encode(t, n)
			require.Equal(t, b, encode(t, n), "the same bytes every time")
			require.Zero(t, (8+binary.LittleEndian.Uint64(b))%alignment)
			back, err := Read(t.Context(), b, Options{})
			require.NoError(t, err)
			require.Equal(t, n, back)
			for _, packs := range []bool{false, true} {
				back, err = Read(t.Context(), encodeAs(t, n, packs), Options{})
				require.NoError(t, err)
				require.Equal(t, n, back)
			}

			path := filepath.Join(t.TempDir(), "model.bcnn")
			require.NoError(t, Save(path, n))
			back, err = Load(t.Context(), path, Options{})
			require.NoError(t, err)
			require.Equal(t, n, back)
		})
		for _, l := range n.Layers {
			kinds[l.Op.Kind()] = true
		}
	}
	for kind, c := range codecs {
		require.Contains(t, kinds, kind, "%T is in none of the networks", c.op)
	}
}

// Every type of package bcnn that is an operation, as only its methods output say, has a codec.
func TestEveryOperationIsStored(t *testing.T) {
	stored := map[string]bool{}
	for _, c := range codecs {
		stored[reflect.TypeOf(c.op).Name()] = true
	}
	files, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	found := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "output" {
				found++
				op := f.Recv.List[0].Type.(*ast.Ident).Name
				require.True(t, stored[op], "bcnn.%s has no codec", op)
			}
		}
	}
	require.Len(t, stored, found)
	for _, name := range bcnn.FunctionNames() {
		require.Contains(t, codecs, string(name))
	}
}

func TestDefaultsAreWrittenOut(t *testing.T) {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 3, W: 3, C: 1}, DType: bcnn.Float32}}}
	n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{F32: []float32{1}}})
	back, err := Read(t.Context(), encode(t, n), Options{})
	require.NoError(t, err)
	require.Equal(t, bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, back.Layers[0].Op.(bcnn.Conv2D).Window)
	require.Equal(t, 1, back.Layers[0].Op.(bcnn.Conv2D).Groups)
}

func TestTheFileIsSafetensors(t *testing.T) {
	b := encodeAs(t, networks()["binary <image> \"é\""], false)
	n := binary.LittleEndian.Uint64(b)
	var header map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b[8:8+n], &header))
	var meta map[string]string
	require.NoError(t, json.Unmarshal(header[metadataKey], &meta))
	require.Equal(t, "bcnn", meta["format"])
	var info struct {
		DType   string
		Shape   []int
		Offsets []int `json:"data_offsets"`
	}
	require.NoError(t, json.Unmarshal(header["conv1.weight"], &info))
	require.Equal(t, "U64", info.DType)
	require.Equal(t, []int{66, 3, 4, 1}, info.Shape)
	require.Equal(t, 66*3*4*8, info.Offsets[1]-info.Offsets[0])
	require.Zero(t, info.Offsets[0]%8)
	require.NoError(t, json.Unmarshal(header["in.thresholds"], &info))
	require.Equal(t, "I32", info.DType)
	data := b[8+n:]
	require.Equal(t, int32(-5), int32(binary.LittleEndian.Uint32(data[info.Offsets[0]:])))
}

func TestEveryTruncationIsAnError(t *testing.T) {
	b := encode(t, small())
	for n := range b {
		_, err := Read(t.Context(), b[:n:n], Options{})
		require.Error(t, err, "the first %d of %d bytes", n, len(b))
	}
	_, err := Read(t.Context(), append(b[:len(b):len(b)], 0), Options{})
	require.ErrorContains(t, err, "belong to no tensor")
}

func TestEveryFlippedBitIsAnError(t *testing.T) {
	b := encode(t, small())
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err := Read(t.Context(), b, Options{})
			require.Error(t, err, "byte %d, bit %d", i, bit)
			b[i] ^= 1 << bit
		}
		b[i] ^= 0xFF
		_, err := Read(t.Context(), b, Options{})
		require.Error(t, err, "byte %d", i)
		b[i] ^= 0xFF
	}
	_, err := Read(t.Context(), b, Options{})
	require.NoError(t, err)
}

// file builds a file from the text of its header and seals it.
func file(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(append(b, header...), data...)
	seal(b)
	return b
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	valid := string(encode(t, small()))
	headerEnd := 8 + int(binary.LittleEndian.Uint64([]byte(valid)))
	header := strings.TrimRight(valid[8:headerEnd], " ")
	data := []byte(valid[headerEnd:])
	// The checksum as in a file that is to be sealed.
	at := strings.Index(header, `"sha256":"`) + len(`"sha256":"`)
	header = header[:at] + unsealed + header[at+len(unsealed):]

	read := func(h string, d []byte) error {
		_, err := Read(t.Context(), file(h, d), Options{})
		return err
	}
	require.NoError(t, read(header, data))
	require.NoError(t, read(header+"   ", data), "any padding")
	require.NoError(t, read(strings.Replace(header, `"format"`, `"author":"me","format"`, 1), data), "foreign metadata")

	for _, c := range []struct{ old, new, want string }{
		{`"format":"bcnn"`, `"format":"pt"`, `its format is "pt"`},
		{`"version":"1"`, `"version":"13"`, `version "13" of the format is unknown, this program reads versions 1 to 12`},
		{`"version":"1"`, `"version":"0"`, `version "0" of the format is unknown`},
		{`"version":"1"`, `"version":"01"`, `version "01" of the format is unknown`},
		{`"__metadata__"`, `"__meta__"`, "it has no metadata"},
		{`"format":"bcnn"`, `"format":7`, "metadata"},
		{`"format":"bcnn"`, `"format":"bcnn","format":"bcnn"`, `"format" occurs twice`},
		{`"dense.bias":`, `"dense.weight":`, `"dense.weight" occurs twice`},
		{`"dtype":"U64"`, `"dtype":"F16"`, `data type F16 needs version 11 of the format, this file has version 1`},
		{`"dtype":"U64"`, `"dtype":"I64"`, `data type "I64"`},
		{`"dtype":"U64"`, `"type":"U64"`, "unknown field"},
		{`"shape":[2,1]`, `"shape":[1,1]`, "takes 8 bytes, the offsets give 16"},
		{`"shape":[2,1]`, `"shape":[2,0]`, "is empty"},
		{`"shape":[2,1]`, `"shape":[-2,-1]`, "is empty"},
		{`"shape":[2,1]`, `"shape":[4611686018427387904,4]`, "does not fit into the file"},
		{`"shape":[2,1]`, `"shape":[1,1,1,1,1,1,1,1,1,2]`, "10 dimensions"},
		{`"shape":[2,1]`, `"shape":[2.5,1]`, "dense.weight"},
		{`"shape":[2,1]`, `"shape":[2]`, "want [2] and one more dimension"},
		{`"data_offsets":[0,16]`, `"data_offsets":[0]`, "1 offsets"},
		{`"data_offsets":[0,16]`, `"data_offsets":[-16,0]`, "wrong offsets"},
		{`"data_offsets":[0,16]`, `"data_offsets":[8,24]`, "without gaps"},
		{`"data_offsets":[0,16]`, `"data_offsets":[0,9223372036854775807]`, "truncated file or wrong offsets"},
		{`\"layers\"`, `\"layer\"`, "unknown field"},
		{`\"shape\":[2,2,1]`, `\"shape\":[2,2]`, "want height, width and channels"},
		{`\"shape\":[2,2,1]`, `\"shape\":[2,2,2000000000]`, "larger than"},
		{`\"shape\":[2,2,1]`, `\"shape\":[9,9,1]`, `"dense"`},
		{`\"dtype\":\"uint8\"`, `\"dtype\":\"int7\"`, `unknown type "int7"`},
		{`\"kind\":\"dense\"`, `\"kind\":\"tense\"`, `unknown kind of layer "tense"`},
		{`\"kind\":\"dense\"`, `\"kind\":\"relu\"`, "a layer of kind relu takes no params"},
		{`\"kind\":\"dense\"`, `\"kind\":\"binarize\"`, "unknown field"},
		{`\"out\":2`, `\"out\":3`, "want [3] and one more"},
		{`\"out\":2`, `\"out\":2,\"bits\":1`, "unknown field"},
		{`\"out\":2`, `\"out\":2,\"out\":2`, "occurs twice"},
		{`\"out\":2`, `\"out\":1e300`, "params"},
		{`\"inputs\":[0]`, `\"inputs\":[1]`, "want an earlier layer"},
		{`\"inputs\":[0]`, `\"inputs\":[0,0]`, "has 2 inputs"},
		{`\"bias\":\"dense.bias\",`, ``, `no layer uses the tensor "dense.bias"`},
		{`\"bias\":\"dense.bias\"`, `\"bias\":\"dense.weight\"`, "dense"},
		{`\"bias\":\"dense.bias\"`, `\"bias\":\"dense.b\"`, `tensor "dense.b" does not exist`},
		{`\"bias\":\"dense.bias\"`, `\"shift\":\"dense.bias\"`, `a layer of kind dense takes no tensor "shift"`},
		{`\"bias\":\"dense.bias\"`, `\"bias\":\"in.thresholds\"`, `tensor "in.thresholds" does not exist, or another layer uses it`},
		{`\"labels\":[\"a\",\"b\"]`, `\"labels\":[\"a\"]`, "1 labels for 2 outputs"},
		{`\"labels\":[\"a\",\"b\"]`, `\"labels\":[\"a\",\"b\\u202e\"]`, `label 1: "b\u202e" has the control character U+202E`},
		{`\"name\":\"dense\"`, `\"name\":\"den\\u001b[2Kse\"`, `the name "den\x1b[2Kse" has the control character U+001B`},
		{`\"name\":\"small\"`, `\"name\":\"a\\nb\"`, `the network's name "a\nb" has the control character U+000A`},
		{`\"scheme\":\"grey\"`, `\"scheme\":\"gray\"`, `unknown scheme "gray"`},
		{`"dtype":"I32"`, `"dtype":"F32"`, "want I32"},
		{`"dtype":"I32","shape":[1]`, `"dtype":"I32","shape":[1,1]`, "one dimension"},
		{unsealed, unsealed[1:], "63 digits"},
		// The names of fields are exact: K is the sign of kelvin, ſ an s of old.
		{`"dtype":"U64"`, `"Dtype":"U64"`, `unknown field "Dtype"`},
		{`"dtype":"U64"`, `"DTYPE":"F32","dtype":"U64"`, `unknown field "DTYPE"`},
		{`"shape":[2,1]`, `"ſhape":[2,1]`, `unknown field "ſhape"`},
		{`"format":"bcnn"`, `"Format":"bcnn"`, `its format is ""`},
		{`\"kind\":\"dense\"`, `\"Kind\":\"dense\"`, `unknown field "Kind"`},
		{`\"kind\":\"dense\"`, `\"Kind\":\"dense\"`, "unknown field \"Kind\""},
		{`\"kind\":\"dense\"`, `\"kind\":\"dense\",\"KIND\":\"relu\"`, `unknown field "KIND"`},
		{`\"kind\":\"dense\"`, `\"\\u212aind\":\"dense\"`, "unknown field \"Kind\""},
		{`\"name\":\"small\"`, `\"NAME\":\"small\"`, `unknown field "NAME"`},
		{`\"resize\"`, `\"Resize\"`, `unknown field "Resize"`},
		{`\"out\":2`, `\"Out\":2`, `unknown field "Out"`},
		{`\"out\":2`, `\"out\":2,\"oUt\":3`, `unknown field "oUt"`},
		{`\"bias\":\"dense.bias\"`, `\"Bias\":\"dense.bias\"`, `a layer of kind dense takes no tensor "Bias"`},
		{`\"bias\":\"dense.bias\"`, `\"bias\":\"dense.bias\",\"bias\":\"dense.bias\"`, `"bias" occurs twice`},
		{`\"bias\":\"dense.bias\"`, `\"bias\":{\"bias\":\"dense.bias\"}`, "cannot unmarshal object"},
		{`\"shape\":[2,2,1]`, `\"shape\":{\"H\":1}`, "cannot unmarshal object"},
		{`\"inputs\":[0]`, `\"inputs\":[null]`, "null is not allowed as a value"},
		{`\"out\":2`, `\"out\":null`, "null is not allowed as a value"},
		{`\"out\":2`, `\"out\":` + strings.Repeat("1", 1000), "number 111"},
		{`\"out\":2`, `\"out\":2,\"` + strings.Repeat("x", 1000) + `\":1`, "unknown field"},
		{`"dense.bias"`, `"` + strings.Repeat("x", 1000) + `"`, `tensor "dense.bias" does not exist`},
	} {
		require.Contains(t, header, c.old)
		err := read(strings.Replace(header, c.old, c.new, 1), data)
		require.ErrorContains(t, err, c.want, "%s → %s", c.old, c.new)
		require.Less(t, len(err.Error()), 500, "an error is a line")
	}

	// A second run of the checksum's digits makes its place ambiguous.
	double := strings.Replace(header, `"version":"1"`, `"version":"1","copy":"`+unsealed+`"`, 1)
	_, err := Read(t.Context(), append(binary.LittleEndian.AppendUint64(nil, uint64(len(double))), double+string(data)...), Options{})
	require.ErrorContains(t, err, "exactly once")

	dirty := append([]byte(nil), data...)
	dirty[7] = 1 // beyond the 4 bits of the first row
	require.ErrorContains(t, read(header, dirty), "padding bits")

	nan := append([]byte(nil), data...)
	copy(nan[len(nan)-4:], []byte{0, 0, 0xC0, 0x7F})
	require.ErrorContains(t, read(header, nan), "NaN")

	require.ErrorContains(t, read(strings.Replace(header, `\"dense\"`, `\"d`+"\xE9"+`nse\"`, 1), data), "not UTF-8")
	require.ErrorContains(t, read("", nil), "no JSON object")
	require.ErrorContains(t, read("[]", nil), "no JSON object")
	require.ErrorContains(t, read("{", nil), "header")
	require.ErrorContains(t, read("{}x", nil), "header")
	require.ErrorContains(t, read("{}", nil), "no metadata")
	require.ErrorContains(t, read("{"+strings.Repeat(`"a":[`, 20000), nil), "header")

	_, err = Read(t.Context(), nil, Options{})
	require.ErrorContains(t, err, "only 0 bytes")
	_, err = Read(t.Context(), []byte("\xFF\xD8\xFF\xE0 a photo"), Options{})
	require.ErrorContains(t, err, "not a .bcnn file")
	_, err = Read(t.Context(), []byte("\xFF\xFF\x00\x00\x00\x00\x00\x00 a photo"), Options{})
	require.ErrorContains(t, err, "a header of 65535 bytes in a file of 16")
}

func TestLoadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.bcnn")
	_, err := Load(t.Context(), path, Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o644))
	_, err = Load(t.Context(), path, Options{})
	require.ErrorContains(t, err, path+": not a .bcnn file")
	_, err = Load(t.Context(), dir, Options{})
	require.EqualError(t, err, dir+": is a directory")
	_, err = Load(t.Context(), os.DevNull, Options{})
	require.EqualError(t, err, os.DevNull+": not a regular file")
}

func TestSaveLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.bcnn")
	bad := small()
	bad.Labels = bad.Labels[:1]
	err := Save(path, bad)
	require.ErrorContains(t, err, "write "+path+": ")
	require.Equal(t, 1, strings.Count(err.Error(), path), "%v", err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, os.MkdirAll(filepath.Join(path, "occupied"), 0o755)) // cannot be replaced by a file
	require.EqualError(t, Save(path, small()), "write "+path+": is a directory")
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	absent := filepath.Join(dir, "absent", "x.bcnn")
	err = Save(absent, small())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "write "+absent+": ")

	other := filepath.Join(dir, "y.bcnn")
	require.NoError(t, os.WriteFile(other, []byte("old"), 0o644))
	require.NoError(t, Save(other, small()))
	back, err := Load(t.Context(), other, Options{})
	require.NoError(t, err)
	require.Equal(t, small(), back)
}

func TestEncodeRefusesWhatItCannotStore(t *testing.T) {
	n := small()
	n.Labels[0] = "\xFF"
	_, err := Encode(n)
	require.ErrorContains(t, err, "UTF-8")
	n = small()
	n.Labels[0] = unsealed
	_, err = Encode(n)
	require.ErrorContains(t, err, "zeros in a row")
	n = small()
	n.Labels[0] = strings.Repeat("x", maxHeader)
	_, err = Encode(n)
	require.ErrorContains(t, err, fmt.Sprint(maxHeader))
	n = small()
	n.Layers[0].Name = ""
	_, err = Encode(n)
	require.Error(t, err)
}

// What is new in a version makes a file one of it, and nothing else does.
// A function that is new needs a version of its own: older programs do not have it.
func TestVersionsOfFunctions(t *testing.T) {
	first := map[bcnn.FunctionName]int{
		bcnn.Tanh: 2, bcnn.Sigmoid: 5, bcnn.Exp: 5, bcnn.Softplus: 5, bcnn.ELU: 5, bcnn.Erf: 5, bcnn.SiLU: 5, bcnn.GELU: 5,
		bcnn.GELUTanh: 5, bcnn.Mish: 5, bcnn.HardSwish: 5, bcnn.Reciprocal: 5, bcnn.RSqrt: 5, bcnn.RootScale: 5,
		bcnn.Inverse: 8, bcnn.InverseRoot: 8, bcnn.RootFactor: 8, bcnn.RootPower: 8,
		bcnn.Float16Shift: 8, bcnn.Float16Range: 8, bcnn.BFloat16Shift: 8,
	}
	for _, name := range bcnn.FunctionNames() {
		require.Contains(t, first, name, "in which version of the file is it? see codecs")
		require.Equal(t, first[name], codecs[string(name)].first, name)
	}
}

func TestVersions(t *testing.T) {
	for name, n := range networks() {
		want := `"version":"1"`
		switch name {
		case "new in version 2":
			want = `"version":"2"`
		case "sources", "several ends":
			want = `"version":"3"`
		case "pixels", "new in version 5":
			want = `"version":"5"`
		case "levels", "integer weights":
			want = `"version":"4"`
		case "new in version 6":
			want = `"version":"6"`
		case "attention":
			want = `"version":"7"`
		case "functions", "masks":
			want = `"version":"8"`
		case "boxes of priors", "boxes of anchors", "photos":
			want = `"version":"9"`
		case "boxes of distributions":
			want = `"version":"10"`
		case "borders":
			want = `"version":"12"`
		}
		require.Contains(t, string(encodeAs(t, n, false)), want, name)
	}
	dense := &bcnn.Network{Name: "one", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 1}, DType: bcnn.Float32}}}
	dense.Append("layer", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Int8: []int8{2}}})
	old := bytes.Replace(encode(t, dense), []byte(`"version":"4"`), []byte(`"version":"3"`), 1)
	seal(old)
	_, err := Read(t.Context(), old, Options{})
	require.ErrorContains(t, err, "integers need version 4 of the format, this file has version 3")
	old = bytes.Replace(encode(t, networks()["new in version 6"]), []byte(`"version":"6"`), []byte(`"version":"5"`), 1)
	seal(old)
	_, err = Read(t.Context(), old, Options{})
	require.ErrorContains(t, err, "scales of sources need version 6 of the format, this file has version 5")
	for name, want := range map[string]string{
		"photos": "photos need version 9 of the format, this file has version 8", "boxes of anchors": "detection: it needs version 9 of the format, this file has version 8",
	} {
		old = bytes.Replace(encode(t, networks()[name]), []byte(`"version":"9"`), []byte(`"version":"8"`), 1)
		seal(old)
		_, err = Read(t.Context(), old, Options{})
		require.ErrorContains(t, err, want)
	}
	old = bytes.Replace(encode(t, networks()["boxes of distributions"]), []byte(`"version":"10"`), []byte(`"version":"9" `), 1)
	seal(old)
	_, err = Read(t.Context(), old, Options{})
	require.ErrorContains(t, err, "detection: head 0: it is of kind dfl, which needs version 10 of the format, this file has version 9")
	old = bytes.Replace(encode(t, networks()["borders"]), []byte(`"version":"12"`), []byte(`"version":"11"`), 1)
	seal(old)
	_, err = Read(t.Context(), old, Options{})
	require.ErrorContains(t, err, "borders of photos need version 12 of the format, this file has version 11")
	for _, c := range []struct {
		kind string
		op   bcnn.Op
	}{
		{"quantize", bcnn.Ternary()},
		{"avgpool", bcnn.AvgPool{Window: bcnn.Window{KH: 1, KW: 1}}}, {"prelu", bcnn.PReLU{Slope: []float32{2}}}, {"clip", bcnn.Clip{Min: 1, Max: 2}}, {"tanh", bcnn.Function{Name: bcnn.Tanh}},
		{"sigmoid", bcnn.Function{Name: bcnn.Sigmoid}}, {"gelu_tanh", bcnn.Function{Name: bcnn.GELUTanh}}, {"rsqrt", bcnn.Function{Name: bcnn.RSqrt}}, {"root_factor", bcnn.Function{Name: bcnn.RootFactor}}, {"logsoftmax", bcnn.Softmax{Log: true}},
		{"pixels", bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}}}, {"topk", bcnn.TopK{K: 1}},
		{"resample", bcnn.Resample{Rows: bcnn.Taps{N: 1, Index: []int32{0}, Weight: []float32{1}}, Cols: bcnn.Taps{N: 1, Index: []int32{0}, Weight: []float32{1}}}},
		{"mul", bcnn.Mul{}}, {"min", bcnn.Min{}}, {"max", bcnn.Max{}}, {"mask", bcnn.Mask{}}, {"matmul", bcnn.MatMul{}}, {"transpose", bcnn.Transpose{}}, {"concat", bcnn.Concat{}}, {"channels", bcnn.Channels{Index: []int32{0}}},
	} {
		n := &bcnn.Network{Name: "one", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Float32}}}
		inputs := []int{bcnn.NetworkInput}
		if c.kind == "mul" || c.kind == "min" || c.kind == "max" || c.kind == "mask" || c.kind == "matmul" || c.kind == "concat" {
			inputs = append(inputs, bcnn.NetworkInput)
		}
		n.Append("layer", c.op, inputs...)
		b := encode(t, n)
		_, err := Read(t.Context(), b, Options{})
		require.NoError(t, err)
		version := 2
		switch c.kind {
		case "quantize":
			version = 4
		case "sigmoid", "gelu_tanh", "rsqrt", "logsoftmax", "pixels", "resample", "topk", "min", "max":
			version = 5
		case "matmul", "transpose":
			version = 7
		case "root_factor", "mask":
			version = 8
		}
		old := bytes.Replace(b, []byte(fmt.Sprintf(`"version":"%d"`, version)), []byte(fmt.Sprintf(`"version":"%d"`, version-1)), 1)
		seal(old)
		_, err = Read(t.Context(), old, Options{})
		require.ErrorContains(t, err, fmt.Sprintf("layers of kind %s need version %d of the format, this file has version %d", c.kind, version, version-1))
	}
}

// A clip has one bound at least, and says nothing of the other.
func TestOpenClips(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		clip   bcnn.Clip
		params string
	}{
		{bcnn.Clip{Min: 0, Max: 6}, `{\"min\":0,\"max\":6}`},
		{bcnn.Clip{Min: 0, Max: inf}, `{\"min\":0}`},
		{bcnn.Clip{Min: -inf, Max: 0.1}, `{\"max\":0.1}`},
	} {
		n := &bcnn.Network{Name: "one", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Float32}}}
		n.Append("layer", c.clip)
		b := encode(t, n)
		require.Contains(t, string(b), c.params)
		back, err := Read(t.Context(), b, Options{})
		require.NoError(t, err)
		require.Equal(t, c.clip, back.Layers[0].Op)
		for _, wrong := range []struct{ params, want string }{
			{`{}`, "clip without a finite bound"}, {`{\"min\":2,\"max\":1}`, "clip from 2 to 1"}, {`{\"min\":null}`, "null is not allowed as a value"},
			{`{\"max\":1e39}`, "1e39"}, {`{\"Min\":1}`, `unknown field "Min"`},
		} {
			text := strings.Replace(strings.TrimRight(string(b[8:]), " "), c.params, wrong.params, 1)
			at := strings.Index(text, `"sha256":"`) + len(`"sha256":"`)
			_, err := Read(t.Context(), file(text[:at]+unsealed+text[at+len(unsealed):], nil), Options{})
			require.ErrorContains(t, err, wrong.want)
		}
	}
}
