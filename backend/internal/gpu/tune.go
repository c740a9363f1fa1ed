package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/internal/tuning"
)

// Why a step has the kernels that it has.
const (
	WhyOnly     = "the only kernels of this step here"
	WhySmall    = "too little work to measure"
	WhyKnown    = "measured before on this device and driver"
	WhyMeasured = "measured"
	WhyEmulated = "not measured on an emulated device"
	WhyFused    = "part of one launch for the whole network"
)

// Candidate is one of several ways to execute a step, for the choice between them.
type Candidate interface {
	// Key is all that sets a candidate apart, constants left out.
	Key() string
	// Is reports whether the candidate is the one that was chosen.
	Is(tuning.Entry) bool
}

// Key identifies a choice between candidates for a batch.
func Key[C Candidate](batch int, all []C) string {
	h := sha256.New()
	fmt.Fprintln(h, batch)
	for _, c := range all {
		fmt.Fprintln(h, c.Key())
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Tuner decides which steps are measured.
type Tuner struct {
	Cache *tuning.Cache
	// From is the work of a step, in multiply-accumulates of an image, from which on
	// measuring can save more time than it takes.
	From     int64
	Emulated bool // times say nothing
}

// Decide returns the candidate to take without measuring, and why: the first, or the one
// that has been measured before, with the entry that says so. The number is -1 where
// measuring is called for.
func Decide[C Candidate](t Tuner, key string, all []C, macs int64) (number int, why string, known tuning.Entry) {
	switch {
	case macs < t.From:
		return 0, WhySmall, known
	case t.Emulated:
		return 0, WhyEmulated, known
	}
	if known, ok := t.Cache.Get(key); ok {
		if i := slices.IndexFunc(all, func(c C) bool { return c.Is(known) }); i >= 0 {
			return i, WhyKnown, known
		}
	}
	return -1, "", known
}

// Times is what measuring has told of a candidate, in seconds.
type Times struct {
	Shortest float64 // of all rounds
	// Slack is by how much even the shortest may be too long: half of the rounds took as
	// much longer, or more.
	Slack float64
	// Loss is how much faster it may be with other sizes of work-groups.
	Loss float64
}

// NewTimes returns what the times of some rounds tell.
func NewTimes(rounds []float64) Times {
	rounds = slices.Sorted(slices.Values(rounds))
	return Times{Shortest: rounds[0], Slack: rounds[len(rounds)/2] - rounds[0]}
}

// Add returns the times of kernels that are launched one after the other.
func (t Times) Add(next Times) Times {
	return Times{t.Shortest + next.Shortest, t.Slack + next.Slack, t.Loss + next.Loss}
}

// Race compares candidates. The zero value has seen none.
type Race struct {
	best  Times
	least float64 // that any other may take
	seen  int
}

// Add enters the times of a candidate, and reports whether it is the fastest so far.
func (r *Race) Add(t Times) bool {
	if r.seen++; r.seen == 1 {
		r.best, r.least = t, math.Inf(1)
		return true
	}
	slower, faster := t, t.Shortest < r.best.Shortest
	if faster {
		slower, r.best = r.best, t
	}
	r.least = min(r.least, slower.Shortest-slower.Slack)
	return faster
}

// Best are the times of the fastest; Loss is how much faster another may be.
func (r *Race) Best() Times {
	best := r.best
	best.Loss = max(best.Loss, best.Shortest-r.least, 0)
	return best
}

// Entry is what to remember of the race.
func (r *Race) Entry() tuning.Entry {
	best := r.Best()
	e := tuning.Entry{Seconds: best.Shortest}
	if best.Loss > 0 {
		e.Doubt = best.Loss / best.Shortest
	}
	return e
}
