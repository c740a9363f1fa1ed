package onnx

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Detection says how boxes are made of the outputs of a detector whose file does not say it. Each output is
// a map of N×channels×height×width, for one stride. If a graph goes on behind them, to a single output,
// the maps that it flattens and joins are the outputs instead.
type Detection string

const (
	// YOLOX has, in each cell, x, y, width, height, objectness and the classes, the last two behind
	// their logistic function, as its exporter writes them: the centre is (column + x, row + y) times
	// the stride, width and height are e^w and e^h times it, and a score is objectness times class (Ge
	// and others, "YOLOX", 2021). Photos are B, G, R from 0 to 255.
	YOLOX Detection = "yolox"
	// YOLOv8 has four distances of 16 values and the classes without their logistic function, as
	// Ultralytics' networks from version 8 on have them in front of what decodes them: see bcnn.DFL.
	// Photos are R, G, B from 0 to 1.
	YOLOv8 Detection = "yolov8"
)

// Detections returns all that Options.Detection may be.
func Detections() []Detection { return []Detection{YOLOX, YOLOv8} }

// What the programs of the two do with boxes by default.
const (
	detectionThreshold = 0.25
	yoloxOverlap       = 0.45
	yolov8Overlap      = 0.7
	yolov8Bins         = 16
	borderGrey         = 114
)

// prepare checks the option and sets what bytes are multiplied with.
func (d Detection) prepare(opts *Options) error {
	switch d {
	case "", YOLOX:
	case YOLOv8:
		if opts.InputType == bcnn.Uint8 && len(opts.Mean)+len(opts.Scale) == 0 {
			opts.Scale = []float32{1. / 255}
		}
	default:
		return fmt.Errorf("the kind of detector is %s, want yolox or yolov8", text.Quote(string(d)))
	}
	return nil
}

// describe says of a network how boxes are made of its outputs.
func (d Detection) describe(net *bcnn.Network, opts Options) error {
	if d == "" {
		return nil
	}
	shapes, err := net.Shapes()
	if err != nil {
		return err
	}
	in := net.Inputs[0]
	boxes := &bcnn.Detection{Background: -1, Threshold: detectionThreshold, Overlap: yoloxOverlap}
	channels := bcnn.BoxValues
	if d == YOLOv8 {
		channels, boxes.Overlap = 4*yolov8Bins, yolov8Overlap
	}
	var outputs []bcnn.Shape
	for k, l := range net.OutputLayers() {
		s, name := shapes[l], ""
		outputs = append(outputs, s)
		dims := 3
		if from := net.Layers[l].Source; from != nil {
			name, dims = from.Name, len(from.Dims)
		}
		stride := in.Shape.H / s.H
		if dims != 3 || s.C <= channels || stride*s.H != in.Shape.H || stride*s.W != in.Shape.W {
			return fmt.Errorf("a detector of kind %s: output %s has %d×%d cells of %d channels, want a map of %d channels and the classes that divides the input of %d×%d",
				d, text.Quote(name), s.H, s.W, s.C, channels, in.Shape.H, in.Shape.W)
		}
		if k == 0 {
			boxes.Classes = s.C - channels
		}
		var head bcnn.Head = bcnn.YOLO{Output: k, Anchors: [][2]float32{{float32(stride), float32(stride)}}}
		if d == YOLOv8 {
			head = bcnn.DFL{Output: k, Bins: yolov8Bins, Class: bcnn.LogisticActivation}
		}
		boxes.Heads = append(boxes.Heads, head)
	}
	net.Detection = boxes
	if err := net.CheckDetection(outputs); err != nil {
		return fmt.Errorf("a detector of kind %s: %w", d, err)
	}
	photo := &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: borderGrey, Corner: d == YOLOX, BGR: d == YOLOX && in.Shape.C == 3}
	if opts.Resize != 0 {
		photo.Fit = bcnn.FitCrop
	}
	if d == YOLOv8 && in.DType == bcnn.Float32 && len(opts.Mean)+len(opts.Scale) == 0 {
		photo.Scale = []float32{1. / 255}
	}
	net.Inputs[0].Photo = photo
	return nil
}
