// Package vision turns images into the inputs of networks: it decodes photos,
// turns them upright, resizes and crops them, and a Classifier says what any
// network that reads images sees on them.
package vision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"math"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/internal/parallel"
)

// Options are the options of NewClassifier. The zero value is good for networks
// that read bytes.
type Options struct {
	// Mean and Scale are those of Preprocessing, for networks that read float32. Without them, they
	// are those of Photo.
	Mean, Scale []float32
	// Photo says how a photo is fitted into the input, in place of what the model says.
	Photo *bcnn.Photo
	// Background is that of Preprocessing: what lies under transparent pixels.
	Background [3]uint8
	// Limits are those of Preprocessing, for photos of strangers.
	Limits Limits
}

// Classifier says what an image shows, by a network. It is safe for any number of
// goroutines: they prepare their images at the same time, and run them as the Session
// allows it.
type Classifier struct {
	session       runner
	preprocessing Preprocessing
	output        bcnn.Shape
	labels        []string
}

// runner is what a Classifier needs of a bitcnn.Session.
type runner interface {
	Inputs() []bitcnn.IO
	Outputs() []bitcnn.IO
	Labels() []string
	MaxBatch() int
	Run(ctx context.Context, out, in []bcnn.Tensor) error
}

// NewClassifier returns a classifier by the network of a session, which reads images
// and has one output. The caller keeps the session, and closes it when nobody
// classifies any more.
func NewClassifier(s *bitcnn.Session, opts Options) (*Classifier, error) {
	if s == nil {
		return nil, errors.New("a classifier needs a session, got nil")
	}
	if s.Detection() != nil {
		return nil, errors.New("the network is a detector: use NewDetector")
	}
	return newClassifier(s, opts)
}

func newClassifier(s runner, opts Options) (*Classifier, error) {
	inputs, outputs := s.Inputs(), s.Outputs()
	if len(inputs) != 1 || len(outputs) != 1 {
		return nil, fmt.Errorf("the network has %d inputs and %d outputs, a classifier needs one of each", len(inputs), len(outputs))
	}
	p, err := opts.Preprocessing(inputs[0])
	if err != nil {
		return nil, err
	}
	return &Classifier{session: s, preprocessing: p, output: outputs[0].Shape, labels: s.Labels()}, nil
}

// Preprocessing returns how images become an input of a session, as the model and the options say. It is an
// error if images cannot become that input.
func (o Options) Preprocessing(in bitcnn.IO) (Preprocessing, error) {
	p := Preprocessing{
		Input: bcnn.Input{Shape: in.Shape, DType: in.DType, Resize: in.Resize, Photo: cmp.Or(o.Photo, in.Photo)},
		Mean:  o.Mean, Scale: o.Scale, Background: o.Background, Limits: o.Limits,
	}
	if photo := p.Input.Photo; photo != nil && len(o.Mean)+len(o.Scale) == 0 {
		p.Mean, p.Scale = photo.Mean, photo.Scale
	}
	return p, p.Check()
}

// Preprocessing returns how the classifier prepares images.
func (c *Classifier) Preprocessing() Preprocessing { return c.preprocessing }

// Labels returns the names of the classes, in the order of the outputs.
func (c *Classifier) Labels() []string { return Labels(c.labels, c.output.Values()) }

// Result is the classification of one image.
type Result struct {
	Class            // the likeliest, the first of equals
	Logits []float32 // all outputs
	// Time is that of the call of Session.Run, waiting for its turn included: for the
	// whole batch of which the image was a part.
	Time time.Duration

	labels []string
}

// MarshalJSON writes an object of label, index, probability, logits and us, the time in
// microseconds, as the command does.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Class
		Logits []float32 `json:"logits"`
		Micros float64   `json:"us"`
	}{r.Class, r.Logits, float64(r.Time) / float64(time.Microsecond)})
}

// Top returns the k likeliest classes, as TopK does.
func (r Result) Top(k int) []Class { return TopK(r.Logits, r.labels, k) }

// Classify prepares an image and classifies it.
func (c *Classifier) Classify(ctx context.Context, img image.Image) (Result, error) {
	in := c.tensor(1)
	if err := c.preprocessing.Fill(ctx, in, 0, img); err != nil {
		return Result{}, err
	}
	results, err := c.ClassifyTensor(ctx, in)
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// ClassifyBatch classifies images, MaxBatch of the session in a run. They
// are prepared by several goroutines. If one of them is no image, the error says
// which, and there are no results.
func (c *Classifier) ClassifyBatch(ctx context.Context, images []image.Image) ([]Result, error) {
	results := make([]Result, 0, len(images))
	for from := 0; from < len(images); from += c.session.MaxBatch() {
		part := images[from:min(from+c.session.MaxBatch(), len(images))]
		in, errs := c.tensor(len(part)), make([]error, len(part))
		parallel.For(len(part), func(i int) {
			if err := c.preprocessing.Fill(ctx, in, i, part[i]); err != nil {
				errs[i] = fmt.Errorf("image %d: %w", from+i, err)
			}
		})
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		more, err := c.ClassifyTensor(ctx, in)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
	return results, nil
}

// ClassifyTensor classifies images that Preprocessing.Fill has prepared.
func (c *Classifier) ClassifyTensor(ctx context.Context, in bcnn.Tensor) ([]Result, error) {
	parts, err := c.preprocessing.parts(in, c.session.MaxBatch())
	if err != nil {
		return nil, err
	}
	results := make([]Result, 0, max(in.N, 0))
	for _, part := range parts {
		out := bcnn.NewTensor(bcnn.Float32, max(part.N, 0), c.output)
		start := clock.Now()
		if err := c.session.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{part}); err != nil {
			return nil, err
		}
		took := clock.Since(start)
		for i := range part.N {
			logits := out.Images(i, 1).F32
			if err := finite(logits); err != nil {
				return nil, err
			}
			r := Result{Logits: logits, Time: took, labels: c.labels}
			r.Class = r.Top(1)[0]
			results = append(results, r)
		}
	}
	return results, nil
}

func (c *Classifier) tensor(n int) bcnn.Tensor {
	return bcnn.NewTensor(c.preprocessing.Input.DType, n, c.preprocessing.Input.Shape)
}

func finite(logits []float32) error {
	for i, v := range logits {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("output %d of the model is %v, its weights overflow float32", i, v)
		}
	}
	return nil
}
