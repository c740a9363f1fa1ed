//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestDividedLaunches has launches of one image each, with small steps and with ones that are measured.
func TestDividedLaunches(t *testing.T) {
	for _, specialiseFrom := range []int64{1, 1 << 62} {
		d := testDevice(t)
		d.longest, d.specialiseFrom, d.tuning = 1, specialiseFrom, d.loadTuning("")
		cases := backendtest.Cases(t, backendtest.CoreEvery(17), backendtest.CoreEvery(1))
		if specialiseFrom == 1 {
			cases = backendtest.Cases(t, backendtest.CoreEvery(59), backendtest.CoreEvery(9))
		}
		failures, err := parity.Check(t.Context(), backend.NewDevice(d), backend.Options{}, cases, nil)
		require.NoError(t, err)
		require.Empty(t, failures)
	}
}

// TestPricedLaunches looks at how launches are divided by the time that they take.
func TestPricedLaunches(t *testing.T) {
	const images, all = 7, math.MaxInt32
	for _, c := range []struct {
		longest       time.Duration
		before, after int // images of a launch, before the first run and after it
	}{
		{0, all, all},
		{1, 1, 1},
		{time.Hour, 1, images + 1},
	} {
		d := testDevice(t)
		d.longest, d.specialiseFrom = c.longest, 1<<62
		running, out, in := compileSmall(t, d, backend.Options{MaxBatch: images})
		plan, err := lower.Network(t.Context(), small(), lower.Options{})
		require.NoError(t, err)
		want, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		for run, most := range []int{c.before, c.after, c.after} {
			for _, s := range running.steps {
				for _, l := range s.launches {
					if c.after > images && run > 0 {
						require.Greater(t, l.atOnce, images)
					} else {
						require.Equal(t, most, l.atOnce, "run %d", run)
					}
				}
			}
			require.NoError(t, running.run(t.Context(), out, in))
			require.Equal(t, want.F32, out.F32, "run %d", run)
		}
	}
	slow := &device{longest: longestLaunch}
	for _, c := range []struct {
		took time.Duration
		n    int
		want int
	}{
		{0, 1, 100_000_000},
		{time.Millisecond, 1, 100},
		{time.Second, 8, 1},
		{time.Second, 16, 1},
		{time.Second, 32, 3},
		{time.Hour, 1, 1},
	} {
		require.Equal(t, c.want, slow.atOnce(c.took, c.n), "%v for %d", c.took, c.n)
	}
}
