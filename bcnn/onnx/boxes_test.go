package onnx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// head is a model whose output are two maps for one anchor and one class each.
func head(metadata map[string]string) testModel {
	return testModel{
		input: image(3, 4, 4),
		nodes: []testNode{op("Conv", "x w", "a", "strides", []int{2, 2}), op("Conv", "x w", "b")}, output: "a", also: []string{"b"},
		inits:    []testTensor{floats("w", []int{6, 3, 1, 1}, make([]float64, 18)...)},
		metadata: metadata,
	}
}

const twoHeads = `{"classes": 1, "background": -1, "threshold": 0.1, "overlap": 0.45, "top_k": 7, "keep": 5, "heads": [
	{"kind": "yolo", "params": {"output": 0, "anchors": [[8, 9.5]], "centre": "logistic", "object": "logistic", "class": "softmax"}},
	{"kind": "yolo", "params": {"output": 1, "anchors": [[1, 2]], "cells": true, "squared": true}}]}`

// TestBoxes reads from the file how photos become the input and boxes are made of the outputs.
func TestBoxes(t *testing.T) {
	file := write(t, head(map[string]string{"detection": twoHeads, "photo": `{"fit": "letterbox", "bgr": true, "mean": [128], "scale": [0.5, 1, 2]}`}).encode())
	net, _, err := Load(t.Context(), file, Options{})
	require.NoError(t, err)
	require.NoError(t, net.Check())
	require.Equal(t, &bcnn.Photo{Fit: bcnn.FitLetterbox, BGR: true, Mean: []float32{128}, Scale: []float32{0.5, 1, 2}}, net.Inputs[0].Photo)
	require.Equal(t, &bcnn.Detection{
		Classes: 1, Background: -1, Threshold: 0.1, Overlap: 0.45, TopK: 7, Keep: 5,
		Heads: []bcnn.Head{
			bcnn.YOLO{Anchors: [][2]float32{{8, 9.5}}, Centre: bcnn.LogisticActivation, Object: bcnn.LogisticActivation, Class: bcnn.SoftmaxActivation},
			bcnn.YOLO{Output: 1, Anchors: [][2]float32{{1, 2}}, Cells: true, Squared: true},
		},
	}, net.Detection)

	// Options replace what they are about.
	net, _, err = Load(t.Context(), file, Options{Resize: 8, Mean: []float32{3}})
	require.NoError(t, err)
	require.NoError(t, net.Check())
	require.Equal(t, &bcnn.Photo{BGR: true}, net.Inputs[0].Photo)
	require.Equal(t, 8, net.Inputs[0].Resize)
}

func TestBoxesThatAreWrong(t *testing.T) {
	yolo := func(params string) string {
		return `{"classes": 1, "threshold": 0.1, "overlap": 0.45, "heads": [{"kind": "yolo", "params": ` + params + `}]}`
	}
	for _, test := range []struct{ key, value, want string }{
		{"photo", `{"fit": "letterbox"`, `metadata "photo": unexpected EOF`},
		{"photo", `{"fits": "letterbox"}`, `unknown field "fits"`},
		{"photo", `{} {}`, "something stands behind the JSON"},
		{"photo", `{"mean": ["a"]}`, "cannot unmarshal string"},
		{"photo", `{"fit": "fitting"}`, `an unknown way to fit photos, "fitting"`},
		{"detection", `[]`, `metadata "detection": json: cannot unmarshal array`},
		{"detection", `{"classes": 1, "nms": 1}`, `unknown field "nms"`},
		{"detection", `{"classes": 1}`, "it has no heads"},
		{"detection", `{"classes": 1, "heads": [{"kind": "ssd", "params": {}}]}`, `head 0 is of kind "ssd" with 0 tensors, want one of kind yolo with none`},
		{"detection", `{"classes": 1, "heads": [{"kind": "yolo", "params": {}, "tensors": {"priors": "w"}}]}`, `with 1 tensor, want one of kind yolo with none`},
		{"detection", `{"classes": 1, "heads": [{"kind": "yolo"}]}`, "head 0: params: EOF"},
		{"detection", yolo(`{"anchor": []}`), `head 0: params: json: unknown field "anchor"`},
		{"detection", yolo(`{"anchors": [[1]]}`), "an anchor of 1 numbers"},
		{"detection", yolo(`{"anchors": [[1, 1], [2, 2]]}`), "output 0 has 6 channels, but 2 anchors with 5 values and 1 classes each have 12"},
		{"detection", yolo(`{"output": 2, "anchors": [[1, 1]]}`), "it reads output 2, which does not exist"},
		{"detection", yolo(`{"anchors": [[1, 0]]}`), "an anchor of 1×0"},
		{"detection", yolo(`{"anchors": [[1, 1e99]]}`), "cannot unmarshal number 1e99"},
		{"detection", yolo(`{"anchors": [[1, 1]], "centre": "tanh"}`), `the function "tanh" on the centre is not known`},
	} {
		_, _, err := Load(t.Context(), write(t, head(map[string]string{test.key: test.value}).encode()), Options{})
		require.ErrorContains(t, err, test.want, test.value)
		require.ErrorContains(t, err, "model.onnx", test.value)
	}
}
