package sets

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func TestFMA(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, outputs := range []int{1, 3, 4, 16, 33, 64} {
			for _, taps := range []int{0, 1, 2, 7} {
				for range 300 {
					stride := outputs + rng.IntN(4)
					x, w := awkwards(rng, taps), awkwards(rng, taps*stride)
					acc, check := guarded[float32](t, outputs)
					copy(acc, awkwards(rng, outputs))
					want := append([]float32(nil), acc...)
					for i := range x {
						for o := range want {
							want[o] = f32.FMA(x[i], w[i*stride+o], want[o])
						}
					}
					s.FMA(acc, x, w, stride)
					check()
					for o := range want {
						requireSame(t, want[o], acc[o], x, w, o)
					}
				}
			}
		}
	})
}

func TestFMAPixels(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.FMAPixels == nil {
			return
		}
		for _, outputs := range []int{1, 7, 8, 9, 16, 17, 31, 64, 70, 130} {
			for _, rows := range []int{1, 3} {
				for _, pixels := range []int{1, 3, 4, 6, 7, 13} {
					run := 1 + rng.IntN(9)
					at := &kern.Patches{Pixels: pixels, Step: 1 + rng.IntN(run), Rows: rows, RowStep: run + rng.IntN(5), RowLen: run}
					stride, step := outputs+rng.IntN(4), outputs+rng.IntN(4)
					src, w, bias := awkwards(rng, span(at)), awkwards(rng, rows*run*step), awkwards(rng, outputs)
					dst, check := guarded[float32](t, (pixels-1)*stride+outputs)
					want := append([]float32(nil), dst...)
					for p := range pixels {
						for o := range outputs {
							acc := bias[o]
							for i := range rows * run {
								acc = f32.FMA(element(src, at, p, i), w[i*step+o], acc)
							}
							want[p*stride+o] = acc
						}
					}
					s.FMAPixels(dst, stride, src, at, w, step, bias)
					check()
					for i := range want {
						requireSame(t, want[i], dst[i], at, outputs)
					}
				}
			}
		}
	})
}

// TestFMARoundsOnce has sums that a float64 sum, rounded again, gets wrong: it
// lies in the middle between two float32 values, normal or subnormal, and what
// it has lost decides.
func TestFMARoundsOnce(t *testing.T) {
	above, below := float32(1+0x1p-23), float32(1-0x1p-23)
	cases := [][3]float32{
		{above * 0x1p-12, below * 0x1p-12, 1 + 0x1p-23},
		{above * 0x1p-12, -below * 0x1p-12, 1 + 0x1p-23},
		{above * 0x1p-75, below * 0x1p-75, 0x1p-127 + 0x1p-149},
		{above * 0x1p-75, -below * 0x1p-75, 0x1p-127 + 0x1p-149},
	}
	forEach(t, func(t *testing.T, s *kern.Set, _ *rand.Rand) {
		for _, c := range cases {
			for _, outputs := range []int{1, 4, 17} { // whatever a kernel takes at a time
				w, acc := make([]float32, outputs), make([]float32, outputs)
				for o := range outputs {
					w[o], acc[o] = c[1], c[2]
				}
				twice := float32(float64(c[0])*float64(c[1]) + float64(c[2]))
				want := f32.FMA(c[0], c[1], c[2])
				require.NotEqual(t, twice, want, "%v is no such case", c)
				s.FMA(acc, c[:1], w, outputs)
				for o := range outputs {
					requireSame(t, want, acc[o], c)
				}
			}
		}
	})
}
