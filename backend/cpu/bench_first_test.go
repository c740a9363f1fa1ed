package cpu

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// BenchmarkFirst runs first convolutions of the bytes of an image with weights of 16 bits
// in turns with the same ones of float32, which the bytes are converted to before. It
// reports the least times of both, and of the conversion.
func BenchmarkFirst(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, c := range []struct {
			name string
			side int
			convOptions
		}{
			{"7x7s2/224x224x3-64", 224, convOptions{window: bcnn.Window{KH: 7, KW: 7, StrideH: 2, StrideW: 2, Pad: pad(3)}, out: 64}},
			{"3x3s2/224x224x3-32", 224, convOptions{window: bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: pad(1)}, out: 32}},
			{"11x11s4/227x227x3-96", 227, convOptions{window: bcnn.Window{KH: 11, KW: 11, StrideH: 4, StrideW: 4}, out: 96}},
			{"3x3/32x32x3-128", 32, convOptions{window: three(1), out: 128}},
		} {
			b.Run(isa+"/"+c.name, func(b *testing.B) {
				times := [2][2]time.Duration{{math.MaxInt64, math.MaxInt64}, {math.MaxInt64}}
				var run [2]func() error
				for i := range run {
					p := newPlanner(1, input(bcnn.Uint8, c.side, c.side, 3))
					o := c.convOptions
					o.float, o.end = true, plan.ActivationReLU
					if i == 0 {
						p.affine(plan.ActivationNone)
					} else {
						o.int16 = 32639
					}
					p.conv(o)
					done := p.done()
					opts := backend.Options{ISA: isa, Threads: 1, Timed: func(step int, _ string, d time.Duration) { times[i][step] = min(times[i][step], d) }}
					exe, err := Device().Compile(b.Context(), done, opts)
					require.NoError(b, err)
					defer exe.Close()
					in, out := []bcnn.Tensor{p.input(1)}, []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, done.OutputShape())}
					run[i] = func() error { return exe.Run(context.Background(), out, in) }
				}
				for b.Loop() {
					for _, do := range run {
						if err := do(); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(times[0][0])/1e3, "convert-µs")
				b.ReportMetric(float64(times[0][1])/1e3, "float32-µs")
				b.ReportMetric(float64(times[1][0])/1e3, "int16-µs")
				b.ReportMetric(float64(times[0][1])/float64(times[1][0]), "times")
			})
		}
	}
}
