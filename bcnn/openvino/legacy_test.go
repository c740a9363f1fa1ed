package openvino

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Files of IR 4 have their weights on the layers, thresholds as constants, and no Result.
func TestLegacy(t *testing.T) {
	f := old()
	net, report, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	require.Equal(t, 4, report.Version)
	require.Equal(t, "old", net.Name)
	input := make([]float32, 32)
	for i := range input {
		input[i] = float32(i%7) - 3
	}
	got := run(t, net, input)["l10"]
	// weights are 0x0f, 0x55, 0x33 and 0xff: the first weight of a filter is the lowest bit.
	var want []float32
	for p := range 4 {
		for _, w := range []byte{0x0f, 0x55, 0x33, 0xff} {
			sum := float32(0)
			for c := range 8 {
				x := input[4*c+p]*(float32(c)-3) + float32(c) - 3 // scale and shift of channel c
				product := float32(-1)
				if (x > 0) == (w>>c&1 == 1) {
					product = 1
				}
				sum += product
			}
			if sum < 0 {
				sum /= 2 // negative_slope
			}
			want = append(want, sum)
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, &bcnn.Source{Name: "l10", Dims: []int{16}}, net.Layers[net.OutputLayers()[0]].Source)
}

// TestLegacyFunctions replaces the ReLU of the old file by others. The sums in front of it are −8 to 8.
func TestLegacyFunctions(t *testing.T) {
	f := old()
	bin := slices.Clone(f.bin)
	for _, v := range []float32{0.5, 2, -1, 0} { // slopes
		bin = binary.LittleEndian.AppendUint32(bin, math.Float32bits(v))
	}
	input := make([]float32, 32)
	for i := range input {
		input[i] = float32(i%7) - 3
	}
	const relu = `type="ReLU"><data negative_slope="0.5"/>`
	plain, _, err := Decode(t.Context(), []byte(strings.Replace(f.xml, relu, `type="Power"><data power="1" scale="1" shift="0"/>`, 1)), f.bin, Options{})
	require.NoError(t, err)
	sums := run(t, plain, input)["l10"]
	require.Less(t, slices.Min(sums), float32(0))
	for _, c := range []struct {
		layer, blobs string
		want         func(channel int, x float32) float32
	}{
		{`type="Power"><data power="1" scale="-0.5" shift="3"/>`, "", func(_ int, x float32) float32 { return 3 - x/2 }},
		{`type="PReLU"><data channel_shared="0" filler_type="constant"/>`, `<blobs><weights offset="80" size="16"/></blobs>`, func(c int, x float32) float32 {
			if x < 0 {
				return x * []float32{0.5, 2, -1, 0}[c]
			}
			return x
		}},
		{`type="PReLU"><data channel_shared="1"/>`, `<blobs><weights offset="84" size="4"/></blobs>`, func(_ int, x float32) float32 { return min(x, 2*x) }},
		{`type="Activation"><data type="relu"/>`, "", func(_ int, x float32) float32 { return max(x, 0) }},
		{`type="Activation"><data type="clamp" min="-1" max="4"/>`, "", func(_ int, x float32) float32 { return min(max(x, -1), 4) }},
		{`type="Activation"><data type="sigmoid"/>`, "", func(_ int, x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }},
		{`type="Activation"><data type="tanh"/>`, "", func(_ int, x float32) float32 { return float32(math.Tanh(float64(x))) }},
		{`type="Activation"><data type="exp"/>`, "", func(_ int, x float32) float32 { return float32(math.Exp(float64(x))) }},
		{`type="Activation"><data type="elu" alpha="1"/>`, "", func(_ int, x float32) float32 { return max(x, 0) + float32(math.Expm1(float64(min(x, 0)))) }},
	} {
		xml := strings.Replace(f.xml, relu, c.layer, 1)
		if c.blobs != "" {
			at := strings.Index(xml, c.layer)
			xml = xml[:at] + strings.Replace(xml[at:], "</output>", "</output>"+c.blobs, 1)
		}
		net, _, err := Decode(t.Context(), []byte(xml), bin, Options{})
		require.NoError(t, err, c.layer)
		got := run(t, net, input)["l10"]
		for i, x := range sums { // channels are behind the pixels there
			want := float64(c.want(i%4, x))
			require.InDelta(t, want, got[i], 1e-6*(1+math.Abs(want)), "%s of %v", c.layer, x)
		}
	}
	for _, c := range []struct{ layer, want string }{
		{`type="Power"><data power="5" scale="1" shift="0"/>`, `its power is 5, want a multiple of ¼ up to 4`},
		{`type="Activation"><data type="not"/>`, `its attribute type is "not", want relu, relu6`},
		{`type="Activation"><data type="elu" alpha="2"/>`, `its attribute alpha is "2", want 1`},
		{`type="PReLU"><data channel_shared="0"/>`, "it has no weights"},
	} {
		_, _, err := Decode(t.Context(), []byte(strings.Replace(f.xml, relu, c.layer, 1)), bin, Options{})
		require.ErrorContains(t, err, c.want)
	}
}

// Outputs of the graph that are one layer, or the input, are layers of their own in a network.
func TestOutputsOfOneLayer(t *testing.T) {
	w := newWriter()
	x := w.parameter(1, 2, 1, 3)
	y := w.op("ReLU", "", nil, x)
	z := w.op("Reshape", `special_zero="true"`, []int{1, 6}, y, w.ints(0, -1))
	for _, from := range []int{x, y, z} {
		w.result(from)
	}
	f := w.files()
	net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string][]float32{
		"parameter_0": {-1, 2, -3, 4, 5, -6}, "relu_1": {0, 2, 0, 4, 5, 0}, "reshape_3": {0, 2, 0, 4, 5, 0},
	}, run(t, net, []float32{-1, 2, -3, 4, 5, -6}))
	require.Empty(t, net.Absorbed)
}

// A network takes images as the graph is meant: what it reads first tells where the channels are.
func TestLayoutOfInput(t *testing.T) {
	for _, c := range []struct {
		dims []int
		make func(w *writer, x int)
		want bcnn.Shape
	}{
		{[]int{1, 4, 6, 1}, func(w *writer, x int) {
			w.op("MaxPool", `kernel="1,1" `+explicitPool, nil, w.op("ReLU", "", nil, x))
		}, bcnn.Shape{H: 6, W: 1, C: 4}},
		{[]int{1, 4, 6, 5}, func(w *writer, x int) {
			w.op("Transpose", "", []int{1, 5, 4, 6}, w.op("ReLU", "", nil, x), w.ints(0, 3, 1, 2))
		}, bcnn.Shape{H: 4, W: 6, C: 5}},
		{[]int{1, 4, 6, 3}, func(w *writer, x int) { w.op("ReLU", "", nil, x) }, bcnn.Shape{H: 4, W: 6, C: 3}},
		{[]int{1, 4, 6, 5}, func(w *writer, x int) { w.op("ReLU", "", nil, x) }, bcnn.Shape{H: 6, W: 5, C: 4}},
		{[]int{1, 4, 6}, func(w *writer, x int) { w.op("ReLU", "", nil, x) }, bcnn.Shape{H: 4, W: 1, C: 6}},
	} {
		w := newWriter()
		c.make(w, w.parameter(c.dims...))
		f := w.last()
		net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, net.Inputs[0].Shape)
	}
}

func TestLegacyRefuses(t *testing.T) {
	f := old()
	for _, c := range []struct{ old, changed, want string }{
		{`pads_begin="0,0" pads_end="0,0" strides`, `pads_begin="1,1" pads_end="0,0" strides`, "it has padding but no pad_value"},
		{`group="1" input`, `group="2" input`, `its attribute group is "2", want 1`},
		{`mode="xnor-popcount"`, `mode="x"`, `its attribute mode is "x"`},
		{`<weights offset="76" size="4"/>`, ``, "it has no weights"},
		{`<weights offset="76" size="4"/>`, `<weights offset="76" size="4"/><biases offset="0" size="4"/>`, "it has blobs besides [weights]"},
		{`<weights offset="76" size="4"/>`, `<weights offset="76" size="4" more=""/>`, "the attribute more, which is not supported"},
		{`<weights offset="76" size="4"/>`, `<weights offset="77" size="4"/>`, "the 4 bytes from byte 77 of the .bin, which has 80 bytes"},
		{`name="l1" precision="FP32"`, `name="l1" precision="I8"`, `values of precision "I8"`},
		{`name="l0" precision="FP32"`, `name="l0" precision="U8"`, `an input of precision "U8"`},
		{`<custom offset="64" size="4"/>`, ``, "it has no values"},
		{`type="Permute"`, `type="Transpose"`, "this operator is not supported"},
		{`order="0,2,3,1"`, `order="0,2,2,1"`, "its order is not one of the 4 dimensions"},
		{`version="4"`, `version="10"`, "an element <blobs> is not supported"},
	} {
		changed := strings.Replace(f.xml, c.old, c.changed, 1)
		require.NotEqual(t, f.xml, changed, c.old)
		_, _, err := Decode(t.Context(), []byte(changed), f.bin, Options{})
		require.ErrorContains(t, err, c.want, "%s -> %s", c.old, c.changed)
	}
}
