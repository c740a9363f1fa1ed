package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// seed makes the random images of bench, parity and demo the same everywhere.
const seed = 20180924

// randomImages fills the inputs of a batch: bytes over their whole range,
// float32 values between −1 and 1.
func randomImages(t bcnn.Tensor, rng *rand.ChaCha8) {
	// Reading from ChaCha8 never fails.
	_, _ = rng.Read(t.U8)
	r := rand.New(rng)
	for i := range t.F32 {
		t.F32[i] = 2*r.Float32() - 1
	}
}

func newRand(n uint64) *rand.ChaCha8 {
	var s [32]byte
	binary.LittleEndian.PutUint64(s[:], n)
	return rand.NewChaCha8(s)
}

// times are the durations of repeated runs.
type times []time.Duration

func (t times) sorted() times {
	s := slices.Clone(t)
	slices.Sort(s)
	return s
}

// quantile returns the smallest duration that a fraction q of all does not
// exceed; 0.5 is the median.
func (t times) quantile(q float64) time.Duration {
	s := t.sorted()
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func (t times) mean() time.Duration {
	sum := time.Duration(0)
	for _, d := range t {
		sum += d
	}
	return sum / time.Duration(len(t))
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// timeRuns runs a batch of random images a number of times. With fresh images
// every run gets new ones; making them is not part of the time.
func timeRuns(ctx context.Context, r *runner, runs int, fresh bool, progress func(done, total int)) (times, error) {
	rng := newRand(seed)
	randomImages(r.in, rng)
	result := make(times, runs)
	for i := range result {
		if fresh && i > 0 {
			randomImages(r.in, rng)
		}
		took, err := r.run(ctx)
		if err != nil {
			return nil, err
		}
		result[i] = took
		progress(i+1, runs)
	}
	return result, nil
}

// stepTime is a row of bench's table.
type stepTime struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Output string  `json:"output"`
	Median float64 `json:"median_us"`
	Min    float64 `json:"min_us"`
	Share  float64 `json:"share"` // of the sum of the medians
	MACs   int64   `json:"macs"`  // for one image
	Binary bool    `json:"binary"`
	// Fraction of the speed that arithmetic or memory allow that the shortest
	// run reached, CPU only.
	Fraction float64 `json:"peak_fraction,omitempty"`
	Bound    string  `json:"bound,omitempty"`
}

// timeSteps returns the median time of every step over a number of runs. Steps
// are synchronised for that, so the sum may exceed the time of a whole run.
func timeSteps(ctx context.Context, dev *backend.Device, plan *bcnn.Plan, opts backend.Options, runs int) ([]stepTime, error) {
	took := make([]times, len(plan.Steps))
	opts.Timed = func(step int, _ string, d time.Duration) { took[step] = append(took[step], d) }
	r, err := newRunner(ctx, dev, plan, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for i := range took {
		took[i] = took[i][:0] // the first run is for warming up
	}
	if _, err := timeRuns(ctx, r, runs, false, func(int, int) {}); err != nil {
		return nil, err
	}
	steps := make([]stepTime, len(plan.Steps))
	total := 0.0
	for i, s := range plan.Steps {
		out := plan.Tensors[s.Out]
		steps[i] = stepTime{
			Name: s.Name, Kind: s.Kind(), Output: out.Shape.String() + " " + out.DType.String(),
			Median: micros(took[i].quantile(0.5)), Min: micros(took[i].quantile(0)), MACs: plan.MACs(i), Binary: isBinary(plan, s),
		}
		total += steps[i].Median
	}
	for i := range steps {
		if total > 0 {
			steps[i].Share = steps[i].Median / total
		}
	}
	return steps, nil
}

// isBinary reports whether a step sums products of ±1 values.
func isBinary(plan *bcnn.Plan, s bcnn.Step) bool {
	conv, ok := s.Op.(*bcnn.ConvStep)
	return ok && conv.Bits != nil && plan.Tensors[s.In[0]].DType == bcnn.Bits
}
