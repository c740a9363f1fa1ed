package darknet

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// head is [yolo] or [region].
type head struct {
	Head
	scaleXY float32
	diou    bool // boxes are dropped by another measure than their overlap
}

// Values of each anchor: four of the box, and the objectness, in front of the classes.
const (
	boxValues  = 4
	cellValues = boxValues + 1
)

// maxAnchors is more than any network has.
const maxAnchors = 1024

func readYolo(s *section) layer {
	h := &head{Head: Head{Section: s.number, Kind: "yolo", Classes: s.integer("classes", 20, 1, maxChannels)}}
	num := s.integer("num", 1, 1, maxAnchors)
	all := s.anchors(num)
	mask := s.integers("mask")
	if mask == nil {
		h.Anchors = all
	}
	for _, m := range mask {
		if m < 0 || m >= num {
			s.fail("mask", fmt.Sprintf("but there are anchors 0 to %d", num-1))
		}
		h.Anchors = append(h.Anchors, all[m])
	}
	h.NewCoords, h.scaleXY = s.flag("new_coords"), s.float("scale_x_y", 1)
	for _, name := range []string{"map", "embedding_layer"} {
		if _, ok := s.find(name); ok {
			s.fail(name, "which is not supported")
		}
	}
	s.ignore( // training
		"jitter", "resize", "random", "max", "ignore_thresh", "truth_thresh", "iou_thresh", "iou_thresh_kind", "iou_loss", "iou_normalizer",
		"obj_normalizer", "cls_normalizer", "uc_normalizer", "delta_normalizer", "max_delta", "counters_per_class", "label_smooth_eps",
		"objectness_smooth", "focal_loss", "show_details")
	h.diou = s.text("nms_kind", "") == "diounms"
	s.ignore( // what becomes of boxes: their suppression, and following them from picture to picture
		"beta_nms", "beta1", "track_history_size", "sim_thresh", "dets_for_track", "dets_for_show", "track_ciou_norm")
	return h
}

func readRegion(s *section) layer {
	h := &head{Head: Head{Section: s.number, Kind: "region", Classes: s.integer("classes", 20, 1, maxChannels)}, scaleXY: 1}
	h.Anchors = s.anchors(s.integer("num", 1, 1, maxAnchors))
	if s.integer("coords", boxValues, 0, maxChannels) != boxValues {
		s.fail("coords", fmt.Sprintf("which is not supported, want %d", boxValues))
	}
	h.Raw = s.flag("softmax")
	for _, name := range []string{"map", "tree"} {
		if _, ok := s.find(name); ok {
			s.fail(name, "which is not supported: classes of another file")
		}
	}
	s.ignore( // training
		"jitter", "resize", "random", "max", "thresh", "rescore", "classfix", "absolute", "coord_scale", "object_scale", "noobject_scale",
		"mask_scale", "class_scale", "bias_match", "focal_loss", "log", "sqrt")
	return h
}

// anchors reads the widths and heights of so many anchors.
func (s *section) anchors(num int) [][2]float32 {
	list := s.floats("anchors")
	if len(list) != 2*num {
		try.Failf("option anchors has %d numbers, want %d for num = %d", len(list), 2*num, num)
	}
	all := make([][2]float32, num)
	for i := range all {
		all[i] = [2]float32{list[2*i], list[2*i+1]}
	}
	return all
}

// channels is how many the head reads.
func (h *head) channels() int64 { return int64(len(h.Anchors)) * int64(cellValues+h.Classes) }

func (h *head) shape(in []bcnn.Shape) bcnn.Shape {
	if int64(in[0].C) != h.channels() {
		try.Failf("its input has %d channels, but %d anchors with 5 values and %d classes each have %d", in[0].C, len(h.Anchors), h.Classes, h.channels())
	}
	return in[0]
}

func (h *head) build(im *importer, s *section, in []value) value {
	v := in[0]
	logistic := func(entry int) bool { return entry != 2 && entry != 3 } // all but width and height
	if h.Kind == "region" {
		logistic = func(entry int) bool { return entry == boxValues }
	}
	each := cellValues + h.Classes
	if !h.NewCoords && !h.Raw {
		both := v.shape
		both.C *= 2
		curved := im.emit(s, "/logistic", bcnn.Function{Name: bcnn.Sigmoid}, v.shape, v)
		joined := im.emit(s, "/both", bcnn.Concat{}, both, v, curved)
		index := try.Value(budget.List(im.budget, v.shape.C, func(c int) int32 {
			if logistic(c % each) {
				c += v.shape.C
			}
			return int32(c)
		}))
		v = im.emit(s, "/picked", bcnn.Channels{Index: index}, v.shape, joined)
	}
	if h.scaleXY != 1 {
		n := v.shape.C
		try.Check(im.budget.Charge(2 * floatBytes * int64(n)))
		op := bcnn.Affine{Scale: make([]float32, n), Bias: make([]float32, n)}
		try.Check(im.budget.Loop(n, func(lo, hi int) {
			for c := lo; c < hi; c++ {
				op.Scale[c] = 1
				if c%each < 2 {
					op.Scale[c], op.Bias[c] = h.scaleXY, float32(-0.5*float64(h.scaleXY-1))
				}
			}
		}))
		v = im.emit(s, "/scale", op, v.shape, v)
	}
	return v
}

// What Darknet's command takes without options, which no file says.
const (
	threshold = 0.25
	overlap   = 0.45
)

// detect describes how boxes are made of the outputs, and how Darknet fits photos into the input.
// outputs are the shapes of the network's.
func (im *importer) detect(outputs []bcnn.Shape) {
	if len(im.heads) == 0 {
		return
	}
	d := &bcnn.Detection{Classes: im.heads[0].Classes, Background: -1, Threshold: threshold, Overlap: overlap}
	for _, h := range im.heads {
		if h.Classes != d.Classes {
			im.net.Deviations = append(im.net.Deviations, fmt.Sprintf(
				"boxes are not decoded: section %d has %d classes, section %d has %d", im.heads[0].Section, d.Classes, h.Section, h.Classes))
			return
		}
		y := bcnn.YOLO{Output: h.Output, Anchors: h.Anchors, Squared: h.NewCoords}
		if h.Kind == "region" {
			y.Cells, y.Centre = true, bcnn.LogisticActivation
		}
		if h.Raw {
			y.Object, y.Class = bcnn.LogisticActivation, bcnn.SoftmaxActivation
		}
		d.Heads = append(d.Heads, y)
	}
	im.net.Detection = d
	if err := im.net.CheckDetection(outputs); err != nil {
		im.net.Detection = nil
		im.net.Deviations = append(im.net.Deviations, "boxes are not decoded: "+err.Error())
		return
	}
	for _, s := range im.layers {
		if h, ok := s.layer.(*head); ok && h.diou {
			im.net.Deviations = append(im.net.Deviations, fmt.Sprintf(
				"%s: nms_kind=diounms is not followed: boxes are dropped by their overlap alone", s.name()))
		}
	}
	in := &im.net.Inputs[0]
	if in.Shape.C != 1 && in.Shape.C != 3 {
		return
	}
	in.Photo = &bcnn.Photo{Fit: bcnn.FitStretch}
	switch {
	case in.Resize != 0:
		in.Photo.Fit = bcnn.FitCrop
	case im.letterbox:
		in.Photo.Fit = bcnn.FitLetterbox
	}
	if in.DType == bcnn.Float32 && len(im.opts.Mean)+len(im.opts.Scale) == 0 {
		in.Photo.Scale = []float32{1. / 255}
	}
}
