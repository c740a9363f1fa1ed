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

// BenchmarkBytes runs a convolution of levels with 8-bit weights, and the step that makes
// levels of float32 values in front of it, in turns with the same one of float32 values
// and weights, and reports the least times and the quotient of those of the convolutions.
func BenchmarkBytes(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, bits := range []int{4, 8} {
			for _, c := range []struct{ size, channels, side int }{
				{56, 64, 3}, {28, 128, 3}, {14, 256, 3}, {7, 512, 3}, {56, 64, 1}, {28, 256, 1}, {14, 512, 1},
			} {
				b.Run(fmt.Sprintf("%s/W%dA%d/%d×%d×%d/k%d", isa, bits, bits, c.size, c.size, c.channels, c.side), func(b *testing.B) {
					var least [2][2]time.Duration
					var run [2]func() error
					for i, to := range []bcnn.DType{bcnn.Float32, bcnn.Uint8} {
						pad := c.side / 2
						p := newPlanner(1, input(bcnn.Float32, c.size, c.size, c.channels))
						p.levels(1<<bits, to)
						p.conv(convOptions{
							window: bcnn.Window{KH: c.side, KW: c.side, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}},
							out:    c.channels, float: true, end: bcnn.ActivationReLU, int8: 1<<(bits-1) - 1,
						})
						plan := p.done()
						least[i] = [2]time.Duration{math.MaxInt64, math.MaxInt64}
						opts := backend.Options{ISA: isa, Threads: 1, Timed: func(step int, _ string, d time.Duration) {
							least[i][step] = min(least[i][step], d)
						}}
						exe, err := Device().Compile(b.Context(), plan, opts)
						require.NoError(b, err)
						defer exe.Close()
						in, out := []bcnn.Tensor{p.input(1)}, []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())}
						run[i] = func() error { return exe.Run(context.Background(), out, in) }
					}
					for b.Loop() {
						for _, do := range run {
							if err := do(); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.ReportMetric(float64(least[1][0])/1e3, "levels-µs")
					b.ReportMetric(float64(least[0][1])/1e3, "float32-µs")
					b.ReportMetric(float64(least[1][1])/1e3, "bytes-µs")
					b.ReportMetric(float64(least[0][1])/float64(least[1][1]), "times")
				})
			}
		}
	}
}
