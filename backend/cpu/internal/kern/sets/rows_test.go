package sets

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// sizes are lengths on both sides of whatever a kernel takes at a time.
var sizes = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 129, 200}

func randomBytes(rng *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	few := rng.IntN(2) == 0 // so that ties are common
	for i := range b {
		b[i] = uint8(rng.IntN(256))
		if few {
			b[i] = []uint8{0, 1, 127, 128, 254, 255}[rng.IntN(6)]
		}
	}
	return b
}

func randomWords(rng *rand.Rand, n int) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = rng.Uint64()
	}
	return w
}

func TestFloatRows(t *testing.T) {
	relu := func(v float32, on bool) float32 {
		if on && !(v > 0) {
			return 0
		}
		return v
	}
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			for range 40 {
				x, w := awkwards(rng, n), awkwards(rng, n)
				dst, check := guarded[float32](t, n)
				for _, on := range []bool{false, true} {
					s.Add(dst, x, w, on)
					check()
					for i := range dst {
						requireSame(t, relu(x[i]+w[i], on), dst[i], x[i], w[i])
					}
				}
				start := awkwards(rng, n)
				copy(dst, start)
				s.FMAEach(dst, x, w)
				check()
				for i := range dst {
					requireSame(t, f32.FMA(x[i], w[i], start[i]), dst[i], x[i], w[i])
				}
				src := randomWords(rng, (n+63)/64)
				s.Choose(dst, src, x, w)
				check()
				for i := range dst {
					want := w[i]
					if src[i/64]>>(i%64)&1 == 1 {
						want = x[i]
					}
					requireSame(t, want, dst[i], i)
				}
			}
		}
	})
}

func TestPools(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, values := range []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 70} {
			for _, taps := range []int{1, 2, 4, 9, 70} {
				p := &kern.Pool{Values: values, Step: 1 + rng.IntN(2*values), DstStep: values + rng.IntN(3), Pixels: 1 + rng.IntN(6)}
				if rng.IntN(2) == 0 {
					p.Flip = rng.Uint64()
				}
				for range taps {
					p.Taps = append(p.Taps, rng.IntN(50))
				}
				written := (p.Pixels-1)*p.DstStep + values
				read := (p.Pixels-1)*p.Step + slices.Max(p.Taps) + values
				src, floats := randomWords(rng, read), awkwards(rng, read)
				dst, check := guarded[uint64](t, written)
				want := slices.Clone(dst)
				dstFloat, checkFloat := guarded[float32](t, written)
				wantFloat := slices.Clone(dstFloat)
				for x := range p.Pixels {
					for i := range values {
						var v uint64
						best := floats[x*p.Step+p.Taps[0]+i]
						for _, at := range p.Taps {
							v |= src[x*p.Step+at+i]
							if f := floats[x*p.Step+at+i]; f > best {
								best = f
							}
						}
						want[x*p.DstStep+i], wantFloat[x*p.DstStep+i] = v^p.Flip, best
					}
				}
				s.OrPool(dst, src, p)
				s.MaxPool(dstFloat, floats, p)
				check()
				checkFloat()
				require.Equal(t, want, dst, "%+v", p)
				for i := range wantFloat {
					requireSame(t, wantFloat[i], dstFloat[i], p)
				}
			}
		}
	})
}

func TestNarrowAndJoin(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			src := randomWords(rng, n)
			dst := make([]uint32, n+2)
			s.Narrow(dst[1:n+1], src)
			for i, v := range src {
				require.Equal(t, uint32(v), dst[i+1])
			}
			require.Zero(t, dst[0])
			require.Zero(t, dst[n+1])

			for _, taps := range []int{1, 2, 3, 5, 32} {
				step, shift := rng.IntN(40), 1+rng.IntN(32/taps)
				from := make([]uint32, n+(taps-1)*step)
				for i := range from {
					from[i] = rng.Uint32() & (1<<shift - 1)
				}
				clear(dst)
				s.Join(dst[1:n+1], from, taps, step, shift)
				for i := range n {
					want := uint32(0)
					for k := range taps {
						want |= from[i+k*step] << (k * shift)
					}
					require.Equal(t, want, dst[i+1], "%d taps, step %d, shift %d", taps, step, shift)
				}
				require.Zero(t, dst[0])
				require.Zero(t, dst[n+1])
			}
		}
	})
}

func TestThresholdBytes(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range append([]int{192, 300, 1000}, sizes...) {
			for _, period := range []int{64, 192, 320} {
				src, bounds := randomBytes(rng, n), randomBytes(rng, period)
				dst, check := guarded[uint64](t, (n+63)/64)
				s.ThresholdBytes(dst, src, bounds)
				check()
				for i := range 64 * len(dst) {
					want := i < n && src[i] >= bounds[i%period]
					require.Equal(t, want, dst[i/64]>>(i%64)&1 == 1, "byte %d of %d", i, n)
				}
			}
		}
	})
}

func TestSpread(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
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
					require.Equal(t, want^flip, dst[p], "pixel %d of %d, %d bits", p, pixels, n)
				}
			}
		}
	})
}

func TestLumaLBPMinMax(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			for range 4 {
				rgb := randomBytes(rng, 3*n)
				grey, check := unaligned(t, n, 1)
				s.Luma(grey, rgb)
				check()
				for p, v := range grey {
					require.Equal(t, bcnn.Luma(rgb[3*p], rgb[3*p+1], rgb[3*p+2]), v)
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
					require.Equal(t, want, v)
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
