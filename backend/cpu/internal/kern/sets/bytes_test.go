package sets

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

func TestLookUpBytes(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 256, 700} {
			values := make([]float32, 256)
			for i := range values {
				values[i] = float32(rng.IntN(256))
			}
			table := kern.NewByteTable(values)
			src, want := make([]uint8, n+1), make([]uint8, n)
			dst, check := guarded[uint8](t, n)
			for first := 0; first < 256; first += 100 { // every byte
				for i := range src {
					src[i] = uint8(first + i)
				}
				for i := range want {
					want[i] = uint8(values[src[i]])
				}
				s.LookUpBytes(dst, src[:n], table)
				check()
				require.Equal(t, want, dst, "%d from %d on", n, first)
			}
		}
	})
}
