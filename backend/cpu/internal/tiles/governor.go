package tiles

import "time"

// governor decides, run by run, whether workers help the submitter. Where other
// processes leave them no CPU of their own, workers and submitter wait for each
// other, and a run takes longer than it would alone. Nothing but the time of
// runs tells, so now and then it tries the other way for a few runs, and stays
// with it if it was faster.
type governor struct {
	way  way
	took [2]float64 // smoothed time of an image in nanoseconds, either way; 0 if unknown

	left     int // runs until the next trial
	interval int // from one to the next
	failed   int // trials in a row that have changed nothing

	trial   bool
	elapsed time.Duration // of the trial so far
	runs    int           // that count, after those in which workers wake up
	sum     float64       // of their times
	lost    float64       // by all runs of the trial, beside the other way
}

type way int

const (
	shared way = iota
	alone
)

const (
	// Both parts of a trial, the one that counts and the one before it, take so
	// long at least: workers sleep when it starts.
	trialTime = 300 * time.Microsecond
	trialRuns = 3 // that count, at least
	// Trials become rarer as long as they change nothing.
	firstInterval, lastInterval = 8, 512
	// What disturbs workers may be gone soon. So while few trials in a row have failed the next one is
	// near. Later they cost one run in so many at first, and ever less.
	soonTrials, soonInterval = 16, 16
	costOfTrials             = 20
	// smoothing is the number of runs that the average looks back.
	smoothing = 16
	// worse is how much longer than alone shared runs may take before the next
	// trial is made soon.
	worse = 1.05
	// much is how much longer one alone must take to wait long for the next trial.
	much = 1.2
)

func newGovernor() governor { return governor{left: firstInterval, interval: firstInterval} }

// done takes the time of a run of n images and decides about the next one.
func (g *governor) done(d time.Duration, n int) {
	image := float64(d) / float64(n)
	if g.trial {
		g.try(d, image)
		return
	}
	took := &g.took[g.way]
	if *took == 0 {
		*took = image
	}
	*took += (image - *took) / smoothing
	if g.way == shared && g.took[alone] > 0 && *took > worse*g.took[alone] {
		g.left = min(g.left, firstInterval)
	}
	if g.left--; g.left <= 0 {
		g.way, g.trial = 1-g.way, true
		g.elapsed, g.runs, g.sum, g.lost = 0, 0, 0, 0
	}
}

// try takes the time of a run of a trial.
func (g *governor) try(d time.Duration, image float64) {
	other := g.took[1-g.way]
	if g.elapsed >= trialTime {
		g.sum += image
		g.runs++
	}
	g.elapsed += d
	g.lost += image - other
	hopeless := g.way == shared && g.runs > 0 && image > much*other
	if !hopeless && (g.runs < trialRuns || g.elapsed < 2*trialTime) {
		return
	}
	g.trial = false
	g.took[g.way] = g.sum / float64(g.runs)
	if g.took[g.way] < other {
		g.failed, g.interval = 0, firstInterval
	} else {
		g.way = 1 - g.way
		g.failed++
		g.interval = g.rest(other)
	}
	g.left = g.interval
}

// rest returns how many runs follow a trial that has changed nothing, where a run takes so long.
func (g *governor) rest(run float64) int {
	switch {
	case g.way == alone && g.failed <= soonTrials:
		return min(g.failed*firstInterval, soonInterval)
	case g.way == alone:
		cost := g.lost / run // in runs
		return int(min(max(soonInterval, costOfTrials*cost*float64(g.failed/soonTrials)), lastInterval))
	case g.took[alone] > much*g.took[shared]:
		return lastInterval // if it gets worse, that shows
	}
	return min(2*g.interval, lastInterval)
}
