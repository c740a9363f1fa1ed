package darknet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

// logistic makes a layer of the last one, with the logistic function on values of each anchor, x·scale − (scale − 1)/2 on x and y.
func (m *model) logistic(each int, scale float32, on func(entry int) bool) {
	in := m.last()
	m.image(in.shape.H, in.shape.W, in.shape.C, func(c, y, x int) float32 {
		v := in.at(c, y, x)
		if on(c % each) {
			v = function("logistic", v)
		}
		if c%each < 2 {
			v = v*scale - (scale-1)/2
		}
		return v
	})
}

// A network with two heads: its outputs, in their order.
func TestYolo(t *testing.T) {
	m := newModel(3, 5, 4)
	anchors := " anchors=1,2,3.5,4,5,6 num=3 jitter=.3 random=1 nms_kind=greedynms"
	box := func(entry int) bool { return entry != 2 && entry != 3 }
	m.convolution("filters=14 activation=linear", false)
	m.section("yolo", "classes=2 mask=2,0 scale_x_y=1.5"+anchors)
	m.logistic(7, 1.5, box)
	m.route("layers=0")
	m.convolution("filters=18 activation=linear", false)
	m.section("yolo", "classes=1"+anchors)
	m.logistic(6, 1, box)
	m.route("layers=-3")
	m.convolution("filters=6 activation=logistic", false)
	m.section("yolo", "classes=1 mask=1 new_coords=1 scale_x_y=2.0"+anchors)
	m.logistic(6, 2, func(int) bool { return false })
	m.check(t, 6)
	net, report := m.imported(t, Options{})
	require.Equal(t, []Head{
		{Section: 1, Output: 0, Kind: "yolo", Classes: 2, Anchors: [][2]float32{{5, 6}, {1, 2}}},
		{Section: 4, Output: 1, Kind: "yolo", Classes: 1, Anchors: [][2]float32{{1, 2}, {3.5, 4}, {5, 6}}},
		{Section: 7, Output: 2, Kind: "yolo", Classes: 1, Anchors: [][2]float32{{3.5, 4}}, NewCoords: true},
	}, report.Heads)
	require.False(t, report.Letterbox)
	require.Len(t, net.Outputs, 3)
	require.Nil(t, net.Detection)
	require.Equal(t, []string{"boxes are not decoded: section 1 has 2 classes, section 4 has 1"}, net.Deviations)
	for i, name := range []string{"layer_01", "layer_04", "layer_07"} {
		require.Equal(t, name, net.Layers[net.Outputs[i]].Source.Name)
	}

	// What does nothing behind it is no other output.
	m.section("dropout", "")
	m.layers = append(m.layers, m.last())
	net, _ = m.imported(t, Options{})
	require.Len(t, net.Outputs, 3)

	// What else is behind the last head is an output, too.
	m.convolution("filters=2 activation=linear", false)
	net, report = m.imported(t, Options{})
	require.Len(t, net.Outputs, 4)
	require.Len(t, report.Heads, 3)
}

func TestRegion(t *testing.T) {
	one := newModel(1, 1, 1)
	one.convolution("filters=6 activation=linear", false)
	one.section("region", "classes=1 num=1 anchors=1,2")
	one.logistic(6, 1, func(entry int) bool { return entry == 4 })
	one.check(t, 2)
	for _, softmax := range []bool{false, true} {
		m := newModel(3, 5, 4)
		m.convolution("filters=14 activation=linear", false)
		options, layers := "classes=2 num=2 anchors=1,2,3,4 coords=4 thresh=.6", 2
		if softmax {
			options, layers = options+" softmax=1", 1
		}
		m.section("region", options)
		m.logistic(7, 1, func(entry int) bool { return entry == 4 })
		m.check(t, layers)
		net, report := m.imported(t, Options{})
		require.Equal(t, []Head{{Section: 1, Kind: "region", Classes: 2, Anchors: [][2]float32{{1, 2}, {3, 4}}, Raw: softmax}}, report.Heads)
		require.Len(t, net.OutputLayers(), 1)
		want := bcnn.YOLO{Anchors: [][2]float32{{1, 2}, {3, 4}}, Cells: true, Centre: bcnn.LogisticActivation}
		if softmax {
			want.Object, want.Class = bcnn.LogisticActivation, bcnn.SoftmaxActivation
		}
		require.Equal(t, &bcnn.Detection{Classes: 2, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: []bcnn.Head{want}}, net.Detection)
	}
}

// How boxes are made of several heads, and what becomes of photos.
func TestDetection(t *testing.T) {
	m := newModel(3, 5, 3)
	m.cfg.WriteString("letter_box=1\n")
	m.convolution("filters=14 activation=linear", false)
	m.section("yolo", "classes=2 mask=2,0 anchors=1,2,3.5,4,5,6 num=3 nms_kind=diounms beta_nms=.6")
	m.route("layers=0")
	m.section("yolo", "classes=2 anchors=1,2,3,4 num=2 new_coords=1")
	heads := []bcnn.Head{
		bcnn.YOLO{Anchors: [][2]float32{{5, 6}, {1, 2}}}, bcnn.YOLO{Output: 1, Anchors: [][2]float32{{1, 2}, {3, 4}}, Squared: true},
	}
	for _, c := range []struct {
		opts Options
		want *bcnn.Photo
	}{
		{Options{}, &bcnn.Photo{Fit: bcnn.FitLetterbox, Scale: []float32{1. / 255}}},
		{Options{InputType: bcnn.Uint8}, &bcnn.Photo{Fit: bcnn.FitLetterbox}},
		{Options{Mean: []float32{1}}, &bcnn.Photo{Fit: bcnn.FitLetterbox}},
		{Options{InputType: bcnn.Uint8, Resize: 9, Labels: []string{"a", "b"}}, &bcnn.Photo{}},
		{Options{Resize: 9}, &bcnn.Photo{Scale: []float32{1. / 255}}},
		{Options{Resize: 9, Scale: []float32{1}}, &bcnn.Photo{}},
	} {
		net, _ := m.imported(t, c.opts)
		require.Equal(t, &bcnn.Detection{Classes: 2, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: heads}, net.Detection)
		require.Equal(t, c.want, net.Inputs[0].Photo)
		b, err := modelfile.Encode(net)
		require.NoError(t, err)
		back, err := modelfile.Read(t.Context(), b, modelfile.Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, back.Inputs[0].Photo)
		require.Equal(t, []string{"layer_01: nms_kind=diounms is not followed: boxes are dropped by their overlap alone"}, net.Deviations)
		require.Equal(t, c.opts.Labels, net.Labels)
	}
}

// A network whose boxes cannot be described is imported all the same.
func TestBoxesAreNotDecoded(t *testing.T) {
	for want, section := range map[string][2]string{
		"head 0 (yolo): an anchor of 0×2, want finite numbers above 0":  {"yolo", "classes=2 anchors=0,2,3,4 num=2"},
		"head 0 (yolo): an anchor of 3×-4, want finite numbers above 0": {"region", "classes=2 anchors=1,2,3,-4 num=2"},
	} {
		m := newModel(3, 5, 3)
		m.convolution("filters=14 activation=linear", false)
		m.section(section[0], section[1])
		net, report := m.imported(t, Options{})
		require.Nil(t, net.Detection)
		require.Nil(t, net.Inputs[0].Photo)
		require.Len(t, report.Heads, 1)
		require.Equal(t, []string{"boxes are not decoded: " + want}, net.Deviations)
	}
}

// The input: bytes, means and scales, and how pictures come to its size.
func TestInput(t *testing.T) {
	m := newModel(2, 2, 3)
	m.convolution("filters=2 activation=linear", false)
	net, _ := m.imported(t, Options{})
	require.Equal(t, bcnn.Float32, net.Inputs[0].DType)
	require.Equal(t, bcnn.Source{Name: "input", Dims: []int{3, 2, 2}, ChannelsFirst: true}, *net.Inputs[0].Source)
	require.Equal(t, "conv2d", kindsOf(net))

	net, _ = m.imported(t, Options{InputType: bcnn.Uint8, Resize: 9, Name: "of bytes", Labels: []string{"a", "b", "c", "d", "e", "f", "g", "h"}})
	require.Equal(t, bcnn.Uint8, net.Inputs[0].DType)
	require.Equal(t, 9, net.Inputs[0].Resize)
	require.Equal(t, "of bytes", net.Name)
	require.Len(t, net.Labels, 8)
	require.Equal(t, bcnn.Affine{Scale: []float32{1. / 255}}, net.Layers[0].Op)

	net, _ = m.imported(t, Options{InputType: bcnn.Uint8, Mean: []float32{1, 2, 3}})
	require.Equal(t, bcnn.Affine{Bias: []float32{-1, -2, -3}}, net.Layers[0].Op)
	require.Equal(t, "affine conv2d", kindsOf(net))
	net, _ = m.imported(t, Options{Mean: []float32{1}, Scale: []float32{4, 5, 6}})
	require.Equal(t, "affine affine conv2d", kindsOf(net))

	for want, opts := range map[string]Options{
		"Mean has 2 values, the input has 3 channels":          {Mean: []float32{1, 2}},
		"Scale has 2 values, the input has 3 channels":         {Scale: []float32{1, 2}},
		"the type of the input is bits":                        {InputType: bcnn.Bits},
		"a limit is negative":                                  {Limits: bcnn.Limits{Layers: -1}},
		"more than 1 sections; Limits.Layers":                  {Limits: bcnn.Limits{Layers: 1}},
		"have more than 99 bytes; Limits.FileBytes":            {Limits: bcnn.Limits{FileBytes: 99}},
		"the input of 2×2×3 takes 48 bytes, at most 4":         {Limits: bcnn.Limits{TensorBytes: 4}},
		"a feature map of 2×2×9 takes 144 bytes, at most 48":   {Limits: bcnn.Limits{TensorBytes: 48}},
		"index 1): the network has more than 2 layers; Limits": {Limits: bcnn.Limits{Layers: 2}},
	} {
		two := newModel(2, 2, 3)
		two.convolution("filters=2 activation=linear", false)
		two.convolution("filters=9 activation=leaky", false)
		_, _, err := Decode(t.Context(), []byte(two.cfg.String()), two.weights, opts)
		require.ErrorContains(t, err, want)
	}

	m = newModel(2, 2, 3)
	m.cfg.WriteString("letter_box=1\n")
	m.convolution("activation=linear", false)
	_, report := m.imported(t, Options{})
	require.True(t, report.Letterbox)
}
