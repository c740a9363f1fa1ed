package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAgainstBigIntegers compares with arithmetic that does not overflow.
func TestAgainstBigIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	saturated := func(v *big.Int) int {
		if v.IsInt64() && v.Int64() <= math.MaxInt {
			return int(v.Int64())
		}
		return math.MaxInt
	}
	overflows := 0
	for range 10000 {
		sizes := make([]int, rng.IntN(6))
		sum, product := big.NewInt(0), big.NewInt(1)
		for i := range sizes {
			sizes[i] = int(rng.Uint64() >> 1 >> rng.IntN(64))
			n := big.NewInt(int64(sizes[i]))
			sum.Add(sum, n)
			product.Mul(product, n)
		}
		require.Equal(t, saturated(sum), Sum(sizes...), "%d", sizes)
		require.Equal(t, saturated(product), Product(sizes...), "%d", sizes)
		if saturated(product) == math.MaxInt {
			overflows++
		}
	}
	require.Greater(t, overflows, 1000)
	require.Zero(t, Product(math.MaxInt, math.MaxInt, 0))
}

func TestDivision(t *testing.T) {
	for a := range 100 {
		for b := 1; b < 20; b++ {
			up := CeilDiv(a, b)
			require.True(t, up*b >= a && (up-1)*b < a, "%d / %d", a, b)
			require.Equal(t, up*b, RoundUp(a, b))
		}
	}
}

func TestInside(t *testing.T) {
	for start := -9; start < 9; start++ {
		for n := 1; n < 6; n++ {
			for step := 1; step < 4; step++ {
				for size := range 8 {
					from, to := Inside(start, n, step, size)
					require.True(t, 0 <= from && from <= to && to <= n)
					for i := range n {
						at := start + i*step
						require.Equal(t, 0 <= at && at < size, from <= i && i < to, "%d of %d from %d by %d in %d", i, n, start, step, size)
					}
				}
			}
		}
	}
}
