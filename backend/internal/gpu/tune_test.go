package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

type named string

func (n named) Key() string            { return string(n) }
func (n named) Is(e tuning.Entry) bool { return e.Name == string(n) }

func TestKey(t *testing.T) {
	seen := make(map[string]string)
	for _, all := range [][]named{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, nil} {
		for _, batch := range []int{1, 2} {
			key := Key(batch, all)
			require.Empty(t, seen[key])
			seen[key] = fmt.Sprint(batch, all)
			require.Equal(t, key, Key(batch, all))
		}
	}
}

func TestDecide(t *testing.T) {
	all := []named{"first", "second", "third"}
	cache := tuning.Load("device", "driver", "kernels", "")
	cache.Put("known", tuning.Entry{Name: "second"})
	cache.Put("gone", tuning.Entry{Name: "fourth"})
	cache.Put("old", tuning.Entry{Name: "third", Measured: time.Now().Add(-2 * tuning.MaxAge)})
	cache.Put("busy", tuning.Entry{Name: "third", Measured: time.Now().Add(-2 * tuning.DoubtfulAge), Doubt: 2 * tuning.MaxDoubt})
	cache.Put("busy just now", tuning.Entry{Name: "third", Doubt: 2 * tuning.MaxDoubt})
	for _, c := range []struct {
		key      string
		macs     int64
		emulated bool
		number   int
		why      string
	}{
		{"known", 100, false, 1, WhyKnown},
		{"known", 99, false, 0, WhySmall},
		{"known", 100, true, 0, WhyEmulated},
		{"unknown", 100, false, -1, ""},
		{"gone", 100, false, -1, ""},
		{"old", 100, false, -1, ""},
		{"busy", 100, false, -1, ""},
		{"busy just now", 100, false, 2, WhyKnown},
	} {
		number, why, known := Decide(Tuner{Cache: cache, From: 100, Emulated: c.emulated}, c.key, all, c.macs)
		require.Equal(t, c.number, number, c)
		require.Equal(t, c.why, why, c)
		require.Equal(t, why == WhyKnown, number >= 0 && known.Name == string(all[max(number, 0)]), c)
	}
}

func TestTimes(t *testing.T) {
	require.Equal(t, Times{Shortest: 3}, NewTimes([]float64{3}))
	require.Equal(t, Times{Shortest: 2, Slack: 3}, NewTimes([]float64{9, 5, 2, 2, 7})) // the median is 5
	require.Equal(t, Times{4, 6, 8}, Times{1, 2, 3}.Add(Times{3, 4, 5}))
}

func TestRace(t *testing.T) {
	for name, c := range map[string]struct {
		times   []Times
		fastest int
		doubt   float64
	}{
		"one":                 {[]Times{{Shortest: 10, Slack: 5}}, 0, 0},
		"clear":               {[]Times{{Shortest: 10}, {Shortest: 20, Slack: 4}}, 0, 0},
		"the later":           {[]Times{{Shortest: 20, Slack: 4}, {Shortest: 10}}, 1, 0},
		"overlap":             {[]Times{{Shortest: 10}, {Shortest: 20, Slack: 12}}, 0, 0.2},
		"overlap, reversed":   {[]Times{{Shortest: 20, Slack: 12}, {Shortest: 10}}, 1, 0.2},
		"of three":            {[]Times{{Shortest: 30, Slack: 25}, {Shortest: 20}, {Shortest: 10}}, 2, 0.5},
		"its own sizes":       {[]Times{{Shortest: 10, Loss: 4}, {Shortest: 30}}, 0, 0.4},
		"equal":               {[]Times{{Shortest: 10, Slack: 1}, {Shortest: 10, Slack: 1}}, 0, 0.1},
		"only its own slack":  {[]Times{{Shortest: 10, Slack: 9}, {Shortest: 11}}, 0, 0},
		"a clock of no steps": {[]Times{{}, {}}, 0, 0},
	} {
		var race Race
		fastest := -1
		for i, times := range c.times {
			if race.Add(times) {
				fastest = i
			}
		}
		require.Equal(t, c.fastest, fastest, name)
		e := race.Entry()
		require.Equal(t, c.times[fastest].Shortest, e.Seconds, name)
		require.InDelta(t, c.doubt, e.Doubt, 1e-12, name)
	}
}

func TestExplain(t *testing.T) {
	require.Equal(t, driver.Choice{Kernel: "b: one, two", Tile: "blocks of 32, 256 threads", Why: WhyKnown},
		Explain("b", []string{"one", "two"}, "blocks of %s threads", []int{32, 256}, WhyKnown))
}
