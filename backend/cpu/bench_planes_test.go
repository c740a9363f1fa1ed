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

// BenchmarkPlanes runs convolutions with ±1 weights on activations of some bits, which
// make as many, in turns with those of one bit, and reports the quotient of the least
// times.
func BenchmarkPlanes(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, c := range []struct{ size, channels, side, planes int }{
			{56, 64, 3, 2}, {28, 128, 3, 2}, {14, 256, 3, 2}, {7, 512, 3, 2}, {28, 256, 1, 2}, {14, 256, 3, 4},
		} {
			b.Run(fmt.Sprintf("%s/%d×%d×%d/k%d/%d bits", isa, c.size, c.size, c.channels, c.side, c.planes), func(b *testing.B) {
				var least [2]time.Duration
				var run [2]func() error
				for i, planes := range []int{1, c.planes} {
					pad := c.side / 2
					p := newPlanner(1, input(bcnn.Float32, c.size, c.size, c.channels))
					p.numbers(planes)
					p.conv(convOptions{
						window: bcnn.Window{KH: c.side, KW: c.side, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}},
						out:    c.channels, padValue: 1 - 1<<planes, inPlanes: planes, outPlanes: planes,
					})
					plan := p.done()
					least[i] = math.MaxInt64
					opts := backend.Options{ISA: isa, Threads: 1, Timed: func(step int, _ string, d time.Duration) {
						if step == 1 {
							least[i] = min(least[i], d)
						}
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
				b.ReportMetric(float64(least[0])/1e3, "1-bit-µs")
				b.ReportMetric(float64(least[1])/1e3, "bits-µs")
				b.ReportMetric(float64(least[1])/float64(least[0]), "times")
			})
		}
	}
}
