package tiles

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// feed gives a governor runs of known times, in turns, and returns how many of
// them were alone.
func feed(g *governor, runs int, aloneTimes, sharedTimes []time.Duration) int {
	n := 0
	for i := range runs {
		times := sharedTimes
		if g.way == alone {
			times = aloneTimes
			n++
		}
		const images = 3
		g.done(images*times[i%len(times)]*time.Microsecond, images)
	}
	return n
}

func TestGovernor(t *testing.T) {
	type times = []time.Duration
	const runs = 4000
	for _, c := range []struct {
		name          string
		alone, shared times
		least, most   int // runs alone
	}{
		{"two CPUs", times{100}, times{55}, 1, runs / 50},
		{"two CPUs, long runs", times{14000}, times{7200, 7300}, 1, runs / 50},
		{"two CPUs, one of which is busy now and then", times{100}, times{60, 60, 200, 60, 60}, 1, runs / 20},
		{"one CPU for both", times{100}, times{150}, runs * 9 / 10, runs},
		{"hardly a gain", times{100}, times{95}, 1, runs / 20},
		{"both are disturbed", times{100, 900, 900}, times{60, 100, 600, 70, 90}, 1, runs / 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGovernor()
			alone := feed(&g, runs, c.alone, c.shared)
			require.GreaterOrEqual(t, alone, c.least)
			require.LessOrEqual(t, alone, c.most)
		})
	}
}

// TestGovernorReturns lets a neighbour take the second CPU for some runs: soon after it has gone,
// workers help again, and while it is there trials cost little.
func TestGovernorReturns(t *testing.T) {
	for _, c := range []struct {
		name                     string
		alone, shared, disturbed time.Duration
	}{
		{"QuickNet", 2440, 1450, 3400},
		{"ReActNet", 6100, 3700, 12300},
		{"hardly slower", 2440, 1450, 2600},
		{"10 ms, a third CPU's share", 15000, 8000, 40000},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two, busy := []time.Duration{c.alone}, []time.Duration{c.shared}, []time.Duration{c.disturbed}
			for before := range 40 {
				for _, neighbour := range []int{1, 5, 30, 60, 100, 250} {
					g := newGovernor()
					feed(&g, before, one, two)
					feed(&g, neighbour, one, busy)
					feed(&g, 20, one, two)
					require.LessOrEqual(t, feed(&g, 100, one, two), 10, "%d, %d", before, neighbour)
				}
			}
			// One who stays for long is looked for less often, and still found to have gone.
			for neighbour := 600; neighbour < 800; neighbour += 7 {
				g := newGovernor()
				feed(&g, neighbour, one, busy)
				feed(&g, 100, one, two)
				require.LessOrEqual(t, feed(&g, 100, one, two), 10, "%d", neighbour)
			}
			// A neighbour who stays.
			g := newGovernor()
			alone := feed(&g, 4000, one, busy)
			lost := float64(4000-alone) * float64(c.disturbed-c.alone) / float64(4000*c.alone)
			require.Less(t, lost, 0.08)
			alone = feed(&g, 4000, one, busy)
			require.Less(t, float64(4000-alone)*float64(c.disturbed-c.alone)/float64(4000*c.alone), 0.04)
		})
	}
}

// TestGovernorAdapts takes the second CPU away and gives it back.
func TestGovernorAdapts(t *testing.T) {
	g := newGovernor()
	one := []time.Duration{100}
	for _, two := range []time.Duration{60, 140, 60} {
		feed(&g, 2500, one, []time.Duration{two})
		if n := feed(&g, 200, one, []time.Duration{two}); two < 100 {
			require.Less(t, n, 20)
		} else {
			require.Greater(t, n, 180)
		}
	}
}
