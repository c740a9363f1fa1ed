// Package measure times plans and single operators on devices, and compares them
// with what the devices reach at best.
package measure

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/host"
)

// Seed makes random images and weights the same everywhere.
const Seed = 20180924

// PaperImages is the number of images of the protocol of Khan, Huttunen and
// Boutellier.
const PaperImages = 1000

// Options say how to measure.
type Options struct {
	backend.Options
	Runs int // timed runs; of an operator, at the most
	// Fresh makes new images for every run and leaves the steps out: the paper's
	// protocol.
	Fresh bool
	// Zeros is the share of the values of the images that are 0, besides those that
	// are so by chance.
	Zeros float64
	// NoPeak leaves out the peak, and how steps compare with it.
	NoPeak bool
}

// NewRand returns a source of random numbers for RandomImages.
func NewRand(seed uint64) *rand.ChaCha8 {
	var s [32]byte
	binary.LittleEndian.PutUint64(s[:], seed)
	return rand.NewChaCha8(s)
}

// RandomImages fills the inputs of a batch: bytes over their whole range, float32
// values between −1 and 1.
func RandomImages(t bcnn.Tensor, rng *rand.ChaCha8) {
	// Reading from ChaCha8 never fails.
	_, _ = rng.Read(t.U8)
	r := rand.New(rng)
	for i := range t.F32 {
		t.F32[i] = 2*r.Float32() - 1
	}
}

// thin makes a share of the values of a batch 0, at random.
func thin(t bcnn.Tensor, share float64, rng *rand.ChaCha8) {
	if share == 0 { // the images are those of always
		return
	}
	r := rand.New(rng)
	for i := range t.U8 {
		if r.Float64() < share {
			t.U8[i] = 0
		}
	}
	for i := range t.F32 {
		if r.Float64() < share {
			t.F32[i] = 0
		}
	}
}

// Origin says where and when times were measured.
type Origin struct {
	Processor string    `json:"processor,omitempty"` // the name of the device
	Version   string    `json:"version,omitempty"`   // of this module
	Date      time.Time `json:"date,omitzero"`
}

func (o Origin) String() string {
	var parts []string
	for _, s := range []string{o.Processor, o.Version} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if !o.Date.IsZero() {
		parts = append(parts, o.Date.Format(time.DateOnly))
	}
	return strings.Join(parts, ", ")
}

// origins returns what results tell of themselves, each once.
func origins[R any](results []R, of func(R) (device string, o Origin)) []string {
	var list []string
	for _, r := range results {
		device, o := of(r)
		if s := o.String(); s != "" && !slices.Contains(list, device+": "+s) {
			list = append(list, device+": "+s)
		}
	}
	return list
}

// MostUndisturbed is how many times the shortest run the median takes at the most where a
// machine has nothing else to do.
const MostUndisturbed = 1.5

// load is what tells whether a machine had something else to do: times of runs, and the peak
// in the median of the times it was measured, as a fraction of the best.
type load struct{ shortest, median, mean, steady float64 }

// busy says that something else ran on the machine, where the load tells so; otherwise it
// is empty. A mean or a steadiness of 0 is not known.
func (l load) busy() string {
	why := ""
	switch {
	case l.shortest > 0 && l.median > MostUndisturbed*l.shortest:
		why = fmt.Sprintf("the median is %.1f times the shortest run", l.median/l.shortest)
	case l.median > 0 && l.mean > MostUndisturbed*l.median:
		why = fmt.Sprintf("the mean is %.1f times the median", l.mean/l.median)
	case l.steady > 0 && l.steady*MostUndisturbed < 1:
		why = fmt.Sprintf("the peak loops reached %.0f %% of their best in the median", 100*l.steady)
	default:
		return ""
	}
	return "the machine was busy: " + why
}

// Busy says that something else ran on the machine, where the times tell so.
func (m ModelResult) Busy() string { return load{m.Min, m.Median, m.Mean, m.Steady}.busy() }

// Busy says that something else ran on the machine, where the times tell so.
func (o OperatorResult) Busy() string { return load{o.Min, o.Median, 0, o.Steady}.busy() }

// Micros returns a duration in microseconds.
func Micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// times are the durations of repeated runs.
type times []time.Duration

// quantile returns the smallest duration that a fraction q of all does not
// exceed; 0.5 is the median.
func (t times) quantile(q float64) time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func (t times) mean() time.Duration {
	sum := time.Duration(0)
	for _, d := range t {
		sum += d
	}
	return sum / time.Duration(len(t))
}

// Sample is the mean of a number of runs, a line of benchstat's format.
type Sample struct {
	Runs int
	Mean time.Duration
}

// samples cuts times into at most n parts of equal length.
func (t times) samples(n int) []Sample {
	var list []Sample
	for n = min(n, len(t)); n > 0; n-- {
		part := t[:len(t)/n]
		t = t[len(part):]
		list = append(list, Sample{len(part), part.mean()})
	}
	return list
}

// Chosen returns the instruction set, or what comes next to one on a device that has no
// choice, and the number of threads that a device works with; 0 where it has no choice.
func Chosen(info backend.Info, opts backend.Options) (isa string, threads int) {
	isa, threads = info.Detail, min(host.Threads(), info.MaxThreads)
	if len(info.ISAs) > 0 {
		isa = info.ISAs[0]
	}
	return cmp.Or(opts.ISA, isa), cmp.Or(opts.Threads, threads)
}

// sumsBits reports whether a step sums products of bits, of which several may stand for one
// of its layer.
func sumsBits(p *plan.Plan, s plan.Step) bool {
	conv, ok := s.Op.(*plan.Conv)
	return ok && conv.Bits != nil && p.Tensors[s.In[0]].DType == bcnn.Bits
}
