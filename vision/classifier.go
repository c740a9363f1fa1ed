// Package vision turns images into the inputs of networks: it decodes photos,
// turns them upright, resizes and crops them, and a Classifier says what any
// network that reads images sees on them.
package vision

import (
	"context"
	"image"
	"slices"
	"sync"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Classifier tells what a photo shows. It is safe for concurrent use; photos
// are classified one after the other.
type Classifier struct {
	labels []string
	input  bcnn.Input

	mu      sync.Mutex
	exe     backend.Executable
	in, out bcnn.Tensor
}

// Result is the classification of one photo.
type Result struct {
	Index       int       // of the greatest logit, the first of equals
	Label       string    // its label, empty if the network has none
	Probability float64   // its softmax
	Logits      []float32 // all outputs
}

// NewClassifier returns a classifier with any network that reads images.
func NewClassifier(ctx context.Context, dev backend.Device, n *bcnn.Network, opts backend.Options) (*Classifier, error) {
	plan, err := bcnn.Lower(ctx, n, bcnn.LowerOptions{})
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	return &Classifier{
		labels: n.Labels,
		input:  n.Input,
		exe:    exe,
		in:     bcnn.NewTensor(n.Input.DType, 1, n.Input.Shape),
		out:    bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape()),
	}, nil
}

// Classify prepares a photo as Pixels does and classifies it.
func (c *Classifier) Classify(ctx context.Context, img image.Image) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := Pixels(c.in.U8, img, c.input); err != nil {
		return Result{}, err
	}
	if err := c.exe.Run(ctx, c.out, c.in); err != nil {
		return Result{}, err
	}
	r := Result{Logits: slices.Clone(c.out.F32)}
	for i, v := range r.Logits {
		if v > r.Logits[r.Index] {
			r.Index = i
		}
	}
	r.Probability = bcnn.Probabilities(r.Logits)[r.Index]
	if len(c.labels) > 0 {
		r.Label = c.labels[r.Index]
	}
	return r, nil
}

// Close frees the device's memory. Later calls of Classify fail.
func (c *Classifier) Close() error { return c.exe.Close() }
