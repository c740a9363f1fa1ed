package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// twoMaps is a network with two maps of so many channels, of strides 8 and 16, for images of 16×32.
func twoMaps(colours, channels int) testModel {
	return testModel{
		input: image(colours, 16, 32), output: "fine", also: []string{"coarse"},
		nodes: []testNode{
			op("Conv", "x v", "fine", "strides", []int{8, 8}), op("Conv", "x w", "coarse", "strides", []int{16, 16}),
		},
		inits: []testTensor{weightsOf("v", channels, colours, 8, 8), weightsOf("w", channels, colours, 16, 16)},
	}
}

func TestDetection(t *testing.T) {
	yolox := &bcnn.Detection{Classes: 3, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: []bcnn.Head{
		bcnn.YOLO{Anchors: [][2]float32{{8, 8}}}, bcnn.YOLO{Output: 1, Anchors: [][2]float32{{16, 16}}},
	}}
	yolov8 := &bcnn.Detection{Classes: 3, Background: -1, Threshold: 0.25, Overlap: 0.7, Heads: []bcnn.Head{
		bcnn.DFL{Bins: 16, Class: bcnn.LogisticActivation}, bcnn.DFL{Output: 1, Bins: 16, Class: bcnn.LogisticActivation},
	}}
	labels := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		model testModel
		opts  Options
		boxes *bcnn.Detection
		photo *bcnn.Photo
	}{
		"none":         {twoMaps(3, 8), Options{}, nil, nil},
		"yolox":        {twoMaps(3, 8), Options{Detection: YOLOX, Labels: labels}, yolox, &bcnn.Photo{Fit: bcnn.FitLetterbox, BGR: true}},
		"yolox, grey":  {twoMaps(1, 8), Options{Detection: YOLOX}, yolox, &bcnn.Photo{Fit: bcnn.FitLetterbox}},
		"yolov8":       {twoMaps(3, 67), Options{Detection: YOLOv8, Labels: labels}, yolov8, &bcnn.Photo{Fit: bcnn.FitLetterbox, Scale: []float32{1. / 255}}},
		"yolov8 bytes": {twoMaps(3, 67), Options{Detection: YOLOv8, InputType: bcnn.Uint8}, yolov8, &bcnn.Photo{Fit: bcnn.FitLetterbox}},
		"scaled": {twoMaps(3, 67), Options{Detection: YOLOv8, Scale: []float32{0.5}, Resize: 40}, yolov8,
			&bcnn.Photo{Fit: bcnn.FitCrop}},
	} {
		net, _, err := Decode(t.Context(), c.model.encode(), c.opts)
		require.NoError(t, err, name)
		require.Equal(t, c.boxes, net.Detection, name)
		require.Equal(t, c.photo, net.Inputs[0].Photo, name)
		require.NoError(t, net.Check(), name)
		scaled := 0
		for _, l := range net.Layers {
			if a, ok := l.Op.(bcnn.Affine); ok {
				scaled++
				require.Equal(t, map[string][]float32{"yolov8 bytes": {1. / 255}, "scaled": {0.5}}[name], a.Scale)
			}
		}
		require.Equal(t, name == "yolov8 bytes" || name == "scaled", scaled == 1, name)
	}
	flat := twoMaps(3, 8)
	flat.nodes = append(flat.nodes, op("Reshape", "fine shape", "y"))
	flat.inits = append(flat.inits, ints("shape", 0, 8, -1))
	flat.output, flat.also = "y", nil
	other := twoMaps(3, 8)
	other.inits[1] = weightsOf("w", 9, 3, 16, 16)
	uneven := twoMaps(3, 8)
	uneven.nodes[0] = op("Conv", "x v", "fine", "strides", []int{5, 5})
	for want, c := range map[string]struct {
		model testModel
		opts  Options
	}{
		`the kind of detector is "yolo", want yolox or yolov8`:   {twoMaps(3, 8), Options{Detection: "yolo"}},
		`output "fine" has 2×4 cells of 5 channels`:              {twoMaps(3, 5), Options{Detection: YOLOX}},
		`output "fine" has 2×4 cells of 64 channels`:             {twoMaps(3, 64), Options{Detection: YOLOv8}},
		"end the graph in front of where the maps are flattened": {flat, Options{Detection: YOLOX}},
		"that divides the input of 16×32":                        {uneven, Options{Detection: YOLOX}},
		"output 1 has 9 channels":                                {other, Options{Detection: YOLOX}},
		"2 labels for 3 classes of boxes":                        {twoMaps(3, 8), Options{Detection: YOLOX, Labels: labels[1:]}},
	} {
		_, _, err := Decode(t.Context(), c.model.encode(), c.opts)
		require.ErrorContains(t, err, want)
	}
}
