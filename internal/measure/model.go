package measure

import (
	"context"
	"slices"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
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
	Threads    int     `json:"threads"` // 0 where there is no choice of them
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
	// MACs are the multiplications of the network for one image, and ByBits those of each
	// precision.
	MACs       int64                `json:"macs"`
	BinaryMACs int64                `json:"binary_macs"`
	ByBits     plan.Multiplications `json:"macs_by_bits"`
	Rate       float64              `json:"macs_per_s"`
	// Zeros is the share of the values of the images that were made 0.
	Zeros float64 `json:"zeros,omitempty"`
	// Peak is the rate of a loop of nothing but the arithmetic of the kernels, PeakOfOne
	// that of one thread where there are more, and Steady the peak in the median of the
	// times it was measured, as a fraction of it; CPU only.
	Peak      float64 `json:"peak_macs_per_s,omitempty"`
	PeakOfOne float64 `json:"peak_macs_per_s_of_one_thread,omitempty"`
	Steady    float64 `json:"peak_steady,omitempty"`
	// Floor is what the products of the steps on bits take at the peak; CPU only.
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
	// MACs are the multiplications of its layers for one image, and Precision theirs, the
	// widest if they have several; 0 without any.
	MACs      int64          `json:"macs"`
	Precision plan.Precision `json:"bits,omitempty"`
	// Planes is how many planes of bits it reads, where more than one, and PlaneRows which
	// share of the rows of the lower ones has a bit: others need no products.
	Planes    int      `json:"planes,omitempty"`
	PlaneRows *float64 `json:"plane_rows,omitempty"`
	// Fraction of the speed that arithmetic or memory allow that the shortest
	// run reached, CPU only.
	Fraction float64 `json:"peak_fraction,omitempty"`
	Bound    string  `json:"bound,omitempty"`
	// Outran says that the loops of the peak never ran as undisturbed as the step did.
	Outran bool `json:"outran_peak,omitempty"`
}

// stepSlices are the parts of the runs of steps between which the loops are measured, so
// that both see the same moments.
const stepSlices = 10

// Model times the plan of a network on random images, opts.MaxBatch at a time: whole runs, then
// each step in runs of its own. The progress is that of the whole runs.
func Model(ctx context.Context, dev *backend.Device, net *bcnn.Network, p *plan.Plan, opts Options, progress func(done, total int)) (ModelResult, error) {
	info := dev.Info()
	isa, threads := Chosen(info, opts.Options)
	result := ModelResult{
		Device: info.ID, Threads: threads, Batch: opts.MaxBatch, Runs: opts.Runs, Zeros: opts.Zeros,
		Origin: Origin{Processor: info.Name}, Transfers: info.ID != "cpu", ISA: isa, Fresh: opts.Fresh,
	}
	roof := NewRoofline(dev, opts.Options)
	roof.unknown = opts.NoPeak
	if err := roof.update(); err != nil {
		return result, err
	}
	r, err := NewRunner(ctx, dev, p, opts.Options)
	if err != nil {
		return result, err
	}
	defer r.Close()
	took, err := timeRuns(ctx, r, opts, progress)
	if err != nil {
		return result, err
	}
	// The last time but for what timeSteps does: what it compares has to agree with the peak.
	if err := roof.update(); err != nil {
		return result, err
	}
	if !opts.Fresh {
		if err := result.timeSteps(ctx, roof, dev, p, opts, Micros(took.quantile(0))); err != nil {
			return result, err
		}
	} else if result.Transfers {
		kernels, err := timeKernels(ctx, dev, p, opts)
		if err != nil {
			return result, err
		}
		result.Kernels = Micros(kernels.mean())
	}
	if result.Peak = roof.peak(); result.Peak > 0 {
		result.Steady = roof.steady()
		if result.PeakOfOne, err = roof.peakOfOne(ctx, result.Threads); err != nil {
			return result, err
		}
	}
	layers := plan.Summarize(net, p)
	if len(result.Steps) > 0 {
		count(result.Steps, layers)
	}
	result.ByBits = plan.Count(layers)
	result.MACs, result.BinaryMACs = result.ByBits.All(), result.ByBits.Of(plan.Binary)
	result.Median, result.Min = Micros(took.quantile(0.5)), Micros(took.quantile(0))
	result.P90, result.Mean = Micros(took.quantile(0.9)), Micros(took.mean())
	result.Samples = took.samples(modelSamples)
	result.Rate = float64(result.MACs) * float64(result.Batch) / result.Median * 1e6
	return result, nil
}

// count tells steps what their layers multiply.
func count(steps []StepTime, layers []plan.LayerReport) {
	for _, l := range layers {
		s := &steps[l.Step]
		s.MACs, s.Precision = s.MACs+l.MACs, max(s.Precision, l.Precision)
	}
}

// peakOfOne returns the peak of one thread, where there are more. So many threads do no more
// than so many times what one does: until one has done its share, it was disturbed. It is 0
// if it always was.
func (r *Roofline) peakOfOne(ctx context.Context, threads int) (float64, error) {
	if threads < 2 || r.peak() == 0 {
		return 0, nil
	}
	opts := r.opts
	opts.Threads = 1
	one := NewRoofline(r.dev, opts)
	for n := 0; n < stepSlices || n < Patience && one.peak()*float64(threads) < r.peak(); n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := one.update(); err != nil {
			return 0, err
		}
	}
	if one.peak()*float64(threads) < r.peak() {
		return 0, nil
	}
	return one.peak(), nil
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
	_, err = timeRuns(ctx, r, opts, func(int, int) {})
	return took, err
}

// timeSteps times every step over a number of runs, in turn with the loops of the roofline, and
// compares both. A whole run took so many microseconds. Steps are synchronised for that, so the sum may exceed the time of a whole run.
func (m *ModelResult) timeSteps(ctx context.Context, roof *Roofline, dev *backend.Device, p *plan.Plan, opts Options, whole float64) error {
	filled, err := filledRows(ctx, dev, p, opts)
	if err != nil {
		return err
	}
	took := make([]times, len(p.Steps))
	opts.Timed = func(step int, _ string, d time.Duration) { took[step] = append(took[step], d) }
	r, err := NewRunner(ctx, dev, p, opts.Options)
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range took {
		took[i] = took[i][:0] // the first run is for warming up
	}
	r.fill(NewRand(Seed), opts.Zeros)
	sizes := sizesOf(p, opts.MaxBatch)
	for i := range stepSlices {
		if err := roof.update(); err != nil {
			return err
		}
		for _, size := range sizes[i*len(sizes)/stepSlices : (i+1)*len(sizes)/stepSlices] {
			if err := roof.read(size); err != nil {
				return err
			}
		}
		counted, runs := i*opts.Runs/stepSlices, (i+1)*opts.Runs/stepSlices-i*opts.Runs/stepSlices
		if runs == 0 {
			continue
		}
		for range runs + 1 {
			if _, err := r.Run(ctx); err != nil {
				return err
			}
		}
		for s := range took { // the first brings what it reads into the caches again
			took[s] = slices.Delete(took[s], counted, counted+1)
		}
	}
	m.Steps = make([]StepTime, len(p.Steps))
	total, tensors := 0.0, p.Describe()
	for i, s := range p.Steps {
		m.Steps[i] = StepTime{
			Name: s.Name, Kind: s.Kind(), Output: tensors[s.Out],
			Median: Micros(took[i].quantile(0.5)), Min: Micros(took[i].quantile(0)),
		}
		total += m.Steps[i].Min
	}
	for _, i := range planeSteps(p) {
		conv := p.Steps[i].Op.(*plan.Conv)
		share := lowerShare(filled[p.Steps[i].In[0]], conv.InPlanes)
		m.Steps[i].Planes, m.Steps[i].PlaneRows = conv.InPlanes, &share
	}
	for i := range m.Steps {
		if total > 0 {
			m.Steps[i].Share = m.Steps[i].Min / total
		}
	}
	m.Floor, err = roof.compare(ctx, m.Steps, p, opts.MaxBatch, filled, whole)
	return err
}

// sizesOf returns the bytes that the steps on bits go through, each once.
func sizesOf(p *plan.Plan, batch int) []int64 {
	var sizes []int64
	for i, s := range p.Steps {
		filled := make([]bool, batch*p.Tensors[s.In[0]].Shape.H) // which does not change them
		if w := workOf(p, i, batch, filled); !w.none() {
			sizes = append(sizes, w.bytes())
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
