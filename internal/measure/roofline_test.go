package measure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
)

// meterDevice says what the loops reach each time that they are asked, and the last for ever.
type meterDevice struct {
	driver.Device
	peaks, rates []float64
	asked        []int // for peaks, and for rates
}

func (d *meterDevice) Info() driver.Info {
	return driver.Info{ID: "meter:0", MaxBatch: 1, MaxThreads: 2}
}

func (d *meterDevice) next(list []float64, i int) float64 {
	d.asked[i]++
	return list[min(d.asked[i], len(list))-1]
}

func (d *meterDevice) Peak(driver.Config) (float64, error) { return d.next(d.peaks, 0), nil }

func (d *meterDevice) Bandwidth(driver.Config, int64) (float64, error) {
	return d.next(d.rates, 1), nil
}

func newMeter(peaks, rates []float64) (*meterDevice, *Roofline) {
	d := &meterDevice{peaks: peaks, rates: rates, asked: make([]int, 2)}
	return d, NewRoofline(backend.NewDevice(d), backend.Options{})
}

// A step takes at least the longest of its times.
func TestBound(t *testing.T) {
	w := work{products: 600, read: 60, written: 40}
	for _, c := range []struct {
		peak, rate, seconds float64
		by                  string
	}{
		{100, 60, 6, Arithmetic},
		{1000, 60, 1, Memory},
		{0, 60, 1, Memory},
		{100, 0, 6, Arithmetic},
		{0, 0, 0, ""},
	} {
		r := &Roofline{peaks: []float64{c.peak / 2, c.peak}, rates: map[int64]float64{100: c.rate}}
		seconds, by := r.bound(w)
		require.Equal(t, c.seconds, seconds, c)
		require.Equal(t, c.by, by, c)
	}
	r := &Roofline{rates: map[int64]float64{100: 50}}
	seconds, by := r.bound(work{read: 30, written: 70})
	require.Equal(t, 1.4, seconds, "what is written takes longer than what is read")
	require.Equal(t, Memory, by)
}

// The quietest moment counts, whenever it was: loops that were slower than the steps are
// measured again until they have seen one.
func TestSettle(t *testing.T) {
	d, r := newMeter([]float64{100, 90, 80, 70, 400, 50}, []float64{10, 10, 10, 30, 20})
	require.NoError(t, r.update())
	require.NoError(t, r.read(60))
	runs := []*run{
		{work: work{products: 600}, shortest: 2},               // 300 a second: 4 times more than once
		{work: work{products: 6, read: 60}, shortest: 2.5},     // 24 bytes a second
		{work: work{products: 60, read: 10}, shortest: 1},      // no slower than the loops were at first
		{work: work{}, shortest: 1},                            // nothing to compare
		{work: work{products: 400, written: 60}, shortest: 10}, // both bounds change
	}
	require.NoError(t, r.settle(t.Context(), runs))
	require.Equal(t, []int{5, 4}, d.asked)
	for i, want := range []run{
		{least: 1.5, by: Arithmetic}, {least: 2, by: Memory}, {least: 0.15, by: Arithmetic}, {}, {least: 2, by: Memory},
	} {
		require.Equal(t, want.least, runs[i].least, i)
		require.Equal(t, want.by, runs[i].by, i)
		require.False(t, runs[i].outran, i)
		require.LessOrEqual(t, runs[i].least, runs[i].shortest, i)
	}
	require.Equal(t, 0.225, r.steady())

	// Loops that never come up to a step say nothing about it; about others they do.
	d, r = newMeter([]float64{100}, []float64{10})
	require.NoError(t, r.update())
	runs = []*run{{work: work{products: 600}, shortest: 2}, {work: work{products: 100}, shortest: 2}}
	require.NoError(t, r.settle(t.Context(), runs))
	require.Equal(t, []int{1 + Patience, 0}, d.asked)
	require.Equal(t, run{work: work{products: 600}, shortest: 2, outran: true}, *runs[0])
	require.Equal(t, run{work: work{products: 100}, shortest: 2, least: 1, by: Arithmetic}, *runs[1])

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, r.settle(ended, runs), context.Canceled)
}

// Two threads do no more than twice what one does.
func TestPeakOfOne(t *testing.T) {
	for _, c := range []struct {
		one  []float64
		want float64
		asks int
	}{
		{[]float64{60}, 60, stepSlices},
		{[]float64{50}, 50, stepSlices},
		{append(make([]float64, 50), 55), 55, 51}, // disturbed at first
		{[]float64{49}, 0, Patience},
	} {
		d, r := newMeter([]float64{100}, nil)
		require.NoError(t, r.update())
		d.peaks, d.asked[0] = c.one, 0
		one, err := r.peakOfOne(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, c.want, one)
		require.Equal(t, c.asks, d.asked[0])
	}
	_, r := newMeter([]float64{100}, nil)
	require.NoError(t, r.update())
	one, err := r.peakOfOne(t.Context(), 1)
	require.NoError(t, err)
	require.Zero(t, one)
}

// What operators reach is compared with the best in all the time, also of those before.
func TestSettleOperators(t *testing.T) {
	_, r := newMeter([]float64{50, 100}, []float64{10})
	require.NoError(t, r.update())
	results := []OperatorResult{
		{Op: "a", Min: 4e3, work: work{products: 300}}, {Op: "b", Min: 4e3, work: work{products: 100}}, {Op: "c", Min: 1, work: work{products: 300}},
	}
	require.NoError(t, r.Settle(t.Context(), results))
	require.Equal(t, []float64{0.75, 0.25, 0}, []float64{results[0].Fraction, results[1].Fraction, results[2].Fraction})
	require.Equal(t, []bool{false, false, true}, []bool{results[0].Outran, results[1].Outran, results[2].Outran})
	require.Equal(t, 100.0, results[0].Peak)
}

// The floor is what products take, and nothing where a whole run took less.
func TestCompareSteps(t *testing.T) {
	_, p := planesPlan(t)
	_, r := newMeter([]float64{1e8}, []float64{1e9})
	require.NoError(t, r.update())
	filled := map[int][]bool{1: make([]bool, 10)}
	for _, size := range sizesOf(p, 1) {
		require.NoError(t, r.read(size))
	}
	steps := []StepTime{{Min: 5}, {Min: 1e5}}
	floor, err := r.compare(t.Context(), steps, p, 1, filled, 1e5)
	require.NoError(t, err)
	require.Equal(t, float64(workOf(p, 1, 1, filled[1]).products)/100, floor)
	require.Zero(t, steps[0].Fraction)
	require.InEpsilon(t, floor/1e5, steps[1].Fraction, 1e-9)

	floor, err = r.compare(t.Context(), steps, p, 1, filled, 1)
	require.NoError(t, err)
	require.Zero(t, floor)
}
