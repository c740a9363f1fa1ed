package sets

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func TestThreshold(t *testing.T) {
	extremes := []int32{math.MinInt32, math.MinInt32 + 1, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 3, 4, 31, 32, 33, 63, 64, 65, 100, 128, 130} {
			for _, pixels := range []int{1, 2, 5} {
				stride, step := n+rng.IntN(3), bits.Words(n)+rng.IntN(2)
				draw := func() int32 {
					if rng.IntN(3) == 0 {
						return extremes[rng.IntN(len(extremes))]
					}
					return int32(rng.IntN(5))
				}
				sums, bounds := make([]int32, pixels*stride), make([]int32, n)
				floats, floatBounds := awkwards(rng, pixels*stride), awkwards(rng, n)
				for i := range sums {
					sums[i] = draw()
				}
				for o := range bounds {
					bounds[o] = draw()
					if rng.IntN(2) == 0 {
						floatBounds[o] = floats[o] // a tie, or NaN
					}
				}
				size := (pixels-1)*step + bits.Words(n)
				got, check := guarded[uint64](t, size)
				gotFloat, checkFloat := guarded[uint64](t, size)
				want := append([]uint64(nil), got...)
				wantFloat := append([]uint64(nil), got...)
				for p := range pixels {
					row, rowFloat := make([]int8, n), make([]int8, n)
					for o := range n {
						if sums[p*stride+o] >= bounds[o] {
							row[o] = 1
						}
						if floats[p*stride+o] >= floatBounds[o] {
							rowFloat[o] = 1
						}
					}
					bits.Pack(want[p*step:], row, n)
					bits.Pack(wantFloat[p*step:], rowFloat, n)
				}
				s.Threshold(got, step, sums, stride, bounds, pixels)
				s.ThresholdFloat(gotFloat, step, floats, stride, floatBounds, pixels)
				check()
				checkFloat()
				require.Equal(t, want, got)
				require.Equal(t, wantFloat, gotFloat)
			}
		}
	})
}

func TestOr(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for n := range 40 {
			dst, check := guarded[uint64](t, n)
			src := make([]uint64, n)
			want := make([]uint64, n)
			for i := range dst {
				dst[i], src[i] = rng.Uint64(), rng.Uint64()
				want[i] = dst[i] | src[i]
			}
			s.Or(dst, src)
			check()
			require.Equal(t, want, append([]uint64{}, dst...))
		}
	})
}

func TestScale(t *testing.T) {
	relu := func(v float32, on bool) float32 {
		if on && !(v > 0) {
			return 0
		}
		return v
	}
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{0, 1, 3, 4, 31, 64, 100} {
			for range 50 {
				for _, on := range []bool{false, true} {
					sums := make([]int32, n)
					for i := range sums {
						sums[i] = int32(rng.Uint32()) >> rng.IntN(32)
					}
					floats := awkwards(rng, n)
					scale, shift := awkwards(rng, n), awkwards(rng, n)
					scaled, check := guarded[float32](t, n)
					plain, checkPlain := guarded[float32](t, n)
					s.Scale(scaled, sums, scale, shift, on)
					s.Scale(plain, sums, nil, nil, on)
					for o, v := range sums {
						requireSame(t, relu(f32.FMA(float32(v), scale[o], shift[o]), on), scaled[o], v)
						requireSame(t, relu(float32(v), on), plain[o], v)
					}
					s.ScaleFloat(scaled, floats, scale, shift, on)
					s.ScaleFloat(plain, floats, nil, nil, on)
					for o, v := range floats {
						requireSame(t, relu(f32.FMA(v, scale[o], shift[o]), on), scaled[o], v)
						requireSame(t, relu(v, on), plain[o], v)
					}
					check()
					checkPlain()
					s.ScaleFloat(floats, floats, scale, shift, on) // in place
					for o := range floats {
						requireSame(t, scaled[o], floats[o])
					}
				}
			}
		}
	})
}

func TestAddFMAEachChoose(t *testing.T) {
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

func TestActivationsMulDivide(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			for range 40 {
				x, slope := awkwards(rng, n), awkwards(rng, n)
				dst, check := guarded[float32](t, n)
				copy(dst, x)
				s.PReLU(dst, slope)
				check()
				for i, v := range x {
					if v < 0 {
						v *= slope[i]
					}
					requireSame(t, v, dst[i], x[i], slope[i])
				}
				bounds := awkwards(rng, 2)
				if low, high := bounds[0], bounds[1]; low <= high {
					copy(dst, x)
					s.Clip(dst, low, high)
					check()
					for i, v := range x {
						if !(v > low) {
							v = low
						}
						if !(v < high) {
							v = high
						}
						requireSame(t, v, dst[i], x[i], low, high)
					}
				}
				s.Mul(dst, x, slope)
				check()
				for i, v := range x {
					requireSame(t, v*slope[i], dst[i], v, slope[i])
				}
				taps := float32(1 + rng.IntN(1<<(1+rng.IntN(22))))
				y := 1 / taps
				copy(dst, x)
				s.Divide(dst, taps, y)
				check()
				for i, v := range x {
					q := v * y
					requireSame(t, f32.FMA(f32.FMA(-taps, q, v), y, q), dst[i], v, taps)
				}
			}
		}
	})
}
