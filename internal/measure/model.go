package measure

import (
	"context"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// modelSamples is the number of samples of one measurement of a plan.
const modelSamples = 10

// ModelResult are the times of a plan on a device, and a line of bench --json.
// Model, ModelBytes, Detail, Version and Date are for the caller to set.
type ModelResult struct {
	Model string `json:"model"`
	// ModelBytes is the name of a file that is not UTF-8.
	ModelBytes []byte  `json:"model_bytes,omitempty"`
	Device     string  `json:"device"`
	Detail     string  `json:"detail"`
	Threads    int     `json:"threads"` // that were asked for, 0 for all
	Batch      int     `json:"batch"`
	Runs       int     `json:"runs"`
	Median     float64 `json:"median_us"`
	Min        float64 `json:"min_us"`
	P90        float64 `json:"p90_us"`
	Mean       float64 `json:"mean_us"`
	// Transfers says whether the times count the transfers of images and results: on
	// all devices but "cpu", which has none.
	Transfers bool `json:"transfers"`
	// Kernels is the mean time of a run's steps on the device, without transfers, by the
	// paper's protocol where there are such.
	Kernels float64 `json:"kernels_us,omitempty"`
	// MACs is the number of multiply-accumulates for one image; BinaryMACs those
	// over ±1 inputs and weights.
	MACs       int64   `json:"macs"`
	BinaryMACs int64   `json:"binary_macs"`
	Rate       float64 `json:"macs_per_s"`
	// Peak is the rate of a loop of xor, popcount and add; CPU only.
	Peak float64 `json:"peak_macs_per_s,omitempty"`
	// Floor is what a run takes if the steps on ±1 values take no longer than
	// their arithmetic or memory do, and the others their shortest; CPU only.
	Floor float64    `json:"floor_us,omitempty"`
	Steps []StepTime `json:"steps,omitempty"`
	Origin

	ISA     string   `json:"-"`
	Fresh   bool     `json:"-"` // whether every run had new images
	Samples []Sample `json:"-"`
}

// StepTime are the times of a step.
type StepTime struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Output string  `json:"output"`
	Median float64 `json:"median_us"`
	Min    float64 `json:"min_us"`
	Share  float64 `json:"share"` // of the sum of the shortest times
	MACs   int64   `json:"macs"`  // for one image
	Binary bool    `json:"binary"`
	// Fraction of the speed that arithmetic or memory allow that the shortest
	// run reached, CPU only.
	Fraction float64 `json:"peak_fraction,omitempty"`
	Bound    string  `json:"bound,omitempty"`
}

// Model times a plan on random images, opts.MaxBatch at a time: whole runs, then
// each step in runs of its own. The progress is that of the whole runs.
func Model(ctx context.Context, dev *backend.Device, plan *plan.Plan, opts Options, progress func(done, total int)) (ModelResult, error) {
	info := dev.Info()
	result := ModelResult{
		Device: info.ID, Threads: opts.Threads, Batch: opts.MaxBatch, Runs: opts.Runs,
		Origin: Origin{Processor: info.Name}, Transfers: info.ID != "cpu", ISA: isaOf(info, opts.Options), Fresh: opts.Fresh,
	}
	roof := NewRoofline(dev, opts.Options)
	if err := roof.update(); err != nil {
		return result, err
	}
	r, err := NewRunner(ctx, dev, plan, opts.Options)
	if err != nil {
		return result, err
	}
	defer r.Close()
	took, err := timeRuns(ctx, r, opts.Runs, opts.Fresh, progress)
	if err != nil {
		return result, err
	}
	if !opts.Fresh {
		if result.Steps, err = timeSteps(ctx, dev, plan, opts); err != nil {
			return result, err
		}
	} else if result.Transfers {
		kernels, err := timeKernels(ctx, dev, plan, opts)
		if err != nil {
			return result, err
		}
		result.Kernels = Micros(kernels.mean())
	}
	if err := roof.update(); err != nil {
		return result, err
	}
	result.Peak = roof.peak
	if result.Floor, err = roof.compare(ctx, result.Steps, plan, opts.MaxBatch); err != nil {
		return result, err
	}
	result.MACs, result.BinaryMACs = Count(plan)
	result.Median, result.Min = Micros(took.quantile(0.5)), Micros(took.quantile(0))
	result.P90, result.Mean = Micros(took.quantile(0.9)), Micros(took.mean())
	result.Samples = took.samples(modelSamples)
	result.Rate = float64(result.MACs) * float64(result.Batch) / result.Median * 1e6
	return result, nil
}

// timeKernels returns the times that the steps of runs with fresh images took on the
// device.
func timeKernels(ctx context.Context, dev *backend.Device, plan *plan.Plan, opts Options) (times, error) {
	var took times
	opts.Timed = func(step int, _ string, d time.Duration) {
		if step == 0 {
			took = append(took, 0)
		}
		took[len(took)-1] += d
	}
	r, err := NewRunner(ctx, dev, plan, opts.Options)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	took = took[:0] // the first run is for warming up
	_, err = timeRuns(ctx, r, opts.Runs, true, func(int, int) {})
	return took, err
}

// timeSteps returns the times of every step over a number of runs. Steps are
// synchronised for that, so the sum may exceed the time of a whole run.
func timeSteps(ctx context.Context, dev *backend.Device, plan *plan.Plan, opts Options) ([]StepTime, error) {
	took := make([]times, len(plan.Steps))
	opts.Timed = func(step int, _ string, d time.Duration) { took[step] = append(took[step], d) }
	r, err := NewRunner(ctx, dev, plan, opts.Options)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for i := range took {
		took[i] = took[i][:0] // the first run is for warming up
	}
	if _, err := timeRuns(ctx, r, opts.Runs, false, func(int, int) {}); err != nil {
		return nil, err
	}
	steps := make([]StepTime, len(plan.Steps))
	total := 0.0
	for i, s := range plan.Steps {
		out := plan.Tensors[s.Out]
		steps[i] = StepTime{
			Name: s.Name, Kind: s.Kind(), Output: out.Shape.String() + " " + out.DType.String(),
			Median: Micros(took[i].quantile(0.5)), Min: Micros(took[i].quantile(0)), MACs: plan.MACs(i), Binary: isBinary(plan, s),
		}
		total += steps[i].Min
	}
	for i := range steps {
		if total > 0 {
			steps[i].Share = steps[i].Min / total
		}
	}
	return steps, nil
}
