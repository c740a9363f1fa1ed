package openvino

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// decoder is a layer at the end of the graph that makes boxes, or the values that boxes are made of.
// It is no layer of a network: what it reads are outputs.
type decoder struct {
	layer  int // of the graph
	output int // first of those that it reads
}

// isDecoder reports whether an output of a graph is left out for what it reads.
func isDecoder(typ string) bool { return typ == "DetectionOutput" || typ == "RegionYolo" }

// decoderInputs returns what a decoder reads: outputs of the network, and what must be constant.
func (l *layer) decoderInputs() (outputs, constants []source, err error) {
	want := 1
	if l.typ == "DetectionOutput" {
		want = 3
	}
	for k := range want {
		if k >= len(l.from) || l.from[k] == absent {
			return nil, nil, fmt.Errorf("layer %s (%s) has %d inputs, want at least %d, and all of them there", text.Quote(short(l.name)), l.typ, len(l.from), want)
		}
	}
	if want == 1 {
		return l.from[:1], nil, nil
	}
	return l.from[:2], l.from[2:3], nil
}

// takeOut notes a decoder whose inputs are outputs of the network.
func (im *importer) takeOut(layer, output int) {
	l := &im.graph.layers[layer]
	im.decoders = append(im.decoders, decoder{layer, output})
	name := text.Escape(short(l.name))
	im.report.Detections = append(im.report.Detections, name)
	what := "the outputs are the locations and confidences that it reads"
	if l.typ == "RegionYolo" {
		what = "the output is the map that it reads"
	}
	im.net.Deviations = append(im.net.Deviations, fmt.Sprintf("layer %s (%s), of which boxes are made, is left out: %s", name, l.typ, what))
}

// What boxes are made with where the file says nothing, as for a RegionYolo.
const (
	threshold = 0.5
	overlap   = 0.45
)

// detect describes how boxes are made of the outputs, or says why that is not known.
func (im *importer) detect() {
	if len(im.decoders) == 0 {
		return
	}
	_, err := try.DoSafely(func() bool {
		im.net.Detection = im.detection()
		shapes := make([]bcnn.Shape, len(im.ends))
		for k, v := range im.ends {
			shapes[k] = v.shape
		}
		try.Check(im.net.CheckDetection(shapes))
		return true
	})
	if err != nil {
		im.net.Detection = nil
		try.Check(im.budget.Charge(0)) // which may be what has failed
		im.net.Deviations = append(im.net.Deviations, "boxes are not decoded: "+err.Error())
		return
	}
	if in := &im.net.Inputs[0]; in.Shape.C == 1 || in.Shape.C == 3 {
		// The order is that of OpenCV, which programs for OpenVINO read photos with.
		in.Photo = &bcnn.Photo{Fit: bcnn.FitStretch, BGR: in.Shape.C == 3}
		if in.Resize != 0 {
			in.Photo.Fit = bcnn.FitCrop
		}
	}
}

func (im *importer) detection() *bcnn.Detection {
	if im.aside != nil {
		try.Fail(im.aside)
	}
	if len(im.net.Inputs) != 1 {
		try.Failf("the graph has %d inputs", len(im.net.Inputs))
	}
	var d *bcnn.Detection
	for _, of := range im.decoders {
		l := &im.graph.layers[of.layer]
		n := &node{l, newAttributes(l.attrs), make([]bool, len(l.inputs))}
		next, err := try.DoSafely(func() *bcnn.Detection {
			if l.typ == "RegionYolo" {
				return im.regionYolo(n, of.output)
			}
			return im.detectionOutput(n, of.output)
		})
		switch {
		case err != nil:
			try.Fail(im.at(l, err))
		case d == nil:
			d = next
		case l.typ != "RegionYolo" || im.graph.layers[im.decoders[0].layer].typ != l.typ || d.Classes != next.Classes:
			try.Fail(im.at(l, errors.New("another layer makes boxes as well, of other classes or in another way")))
		default:
			d.Heads = append(d.Heads, next.Heads...)
		}
	}
	return d
}

// at names a layer in an error.
func (im *importer) at(l *layer, err error) error {
	return fmt.Errorf("layer %s (%s): %w", text.Quote(short(l.name)), text.Escape(short(l.typ)), err)
}

// detectionOutput reads a DetectionOutput.
func (im *importer) detectionOutput(n *node, output int) *bcnn.Detection {
	d := &bcnn.Detection{
		Background: n.integer("background_label_id", "0", math.MinInt32, math.MaxInt32),
		// Scores are not below 0, so that all exceed a threshold that is.
		Threshold: max(0, n.number("confidence_threshold", "0")), Overlap: n.number("nms_threshold", ""),
		TopK: n.most("top_k"), Keep: n.most("keep_top_k"),
	}
	if len(n.from) != 3 {
		try.Failf("it has %d inputs, want 3", len(n.from))
	}
	n.only("code_type", "caffe.PriorBoxParameter.CENTER_SIZE", "CENTER_SIZE")
	if _, said := n.list["code_type"]; !said {
		n.fail("code_type", "caffe.PriorBoxParameter.CENTER_SIZE")
	}
	for _, f := range []struct {
		name            string
		otherwise, want bool
	}{
		{"share_location", true, true}, {"normalized", false, true},
		{"clip_before_nms", false, false}, {"clip_after_nms", false, false}, {"decrease_label_id", false, false},
	} {
		if n.flag(f.name, f.otherwise) != f.want {
			n.fail(f.name, fmt.Sprint(f.want))
		}
	}
	if eta := n.number("eta", "1"); eta != 1 {
		n.fail("eta", "1")
	}
	// Of priors in parts of the input the size is not read, nor without two more inputs the objectness.
	n.ignore("input_height", "input_width", "objectness_score", "visualize", "num_classes", "clip")
	inTarget := n.flag("variance_encoded_in_target", false)
	n.checkRead()
	s := im.priors(n, inTarget)
	s.Locations, s.Confidences = output, output+1
	for k, v := range im.ends[output : output+2] {
		if !v.view.InOrder(v.shape.Values(), view.FlatStride(v.shape)) {
			try.Failf("the values of its input %d are in another order", k)
		}
	}
	confidences, priors := im.ends[output+1], len(s.Priors)/4
	s.Softmax = confidences.last
	if d.Classes = confidences.shape.Values(); d.Classes%priors != 0 {
		try.Failf("it has %d confidences for %d priors", d.Classes, priors)
	}
	d.Classes /= priors
	if said := n.integer("num_classes", fmt.Sprint(d.Classes), 1, maxOut); said != d.Classes {
		n.fail("num_classes", fmt.Sprint(d.Classes))
	}
	if d.Background < 0 || d.Background >= d.Classes { // then no class is
		d.Background = -1
	}
	d.Heads = []bcnn.Head{s}
	return d
}

// priors reads the priors of a DetectionOutput, whose variances are in the targets or behind them.
func (im *importer) priors(n *node, inTarget bool) bcnn.SSD {
	o := im.values[n.from[2].layer]
	if o.c == nil || n.from[2].port != 0 {
		try.Failf("its priors are not constant")
	}
	o.c.checkReal()
	rows := 2
	if inTarget {
		rows = 1
	}
	if len(o.c.dims) != 3 || o.c.dims[0] != 1 || o.c.dims[1] < rows || o.c.dims[2] == 0 || o.c.dims[2]%4 != 0 {
		try.Failf("its priors have shape %v, want 1, %d and four for each", o.c.dims, rows)
	}
	size := o.c.dims[2]
	s := bcnn.SSD{Priors: o.c.floats[:size], Variances: []float32{1, 1, 1, 1}}
	if !inTarget {
		s.Variances = fewer(o.c.floats[size : 2*size])
	}
	return s
}

// most returns a bound on boxes, as bcnn.Detection has it: 0 where the file has none, which it says by −1.
func (a *attributes) most(name string) int {
	const maxBoxes = 1 << 20
	most := a.integer(name, "-1", -1, maxBoxes)
	if most == 0 {
		a.fail(name, fmt.Sprintf("-1 or a number from 1 to %d", maxBoxes))
	}
	return max(0, most)
}

// fewer returns variances that are the same for all priors once.
func fewer(list []float32) []float32 {
	for i, v := range list {
		if v != list[i%4] {
			return list
		}
	}
	return list[:4]
}

// regionYolo reads a RegionYolo.
func (im *importer) regionYolo(n *node, output int) *bcnn.Detection {
	const maxAnchors = 1024
	classes := n.integer("classes", "", 1, maxOut)
	count := n.integer("num", "", 1, maxAnchors)
	n.only("coords", "4")
	n.only("axis", "1")
	n.only("end_axis", "3", "-1")
	y := bcnn.YOLO{Output: output, Centre: bcnn.LogisticActivation, Object: bcnn.LogisticActivation, Class: bcnn.LogisticActivation}
	anchors, mask := n.reals("anchors"), n.numbers("mask", 0, maxAnchors)
	softmax := n.flag("do_softmax", true)
	n.checkRead()
	if len(anchors) != 2*count {
		n.fail("anchors", fmt.Sprintf("%d numbers, two for each of num", 2*count))
	}
	if softmax {
		y.Cells, y.Class, mask = true, bcnn.SoftmaxActivation, nil
	}
	if len(mask) == 0 {
		for k := range count {
			mask = append(mask, k)
		}
	}
	for _, k := range mask {
		if k >= count {
			n.fail("mask", fmt.Sprintf("anchors from 0 to %d", count-1))
		}
		y.Anchors = append(y.Anchors, [2]float32{anchors[2*k], anchors[2*k+1]})
	}
	if v := im.ends[output]; !v.view.Equal(view.NCHW(v.shape)) {
		try.Failf("its input is no map of channels")
	}
	return &bcnn.Detection{Classes: classes, Background: -1, Threshold: threshold, Overlap: overlap, Heads: []bcnn.Head{y}}
}

// arranged puts what a decoder reads into the order in which boxes are made of it, if layers can do so.
func (im *importer) arranged(n *node, v *value, decoder string) *value {
	switch {
	case v.last:
	case decoder == "RegionYolo" && len(v.view) == 4:
		return im.nchw(n, v)
	case decoder == "DetectionOutput" && !v.view.InOrder(v.shape.Values(), view.FlatStride(v.shape)):
		return im.plain(n, v)
	}
	return v
}

// labels returns the names of the classes. Those of a detector may leave out the background, if it is
// the first class.
func (im *importer) labels() []string {
	list := im.opts.Labels
	if d := im.net.Detection; d != nil && d.Background == 0 && len(list) > 0 && len(list) == d.Classes-1 {
		return append([]string{"background"}, list...)
	}
	return list
}
