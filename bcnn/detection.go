package bcnn

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Detection says how boxes are made of the outputs of a detector: what such a network has behind its
// last layers, which is computed on the host (package vision). It is about the first input.
type Detection struct {
	// Classes is the number of classes, that of the background included. Labels of the network
	// name them.
	Classes int
	// Background is the class that stands for no object, −1 where there is none.
	Background int
	// Threshold is the least score of a box, which scores must exceed, and Overlap that of two
	// boxes of a class, intersection over union, beyond which the one with the lower score is
	// dropped.
	Threshold, Overlap float32
	// TopK is how many boxes of a class are looked at, those with the highest scores, and Keep how
	// many boxes an image has at the most; 0 where the model sets no bound.
	TopK, Keep int
	// Heads are the parts of the outputs, of which boxes are made.
	Heads []Head
}

// Head is SSD, YOLO or DFL.
type Head interface {
	// Kind is the name of the head, as used in model files.
	Kind() string
	// check tests the head against the outputs of its network.
	check(d *Detection, out []headOutput) error
	// size is what the head holds, in bytes.
	size() int64
	// reads returns the outputs that it reads.
	reads() []int
}

// SSD makes boxes of priors, boxes that are given, of which a network says how far and how they are to
// be moved (Liu and others, "SSD: Single Shot MultiBox Detector", 2016). With l the four locations
// of a prior, v its variances, and its centre and size, the centre of the box is
// v·l·size + centre, for x and y, and its width and height are exp(v·l)·size.
type SSD struct {
	// Locations is the output with four values for each prior: x, y, width, height; Confidences
	// that with one for each class. In the order of their values, those of a prior are side by side.
	Locations, Confidences int
	// Softmax says that scores are the softmax of the confidences of a prior. It is set also where
	// the output is a Softmax layer, which executables leave out.
	Softmax bool
	// Priors are left, top, right and bottom of each prior, in parts of the input.
	Priors []float32
	// Variances are four for all priors, or four for each.
	Variances []float32
}

// YOLO makes boxes of a map: in each cell, for each anchor, x, y, width, height, objectness and one value
// for each class, side by side (Redmon and Farhadi, "YOLO9000", 2016, and "YOLOv3", 2018). The
// centre is (column + x)/columns, (row + y)/rows; width and height are e^w times those of the
// anchor. The score of a class is objectness times its value; a box whose objectness does not exceed
// the threshold counts for no class.
type YOLO struct {
	Output int
	// Anchors are widths and heights, in pixels of the input, or with Cells in cells of the map.
	Anchors [][2]float32
	Cells   bool
	// Squared says that width and height are (2·w)² times those of the anchor.
	Squared bool
	// Centre, Object and Class say which function x and y, the objectness, and the classes still
	// need. A softmax, which only Class may be, is that of the classes of an anchor.
	Centre, Object, Class Activation
}

// DFL makes boxes of a map: in each cell, side by side, the distances from its middle to the left, upper,
// right and lower edge of a box, and one value for each class. A distance is the mean of 0, 1, 2 … cells,
// weighted by the softmax of as many values (Li and others, "Generalized Focal Loss", 2020, as in
// YOLOv8). The score of a class is its value: there is no objectness.
type DFL struct {
	Output int
	// Bins are how many values a distance has.
	Bins int
	// Class says which function the classes still need: none, or the logistic one.
	Class Activation
}

// Activation is a function that is computed on the host.
type Activation string

const (
	NoActivation       Activation = ""
	LogisticActivation Activation = "logistic"
	SoftmaxActivation  Activation = "softmax"
)

// BoxValues is how many values of a box a YOLO head has in front of the classes: those of the box
// and the objectness.
const BoxValues = 5

func (SSD) Kind() string  { return "ssd" }
func (YOLO) Kind() string { return "yolo" }
func (DFL) Kind() string  { return "dfl" }

func (s SSD) reads() []int  { return []int{s.Locations, s.Confidences} }
func (y YOLO) reads() []int { return []int{y.Output} }
func (f DFL) reads() []int  { return []int{f.Output} }

func (s SSD) size() int64  { return LayerBytes + 4*int64(len(s.Priors)+len(s.Variances)) }
func (y YOLO) size() int64 { return LayerBytes + 8*int64(len(y.Anchors)) }
func (DFL) size() int64    { return LayerBytes }

// maxAnchors is more than any network has.
const maxAnchors = 1024

// headOutput is an output of a network.
type headOutput struct {
	shape Shape
	op    Op
	taken bool // by a head
}

// detection checks the description of boxes.
func (c *checker) detection() error {
	d := c.n.Detection
	if d == nil {
		return nil
	}
	size := int64(LayerBytes)
	for _, h := range d.Heads {
		switch h.(type) {
		case SSD, YOLO, DFL:
			size += h.size()
		}
	}
	if err := c.spend(size); err != nil {
		return err
	}
	var shapes []Shape
	for _, l := range c.n.OutputLayers() {
		shapes = append(shapes, c.types[l].Shape)
	}
	if err := c.n.CheckDetection(shapes); err != nil {
		return fmt.Errorf("detection: %w", err)
	}
	return nil
}

// CheckDetection tests Detection as Check does, given the shapes of the outputs: for importers, which leave
// out what they cannot describe. Nil is no error.
func (n *Network) CheckDetection(outputs []Shape) error {
	d := n.Detection
	if d == nil {
		return nil
	}
	layers := n.OutputLayers()
	if len(outputs) != len(layers) {
		return fmt.Errorf("%d shapes of %d outputs", len(outputs), len(layers))
	}
	out := make([]headOutput, len(layers))
	for k, l := range layers {
		out[k] = headOutput{shape: outputs[k], op: n.Layers[l].Op}
	}
	if err := d.check(); err != nil {
		return err
	}
	for i, h := range d.Heads {
		switch h.(type) {
		case SSD, YOLO, DFL:
		default:
			return fmt.Errorf("head %d is a %T, want an SSD, a YOLO or a DFL", i, h)
		}
		err := takeOutputs(h, out)
		if err == nil {
			err = h.check(d, out)
		}
		if err != nil {
			return fmt.Errorf("head %d (%s): %w", i, h.Kind(), err)
		}
	}
	return nil
}

func (d *Detection) check() error {
	part := func(v float32) bool { return v >= 0 && v <= 1 }
	switch {
	case d.Classes < 1 || d.Classes > maxChannels:
		return fmt.Errorf("%d classes, want 1 to %d", d.Classes, maxChannels)
	case d.Background < -1 || d.Background >= d.Classes:
		return fmt.Errorf("class %d is the background, but there are %d classes", d.Background, d.Classes)
	case !part(d.Threshold) || !part(d.Overlap):
		return fmt.Errorf("a threshold of %v and an overlap of %v, want 0 to 1", d.Threshold, d.Overlap)
	case d.TopK < 0 || d.Keep < 0 || d.TopK > maxValues || d.Keep > maxValues:
		return fmt.Errorf("%d boxes of a class and %d of an image, want 0 to %d", d.TopK, d.Keep, maxValues)
	case len(d.Heads) == 0:
		return fmt.Errorf("it has no heads")
	}
	return nil
}

// takeOutputs marks the outputs that a head reads.
func takeOutputs(h Head, out []headOutput) error {
	for _, k := range h.reads() {
		if k < 0 || k >= len(out) || out[k].taken {
			return fmt.Errorf("it reads output %d, which does not exist or is read already", k)
		}
		out[k].taken = true
	}
	return nil
}

func (s SSD) check(d *Detection, out []headOutput) error {
	n := len(s.Priors) / 4
	switch {
	case n == 0 || len(s.Priors) != 4*n:
		return fmt.Errorf("%d numbers of priors, want 4 for each", len(s.Priors))
	case len(s.Variances) != 4 && len(s.Variances) != 4*n:
		return fmt.Errorf("%d variances, want 4, or 4 for each of %d priors", len(s.Variances), n)
	case out[s.Locations].shape.Values() != 4*n:
		return fmt.Errorf("output %d has %d values, want 4 locations for each of %d priors", s.Locations, out[s.Locations].shape.Values(), n)
	case int64(out[s.Confidences].shape.Values()) != int64(n)*int64(d.Classes):
		return fmt.Errorf("output %d has %d values, want %d confidences for each of %d priors", s.Confidences, out[s.Confidences].shape.Values(), d.Classes, n)
	case isSoftmax(out[s.Locations].op):
		return fmt.Errorf("output %d, of its locations, is a softmax", s.Locations)
	}
	if isSoftmax(out[s.Confidences].op) && (!s.Softmax || out[s.Confidences].shape.C != d.Classes || out[s.Confidences].op != Op(Softmax{})) {
		return fmt.Errorf("output %d is a %s of %d channels, want a softmax of %d, and the head to say so",
			s.Confidences, out[s.Confidences].op.Kind(), out[s.Confidences].shape.C, d.Classes)
	}
	for _, list := range [][]float32{s.Priors, s.Variances} {
		if i := notFinite(list); i >= 0 {
			return fmt.Errorf("a prior or a variance is %v, want finite numbers", list[i])
		}
	}
	return nil
}

func (y YOLO) check(d *Detection, out []headOutput) error {
	o := out[y.Output]
	switch {
	case d.Background >= 0:
		return fmt.Errorf("class %d is the background, which it has not", d.Background)
	case len(y.Anchors) < 1 || len(y.Anchors) > maxAnchors:
		return fmt.Errorf("%d anchors, want 1 to %d", len(y.Anchors), maxAnchors)
	case int64(o.shape.C) != int64(len(y.Anchors))*int64(BoxValues+d.Classes):
		return fmt.Errorf("output %d has %d channels, but %d anchors with %d values and %d classes each have %d",
			y.Output, o.shape.C, len(y.Anchors), BoxValues, d.Classes, int64(len(y.Anchors))*int64(BoxValues+d.Classes))
	case isSoftmax(o.op):
		return fmt.Errorf("output %d is a softmax", y.Output)
	}
	for _, a := range y.Anchors {
		if !(a[0] > 0 && a[1] > 0 && a[0] <= math.MaxFloat32 && a[1] <= math.MaxFloat32) {
			return fmt.Errorf("an anchor of %v×%v, want finite numbers above 0", a[0], a[1])
		}
	}
	for _, f := range []struct {
		name    string
		f       Activation
		softmax bool
	}{{"centre", y.Centre, false}, {"objectness", y.Object, false}, {"classes", y.Class, true}} {
		if f.f != NoActivation && f.f != LogisticActivation && (!f.softmax || f.f != SoftmaxActivation) {
			return fmt.Errorf("the function %s on the %s is not known", text.Quote(string(f.f)), f.name)
		}
	}
	return nil
}

// maxBins is more than any network has.
const maxBins = 1024

func (f DFL) check(d *Detection, out []headOutput) error {
	o := out[f.Output]
	want := 4*int64(f.Bins) + int64(d.Classes)
	switch {
	case d.Background >= 0:
		return fmt.Errorf("class %d is the background, which it has not", d.Background)
	case f.Bins < 2 || f.Bins > maxBins:
		return fmt.Errorf("%d values of a distance, want 2 to %d", f.Bins, maxBins)
	case int64(o.shape.C) != want:
		return fmt.Errorf("output %d has %d channels, but 4 distances of %d values and %d classes have %d", f.Output, o.shape.C, f.Bins, d.Classes, want)
	case isSoftmax(o.op):
		return fmt.Errorf("output %d is a softmax", f.Output)
	case f.Class != NoActivation && f.Class != LogisticActivation:
		return fmt.Errorf("the function %s on the classes is not known", text.Quote(string(f.Class)))
	}
	return nil
}

func isSoftmax(op Op) bool {
	_, ok := op.(Softmax)
	return ok
}
