package sets

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
)

func TestThresholdBytes(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range append([]int{192, 300, 1000}, sizes...) {
			for _, period := range []int{64, 192, 320} {
				src, bounds := randomBytes(rng, n), randomBytes(rng, period)
				dst, check := guarded[uint64](t, (n+63)/64)
				s.ThresholdBytes(dst, src, bounds)
				check()
				for i := range 64 * len(dst) {
					want := i < n && src[i] >= bounds[i%period]
					requireEqual(t, want, dst[i/64]>>(i%64)&1 == 1, "byte %d of %d", i, n)
				}
			}
		}
	})
}

func TestSpread(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, pixels := range sizes {
			for n := 1; n <= 8; n++ {
				src := randomWords(rng, (pixels*n+63)/64)
				flip := rng.Uint64()
				dst, check := guarded[uint64](t, pixels)
				s.Spread(dst, src, n, flip)
				check()
				for p := range pixels {
					want := uint64(0)
					for i := range n {
						at := p*n + i
						want |= src[at/64] >> (at % 64) & 1 << i
					}
					requireEqual(t, want^flip, dst[p], "pixel %d of %d, %d bits", p, pixels, n)
				}
			}
		}
	})
}

func TestLumaLBPMinMax(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			for range 4 {
				rgb := randomBytes(rng, 3*n)
				grey, check := unaligned(t, n, 1)
				s.Luma(grey, rgb)
				check()
				for p, v := range grey {
					requireEqual(t, bcnn.Luma(rgb[3*p], rgb[3*p+1], rgb[3*p+2]), v)
				}

				above, row, below := randomBytes(rng, n+2), randomBytes(rng, n+2), randomBytes(rng, n+2)
				dst, checkWords := guarded[uint64](t, n)
				s.LBP(dst, above, row, below)
				checkWords()
				for x, v := range dst {
					want := uint64(0)
					for i, neighbour := range []uint8{above[x], row[x+2], below[x]} {
						if neighbour > row[x+1] {
							want |= 1 << i
						}
					}
					requireEqual(t, want, v)
				}

				if n > 0 {
					low, high := s.MinMax(rgb)
					require.Equal(t, slices.Min(rgb), low)
					require.Equal(t, slices.Max(rgb), high)
				}
			}
		}
		// All colours of a coarse grid, the corners among them.
		var rgb, want []uint8
		for r := 0; r < 256; r += 15 {
			for g := 0; g < 256; g += 15 {
				for b := 0; b < 256; b += 15 {
					rgb = append(rgb, uint8(r), uint8(g), uint8(b))
					want = append(want, uint8((77*r+150*g+29*b)>>8))
				}
			}
		}
		got := make([]uint8, len(want))
		s.Luma(got, rgb)
		require.Equal(t, want, got)
	})
}

func TestFloats(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for n := range 70 {
			src := randomBytes(rng, n)
			dst, check := guarded[float32](t, n)
			s.Floats(dst, src)
			check()
			for i, v := range src {
				require.Equal(t, float32(v), dst[i])
			}
		}
	})
}
