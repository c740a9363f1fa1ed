package darknet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// imported returns the network of a model.
func (m *model) imported(t testing.TB, opts Options) (*bcnn.Network, *Report) {
	t.Helper()
	net, report, err := Decode(t.Context(), []byte(m.cfg.String()), m.weights, opts)
	require.NoError(t, err, m.cfg.String())
	return net, report
}

// check compares all layers that are computed with those of the model, and requires that so many
// are.
func (m *model) check(t testing.TB, layers int) *bcnn.Network {
	t.Helper()
	net, _ := m.imported(t, Options{Name: "n"})
	got := everyLayer(t, net, m.input.tensor())
	require.Len(t, got, layers)
	for i, want := range m.layers {
		name := fmt.Sprintf("layer_%02d", i)
		if v, ok := got[name]; ok {
			requireClose(t, want, v, 1e-6, name)
		}
	}
	return net
}

// kindsOf lists the layers of a network.
func kindsOf(net *bcnn.Network) string {
	var list []string
	for _, l := range net.Layers {
		list = append(list, l.Op.Kind())
	}
	return strings.Join(list, " ")
}

// repeated returns n times a value.
func repeated(n int, v float32) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// The examples that Darknet was run on.
func TestExamples(t *testing.T) {
	run := func(h, w int, input []float32, options string, weights ...float32) []float32 {
		m := newModel(h, w, 32)
		m.section("convolutional", options)
		m.values = weights
		m.numbers(len(weights), nil)
		net, _ := m.imported(t, Options{})
		return compute(t, net, planar{m.input.shape, input}.tensor())[0].F32
	}
	weights, input := append([]float32{0.25}, repeated(32, 0.5)...), repeated(32, 1)
	weights[1+2], weights[1+3], input[0], input[1] = 0, -1.5, 0, -0.5
	require.Equal(t, []float32{12.625}, run(1, 1, input, "xnor=1 activation=linear", weights...))

	border := append([]float32{0}, repeated(32*9, 0.25)...)
	require.Equal(t, []float32{-8, 24, -8, 24, 72, 24, -8, 24, -8}, run(3, 3, repeated(9*32, 1), "xnor=1 size=3 pad=1 activation=linear", border...))

	normalised := append([]float32{1, -2, 3, 4 - 1e-5}, repeated(32, 0.5)...)
	require.InDelta(t, -1.2, run(1, 1, repeated(32, 1), "xnor=1 batch_normalize=1 activation=leaky", normalised...)[0], 1e-6)
	require.Equal(t, []float32{-12}, run(1, 1, repeated(32, 1), "xnor=1 batch_normalize=1 bin_output=1 activation=leaky", normalised...))
}

func TestConvolutions(t *testing.T) {
	for _, options := range []string{
		"filters=5 size=3 pad=1 activation=leaky batch_normalize=1",
		"filters=5 size=3 padding=2 stride=2 activation=relu",
		"filters=5 size=2 pad=1 stride_x=2 stride_y=1 stride=7 activation=mish",
		"filters=4 size=3 pad=1 padding=9 groups=2 activation=logistic batch_normalize=2",
		"filters=4 size=3 pad=1 dilation=2 stride=2 activation=tanh",
		"filters=4 dilation=3 activation=elu cbn=0 batch_normalize=1",
		"filters=4 activation=linear cbn=1 batch_normalize=1",
		"filters=4 size=5 activation=swish assisted_excitation=4",
		"filters=4 size=3 pad=1 bin_output=1 activation=leaky", // which means nothing without xnor
		"filters=6 size=3 pad=1 xnor=1 batch_normalize=1 activation=leaky",
		"filters=6 size=3 pad=1 xnor=1 groups=2 activation=mish", // which ignores groups
		"filters=6 size=3 pad=1 xnor=1 binary=1 activation=linear",
		"filters=6 size=3 pad=1 binary=1 batch_normalize=1 groups=2 activation=leaky stride=2",
		"filters=6 binary=1 activation=relu bin_output=1",
	} {
		t.Run(options, func(t *testing.T) {
			m := newModel(7, 6, 4)
			m.convolution(options, false)
			net := m.check(t, 1)
			if strings.Contains(options, "xnor") {
				require.Contains(t, kindsOf(net), "sign conv2d affine")
			}
		})
	}
}

// Words of signs: other sizes and strides need channels that fill them.
func TestSigns(t *testing.T) {
	m := newModel(9, 8, 64)
	m.convolution("filters=32 size=5 stride=2 padding=1 xnor=1 activation=leaky", false)
	m.convolution("filters=96 size=1 pad=1 xnor=1 batch_normalize=1 activation=relu", false)
	m.convolution("filters=5 size=2 pad=1 stride=2 xnor=1 batch_normalize=1 activation=linear", false)
	m.route("layers=0")
	m.convolution("filters=7 size=1 xnor=1 activation=linear", false) // the same signs as those of layer 1
	m.route("layers=-1")
	m.shortcut("from=-2 activation=linear")
	m.check(t, 3)
	m.route("layers=1,4")
	m.convolution("filters=2 activation=linear", false)
	require.Equal(t, 2, strings.Count(kindsOf(m.check(t, 5)), "sign")) // of the input and of layer 0
}

// bin_output leaves out the activation, but on layers that a route names, in front of a shortcut
// and on the first layer that it adds.
func TestBinOutput(t *testing.T) {
	m := newModel(5, 5, 3)
	conv := "filters=32 size=3 pad=1 xnor=1 bin_output=1 activation="
	m.convolution(conv+"leaky", true)  // 0: read by a convolution
	m.convolution(conv+"leaky", false) // 1: named by a route
	m.convolution(conv+"relu", false)  // 2: the first of a shortcut
	m.convolution(conv+"leaky", true)  // 3: another one of the same shortcut
	m.convolution(conv+"leaky", false) // 4: in front of the shortcut
	m.shortcut("from=-3,3 activation=leaky")
	m.maxPool("size=2 stride=1")
	m.route("layers=-1,1")
	m.convolution("filters=2 activation=linear", false)
	m.check(t, 9)
}

func TestMaxPools(t *testing.T) {
	for _, options := range []string{"size=2 stride=2", "size=2 stride=1", "stride=3", "size=3 stride=2", "size=5 stride=1", "size=3 stride=2 padding=0",
		"size=2 stride=2 padding=0", "size=4 stride=3 padding=2", "size=1 stride=2", "size=3 stride=1 padding=1 maxpool_depth=0", ""} {
		m := newModel(7, 6, 3)
		for i := range m.input.values { // the padding is below all values, not 0
			m.input.values[i] -= 9
		}
		m.maxPool(options)
		m.check(t, 1)
	}
}

func TestMoves(t *testing.T) {
	m := newModel(4, 6, 4)
	m.convolution("filters=8 activation=linear", false) // 0
	m.convolution("filters=4 activation=linear", false) // 1
	m.convolution("filters=6 activation=linear", false) // 2
	m.route("layers=0,-2,0 groups=2 group_id=1")        // 3
	m.route("layers=-1")                                // 4 is 3
	m.upsample("stride=3")                              // 5
	m.upsample("stride=1 scale=2")                      // 6
	m.route("layers=2")                                 // 7
	m.shortcut("from=1 activation=relu")                // 8: four channels to six
	m.shortcut("from=-8,0,2 activation=linear")         // 9: more, and several
	m.section("dropout", "probability=.5")
	m.layers = append(m.layers, m.last())
	m.upsample("stride=3")    // 11
	m.route("layers=-1,-1,6") // 12
	m.upsample("stride=1")    // 13
	m.maxPool("size=3")       // 14
	m.check(t, 12)
	m.route("layers=14,4,5") // of which 4 has another size
	_, _, err := Decode(t.Context(), []byte(m.cfg.String()), m.weights, Options{})
	require.ErrorContains(t, err, `node "layer_15" (route, index 15): option layers joins images of 12×18 and 4×6 pixels`)
}

// What [reorg] does with an image whose values are their own places, by hand.
func TestReorg(t *testing.T) {
	run := func(h, w, c int, kind, options string) bcnn.Tensor {
		m := newModel(h, w, c)
		for i := range m.input.values {
			m.input.values[i] = float32(i)
		}
		m.section(kind, options)
		net, _ := m.imported(t, Options{})
		return compute(t, net, m.input.tensor())[0]
	}
	got := run(2, 2, 4, "reorg", "stride=2")
	require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 16}, got.Shape)
	require.Equal(t, []float32{0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}, got.F32)

	// Eight channels of 4×2 are for it two of 8×4.
	got = run(4, 2, 8, "reorg", "stride=2")
	require.Equal(t, bcnn.Shape{H: 2, W: 1, C: 32}, got.Shape)
	for i, v := range got.F32 {
		pixel, c := i/32, i%32
		to := 2*c + pixel // of the planar output, which it goes through as 8 channels of 4×2
		k, y, x := to/8, to/2%4, to%2
		from := 32*(k%2) + 4*(2*y+k/4) + 2*x + k/2%2
		require.EqualValues(t, from, v)
	}

	got = run(2, 4, 2, "reorg3d", "stride=2")
	require.Equal(t, bcnn.Shape{H: 1, W: 2, C: 8}, got.Shape)
	require.Equal(t, []float32{0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15}, got.F32)

	got = run(4, 4, 1, "reorg3d", "stride=2")
	require.Equal(t, bcnn.Shape{H: 2, W: 2, C: 4}, got.Shape)
	require.Equal(t, []float32{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}, got.F32)

	got = run(1, 1, 8, "reorg", "stride=2 reverse=1")
	require.Equal(t, bcnn.Shape{H: 2, W: 2, C: 2}, got.Shape)
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7}, got.F32)
}

func TestClassifier(t *testing.T) {
	m := newModel(4, 6, 4)
	m.convolution("filters=3 activation=leaky", false)
	m.section("avgpool", "")
	in := m.last()
	m.image(1, 1, 3, func(c, _, _ int) float32 {
		sum := 0.0
		for i := range 24 {
			sum += float64(in.values[24*c+i])
		}
		return float32(sum / 24)
	})
	m.section("softmax", "groups=1 temperature=2")
	m.section("cost", "type=sse")
	net := m.check(t, 3)
	require.Equal(t, "conv2d prelu avgpool affine softmax", kindsOf(net))
	require.Len(t, net.OutputLayers(), 1)
	require.Equal(t, []float32{0.5}, net.Layers[3].Op.(bcnn.Affine).Scale)
	require.Equal(t, "layer_02", net.Layers[4].Source.Name)

	m = newModel(4, 6, 4)
	m.section("avg", "")
	m.section("soft", "groups=1")
	net, _ = m.imported(t, Options{})
	require.Equal(t, "avgpool softmax", kindsOf(net))
}

// Layers that no output needs take their weights, and are left out.
func TestUnneeded(t *testing.T) {
	m := newModel(4, 4, 4)
	m.convolution("filters=8 activation=linear", false)
	m.convolution("filters=5 size=3 xnor=1 pad=1 activation=linear", false)
	m.shortcut("from=-2 activation=linear")
	m.upsample("")
	m.convolution("activation=linear", false)
	m.route("layers=0")
	m.convolution("filters=3 groups=1 activation=relu", false)
	net := m.check(t, 2)
	require.NotContains(t, kindsOf(net), "sign")
}
