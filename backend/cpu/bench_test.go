package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
)

// vehicleNet has the topology of VehicleNet with drawn weights, with bytes or
// bits as its input.
func vehicleNet(binarized bool) *planner {
	p := newPlanner(1, input(bcnn.Uint8, 96, 96, 3))
	if binarized {
		p.sign()
	}
	pool := &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	five := bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}}
	p.conv(convOptions{window: five, out: 32, pool: pool, padValue: -1})
	p.conv(convOptions{window: five, out: 32, pool: pool, padValue: -1})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 24, KW: 24}, out: 100})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 100})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 6, float: true})
	return p
}

// BenchmarkVehicleNet reports the time of a run, the least of every step, and
// for steps on bits the fraction of the rate of a loop of xor and popcount, measured in
// the same process.
func BenchmarkVehicleNet(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, binarized := range []bool{false, true} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/bits=%v/threads=%d", isa, binarized, threads), func(b *testing.B) {
					benchmarkPlan(b, vehicleNet(binarized), backend.Options{ISA: isa, Threads: threads})
				})
			}
		}
	}
}

// BenchmarkConv3x3 runs binary convolutions of VGG-16.
func BenchmarkConv3x3(b *testing.B) {
	same := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	for _, isa := range sets.Names() {
		for _, c := range []struct{ size, in, out int }{{112, 64, 128}, {56, 128, 256}, {28, 256, 512}, {14, 512, 512}} {
			b.Run(fmt.Sprintf("%s/%d×%d×%d→%d", isa, c.size, c.size, c.in, c.out), func(b *testing.B) {
				p := newPlanner(1, input(bcnn.Float32, c.size, c.size, c.in))
				p.sign()
				p.conv(convOptions{window: same, out: c.out, padValue: -1})
				benchmarkPlan(b, p, backend.Options{ISA: isa, Threads: 1})
			})
		}
	}
}

func benchmarkPlan(b *testing.B, p *planner, opts backend.Options) {
	plan := p.done()
	times := make([]time.Duration, len(plan.Steps))
	opts.Timed = func(step int, _ string, d time.Duration) { times[step] = min(times[step], d) }
	exe, err := Device().Compile(b.Context(), plan, opts)
	require.NoError(b, err)
	defer exe.Close()
	in, out := p.input(1), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
	require.NoError(b, exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
	for i := range times {
		times[i] = math.MaxInt64
	}
	best, err := Device().Peak(opts)
	require.NoError(b, err)
	b.ResetTimer()
	for b.Loop() {
		if err := exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	for i, s := range plan.Steps {
		name := fmt.Sprintf("%d-%s", i, s.Kind())
		b.ReportMetric(float64(times[i]), name+"-ns")
		if from := plan.Tensors[s.In[0]]; from.DType == bcnn.Bits {
			if n := plan.Products(i); n > 0 {
				b.ReportMetric(float64(n)/times[i].Seconds()/best, name+"-of-peak")
			}
		}
	}
	b.ReportMetric(best/1e9, "peak-GMAC/s")
}
