package simplify_test

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// loading is what is judged of the rules.
var loading = costtest.Format[*bcnn.Network]{
	PerByte: simplify.WorkPerByte, Free: 2, Steps: 2, Soon: 16 << 20, Kinds: kinds(),
	Draw: func(program []byte) *bcnn.Network {
		h := fnv.New64()
		_, _ = h.Write(program)
		return drawNetwork(h.Sum64())
	},
	Read: func(t testing.TB, ctx context.Context, n *bcnn.Network) (size, used int64, err error) {
		m, size, used, err := simplify.Counted(ctx, n)
		if err == nil {
			require.LessOrEqual(t, len(m.Layers), 20*len(n.Layers)+100)
		}
		return size, used, err
	},
}

// TestCost simplifies every kind of network: none takes more than its size allows.
func TestCost(t *testing.T) { loading.Test(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// FuzzCost simplifies drawn networks.
func FuzzCost(f *testing.F) { loading.Fuzz(f, 1000) }

// kinds are networks of which many layers read what many others made.
func kinds() []costtest.Kind[*bcnn.Network] {
	sign, third := bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Affine{Scale: []float32{0.3}}
	half := bcnn.Quantize{Low: 0, Levels: 2, Thresholds: []float32{0.5}}
	var r *rand.Rand
	random := func(n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			w[i] = float32(r.NormFloat64())
		}
		return w
	}
	build := func(name string, least int, f func(n *bcnn.Network, many int)) costtest.Kind[*bcnn.Network] {
		return costtest.Kind[*bcnn.Network]{Name: name, N: least, Make: func(many int) *bcnn.Network {
			r = rand.New(rand.NewPCG(3, 4))
			n := network(bcnn.Shape{H: 1, W: 1, C: 4})
			f(n, many)
			return n
		}}
	}
	return []costtest.Kind[*bcnn.Network]{
		build("codes that are joined again and again", 15, func(n *bcnn.Network, many int) {
			a := then(n, third, then(n, sign, bcnn.NetworkInput))
			b := then(n, half, bcnn.NetworkInput)
			for range many {
				a = then(n, bcnn.Concat{}, a, b)
			}
		}),
		build("codes that are added again and again", 15, func(n *bcnn.Network, many int) {
			a := then(n, third, then(n, sign, bcnn.NetworkInput))
			b := then(n, half, bcnn.NetworkInput)
			for range many {
				a = then(n, bcnn.Add{}, a, b)
			}
		}),
		build("layers on codes of many scales", 20, func(n *bcnn.Network, many int) {
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
		}),
		build("functions of functions of levels", 15, func(n *bcnn.Network, many int) {
			q := bcnn.Quantize{Low: 0, Levels: 256}
			for k := range 255 {
				q.Thresholds = append(q.Thresholds, float32(k))
			}
			then(n, q)
			for range many {
				then(n, bcnn.Affine{Scale: []float32{1.001}})
			}
		}),
		build("real weights on codes", 30, func(n *bcnn.Network, many int) {
			then(n, sign)
			then(n, bcnn.Dense{Out: 30, Weights: bcnn.Weights{F32: random(4 * 30)}})
			then(n, sign)
			then(n, bcnn.Dense{Out: many, Weights: bcnn.Weights{F32: random(30 * many)}})
		}),
		build("weights that are almost multiples", 30, func(n *bcnn.Network, many int) {
			then(n, sign)
			then(n, bcnn.Dense{Out: 30, Weights: bcnn.Weights{F32: random(4 * 30)}})
			then(n, sign)
			w := draw(r, 30*many, -3, -2, -1, 1, 2, 3)
			for o := range many {
				w[30*o+29] = 1.5
			}
			then(n, bcnn.Dense{Out: many, Weights: bcnn.Weights{F32: w}})
		}),
		build("sums with channels of zeros", 15, func(n *bcnn.Network, many int) {
			var parts, ends []int
			for k := range 16 {
				parts = append(parts, then(n, bcnn.Affine{Bias: []float32{float32(k)}}, bcnn.NetworkInput))
			}
			all := then(n, bcnn.Concat{}, parts...)
			index := make([]int32, 4*16) // of every other part
			for k := range index {
				index[k] = int32(k%8/4) - 1
			}
			zeros := then(n, bcnn.Channels{Index: index}, bcnn.NetworkInput)
			for range many {
				ends = append(ends, then(n, bcnn.Add{}, all, zeros))
			}
			then(n, bcnn.Concat{}, ends...)
		}),
		build("borders around borders", 2, func(n *bcnn.Network, many int) {
			then(n, sign)
			for range many {
				then(n, bcnn.Pixels{Rows: []int32{-1, 0}, Cols: []int32{0}, Fill: 1})
				then(n, bcnn.Pixels{Rows: []int32{1}, Cols: []int32{0}})
			}
		}),
	}
}
