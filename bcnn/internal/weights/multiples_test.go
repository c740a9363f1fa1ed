package weights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/budget"
)

func find(t *testing.T, rows []float32, out int, signs bool, tolerance, rounding float64) ([]int8, []float32, float64) {
	t.Helper()
	integers, alpha, deviation, err := multiples(budget.New(t.Context(), math.MaxInt64), rows, out, signs, tolerance, rounding)
	require.NoError(t, err)
	return integers, alpha, deviation
}

// Weights as DoReFa makes them, 2·round(w·n)/n − 1, times a factor of the filter, all
// rounded to float32, are the odd integers 2·round(w·n) − n.
func TestRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for bits := 1; bits <= 7; bits++ {
		t.Run(fmt.Sprint(bits, " bits"), func(t *testing.T) {
			const out, size = 5, 200
			n := float32(int(1)<<bits - 1)
			var rows []float32
			var want []int8
			var gains []float32
			for range out {
				gain := float32(math.Exp(r.NormFloat64()))
				gains = append(gains, gain)
				for i := range size {
					q := float32(math.Round(r.Float64() * float64(n)))
					if i < 2 { // both ends, so that α is that of all filters
						q = float32(i) * n
					}
					rows = append(rows, float32(float32(2*float32(q/n))-1)*gain)
					want = append(want, int8(2*q-n))
				}
			}
			integers, alpha, deviation := find(t, rows, out, false, 0, OfFloat32)
			require.Equal(t, want, integers)
			for o, a := range alpha {
				require.InEpsilon(t, gains[o]/n, a, 1e-6)
			}
			require.LessOrEqual(t, deviation, float64(n)*OfFloat32)
			if bits > 3 { // the same without a rounding are no multiples, but almost
				integers, _, almost := find(t, rows, out, false, 0, 0)
				require.Nil(t, integers)
				require.Equal(t, deviation, almost)
			}
		})
	}
}

func TestMultiples(t *testing.T) {
	for _, c := range []struct {
		name      string
		row       []float32
		signs     bool
		tolerance float64
		want      []int8
		alpha     float32
	}{
		{"ternary", []float32{0, -0.3, 0.3}, true, 0, []int8{0, -1, 1}, 0.3},
		{"zeros", []float32{0, 0}, false, 0, []int8{0, 0}, 1},
		{"8 bits", []float32{-128 * 0.7, 1 * 0.7, 127 * 0.7}, false, 0, []int8{-128, 1, 127}, 0.7},
		{"almost 128 times, beside -128", []float32{-128, math.Nextafter32(128, 0), 1}, false, 0, nil, 0},
		{"half as often, beside -128", []float32{-128, math.Nextafter32(128, 0), 2}, false, 0, []int8{-64, 64, 1}, 2},
		{"beyond 8 bits", []float32{128, 1}, false, 0, nil, 0},
		{"15 of signs", []float32{-15, 1}, true, 0, []int8{-15, 1}, 1},
		{"16 of signs", []float32{-16, 1}, true, 0, nil, 0},
		{"a tolerance", []float32{2, 1.01}, false, 0.02, []int8{2, 1}, 1},
		{"no tolerance", []float32{2, 1.01}, false, 0, nil, 0},
		{"infinite", []float32{float32(math.Inf(1)), 1}, false, 0, nil, 0},
		{"no number", []float32{float32(math.NaN()), 1}, false, 0, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			integers, alpha, _ := find(t, c.row, 1, c.signs, c.tolerance, OfFloat32)
			require.Equal(t, c.want, integers)
			if c.want != nil {
				require.InEpsilon(t, c.alpha, alpha[0], 1e-6)
			}
		})
	}
}

// Real weights are no multiples of anything.
func TestReal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{3, 9, 300} {
		rows := make([]float32, 20*size)
		for i := range rows {
			rows[i] = float32(r.NormFloat64())
		}
		integers, _, _ := find(t, rows, 20, false, 0, OfFloat32)
		require.Nil(t, integers)
	}
}
