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
