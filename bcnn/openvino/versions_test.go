package openvino

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// inVersion writes a graph of IR 4 as another version of the old ones has it: IR 6 calls Quantize
// FakeQuantize and gives shapes as integers, and IR 7 says at ports and blobs what the values are.
func inVersion(xml string, version int) string {
	xml = strings.Replace(xml, `version="4"`, fmt.Sprintf(`version="%d"`, version), 1)
	if version >= 6 {
		xml = strings.ReplaceAll(xml, `type="Quantize"`, `type="FakeQuantize"`)
	}
	if version < 7 {
		return xml
	}
	layer := regexp.MustCompile(`(?s)<layer [^>]*?precision="(FP32|FP16)".*?</layer>`)
	return layer.ReplaceAllStringFunc(xml, func(s string) string {
		precision := layer.FindStringSubmatch(s)[1]
		s = strings.Replace(s, fmt.Sprintf(` precision="%s"`, precision), "", 1)
		head, tail, _ := strings.Cut(s, "<output>")
		tail = regexp.MustCompile(`<port id="(\d+)"`).ReplaceAllString(tail, fmt.Sprintf(`<port id="$1" precision="%s"`, precision))
		return head + "<output>" + regexp.MustCompile(` size="`).ReplaceAllString(tail, fmt.Sprintf(` precision="%s" size="`, precision))
	})
}

// IR 5, 6 and 7 are the network that IR 4 is.
func TestOldVersions(t *testing.T) {
	f := old()
	want, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	for version := 5; version <= 7; version++ {
		xml := inVersion(f.xml, version)
		net, report, err := Decode(t.Context(), []byte(xml), f.bin, Options{})
		require.NoError(t, err, xml)
		require.Equal(t, version, report.Version)
		require.Equal(t, want, net)
	}
	xml := inVersion(f.xml, 7)
	require.NotContains(t, xml, `type="Input" precision`)
	require.Equal(t, 7, strings.Count(xml, `precision="FP32" size=`), "all that is in the .bin")
	for _, c := range []struct{ old, changed, want string }{
		{`version="7"`, `version="8"`, `its version is "8", want 4 to 7, 10 or 11`},
		{`version="7"`, `version="9"`, `its version is "9", want 4 to 7, 10 or 11`},
		{`version="7"`, `version="3"`, `its version is "3", want 4 to 7, 10 or 11`},
		{`<weights offset="0" precision="FP32"`, `<weights offset="0" precision="I8"`, `values of precision "I8" are not supported`},
		{`<weights offset="0" precision="FP32"`, `<weights offset="0"`, `values of precision "" are not supported`},
		{`<custom offset="64" precision="FP32"`, `<custom offset="64" precision="BIN"`, `values of precision "BIN" are not supported`},
		{`<custom offset="64" precision="FP32"`, `<custom offset="64" precision="I64"`, "takes 8 bytes, but its size is 4"},
		{`<port id="0" precision="FP32">`, `<port id="0" precision="U8">`, `an input of precision "U8"`},
	} {
		changed := strings.Replace(xml, c.old, c.changed, 1)
		require.NotEqual(t, xml, changed, c.old)
		_, _, err := Decode(t.Context(), []byte(changed), f.bin, Options{})
		require.ErrorContains(t, err, c.want, c.changed)
	}
	// What no layer says, the network does.
	named := strings.Replace(strings.ReplaceAll(f.xml, ` precision="FP32"`, ""), `version="4"`, `precision="FP32" version="5"`, 1)
	net, _, err := Decode(t.Context(), []byte(named), f.bin, Options{})
	require.NoError(t, err)
	require.Equal(t, want, net)
}

// The published detector is the same network in each version.
func TestPublishedInOldVersions(t *testing.T) {
	const file = detector + "ir4/face-detection-adas-binary-0001"
	xml, err := os.ReadFile(testenv.SharedData(t, file+".xml"))
	require.NoError(t, err)
	bin, err := os.ReadFile(testenv.SharedData(t, file+".bin"))
	require.NoError(t, err)
	want, _, err := Decode(t.Context(), xml, bin, Options{})
	require.NoError(t, err)
	require.NotNil(t, want.Detection)
	for version := 5; version <= 7; version++ {
		net, _, err := Decode(t.Context(), []byte(inVersion(string(xml), version)), bin, Options{})
		require.NoError(t, err)
		require.Equal(t, want, net)
	}
}

// oldGraph writes a graph of old layers, each of which reads the ones that are named.
type oldGraph struct {
	layers, edges strings.Builder
	count         int
	dims          [][]int  // of tensors
	makers        [][2]int // of tensors: the layer and the port
	bin           []byte
	precision     string // of the next layers, FP32 if it is empty
}

func (g *oldGraph) layer(typ, data, blobs string, dims []int, from ...int) int {
	return g.several(typ, data, blobs, [][]int{dims}, from...)
}

// several adds a layer with several outputs and returns the first of them.
func (g *oldGraph) several(typ, data, blobs string, outputs [][]int, from ...int) int {
	port := func(id int, dims []int) string {
		s := fmt.Sprintf(`<port id="%d">`, id)
		for _, d := range dims {
			s += fmt.Sprintf("<dim>%d</dim>", d)
		}
		return s + "</port>"
	}
	in, out := "", ""
	for k, f := range from {
		in += port(k, g.dims[f])
		fmt.Fprintf(&g.edges, `<edge from-layer="%d" from-port="%d" to-layer="%d" to-port="%d"/>`, g.makers[f][0], g.makers[f][1], g.count, k)
	}
	if in != "" {
		in = "<input>" + in + "</input>"
	}
	if data != "" {
		data = "<data " + data + "/>"
	}
	first := len(g.dims)
	for k, dims := range outputs {
		g.dims, g.makers = append(g.dims, dims), append(g.makers, [2]int{g.count, 9 + k})
		out += port(9+k, dims)
	}
	fmt.Fprintf(&g.layers, `<layer id="%d" name="l%d" precision="%s" type="%s">%s%s<output>%s</output>%s</layer>`, g.count, g.count, cmp.Or(g.precision, "FP32"), typ, data, in, out, blobs)
	g.count++
	return first
}

// blob adds numbers to the .bin.
func (g *oldGraph) blob(name string, list ...float32) string {
	at := len(g.bin)
	for _, v := range list {
		g.bin = binary.LittleEndian.AppendUint32(g.bin, math.Float32bits(v))
	}
	return fmt.Sprintf(`<%s offset="%d" size="%d"/>`, name, at, 4*len(list))
}

// decode imports the graph and runs it on −3, −2, …
func (g *oldGraph) decode(t *testing.T) (map[string][]float32, error) { return g.decodeOf(t, nil) }

// decodeOf is decode for an input in the order of the file.
func (g *oldGraph) decodeOf(t *testing.T, input []float32) (map[string][]float32, error) {
	xml := `<net name="n" version="6"><layers>` + g.layers.String() + "</layers><edges>" + g.edges.String() + "</edges></net>"
	net, _, err := Decode(t.Context(), []byte(xml), g.bin, Options{})
	if err != nil {
		return nil, err
	}
	if input == nil {
		for i := range net.Inputs[0].Shape.Values() {
			input = append(input, float32(i)-3)
		}
	}
	return run(t, net, input), nil
}

// Layers of the old versions that are other operators now.
func TestOldLayers(t *testing.T) {
	const window = `kernel="2,2" pads_begin="0,0" pads_end="0,0" rounding_type="ceil" strides="2,2"`
	var g oldGraph
	x := g.layer("Input", "", "", []int{1, 1, 3, 3}) // −3 to 5
	most := g.layer("Pooling", window+` pool-method="max"`, "", []int{1, 1, 2, 2}, x)
	mean := g.layer("Pooling", window+` pool-method="avg" exclude-pad="true"`, "", []int{1, 1, 2, 2}, x)
	sum := g.layer("Eltwise", `operation="sum"`, "", []int{1, 1, 2, 2}, most, mean)
	product := g.layer("Eltwise", `coeff="" operation="mul"`, "", []int{1, 1, 2, 2}, most, sum)
	g.layer("Eltwise", `operation="max"`, "", []int{1, 1, 2, 2}, mean, product)
	g.layer("Clamp", `max="4" min="0.5"`, "", []int{1, 1, 2, 2}, mean)
	g.layer("FullyConnected", `out-size="2"`, "<blobs>"+g.blob("weights", 1, 2, 3, 4, -1, 0, 0, 1)+g.blob("biases", 10, 20)+"</blobs>", []int{1, 2}, most)
	got, err := g.decode(t)
	require.NoError(t, err)
	// most is 1, 2, 4, 5; mean −1, 0.5, 3.5, 5; sum 0, 2.5, 7.5, 10.
	require.Equal(t, map[string][]float32{
		"l5": {0, 5, 30, 50}, "l6": {0.5, 0.5, 3.5, 4}, "l7": {1 + 4 + 12 + 20 + 10, -1 + 5 + 20},
	}, got)

	// Shapes are integers since IR 6; the output has the same once more.
	var shaped oldGraph
	shaped.precision = "I32"
	shaped.bin = []byte{0, 0, 0, 0, 3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}
	shape := shaped.layer("Const", "", `<blobs><custom offset="0" size="12"/></blobs>`, []int{3})
	shaped.precision = ""
	x = shaped.layer("Input", "", "", []int{1, 6})
	shaped.layer("Sigmoid", "", "", []int{1, 3, 2}, shaped.layer("Reshape", `axis="0" num_axes="-1"`, "", []int{1, 3, 2}, x, shape))
	got, err = shaped.decode(t)
	require.NoError(t, err)
	require.InDelta(t, 0.5, got["l3"][3], 0)

	for _, c := range []struct{ typ, data, want string }{
		{"Pooling", window + ` pool-method="x"`, `its attribute pool-method is "x", want max or avg`},
		{"Pooling", window, "its attribute pool-method is missing"},
		{"Pooling", window + ` pool-method="avg" exclude-pad="false"`, "reach beyond the padding, which is not supported"},
		{"Eltwise", `operation="sum"`, "it has 1 inputs, want 2 or more"},
		{"Eltwise", `operation="pow"`, `its attribute operation is "pow", want sum, sub, mul, div, max or min`},
		{"FullyConnected", `out-size="2"`, "it has no weights"},
		{"FullyConnected", ``, "its attribute out-size is missing"},
	} {
		var g oldGraph
		g.layer(c.typ, c.data, "", []int{1, 1, 2, 2}, g.layer("Input", "", "", []int{1, 1, 3, 3}))
		_, err := g.decode(t)
		require.ErrorContains(t, err, c.want, c.typ)
	}
	var scaled oldGraph
	a := scaled.layer("Input", "", "", []int{1, 2, 3, 3})
	scaled.layer("Eltwise", `coeff="1,-1" operation="sum"`, "", []int{1, 2, 3, 3}, a, a)
	_, err = scaled.decode(t)
	require.ErrorContains(t, err, `its attribute coeff is "1,-1"`)
}
