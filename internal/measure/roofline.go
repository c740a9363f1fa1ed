package measure

import (
	"context"
	"errors"
	"slices"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// What bounds the speed of a step.
const (
	Arithmetic = "arithmetic"
	Memory     = "memory"
)

// Patience is how often the loops are measured again until they are as undisturbed as the
// steps were.
const Patience = 200

// Roofline is what a device reaches at best: at the quietest of all moments at which it was
// measured.
type Roofline struct {
	dev     *backend.Device
	opts    backend.Options
	unknown bool              // the device cannot measure it, or nobody asks
	peaks   []float64         // products of bits per second, each time they were measured
	rates   map[int64]float64 // bytes per second, of so many
}

// NewRoofline returns the roofline of a device that works with the options. It
// measures nothing yet.
func NewRoofline(dev *backend.Device, opts backend.Options) *Roofline {
	return &Roofline{dev: dev, opts: opts, rates: map[int64]float64{}}
}

// update measures the peak once more.
func (r *Roofline) update() error {
	if r.unknown {
		return nil
	}
	peak, err := r.dev.Peak(r.opts)
	if r.unknown = errors.Is(err, errors.ErrUnsupported); r.unknown {
		return nil
	}
	r.peaks = append(r.peaks, peak)
	return err
}

// peak returns the best rate that was measured; 0 where there is none.
func (r *Roofline) peak() float64 { return slices.Max(append(r.peaks, 0)) }

// read measures once more how fast so many bytes are read.
func (r *Roofline) read(size int64) error {
	if r.unknown || size < 1 {
		return nil
	}
	rate, err := r.dev.Bandwidth(r.opts, size)
	r.rates[size] = max(r.rates[size], rate)
	return err
}

// steady returns the peak as it was measured in the median, as a fraction of the best: 1 on a
// machine that has nothing else to do, and where there is no peak.
func (r *Roofline) steady() float64 {
	if r.peak() == 0 {
		return 1
	}
	return slices.Sorted(slices.Values(r.peaks))[len(r.peaks)/2] / r.peak()
}

// bound returns the seconds that the work takes at least, whichever is the longest: its
// products at the peak, or the bytes that it reads or those that it writes at the rate at
// which all of them are read, which no processor exceeds in writing. It is 0 where
// the rates are not known.
func (r *Roofline) bound(w work) (seconds float64, by string) {
	if peak := r.peak(); peak > 0 && w.products > 0 {
		seconds, by = float64(w.products)/peak, Arithmetic
	}
	if rate := r.rates[w.bytes()]; rate > 0 {
		if t := float64(max(w.read, w.written)) / rate; t > seconds {
			seconds, by = t, Memory
		}
	}
	return seconds, by
}

// run is the shortest time of a step and what it did. settle tells the rest.
type run struct {
	work     work
	shortest float64 // seconds
	least    float64 // that it takes; 0 where that is not known
	by       string
	outran   bool
}

// settle tells how long the work of each run takes at least. One that took less
// ran at a quieter moment than any in which the loops did: they are measured again
// until they see such a moment. A run that they do not come up to has no peak to compare with.
func (r *Roofline) settle(ctx context.Context, runs []*run) error {
	if r.unknown {
		return nil
	}
	for left := Patience; left > 0; left-- {
		i := slices.IndexFunc(runs, r.outruns)
		if i < 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		again := r.update
		if _, by := r.bound(runs[i].work); by == Memory {
			again = func() error { return r.read(runs[i].work.bytes()) }
		}
		if err := again(); err != nil {
			return err
		}
	}
	for _, x := range runs {
		if x.outran = r.outruns(x); !x.outran {
			x.least, x.by = r.bound(x.work)
		}
	}
	return nil
}

// outruns reports whether a run took less time than its work takes at least.
func (r *Roofline) outruns(x *run) bool {
	least, _ := r.bound(x.work)
	return least > x.shortest
}

// compare sets the fraction and the bound of steps on bits. It returns the microseconds
// that their products take at the peak, 0 where a whole run took less or the peak is not known.
// Memory is left out of that: together steps may find in a cache what they do not alone.
func (r *Roofline) compare(ctx context.Context, steps []StepTime, p *plan.Plan, batch int, filled map[int][]bool, whole float64) (floor float64, err error) {
	all := &run{shortest: whole / 1e6}
	runs := []*run{all}
	for i, s := range steps {
		x := &run{shortest: s.Min / 1e6}
		runs = append(runs, x)
		if s.Min == 0 {
			continue
		}
		x.work = workOf(p, i, batch, filled[p.Steps[i].In[0]])
		all.work.products += x.work.products
	}
	if err := r.settle(ctx, runs); err != nil {
		return 0, err
	}
	for i, x := range runs[1:] {
		if x.least > 0 {
			steps[i].Fraction, steps[i].Bound = x.least/x.shortest, x.by
		}
		steps[i].Outran = x.outran
	}
	return all.least * 1e6, nil
}
