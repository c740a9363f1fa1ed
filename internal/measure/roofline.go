package measure

import (
	"context"
	"errors"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// What bounds the speed of a step.
const (
	Arithmetic = "arithmetic"
	Memory     = "memory"
)

// Roofline is what a device reaches at best.
type Roofline struct {
	dev     *backend.Device
	opts    backend.Options
	unknown bool    // the device cannot measure it
	peak    float64 // products of ±1 per second
}

// NewRoofline returns the roofline of a device that works with the options. It
// measures nothing yet.
func NewRoofline(dev *backend.Device, opts backend.Options) *Roofline {
	return &Roofline{dev: dev, opts: opts}
}

// update measures the peak once more and keeps the best.
func (r *Roofline) update() error {
	peak, err := r.dev.Peak(r.opts)
	if r.unknown = errors.Is(err, errors.ErrUnsupported); r.unknown {
		return nil
	}
	r.peak = max(r.peak, peak)
	return err
}

// bandwidth returns the rate at which the bytes of a step can be read, 0 where it
// is unknown.
func (r *Roofline) bandwidth(size int64) (float64, error) {
	if r.unknown {
		return 0, nil
	}
	return r.dev.Bandwidth(r.opts, size)
}

// work is what a step has to do for a batch.
type work struct {
	macs  int64 // products of ±1
	bytes int64 // of input, weights and output, each counted once, without padding bits
}

// workOf returns the work of step i on ±1 values; none for any other step, with
// which the rates of a roofline do not compare.
func workOf(p *plan.Plan, i, batch int) work {
	s := p.Steps[i]
	for _, t := range s.In {
		if p.Tensors[t].DType != bcnn.Bits {
			return work{}
		}
	}
	var w work
	switch op := s.Op.(type) {
	case *plan.Conv:
		if !isBinary(p, s) {
			return work{}
		}
		weights := op.Out * op.KH * op.KW * (p.Tensors[s.In[0]].Shape.C / op.Groups)
		w = work{macs: p.Products(i) * int64(batch), bytes: (int64(weights) + 7) / 8}
	case *plan.MaxPool:
	default:
		return work{}
	}
	for _, t := range append([]int{s.Out}, s.In...) {
		tensor := p.Tensors[t]
		size := tensor.Shape.Bytes(tensor.DType)
		if tensor.DType == bcnn.Bits {
			size = (int64(tensor.Shape.Values()) + 7) / 8
		}
		w.bytes += int64(batch) * size
	}
	return w
}

// bound returns the seconds that the work takes at least, whichever is the
// longer: its products at the rate peak or its bytes at the rate bandwidth.
// Both rates may be 0 where they are not known; bound is then 0.
func (w work) bound(peak, bandwidth float64) (seconds float64, by string) {
	if peak > 0 && w.macs > 0 {
		seconds, by = float64(w.macs)/peak, Arithmetic
	}
	if bandwidth > 0 {
		if t := float64(w.bytes) / bandwidth; t > seconds {
			seconds, by = t, Memory
		}
	}
	return seconds, by
}

// compare sets the fraction and the bound of steps on ±1 values. It returns the
// floor of the whole: the least times of those steps and the shortest of the
// others, in microseconds; 0 where the roofline is unknown.
func (r *Roofline) compare(ctx context.Context, steps []StepTime, plan *plan.Plan, batch int) (floor float64, err error) {
	if r.unknown {
		return 0, nil
	}
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		w := workOf(plan, i, batch)
		if w.bytes == 0 || steps[i].Min == 0 {
			floor += steps[i].Min
			continue
		}
		bandwidth, err := r.bandwidth(w.bytes)
		if err != nil {
			return 0, err
		}
		least, by := w.bound(r.peak, bandwidth)
		steps[i].Fraction, steps[i].Bound = least*1e6/steps[i].Min, by
		floor += least * 1e6
	}
	return floor, nil
}
