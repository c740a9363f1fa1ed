package sets

import (
	"math/rand/v2"
	"testing"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// pairs are the functions of kern.Pair.
var pairs = [kern.NumPairs]func(x, y float32) float32{
	kern.Mul: func(x, y float32) float32 { return x * y },
	kern.Min: func(x, y float32) float32 {
		if x < y || x != x {
			return x
		}
		return y
	},
	kern.Max: func(x, y float32) float32 {
		if x > y || x != x {
			return x
		}
		return y
	},
	kern.Mask: func(x, y float32) float32 {
		if y != 0 {
			return x
		}
		return 0
	},
}

// TestPairs has numbers, zeros of both signs, infinities and NaNs, beside equal and opposite ones.
func TestPairs(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 129, 200} {
			for _, rows := range []int{0, 1, 2, 5} {
				for range 6 {
					for p, of := range pairs {
						kernels := s.Pairs[p]
						a, b := awkwards(rng, rows*n), awkwards(rng, rows*n)
						comparePair(t, rng, of, a, b, func(i int) int { return i }, kernels.All)
						comparePair(t, rng, of, a, b[:rows], func(i int) int { return i / n }, func(dst, a, b []float32) { kernels.Each(dst, a, b, n) })
						comparePair(t, rng, of, a, awkwards(rng, n), func(i int) int { return i % n }, kernels.Rows)
					}
				}
			}
		}
	})
}

// comparePair calls a kernel that takes b[of(i)] for a[i].
func comparePair(t *testing.T, rng *rand.Rand, pair func(x, y float32) float32, a, b []float32, of func(i int) int, kernel func(dst, a, b []float32)) {
	t.Helper()
	for i, x := range a {
		switch rng.IntN(4) {
		case 0:
			b[of(i)] = x
		case 1:
			b[of(i)] = -x
		}
	}
	dst, check := guarded[float32](t, len(a))
	kernel(dst, a, b)
	check()
	for i, x := range a {
		requireSame(t, pair(x, b[of(i)]), dst[i], x, b[of(i)])
	}
	copy(dst, a)
	kernel(dst, dst, b) // in its place
	check()
	for i, x := range a {
		requireSame(t, pair(x, b[of(i)]), dst[i], x, b[of(i)])
	}
}
