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
		"yolox":        {twoMaps(3, 8), Options{Detection: YOLOX, Labels: labels}, yolox, &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 114, Corner: true, BGR: true}},
		"yolox, grey":  {twoMaps(1, 8), Options{Detection: YOLOX}, yolox, &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 114, Corner: true}},
		"yolov8":       {twoMaps(3, 67), Options{Detection: YOLOv8, Labels: labels}, yolov8, &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 114, Scale: []float32{1. / 255}}},
		"yolov8 bytes": {twoMaps(3, 67), Options{Detection: YOLOv8, InputType: bcnn.Uint8}, yolov8, &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 114}},
		"scaled": {twoMaps(3, 67), Options{Detection: YOLOv8, Scale: []float32{0.5}, Resize: 40}, yolov8,
			&bcnn.Photo{Fit: bcnn.FitCrop, Grey: 114}},
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
	flat.nodes = append(flat.nodes, op("Flatten", "fine", "y"))
	flat.output, flat.also = "y", nil
	other := twoMaps(3, 8)
	other.inits[1] = weightsOf("w", 9, 3, 16, 16)
	uneven := twoMaps(3, 8)
	uneven.nodes[0] = op("Conv", "x v", "fine", "strides", []int{5, 5})
	for want, c := range map[string]struct {
		model testModel
		opts  Options
	}{
		`the kind of detector is "yolo", want yolox or yolov8`: {twoMaps(3, 8), Options{Detection: "yolo"}},
		`output "fine" has 2×4 cells of 5 channels`:            {twoMaps(3, 5), Options{Detection: YOLOX}},
		`output "fine" has 2×4 cells of 64 channels`:           {twoMaps(3, 64), Options{Detection: YOLOv8}},
		"want a map of 5 channels and the classes":             {flat, Options{Detection: YOLOX}},
		"that divides the input of 16×32":                      {uneven, Options{Detection: YOLOX}},
		"output 1 has 9 channels":                              {other, Options{Detection: YOLOX}},
		"2 labels for 3 classes of boxes":                      {twoMaps(3, 8), Options{Detection: YOLOX, Labels: labels[1:]}},
	} {
		_, _, err := Decode(t.Context(), c.model.encode(), c.opts)
		require.ErrorContains(t, err, want)
	}
}

// joinedMaps is twoMaps with its maps joined to one output, pixels in front.
func joinedMaps() testModel {
	m := twoMaps(3, 8)
	m.nodes = append(m.nodes,
		op("Reshape", "fine shape", "a"), op("Reshape", "coarse shape", "b"), op("Concat", "a b", "c", "axis", 2), op("Transpose", "c", "y", "perm", []int{0, 2, 1}))
	m.inits = append(m.inits, ints("shape", 0, 8, -1))
	m.output, m.also = "y", nil
	return m
}

// Maps that a graph flattens and joins are the outputs of a detector.
func TestCut(t *testing.T) {
	shaped := joinedMaps() // and joins a grid of numbers of its shape, as decoders do
	shaped.nodes = append(shaped.nodes,
		op("Shape", "fine", "s"), op("ConstantOfShape", "s", "o"), op("Reshape", "o shape", "g"), op("Shape", "coarse", "p"), op("ConstantOfShape", "p", "q"),
		op("Reshape", "q shape", "h"), op("Concat", "g h", "grid", "axis", 2), op("Transpose", "grid", "cells", "perm", []int{0, 2, 1}), op("Add", "cells y", "z"))
	shaped.output = "z"
	for name, m := range map[string]testModel{"reshaped": joinedMaps(), "with a grid": shaped} {
		net, report, err := Decode(t.Context(), m.encode(), Options{Detection: YOLOX})
		require.NoError(t, err, name)
		require.Len(t, net.Detection.Heads, 2, name)
		require.Equal(t, []string{`output "` + m.output + `" is left out for the maps that it is made of: "fine", "coarse"`}, report.Deviations)
		require.Equal(t, report.Deviations, net.Deviations)
		for i, l := range net.OutputLayers() {
			require.Equal(t, []string{"fine", "coarse"}[i], net.Layers[l].Source.Name)
		}
	}
	net, report, err := Decode(t.Context(), joinedMaps().encode(), Options{})
	require.NoError(t, err)
	require.Empty(t, report.Deviations, "without the option the output is what the file says")
	require.Len(t, net.OutputLayers(), 1)
}

// Files of Ultralytics say what classes there are, and how large an input of open sides is.
func TestUltralytics(t *testing.T) {
	open := twoMaps(3, 67)
	open.input.dims = []any{"n", 3, "height", "width"}
	open.metadata = map[string]string{"author": "Ultralytics", "imgsz": "[16, 32]", "names": `{0: 'a', 1: "b's", 2: 'c\'d'}`}
	net, _, err := Decode(t.Context(), open.encode(), Options{Detection: YOLOv8})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 16, W: 32, C: 3}, net.Inputs[0].Shape)
	require.Equal(t, []string{"a", "b's", "c'd"}, net.Labels)
	net, _, err = Decode(t.Context(), open.encode(), Options{Detection: YOLOv8, InputShape: bcnn.Shape{H: 32, W: 32, C: 3}, Labels: []string{"x", "y", "z"}})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 32, W: 32, C: 3}, net.Inputs[0].Shape)
	require.Equal(t, []string{"x", "y", "z"}, net.Labels)
	open.metadata["imgsz"] = "16"
	_, _, err = Decode(t.Context(), open.encode(), Options{Detection: YOLOv8})
	require.ErrorContains(t, err, "give its size")
	for s, want := range map[string][]string{
		"{}": nil, "{0: 'a'}": {"a"}, "": nil, "{1: 'a'}": nil, "{0: a}": nil, "{0: 'a": nil, "{0: 'a'": nil, "{0: 'a', 2: 'b'}": nil, "{0: 'a'}}": nil,
		`{0: '', 1: "\\"}`: {"", `\`},
	} {
		require.Equal(t, want, dictionary(s), s)
	}
}
