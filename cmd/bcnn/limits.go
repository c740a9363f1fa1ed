package main

import (
	"context"
	"errors"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// What bounds the speed of a step.
const (
	arithmetic = "arithmetic"
	memory     = "memory"
)

// limits are the rates that a device reaches at best.
type limits struct {
	dev     *backend.Device
	opts    backend.Options
	unknown bool    // the device cannot measure them
	peak    float64 // products of ±1 per second
}

func newLimits(dev *backend.Device, opts backend.Options) *limits {
	return &limits{dev: dev, opts: opts}
}

// update measures the peak once more and keeps the best.
func (l *limits) update() error {
	peak, err := l.dev.Peak(l.opts)
	if l.unknown = errors.Is(err, errors.ErrUnsupported); l.unknown {
		return nil
	}
	l.peak = max(l.peak, peak)
	return err
}

// bandwidth returns the rate at which the bytes of a step can be read, 0 where it
// is unknown.
func (l *limits) bandwidth(size int64) (float64, error) {
	if l.unknown {
		return 0, nil
	}
	return l.dev.Bandwidth(l.opts, size)
}

// work is what a step has to do for a batch.
type work struct {
	macs  int64 // products of ±1
	bytes int64 // of input, weights and output, each counted once, without padding bits
}

// workOf returns the work of step i on ±1 values; none for any other step, with
// which the rates of limits do not compare.
func workOf(plan *bcnn.Plan, i, batch int) work {
	s := plan.Steps[i]
	for _, t := range s.In {
		if plan.Tensors[t].DType != bcnn.Bits {
			return work{}
		}
	}
	var w work
	switch op := s.Op.(type) {
	case *bcnn.ConvStep:
		if !isBinary(plan, s) {
			return work{}
		}
		weights := op.Out * op.KH * op.KW * (plan.Tensors[s.In[0]].Shape.C / op.Groups)
		w = work{macs: plan.MACs(i) * int64(batch), bytes: (int64(weights) + 7) / 8}
	case *bcnn.MaxPoolStep:
	default:
		return work{}
	}
	for _, t := range append([]int{s.Out}, s.In...) {
		tensor := plan.Tensors[t]
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
		seconds, by = float64(w.macs)/peak, arithmetic
	}
	if bandwidth > 0 {
		if t := float64(w.bytes) / bandwidth; t > seconds {
			seconds, by = t, memory
		}
	}
	return seconds, by
}

// compare sets the fraction and the bound of steps on ±1 values. It returns the
// floor of the whole: the least times of those steps and the shortest of the
// others, in microseconds; 0 where the limits are unknown.
func (l *limits) compare(ctx context.Context, steps []stepTime, plan *bcnn.Plan, batch int) (floor float64, err error) {
	if l.unknown {
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
		bandwidth, err := l.bandwidth(w.bytes)
		if err != nil {
			return 0, err
		}
		least, by := w.bound(l.peak, bandwidth)
		steps[i].Fraction, steps[i].Bound = least*1e6/steps[i].Min, by
		floor += least * 1e6
	}
	return floor, nil
}
