package pixelwise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ladder counts as comparisons one after the other do, wherever thresholds stand.
func TestLadder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	inf := float32(math.Inf(1))
	even := make([]float32, 255)
	flat := make([]float32, 255)
	for i := range even {
		even[i] = float32(7*i - 900)
		flat[i] = min(max(even[i], -300), 400)
	}
	uneven := make([]float32, 255)
	for i := range uneven {
		uneven[i] = float32(math.Exp(r.Float64()*40 - 20))
	}
	slices.Sort(uneven)
	for name, list := range map[string][]float32{
		"even": even, "flat ends": flat, "uneven": uneven, "one value": slices.Repeat([]float32{3}, 255),
		"two values": append(slices.Repeat([]float32{3}, 100), slices.Repeat([]float32{4}, 155)...),
		"infinite":   append(append([]float32{-inf, -inf, -math.MaxFloat32}, even...), math.MaxFloat32, inf),
		"far end":    append(slices.Clone(even), 1e9),
	} {
		l := newLadder(list)
		values := []float32{float32(math.NaN()), inf, -inf, 0, math.MaxFloat32, -math.MaxFloat32}
		for _, x := range list {
			values = append(values, x, math.Nextafter32(x, inf), math.Nextafter32(x, -inf), x+3.5*r.Float32())
		}
		for _, v := range values {
			want := 0
			for _, x := range list {
				if v >= x {
					want++
				}
			}
			require.Equal(t, want, l.reached(v), "%s: %v", name, v)
		}
	}
}
