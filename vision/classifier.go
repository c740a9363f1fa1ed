// Package vision turns images into the inputs of networks: it decodes photos,
// turns them upright, resizes and crops them, and a Classifier says what any
// network that reads images sees on them.
package vision

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/parallel"
)

// Options are the options of NewClassifier. The zero value is good for networks
// that read bytes.
type Options struct {
	// Backend are the options of the device. MaxBatch is the number of images
	// that ClassifyBatch and ClassifyTensor run at once.
	Backend backend.Options
	// Mean and Scale are those of Preprocessing, for networks that read float32.
	Mean, Scale []float32
}

// Classifier says what an image shows, by a network on a device. It is safe for
// any number of goroutines: they prepare their images at the same time, only the
// device does one batch after the other.
type Classifier struct {
	engine        *engine
	preprocessing Preprocessing
}

// NewClassifier returns a classifier by a network that reads images.
func NewClassifier(ctx context.Context, dev *backend.Device, net *bcnn.Network, opts Options) (*Classifier, error) {
	if dev == nil || net == nil {
		return nil, errors.New("a classifier needs a device and a network, one of them is nil")
	}
	p := Preprocessing{Input: net.Input, Mean: opts.Mean, Scale: opts.Scale}
	if err := p.Check(); err != nil {
		return nil, err
	}
	e, err := newEngine(ctx, dev, net, opts.Backend)
	if err != nil {
		return nil, err
	}
	return &Classifier{engine: e, preprocessing: p}, nil
}

// Preprocessing returns how the classifier prepares images.
func (c *Classifier) Preprocessing() Preprocessing { return c.preprocessing }

// Labels returns the names of the classes, in the order of the outputs.
func (c *Classifier) Labels() []string { return Labels(c.engine.labels, c.engine.output.Values()) }

// Result is the classification of one image.
type Result struct {
	Class            // the likeliest, the first of equals
	Logits []float32 // all outputs
	// Time is that of the run on the device, transfers included: of the whole
	// batch of which the image was a part.
	Time time.Duration

	labels []string
}

// Top returns the k likeliest classes, as TopK does.
func (r Result) Top(k int) []Class { return TopK(r.Logits, r.labels, k) }

// Classify prepares an image and classifies it.
func (c *Classifier) Classify(ctx context.Context, img image.Image) (Result, error) {
	in := c.tensor(1)
	if err := c.preprocessing.Fill(in, 0, img); err != nil {
		return Result{}, err
	}
	results, err := c.ClassifyTensor(ctx, in)
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// ClassifyBatch classifies images, MaxBatch of them in a run of the device. They
// are prepared by several goroutines. If one of them is no image, the error says
// which, and there are no results.
func (c *Classifier) ClassifyBatch(ctx context.Context, images []image.Image) ([]Result, error) {
	results := make([]Result, 0, len(images))
	for from := 0; from < len(images); from += c.engine.maxBatch {
		part := images[from:min(from+c.engine.maxBatch, len(images))]
		in, errs := c.tensor(len(part)), make([]error, len(part))
		parallel.For(len(part), func(i int) {
			if err := c.preprocessing.Fill(in, i, part[i]); err != nil {
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
	e := c.engine
	if err := in.Check(e.input.DType, e.input.Shape); err != nil {
		return nil, err
	}
	results := make([]Result, 0, in.N)
	for from := 0; from < in.N; from += e.maxBatch {
		part := in.Images(from, min(e.maxBatch, in.N-from))
		out := e.outputs(part.N)
		took, err := e.run(ctx, out, part)
		if err != nil {
			return nil, err
		}
		for i := range part.N {
			logits := out.Images(i, 1).F32
			if err := finite(logits); err != nil {
				return nil, err
			}
			r := Result{Logits: logits, Time: took, labels: e.labels}
			r.Class = r.Top(1)[0]
			results = append(results, r)
		}
	}
	return results, nil
}

// Close frees the device's memory. Later calls fail.
func (c *Classifier) Close() error { return c.engine.close() }

func (c *Classifier) tensor(n int) bcnn.Tensor {
	return bcnn.NewTensor(c.engine.input.DType, n, c.engine.input.Shape)
}

func finite(logits []float32) error {
	for i, v := range logits {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("output %d of the model is %v, its weights overflow float32", i, v)
		}
	}
	return nil
}
