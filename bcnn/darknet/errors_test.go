package darknet

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

const net8 = "[net]\nheight=8\nwidth=8\nchannels=3\n"

// Descriptions that are no networks, by what is said of them.
func TestBadDescriptions(t *testing.T) {
	layer := func(kind, options string) string {
		return net8 + "[" + kind + "]\n" + strings.ReplaceAll(options, " ", "\n")
	}
	conv := func(options string) string { return layer("convolutional", "activation=linear "+options) }
	yolo := func(options string) string {
		return conv("filters=7") + "\n[yolo]\n" + strings.ReplaceAll(options, " ", "\n")
	}
	for _, c := range []struct{ want, cfg string }{
		{"it has no sections", ""},
		{"it has no sections", "# nothing\n; at all\n\n"},
		{`line 2: "a=1" stands before the first section`, "\na=1\n[net]"},
		{"line 1: the first section is [convolutional], want [net] or [network]", "[convolutional]"},
		{`line 1: "[net", want the kind of a section`, "[net"},
		{`line 1: "[net]x", want the kind of a section`, "[net] x"},
		{`line 1: "[]", want the kind of a section`, "[]"},
		{"it has no layers behind [net]", net8},
		{"which is text: it has a zero byte", net8 + "\x00"},
		{"which is text: it has a zero byte", "\x00"},
		{`line 5: "batch", want option = value`, net8 + "batch"},
		{`line 5: "batch=", want option = value`, net8 + "batch="},
		{`line 5: "=1", want option = value`, net8 + "=1"},

		{"section [net]: options height, width and channels must say", "[net]\nheight=8\nwidth=8\n[avgpool]"},
		{"section [net]: options height, width and channels must say", "[net]\nheight=8\nchannels=3\n[avgpool]"},
		{"section [net]: options height, width and channels must say", "[net]\nwidth=8\nchannels=3\n[avgpool]"},
		{`section [net]: option height is "0", want a whole number from 1 to 65536`, "[net]\nheight=0\nwidth=8\nchannels=3\n[avgpool]"},
		{`option width is "-8", want a whole number`, "[net]\nheight=8\nwidth=-8\nchannels=3\n[avgpool]"},
		{`option width is "8x", want a whole number`, "[net]\nheight=8\nwidth=8x\nchannels=3\n[avgpool]"},
		{`option width is "99999999999999999999", want a whole number`, "[net]\nheight=8\nwidth=99999999999999999999\nchannels=3\n[avgpool]"},
		{"shape 65536×65536×3 has more than", "[net]\nheight=65536\nwidth=65536\nchannels=3\n[avgpool]"},
		{"section [network]: option inputs is 5, but height, width and channels make 192 values", strings.Replace(net8, "net", "network", 1) + "inputs=5\n[avgpool]"},
		{`option time_steps is "3", which is not supported`, net8 + "time_steps=3\n[avgpool]"},
		{"section [net]: unknown option, which might change what it computes: wiedth=8 (line 5)", net8 + "wiedth=8\n[avgpool]"},
		{`section [net]: option height is given twice: "8" in line 2, "9" in line 5`, net8 + "height=9\n[avgpool]"},

		{`node "layer_00" (lstm, index 0): sections of this kind are not supported; it begins in line 5`, layer("lstm", "output=3")},
		{`(Net, index 0): sections of this kind`, layer("Net", "")},
		{"(" + strings.Repeat("x", 64) + "…, index 0): sections of this kind", layer(strings.Repeat("x", 1000), "")},
		{`(net, index 0): sections of this kind`, layer("net", "")},
		{`(convolutional, index 0): unknown options, which might change what it computes: dropblok=1 (line 7), filter=3 (line 8)`, conv("dropblok=1 filter=3")},
		{"(convolutional, index 0): option size is given twice", conv("size=3 size=1")},
		{`option filters is "0", want a whole number from 1 to 4194304`, conv("filters=0")},
		{`option filters is "1e3", want a whole number`, conv("filters=1e3")},
		{`option size is "-3", want a whole number from 1`, conv("size=-3")},
		{`option stride is "0", want a whole number from 1`, conv("stride=0")},
		{`option stride_y is "0", want a whole number from 1`, conv("stride_y=0")},
		{`option padding is "-1", want a whole number from 0`, conv("padding=-1")},
		{`option padding is "70000", want a whole number from 0`, conv("padding=70000")},
		{`option xnor is "yes", want a whole number`, conv("xnor=yes")},
		{"(convolutional, index 0): option groups is 2, which does not divide 3 channels and 4 filters", conv("filters=4 groups=2")},
		{"option groups is 3, which does not divide 3 channels and 4 filters", conv("filters=4 groups=3")},
		{`option antialiasing is "1", which is not supported: the layer would be smoothed`, conv("antialiasing=1")},
		{`option flipped is "1", which is not supported`, conv("flipped=1")},
		{`option sway is "1", which is not supported`, conv("sway=1")},
		{`option stretch_sway is "1", which is not supported`, conv("stretch_sway=1")},
		{`option share_index is "-1", which is not supported: weights of another layer`, conv("share_index=-1")},
		{`option dontload is "1", which is not supported`, conv("dontload=1")},
		{`option dontloadscales is "1", which is not supported`, conv("dontloadscales=1")},
		{`option activation is "relu6", want one of elu, leaky, linear, logistic, mish, relu, swish, tanh`, layer("convolutional", "activation=relu6")},
		{`option activation is "leaky#x", want one of`, layer("convolutional", "activation=leaky#x")},
		{`option dilation is "2", which xnor=1 leaves out`, conv("dilation=2 size=3 pad=1 xnor=1")},
		{`option dilation is "2", which needs a padding of half the size`, conv("dilation=2 size=3")},
		{`option dilation is "2", which needs a padding of half the size`, conv("dilation=2 size=2 pad=1")},
		{"option xnor is on, and strides 2 and 1 differ", conv("stride_x=2 xnor=1")},
		{"option xnor is on with 3 channels, no multiple of 32", conv("xnor=1")},
		{"option xnor is on with 3 channels, no multiple of 32", conv("xnor=1 size=3 pad=1 stride=2")},
		{"option xnor is on with 3 channels, no multiple of 32", conv("xnor=1 size=3")},
		{"a window of 9×9 does not fit into 8×8×3", conv("size=9")},
		{"a filter has 18014398509481984 weights, at most", "[net]\nheight=1\nwidth=1\nchannels=4194304\n[convolutional]\nactivation=linear\nsize=65536\npad=1"},
		{"weights, at most 16777216 are supported", conv("size=60001 pad=1")},

		{`(maxpool, index 0): option maxpool_depth is "1", which is not supported`, layer("maxpool", "maxpool_depth=1")},
		{`option antialiasing is "2", which is not supported`, layer("maxpool", "antialiasing=2")},
		{"option size is 9, but the image has 8 pixels with its padding", layer("maxpool", "size=9 padding=0")},
		{"a window of the pool lies wholly in the padding", layer("maxpool", "size=2 padding=4")},
		{`option stride is "0"`, layer("maxpool", "stride=0")},
		{"unknown option, which might change what it computes: size=8 (line 6)", layer("avgpool", "size=8")},

		{"(route, index 0): option layers is missing", layer("route", "")},
		{"option layers names layer -1, but the number of layers before it is 0", layer("route", "layers=-1")},
		{"(route, index 1): option layers names layer 1, but the number of layers before it is 1", conv("") + "\n[route]\nlayers=0,1"},
		{"option layers names layer -2, but", conv("") + "\n[route]\nlayers=-2"},
		{`option layers is "0,", want whole numbers`, conv("") + "\n[route]\nlayers=0,"},
		{`option layers is "0#a,b", with a comma in its comment`, conv("") + "\n[route]\nlayers=0 # a, b"},
		{"option layers has more than 4096 numbers", conv("") + "\n[route]\nlayers=" + strings.Repeat("0,", 4096) + "0"},
		{"option groups is 2, which does not divide 1 channels", conv("") + "\n[route]\nlayers=0\ngroups=2"},
		{"option group_id is 2, but there are groups 0 to 1", conv("filters=2") + "\n[route]\nlayers=0\ngroups=2\ngroup_id=2"},
		{"(shortcut, index 1): option from is missing", conv("") + "\n[shortcut]"},
		{"option from names layer 5", conv("") + "\n[shortcut]\nfrom=5"},
		{"option from adds an image of 8×8 pixels to one of 4×4", conv("") + "\n[maxpool]\nstride=2\n[shortcut]\nfrom=0\nactivation=linear"},
		{"option from adds an image of 8×8 pixels to one of 8×4", conv("") + "\n[convolutional]\nstride_x=2\nactivation=linear\n[shortcut]\nfrom=0"},
		{"option from adds an image of 8×8 pixels to one of 4×8", conv("") + "\n[convolutional]\nstride_y=2\nactivation=linear\n[shortcut]\nfrom=0"},
		{`option weights_type is "per_channel", which is not supported`, conv("") + "\n[shortcut]\nfrom=0\nweights_type=per_channel"},
		{`option alpha is "2", which is not supported`, conv("") + "\n[shortcut]\nfrom=0\nalpha=2"},
		{"of which Darknet adds what is behind its output in memory", conv("filters=2") + "\n[convolutional]\nfilters=3\nactivation=linear\n[convolutional]\nactivation=linear\n[route]\nlayers=1\n[shortcut]\nfrom=2"},
		{`(upsample, index 0): option stride is "-2", which is not supported: sums`, layer("upsample", "stride=-2")},
		{"option stride is 60000, which makes more than 65536 pixels of 8×8", layer("upsample", "stride=60000")},
		{`option scale is "nan", want numbers`, layer("upsample", "scale=nan")},
		{"an image of 16777216 values is not supported, at most 4194304 are", conv("filters=4") + "\n[upsample]\nstride=256\n[reorg]\nstride=2\n"},
		{"option stride is 3, which does not divide an image of 8×8", layer("reorg3d", "stride=3")},
		{"option stride is 2, whose square does not divide 3 channels", layer("reorg", "stride=2")},
		{"option stride is 2, whose square does not divide 3 channels", layer("reorg", "stride=2 reverse=1")},
		{`option reverse is "1", which is not supported`, layer("reorg3d", "stride=2 reverse=1")},
		{"its input is 8×8×3, want a vector", layer("softmax", "")},
		{`option groups is "2", which is not supported`, layer("softmax", "groups=2")},
		{`option tree is "x", which is not supported`, layer("softmax", "tree=x")},
		{`option spatial is "1", which is not supported`, layer("softmax", "spatial=1")},
		{`option temperature is "0", want more than 0`, layer("softmax", "temperature=0")},
		{"it reads a softmax, which must be the last layer", layer("avgpool", "") + "\n[softmax]\n[route]\nlayers=-1"},
		{"(cost, index 0): layers follow it", layer("cost", "") + "\n[avgpool]"},
		{"no layer computes the output of the network, which is its input", layer("dropout", "")},

		{"(yolo, index 1): option anchors has 0 numbers, want 2 for num = 1", yolo("classes=2")},
		{"option anchors has 4 numbers, want 2 for num = 1", yolo("classes=2 anchors=1,2,3,4")},
		{`option anchors is "1,x", want numbers`, yolo("classes=2 anchors=1,x")},
		{`option mask is "1", but there are anchors 0 to 0`, yolo("classes=2 anchors=1,2 mask=1")},
		{`option mask is "-1", but there are anchors 0 to 0`, yolo("classes=2 anchors=1,2 mask=-1")},
		{"its input has 7 channels, but 1 anchors with 5 values and 3 classes each have 8", yolo("classes=3 anchors=1,2")},
		{`option classes is "0"`, yolo("classes=0 anchors=1,2")},
		{`option map is "x", which is not supported`, yolo("classes=2 anchors=1,2 map=x")},
		{`option embedding_layer is "-1", which is not supported`, yolo("classes=2 anchors=1,2 embedding_layer=-1")},
		{`option tree is "x", which is not supported`, conv("filters=7") + "\n[region]\nanchors=1,2\ntree=x"},
		{`option coords is "5", which is not supported, want 4`, conv("filters=7") + "\n[region]\nanchors=1,2\ncoords=5"},
		{"layer_02 is the same output as another one", yolo("classes=2 anchors=1,2 new_coords=1") + "\n[yolo]\nclasses=2\nanchors=1,2\nnew_coords=1"},
	} {
		weights := append(header(0, 2), make([]byte, 1<<16)...)
		net, report, err := Decode(t.Context(), []byte(c.cfg), weights, Options{})
		require.ErrorContains(t, err, c.want, c.cfg)
		require.Nil(t, net)
		require.Nil(t, report)
	}
}

// What stands in the way in the options of any layer is told at once.
func TestObstacles(t *testing.T) {
	_, _, err := Decode(t.Context(), []byte(net8+"[rnn]\n[convolutional]\nflipped=1\n[avgpool]\nx=1\n"), nil, Options{})
	var obstacles *bcnn.ObstaclesError
	require.ErrorAs(t, err, &obstacles)
	require.Len(t, obstacles.Obstacles, 3)
	require.Equal(t, "convolutional", obstacles.Obstacles[1].Op)
	require.Equal(t, 1, obstacles.Obstacles[1].Index)
}

// White space means nothing, nor do comments, the ends of lines, options again with the same
// value, or those of training.
func TestWhiteSpace(t *testing.T) {
	for _, cfg := range []string{
		net8 + "[convolutional]\nactivation=linear\nfilters=2",
		"\n # a\r\n;b\n [ne t]\r\n height = 8\r\nwi dth\t= 8 # pixels, of course\nchannels=3\nheight=8\nlearning_rate=1\nlearning_rate=2\n[conv]\r\nfil ters=2\nactivation = linear\nstopbackward=1",
		net8 + "#" + strings.Repeat(",", 1<<17) + "\n[convolutional]" + strings.Repeat(" ", 1<<17) + "\nactivation=linear\nfilters=" + strings.Repeat("0", 1<<17) + "2",
	} {
		net, _, err := Decode(t.Context(), []byte(cfg), append(header(0, 2), make([]byte, 4*8)...), Options{})
		require.NoError(t, err)
		require.Equal(t, "conv2d", kindsOf(net))
	}
}

// Files of weights that do not fit.
func TestBadWeights(t *testing.T) {
	m := newModel(4, 4, 3)
	m.convolution("activation=linear filters=2", false)
	m.convolution("activation=linear filters=1", false)
	fails := func(want string, weights []byte) {
		t.Helper()
		net, _, err := Decode(t.Context(), []byte(m.cfg.String()), weights, Options{})
		require.ErrorContains(t, err, want)
		require.Nil(t, net)
	}
	n := len(m.weights)
	for _, versions := range [][2]int{{0, 1}, {0, 2}, {0, 0}, {1, 0}, {2, 999}, {999, 0}} { // 32 and 64 bits
		weights := append(header(versions[0], versions[1]), m.weights[20:]...)
		_, _, err := Decode(t.Context(), []byte(m.cfg.String()), weights, Options{})
		require.NoError(t, err, versions)
	}
	for _, versions := range [][2]int{{-1, 0}, {0, -1}, {1000, 0}, {0, 1000}, {math.MaxInt32, math.MaxInt32}, {math.MinInt32, 0}} {
		fails("want 0.1 or 0.2: it is not a weights file of Darknet", append(header(versions[0], versions[1]), m.weights[20:]...))
	}
	fails("the file of the weights has 0 bytes, which is no more than its header", nil)
	fails("the file of the weights has 15 bytes", m.weights[:15])
	fails("the file of the weights ends in its header", m.weights[:19])
	fails(`node "layer_00" (convolutional, index 0): the file of the weights ends here: the layer has 8 numbers of 4 bytes, and 0 bytes are left`, m.weights[:20])
	fails(`node "layer_01" (convolutional, index 1): the file of the weights ends here: the layer has 3 numbers of 4 bytes, and 11 bytes are left`, m.weights[:n-1])
	fails("the file of the weights has 1 bytes more than the layers need", append(m.weights[:n:n], 0))
	fails("the file of the weights has 4 bytes more", append(header(0, 1), append(m.weights[20:n:n], 0, 0, 0, 0)...))

	nan, huge := float32(math.NaN()), float32(math.MaxFloat32)
	for want, values := range map[string][]float32{
		"(convolutional, index 1): the bias of filter 0 is NaN":                         {nan, 1, 1, 1, 1, 1},
		"the bias of filter 0 is -Inf, want a finite number":                            {0, huge, huge, 1, 1, 1},
		"the variance of filter 0 is -1, want a number above -1e-05":                    {0, 1, 1, -1, 1, 1},
		"(convolutional, index 1): the variance of filter 0 is NaN":                     {0, 1, 1, nan, 1, 1},
		"a weight of filter 0 is +Inf, want a finite number":                            {0, 1, 1, 1, 1, float32(math.Inf(1))},
		"a weight of filter 0 is -Inf, want a finite number":                            {0, -huge, 0, .5, 1, huge},
		`node "layer_01" (convolutional, index 1): a weight of filter 0 is NaN, want a`: {0, 1, 0, .5, nan, 1},
	} {
		m := newModel(4, 4, 3)
		m.convolution("activation=linear filters=2", false)
		m.values = values
		m.section("convolutional", "activation=linear batch_normalize=1")
		m.numbers(len(values), nil)
		_, _, err := Decode(t.Context(), []byte(m.cfg.String()), m.weights, Options{})
		require.ErrorContains(t, err, want)
	}
	huger := net8 + "[convolutional]\nactivation=linear\nfilters=4194304\nsize=2049\npad=1\n"
	_, _, err := Decode(t.Context(), []byte(huger), m.weights, Options{})
	require.ErrorContains(t, err, "the layer has 52828114518016 numbers of 4 bytes, and 44 bytes are left")
}

// Twenty layers that each join what is before twice would have a million times its channels.
func TestGrowth(t *testing.T) {
	cfg := net8 + "[convolutional]\nactivation=linear\n"
	cfg += strings.Repeat("[route]\nlayers=-1,-1\n[route]\nlayers=-1\ngroups=2\n[route]\nlayers=-1,-1,-2\n", 24)
	_, _, err := Decode(t.Context(), []byte(cfg), append(header(0, 2), make([]byte, 16)...), Options{})
	require.Error(t, err)
	require.NotErrorIs(t, err, context.Canceled)
}

// Files by their names.
func TestFiles(t *testing.T) {
	m := newModel(4, 4, 3)
	m.convolution("activation=linear filters=2", false)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	cfg := write("a.b.cfg", []byte(m.cfg.String()))
	_, _, err := Load(t.Context(), cfg, Options{})
	require.EqualError(t, err, cfg+`: there are no weights beside it, "a.b.weights"; name them with Options.Weights, or 'bcnn convert --params'`)
	other := write("other", m.weights)
	net, _, err := Load(t.Context(), cfg, Options{Weights: other})
	require.NoError(t, err)
	require.Equal(t, "a.b", net.Name)
	_, _, err = Load(t.Context(), cfg, Options{Weights: other + "x"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, other+"x: ")
	write("a.b.weights", m.weights[:22])
	_, _, err = Load(t.Context(), cfg, Options{})
	require.ErrorContains(t, err, cfg+`: node "layer_00" (convolutional, index 0): the file of the weights ends here`)
	write("a.b.weights", m.weights)
	_, _, err = Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	_, _, err = Load(t.Context(), cfg+"x", Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = Load(t.Context(), cfg, Options{Limits: bcnn.Limits{FileBytes: 100}})
	require.ErrorContains(t, err, "at most")
	_, _, err = Load(t.Context(), cfg, Options{Limits: bcnn.Limits{FileBytes: -1}})
	require.ErrorContains(t, err, "negative")

	fsys := fstest.MapFS{"x/n.cfg": {Data: []byte(m.cfg.String())}, "x/n.weights": {Data: m.weights}, "x/n": {Data: []byte(m.cfg.String())}}
	for _, name := range []string{"x/n.cfg", "x/n"} {
		net, _, err = Read(t.Context(), fsys, name, Options{})
		require.NoError(t, err)
		require.Equal(t, "n", net.Name)
	}
	net, _, err = Read(t.Context(), fsys, "x/n.cfg", Options{Weights: "x/n.weights", Name: "other"})
	require.NoError(t, err)
	require.Equal(t, "other", net.Name)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Load(ended, cfg, Options{})
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = Decode(t.Context(), make([]byte, maxConfig+1), nil, Options{})
	require.ErrorContains(t, err, "the description has 8388609 bytes, at most 8388608 are supported")
	require.NotErrorIs(t, err, budget.ErrExceeded)
}
