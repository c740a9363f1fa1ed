package vision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// DefaultThreshold is the score that boxes must exceed where DetectorOptions do not say: that of the
// model is for those who select boxes by themselves, and often lets hundreds through.
const DefaultThreshold = 0.5

// DetectorOptions are the options of NewDetector. The zero value is good for models that say how
// photos become their input.
type DetectorOptions struct {
	Options
	// Threshold is what the score of a box must exceed, 0 to 1; 0 means DefaultThreshold, or that of
	// the model where it is higher.
	Threshold float32
	// Overlap is the intersection over union beyond which the box with the lower score of two of a
	// class is dropped, 0 to 1; 0 means what the model says. With 1 none is.
	Overlap float32
	// Top is how many boxes of an image there are at the most, those with the highest scores; 0
	// means as many as the model says.
	Top int
}

// Detector finds objects on images, by a network that says how boxes are made of its outputs. It is
// safe for any number of goroutines, as a Classifier is.
//
// Boxes are made of the outputs on the host, in float32 operations of one order, so that the same
// outputs give the same boxes on every machine: which is why all devices agree. They take twice the
// memory of the outputs at the most, and up to 2 MiB. Of each class those with the 4,096 highest scores are
// looked at, or fewer if the model says so, and of all classes together those with the 16,384 highest.
type Detector struct {
	session       runner
	preprocessing Preprocessing
	outputs       []bcnn.Shape
	decoder       decoder
}

// Box is an object on an image.
type Box struct {
	Label string  `json:"label"`
	Index int     `json:"index"` // of the class
	Score float32 `json:"score"`
	// The left, upper, right and lower edge, in pixels of the photo: the pixel (x, y) covers x to
	// x + 1, y to y + 1. Boxes do not reach beyond the photo.
	X0 float32 `json:"x0"`
	Y0 float32 `json:"y0"`
	X1 float32 `json:"x1"`
	Y1 float32 `json:"y1"`
}

// Detections are the objects on one image.
type Detections struct {
	// Boxes are in the order of their scores, the highest first; of equal ones, in that of the
	// classes and then of the priors, or of the heads, rows, columns and anchors.
	Boxes         []Box
	Width, Height int // of the photo
	// Time is that of the call of Session.Run, waiting for its turn included: for the whole batch of
	// which the image was a part.
	Time time.Duration
}

// MarshalJSON writes an object of width, height, boxes and us, the time in microseconds, as the
// command does.
func (d Detections) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Width  int     `json:"width"`
		Height int     `json:"height"`
		Boxes  []Box   `json:"boxes"`
		Micros float64 `json:"us"`
	}{d.Width, d.Height, append([]Box{}, d.Boxes...), float64(d.Time) / float64(time.Microsecond)})
}

// NewDetector returns a detector by the network of a session, which reads images and says how boxes
// are made of its outputs: see bitcnn.Session.Detection. The session stays the caller's, to be closed
// when nobody detects any more. Of a network that reads float32 and has no Photo, the options must say how
// photos become its input: by Mean and Scale, or by a Photo.
func NewDetector(s *bitcnn.Session, opts DetectorOptions) (*Detector, error) {
	if s == nil {
		return nil, errors.New("a detector needs a session, got nil")
	}
	return newDetector(s, s.Detection(), opts)
}

func newDetector(s runner, boxes *bcnn.Detection, opts DetectorOptions) (*Detector, error) {
	inputs := s.Inputs()
	switch {
	case boxes == nil:
		return nil, errors.New("the network does not describe how its outputs become boxes: it is not a detector, or of a kind that is not supported")
	case len(inputs) != 1:
		return nil, fmt.Errorf("the network has %d inputs, a detector needs one", len(inputs))
	case !(opts.Threshold >= 0 && opts.Threshold <= 1) || !(opts.Overlap >= 0 && opts.Overlap <= 1):
		return nil, fmt.Errorf("a threshold of %v and an overlap of %v, want 0 to 1", opts.Threshold, opts.Overlap)
	case opts.Top < 0:
		return nil, fmt.Errorf("%d boxes, want 0 or more", opts.Top)
	}
	p, err := opts.Preprocessing(inputs[0])
	if err != nil {
		return nil, err
	}
	if p.Input.DType == bcnn.Float32 && p.Input.Photo == nil && len(p.Mean)+len(p.Scale) == 0 {
		return nil, errors.New("the network reads float32 and does not describe how photos become that: set Mean and Scale, or Photo")
	}
	d := &Detector{session: s, preprocessing: p}
	for _, o := range s.Outputs() {
		d.outputs = append(d.outputs, o.Shape)
	}
	d.decoder = newDecoder(boxes, p.Input.Shape, d.outputs, opts)
	d.decoder.labels = Labels(s.Labels(), boxes.Classes)
	return d, nil
}

// Preprocessing returns how the detector prepares images.
func (d *Detector) Preprocessing() Preprocessing { return d.preprocessing }

// Labels returns the names of the classes.
func (d *Detector) Labels() []string { return append([]string(nil), d.decoder.labels...) }

// Background returns the class that stands for no object, of which there are no boxes; −1 where
// there is none.
func (d *Detector) Background() int { return d.decoder.Background }

// Detect prepares an image and finds the objects on it, as Detections has them.
func (d *Detector) Detect(ctx context.Context, img image.Image) ([]Box, error) {
	in := bcnn.NewTensor(d.preprocessing.Input.DType, 1, d.preprocessing.Input.Shape)
	if err := d.preprocessing.Fill(ctx, in, 0, img); err != nil {
		return nil, err
	}
	frame, err := d.preprocessing.Frame(img)
	if err != nil {
		return nil, err
	}
	found, err := d.DetectTensor(ctx, in, frame)
	if err != nil {
		return nil, err
	}
	return found[0].Boxes, nil
}

// DetectTensor finds the objects on images that Preprocessing.Fill has prepared, of each of which the
// frame tells what the input shows.
func (d *Detector) DetectTensor(ctx context.Context, in bcnn.Tensor, frames ...Frame) ([]Detections, error) {
	if len(frames) != in.N {
		return nil, fmt.Errorf("%d frames of %d images", len(frames), in.N)
	}
	parts, err := d.preprocessing.parts(in, d.session.MaxBatch())
	if err != nil {
		return nil, err
	}
	found := make([]Detections, 0, in.N)
	for _, part := range parts {
		out := make([]bcnn.Tensor, len(d.outputs))
		for k, shape := range d.outputs {
			out[k] = bcnn.NewTensor(bcnn.Float32, part.N, shape)
		}
		start := clock.Now()
		if err := d.session.Run(ctx, out, []bcnn.Tensor{part}); err != nil {
			return nil, err
		}
		took := clock.Since(start)
		for i := range part.N {
			one := make([]bcnn.Tensor, len(out))
			for k := range out {
				one[k] = out[k].Images(i, 1)
			}
			frame := frames[len(found)]
			boxes, err := d.Boxes(ctx, one, frame)
			if err != nil {
				return nil, err
			}
			found = append(found, Detections{Boxes: boxes, Width: frame.Size.X, Height: frame.Size.Y, Time: took})
		}
	}
	return found, nil
}

// Boxes makes boxes of what Session.Run has written of one image: the second part of DetectTensor, for
// those who limit how many goroutines are at work on it. It writes over the outputs.
func (d *Detector) Boxes(ctx context.Context, out []bcnn.Tensor, frame Frame) ([]Box, error) {
	if len(out) != len(d.outputs) {
		return nil, fmt.Errorf("%d outputs, want %d", len(out), len(d.outputs))
	}
	values := make([][]float32, len(out))
	for k, o := range out {
		name := d.session.Outputs()[k].Name
		if err := o.Check(bcnn.Float32, d.outputs[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if o.N != 1 {
			return nil, fmt.Errorf("%s: %d images, want 1", name, o.N)
		}
		if err := finite(o.F32); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[k] = o.F32
	}
	return d.decoder.boxes(ctx, values, frame)
}
