package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/clock"
)

const (
	// operatorRounds is the number of times that the loops of a roofline take turns
	// with an operator, so that both see the same clock and the same load.
	operatorRounds = 5
	// operatorTime is about how long an operator is timed in all its rounds.
	operatorTime = time.Second
)

// OperatorResult are the times of an operator on a device, and a line of bench
// --ops --json.
type OperatorResult struct {
	Op      string  `json:"op"`
	Group   string  `json:"group"`
	Device  string  `json:"device"`
	ISA     string  `json:"isa"`
	Threads int     `json:"threads"`
	Batch   int     `json:"batch"`
	Runs    int     `json:"runs"`
	Median  float64 `json:"ms"`
	Min     float64 `json:"min_ms"`
	MACs    int64   `json:"macs"`  // of the batch
	Bytes   int64   `json:"bytes"` // read or written
	// Rates of the shortest run.
	MACRate  float64 `json:"mac_per_s"`
	ByteRate float64 `json:"byte_per_s"`
	// What the device reaches at best, and which fraction of it the shortest
	// run reached; CPU only.
	Peak      float64 `json:"peak_mac_per_s,omitempty"`
	Bandwidth float64 `json:"peak_byte_per_s,omitempty"`
	Fraction  float64 `json:"peak_fraction,omitempty"`
	Bound     string  `json:"bound,omitempty"`
	// Outran says that the loops of the peak never ran as undisturbed as the operator did.
	Outran bool `json:"outran_peak,omitempty"`
	// Steady is the peak in the median of the times it was measured, as a fraction of the best.
	Steady float64 `json:"peak_steady,omitempty"`
	Origin

	work work

	Operator zoo.Operator `json:"-"`
	Samples  []Sample     `json:"-"`
}

// Where names the device and what it was told to use.
func (o OperatorResult) Where() string {
	if o.Threads == 0 { // the device offers no choice
		return fmt.Sprintf("%s (%s)", o.Device, o.ISA)
	}
	return fmt.Sprintf("%s (%s), %s", o.Device, o.ISA, threadCount(o.Threads))
}

// Operator times one operator: its step alone, in turn with the loops of the
// roofline. Settle compares it with them.
func Operator(ctx context.Context, dev *backend.Device, o zoo.Operator, opts Options, roof *Roofline) (OperatorResult, error) {
	info := dev.Info()
	isa, threads := Chosen(info, opts.Options)
	result := OperatorResult{
		Op: o.Name, Group: o.Group, Device: info.ID, ISA: isa, Threads: threads, Batch: opts.MaxBatch,
		Origin: Origin{Processor: info.Name}, Operator: o,
	}
	program, err := lower.Compile(ctx, o.Network(Seed), lower.Options{})
	if err != nil {
		return result, err
	}
	p := program.Plan
	timed := slices.IndexFunc(p.Steps, func(s plan.Step) bool {
		return slices.ContainsFunc(s.Layers, func(l int) bool { return program.Network.Layers[l].Name == zoo.OperatorLayer })
	})
	var took times
	timedOpts := opts.Options
	timedOpts.Timed = func(step int, _ string, d time.Duration) {
		if step == timed {
			took = append(took, d)
		}
	}
	r, err := NewRunner(ctx, dev, p, timedOpts)
	if err != nil {
		return result, err
	}
	defer r.Close()
	r.fill(NewRand(Seed), opts.Zeros)
	took = took[:0] // the first run is for warming up

	result.work = workOf(p, timed, opts.MaxBatch, nil)
	for round := range operatorRounds {
		if err := roof.update(); err != nil {
			return result, err
		}
		if err := roof.read(result.work.bytes()); err != nil {
			return result, err
		}
		if _, err := r.Run(ctx); err != nil { // what it reads is in the caches again
			return result, err
		}
		took = took[:len(took)-1]
		start := clock.Now()
		for n := 0; len(took) < opts.Runs*(round+1)/operatorRounds && (n < 1 || clock.Since(start) < operatorTime/operatorRounds); n++ {
			if _, err := r.Run(ctx); err != nil {
				return result, err
			}
		}
	}

	result.Runs, result.Samples = len(took), took.samples(operatorRounds)
	seconds, shortest := took.quantile(0.5).Seconds(), took.quantile(0).Seconds()
	result.Median, result.Min = seconds*1e3, shortest*1e3
	result.MACs, result.Bytes = p.MACs(timed)*int64(opts.MaxBatch), result.work.bytes()
	if shortest > 0 {
		result.MACRate, result.ByteRate = float64(result.MACs)/shortest, float64(result.Bytes)/shortest
	}
	return result, nil
}

// Settle compares the operators that were timed in turn with the loops of the roofline with
// the best that those have reached in all the time.
func (r *Roofline) Settle(ctx context.Context, results []OperatorResult) error {
	runs := make([]*run, len(results))
	for i, o := range results {
		runs[i] = &run{work: o.work, shortest: o.Min / 1e3}
	}
	if err := r.settle(ctx, runs); err != nil {
		return err
	}
	for i := range results {
		o := &results[i]
		o.Peak, o.Bandwidth, o.Outran = r.peak(), r.rates[o.work.bytes()], runs[i].outran
		if o.Peak > 0 {
			o.Steady = r.steady()
		}
		if runs[i].least > 0 {
			o.Fraction, o.Bound = runs[i].least/runs[i].shortest, runs[i].by
		}
	}
	return nil
}
