package main

import (
	"context"
	"fmt"
	"image"
	"math"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/vision"
)

// runner is a model that is ready to run on a device, with its tensors.
type runner struct {
	plan   *bcnn.Plan
	device backend.Device
	exe    backend.Executable
	in     bcnn.Tensor
	out    bcnn.Tensor
}

// newRunner compiles a plan for batches of up to opts.MaxBatch images and runs
// it once, so that one-time costs of the device are not taken for the time of
// the first image.
func newRunner(ctx context.Context, dev backend.Device, plan *bcnn.Plan, opts backend.Options) (*runner, error) {
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	n := max(1, opts.MaxBatch)
	r := &runner{
		plan:   plan,
		device: dev,
		exe:    exe,
		in:     bcnn.NewTensor(plan.Input.DType, n, plan.Input.Shape),
		out:    bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape()),
	}
	if err := exe.Run(ctx, r.out, r.in); err != nil {
		exe.Close()
		return nil, err
	}
	return r, nil
}

func (r *runner) Close() { r.exe.Close() }

// pixels returns the bytes of image i of the batch.
func (r *runner) pixels(i int) []uint8 {
	size := r.plan.Input.Shape.Values()
	return r.in.U8[i*size : (i+1)*size]
}

// logits returns the outputs of image i of the batch.
func (r *runner) logits(i int) []float32 {
	size := r.plan.OutputShape().Values()
	return r.out.F32[i*size : (i+1)*size]
}

// run computes the outputs of the first n images and returns the time it took,
// transfers to the device and back included.
func (r *runner) run(ctx context.Context, n int) (time.Duration, error) {
	start := time.Now()
	err := r.exe.Run(ctx, firstImages(r.out, n), firstImages(r.in, n))
	return time.Since(start), err
}

// firstImages returns the first n images of a batch.
func firstImages(t bcnn.Tensor, n int) bcnn.Tensor {
	size := n * t.Shape.Elements(t.DType)
	t.N = n
	switch t.DType {
	case bcnn.Uint8:
		t.U8 = t.U8[:size]
	case bcnn.Bits:
		t.Words = t.Words[:size]
	case bcnn.Float32:
		t.F32 = t.F32[:size]
	}
	return t
}

// classification is the result for one image, and a line of classify --json.
type classification struct {
	File        string    `json:"file"`
	FileBytes   []byte    `json:"file_bytes,omitempty"`
	Label       string    `json:"label"`
	Index       int       `json:"index"`
	Probability float64   `json:"probability"`
	Logits      []float32 `json:"logits"`
	Device      string    `json:"device"`
	Micros      float64   `json:"us"`
}

// classify runs the network on one image.
func (r *runner) classify(ctx context.Context, file string, img image.Image) (classification, error) {
	if err := (vision.Preprocessing{Input: r.plan.Input}).Fill(r.in, 0, img); err != nil {
		return classification{}, files.Name(file, err)
	}
	return r.classifyPixels(ctx, file)
}

// classifyPixels is classify for pixels that are already in place.
func (r *runner) classifyPixels(ctx context.Context, file string) (classification, error) {
	took, err := r.run(ctx, 1)
	if err != nil {
		return classification{}, files.Name(file, err)
	}
	logits := r.logits(0)
	for i, v := range logits {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return classification{}, files.Name(file, fmt.Errorf("output %d of the model is %v, its weights overflow float32", i, v))
		}
	}
	best := argmax(logits)
	return classification{
		File:        file,
		FileBytes:   nameBytes(file),
		Label:       label(r.plan.Labels, best),
		Index:       best,
		Probability: bcnn.Probabilities(logits)[best],
		Logits:      logits,
		Device:      r.device.Info().ID,
		Micros:      float64(took.Nanoseconds()) / 1000,
	}, nil
}

// argmax returns the index of the greatest value, the first of equals.
func argmax(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
