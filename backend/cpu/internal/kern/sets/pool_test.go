package sets

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func TestPools(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, values := range []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 48, 70, 300, 431} {
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
				bytes := make([]uint8, read)
				for i := range bytes {
					bytes[i] = uint8(rng.Uint32())
				}
				dstBytes, checkBytes := guarded[uint8](t, written)
				wantBytes := slices.Clone(dstBytes)
				for x := range p.Pixels {
					for i := range values {
						var v uint8
						for _, at := range p.Taps {
							v = max(v, bytes[x*p.Step+at+i])
						}
						wantBytes[x*p.DstStep+i] = v
					}
				}
				s.MaxPoolBytes(dstBytes, bytes, p)
				checkBytes()
				require.Equal(t, wantBytes, dstBytes, "%+v", p)
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

func TestMean(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 3, 4, 5, 8, 15, 16, 17, 33, 64, 70, 130} {
			for _, runs := range []int{1, 2, 4, 9, 49} {
				for _, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 25} {
					at, _, values := floatPatches(rng, pixels, runs, 1)
					if rng.IntN(2) == 0 {
						at, _, values = slidingPatches(rng, pixels, 1+rng.IntN(4), 2+rng.IntN(2), 1+rng.IntN(2))
					}
					src := awkwards(rng, values+n-1)
					taps := float32(1 + rng.IntN(60))
					dst, check := guarded[float32](t, pixels*n)
					s.Mean(dst, src, at, n, taps, 1/taps)
					check()
					for p := range pixels {
						for c := range n {
							var sum float32
							for _, r := range at.Runs {
								sum += src[p*at.Step+r.Src+c]
							}
							q := sum * (1 / taps)
							want := f32.FMA(f32.FMA(-taps, q, sum), 1/taps, q)
							requireSame(t, want, dst[p*n+c], n, runs, p, c)
						}
					}
				}
			}
		}
	})
}

// TestMeanSigns has some of the bits alike in all taps, so that there are means of −1 and 1.
func TestMeanSigns(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 8, 16, 20, 63, 64, 65, 128, 200} {
			for _, taps := range []int{1, 4, 7, 9, 14, 15, 16, 63, 64, 65, 255, 256, 600} {
				words := (n + 63) / 64
				p := &kern.Pool{Values: words, Step: 1 + rng.IntN(4), Pixels: 1 + rng.IntN(4)}
				for range taps {
					p.Taps = append(p.Taps, rng.IntN(30))
				}
				src := randomWords(rng, (p.Pixels-1)*p.Step+30+words)
				set, clear := rng.Uint64()&rng.Uint64(), rng.Uint64()&rng.Uint64()
				for i := range src {
					src[i] = src[i]&^clear | set
				}
				dst, check := guarded[float32](t, p.Pixels*n)
				divisor := float32(taps + rng.IntN(3)) // more where the padding counts
				if rng.IntN(2) == 0 {
					divisor = float32(taps + rng.IntN(1<<rng.IntN(22)))
				}
				y := 1 / divisor
				s.MeanSigns(dst, src, n, p, divisor, y)
				check()
				for x := range p.Pixels {
					for c := range n {
						sum := 0
						for _, at := range p.Taps {
							sum += 2*int(src[x*p.Step+at+c/64]>>(c%64)&1) - 1
						}
						q := float32(sum) * y
						want := f32.FMA(f32.FMA(-divisor, q, float32(sum)), y, q)
						requireEqual(t, math.Float32bits(want), math.Float32bits(dst[x*n+c]), "%d channels, %d taps, pixel %d, channel %d", n, taps, x, c)
					}
				}
			}
		}
	})
}
