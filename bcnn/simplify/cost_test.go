package simplify_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// Networks of which many layers read what many others made: none takes more than its size
// allows, which would be an error.
func TestCost(t *testing.T) {
	sign, third := bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.3}}
	half := bcnn.Quantize{Low: 0, Levels: 2, Thresholds: []float32{0.5}}
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			w[i] = float32(r.NormFloat64())
		}
		return w
	}
	const many = 1500
	for name, build := range map[string]func(n *bcnn.Network){
		"codes that are joined again and again": func(n *bcnn.Network) {
			a := then(n, third, then(n, sign, bcnn.NetworkInput))
			b := then(n, half, bcnn.NetworkInput)
			for range many {
				a = then(n, bcnn.Concat{}, a, b)
			}
		},
		"codes that are added again and again": func(n *bcnn.Network) {
			a := then(n, third, then(n, sign, bcnn.NetworkInput))
			b := then(n, half, bcnn.NetworkInput)
			for range many {
				a = then(n, bcnn.Add{}, a, b)
			}
		},
		"layers on codes of many scales": func(n *bcnn.Network) {
			var parts, ends []int
			for k := range 40 {
				s := then(n, sign, then(n, bcnn.Affine{Bias: []float32{float32(k)}}, bcnn.NetworkInput))
				parts = append(parts, then(n, bcnn.Affine{Scale: []float32{1 / float32(k+3)}}, s))
			}
			all := then(n, bcnn.Concat{}, parts...)
			for range many / 10 {
				ends = append(ends, then(n, bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: draw(r, 4*40, 0.5, -0.5)}}, all))
			}
			then(n, bcnn.Concat{}, ends...)
		},
		"functions of functions of levels": func(n *bcnn.Network) {
			q := bcnn.Quantize{Low: 0, Levels: 256}
			for k := range 255 {
				q.Thresholds = append(q.Thresholds, float32(k))
			}
			then(n, q)
			for range many {
				then(n, bcnn.Affine{Scale: []float32{1.001}})
			}
		},
		"real weights on codes": func(n *bcnn.Network) {
			then(n, sign)
			then(n, bcnn.Dense{Out: 300, Weights: bcnn.Weights{F32: random(4 * 300)}})
			then(n, sign)
			then(n, bcnn.Dense{Out: 300, Weights: bcnn.Weights{F32: random(300 * 300)}})
		},
		"weights that are almost multiples": func(n *bcnn.Network) {
			then(n, sign)
			then(n, bcnn.Dense{Out: 300, Weights: bcnn.Weights{F32: random(4 * 300)}})
			then(n, sign)
			w := draw(r, 300*300, -3, -2, -1, 1, 2, 3)
			for o := range 300 {
				w[300*o+299] = 1.5
			}
			then(n, bcnn.Dense{Out: 300, Weights: bcnn.Weights{F32: w}})
		},
		"borders around borders": func(n *bcnn.Network) {
			then(n, sign)
			for range 200 {
				then(n, bcnn.Pixels{Rows: []int32{-1, 0}, Cols: []int32{0}, Fill: 1})
				then(n, bcnn.Pixels{Rows: []int32{1}, Cols: []int32{0}})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(bcnn.Shape{H: 1, W: 1, C: 4})
			build(n)
			m, _, err := simplify.Network(t.Context(), n, simplify.Options{})
			require.NoError(t, err)
			require.LessOrEqual(t, len(m.Layers), 20*len(n.Layers)+100)
		})
	}
}
