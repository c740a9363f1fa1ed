package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// BenchmarkBytes runs convolutions of levels with 8-bit weights and the levels behind them
// in turns with the same ones of float32 values and weights. It reports the least times of
// the convolutions, of the levels in front, and of a layer of bytes in a chain: a quarter
// of the difference between five in a row and one.
func BenchmarkBytes(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, bits := range []int{4, 8} {
			for _, c := range []struct{ size, channels, side int }{
				{56, 64, 3}, {28, 128, 3}, {14, 256, 3}, {7, 512, 3}, {56, 64, 1}, {28, 256, 1}, {14, 512, 1}, {14, 512, 3},
			} {
				b.Run(fmt.Sprintf("%s/W%dA%d/%d×%d×%d/k%d", isa, bits, bits, c.size, c.size, c.channels, c.side), func(b *testing.B) {
					plan := func(to bcnn.DType, layers int) *planner {
						pad := c.side / 2
						p := newPlanner(1, input(bcnn.Float32, c.size, c.size, c.channels))
						p.levels(1<<bits, to)
						for range layers {
							p.conv(convOptions{
								window: bcnn.Window{KH: c.side, KW: c.side, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}},
								out:    c.channels, float: true, end: plan.ActivationReLU, int8: 1<<(bits-1) - 1,
							})
							conv := p.plan.Steps[len(p.plan.Steps)-1].Op.(*plan.Conv)
							conv.ZeroPoint = min(conv.ZeroPoint, 1<<bits-1) // as lowered plans have it
							p.levels(1<<bits, to)
						}
						return p
					}
					var steps [2][]time.Duration // of float32 and of bytes
					var whole [4]time.Duration
					var run [4]func() error
					for i, p := range []*planner{plan(bcnn.Float32, 1), plan(bcnn.Uint8, 1), plan(bcnn.Uint8, 1), plan(bcnn.Uint8, 5)} {
						done := p.done()
						opts := backend.Options{ISA: isa, Threads: 1}
						if i < len(steps) {
							steps[i] = slices.Repeat([]time.Duration{math.MaxInt64}, len(done.Steps))
							opts.Timed = func(step int, _ string, d time.Duration) { steps[i][step] = min(steps[i][step], d) }
						}
						exe, err := Device().Compile(b.Context(), done, opts)
						require.NoError(b, err)
						defer exe.Close()
						in, out := []bcnn.Tensor{p.input(1)}, []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, done.OutputShape())}
						whole[i] = math.MaxInt64
						run[i] = func() error {
							start := time.Now()
							err := exe.Run(context.Background(), out, in)
							whole[i] = min(whole[i], time.Since(start))
							return err
						}
					}
					for b.Loop() {
						for _, do := range run {
							if err := do(); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.ReportMetric(float64(steps[1][0])/1e3, "levels-µs")
					b.ReportMetric(float64(steps[0][1])/1e3, "float32-µs")
					b.ReportMetric(float64(steps[1][1])/1e3, "bytes-µs")
					b.ReportMetric(float64(steps[0][1])/float64(steps[1][1]), "times")
					b.ReportMetric(float64(whole[3]-whole[2])/4e3, "layer-µs")
				})
			}
		}
	}
}
