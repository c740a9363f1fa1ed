// Package picture answers what a model sees on an image and how long each of its steps takes,
// in the JSON that the server and its page have in common, with a server or in WebAssembly.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/clock"
	"github.com/bitcnn/bitcnn/vision"
)

// Model describes a model to the page.
type Model struct {
	Name   string   `json:"name"`
	Device string   `json:"device"`
	Labels []string `json:"labels"`
	// Inputs are written as text: "input UINT8 N×28×28×1".
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	// Input is the input of a model that reads images; nil for others.
	Input *Size `json:"input"`
	// Detects says that the model finds boxes on images, and does not classify them.
	Detects bool `json:"detects"`
}

// Size is that of images as a network reads them.
type Size struct {
	Width    int `json:"width"`
	Height   int `json:"height"`
	Channels int `json:"channels"`
}

// SizeOf returns the size of the images that a network reads.
func SizeOf(p vision.Preprocessing) *Size {
	s := p.Input.Shape
	return &Size{s.W, s.H, s.C}
}

// Answer is the classification of an image.
type Answer struct {
	Model string `json:"model_name"`
	vision.Class
	Logits []float32      `json:"logits"`
	Top    []vision.Class `json:"top,omitempty"`
	Device string         `json:"device"`
	Micros float64        `json:"us"` // of the call of Session.Run
	Seen   *Seen          `json:"seen,omitempty"`
}

// Seen is the image as the network reads it, before it scales the bytes: rows from above,
// pixels from the left, the channels of a pixel side by side.
type Seen struct {
	Size
	BGR    bool   `json:"bgr,omitempty"` // the channels are B, G, R, else R, G, B
	Pixels []byte `json:"pixels"`        // in base64
}

// Options say what an answer contains.
type Options struct {
	Top  int  // the likeliest classes, so many of them
	Seen bool // the image as the network reads it
}

// ErrImage is wrapped by errors of what is no image.
var ErrImage = errors.New("cannot read this image")

// DecodingBytes reckons the memory that decoding an image takes, from its header.
func DecodingBytes(ctx context.Context, p vision.Preprocessing, data []byte) (int64, error) {
	n, err := p.DecodeBytes(ctx, bytes.NewReader(data))
	return n, imageError(ctx, err)
}

// Image is an image as a network reads it, and what that shows of it.
type Image struct {
	in    bcnn.Tensor
	frame vision.Frame
	seen  *Seen
}

// Decode makes the input of a network of an image: JPEG, PNG, GIF, BMP or WebP.
func Decode(ctx context.Context, p vision.Preprocessing, data []byte) (*Image, error) {
	i, err := decode(ctx, p, data)
	if err != nil {
		return nil, imageError(ctx, err)
	}
	return i, nil
}

// imageError tells what is wrong with an image from what has ended the work.
func imageError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // which says nothing about the image
	}
	return fmt.Errorf("%w: %w", ErrImage, err)
}

func decode(ctx context.Context, p vision.Preprocessing, data []byte) (i *Image, err error) {
	img, err := p.Decode(ctx, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	i = &Image{in: bcnn.NewTensor(p.Input.DType, 1, p.Input.Shape)}
	if i.frame, err = p.Frame(img); err != nil {
		return nil, err
	}
	if err := p.Fill(ctx, i.in, 0, img); err != nil {
		return nil, err
	}
	pixels := i.in
	if i.in.DType != bcnn.Uint8 {
		p.Input.DType, p.Mean, p.Scale = bcnn.Uint8, nil, nil
		pixels = bcnn.NewTensor(bcnn.Uint8, 1, p.Input.Shape)
		if err := p.Fill(ctx, pixels, 0, img); err != nil {
			return nil, err
		}
	}
	i.seen = &Seen{*SizeOf(p), p.Input.Photo != nil && p.Input.Photo.BGR, pixels.U8}
	return i, nil
}

// Classify says what is on an image.
func Classify(ctx context.Context, name string, s *bitcnn.Session, c *vision.Classifier, img *Image,
	o Options) (*Answer, error) {
	results, err := c.ClassifyTensor(ctx, img.in)
	if err != nil {
		return nil, err
	}
	r := results[0]
	a := &Answer{
		Model: name, Class: r.Class, Logits: r.Logits, Device: s.Device().ID, Micros: micros(r.Time),
	}
	if o.Top > 0 {
		a.Top = r.Top(o.Top)
	}
	if o.Seen {
		a.Seen = img.seen
	}
	return a, nil
}

// Found are the objects on an image.
type Found struct {
	Model  string       `json:"model_name"`
	Width  int          `json:"width"` // of the photo
	Height int          `json:"height"`
	Boxes  []vision.Box `json:"boxes"`
	Device string       `json:"device"`
	Micros float64      `json:"us"` // of the call of Session.Run
	Seen   *Seen        `json:"seen,omitempty"`
}

// Detect finds the objects on an image, and adds the image as the network reads it if seen. It makes boxes
// between turn and the call of what that returns.
func Detect(ctx context.Context, name string, s *bitcnn.Session, d *vision.Detector, img *Image, seen bool,
	turn func(context.Context) (done func(), err error)) (*Found, error) {
	var out []bcnn.Tensor
	for _, o := range s.Outputs() {
		out = append(out, bcnn.NewTensor(o.DType, 1, o.Shape))
	}
	start := clock.Now()
	if err := s.Run(ctx, out, []bcnn.Tensor{img.in}); err != nil {
		return nil, err
	}
	took := clock.Since(start)
	done, err := turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	boxes, err := d.Boxes(ctx, out, img.frame)
	if err != nil {
		return nil, err
	}
	found := &Found{
		Model: name, Width: img.frame.Size.X, Height: img.frame.Size.Y, Boxes: boxes, Device: s.Device().ID, Micros: micros(took),
	}
	if seen {
		found.Seen = img.seen
	}
	return found, nil
}

// Profile is the time of each step of a network.
type Profile struct {
	Model  string `json:"model_name"`
	Device string `json:"device"`
	Runs   int    `json:"runs"`
	Steps  []Step `json:"steps"`
}

// Step is a step as the device executes it, and its times in microseconds.
type Step struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Median float64 `json:"median_us"`
	Min    float64 `json:"min_us"`
}

// Runs is how often Measure runs a network.
const Runs = 20

// Measure measures the steps of a network on an image.
func Measure(ctx context.Context, name string, s *bitcnn.Session, img *Image) (*Profile, error) {
	times, err := s.Profile(ctx, Runs, img.in)
	if err != nil {
		return nil, err
	}
	p := &Profile{Model: name, Device: s.Device().ID, Runs: Runs}
	steps := s.Steps()
	for i, t := range times {
		step := Step{Name: t.Name, Median: micros(t.Median), Min: micros(t.Min)}
		if i < len(steps) { // none after Close
			step.Kind = steps[i].Kind
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
