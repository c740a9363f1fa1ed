package values_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/bcnn/internal/values"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// The values of all layers of the networks of the parity suite are among those that the
// analysis says.
func TestParityCases(t *testing.T) {
	known, layers := 0, 0
	for _, c := range backendtest.Cases(t, parity.Cover, parity.Cases) {
		net := c.Network()
		plan, err := lower.Network(t.Context(), net, lower.Options{Unfused: true})
		if err != nil {
			plan, err = lower.Network(t.Context(), net, lower.Options{})
		}
		require.NoError(t, err, c.Name)
		a := analysis(t, net)
		// The output of a layer is that of the last step it takes, unless a layer behind it has
		// been moved in front.
		last, moved := map[int]int{}, map[int]bool{}
		most := 0
		for i, s := range plan.Steps {
			for _, l := range s.Layers {
				most = max(most, l)
			}
			for _, l := range s.Layers {
				last[l], moved[l] = i, l < most && l == s.Layers[len(s.Layers)-1]
			}
		}
		_, err = ref.RunAll(t.Context(), plan, c.Inputs(plan, 1), func(step int, _ string, x bcnn.Tensor) {
			s := plan.Steps[step]
			if plan.Tensors[s.Out].Coded || len(s.Layers) == 0 {
				return
			}
			layer := s.Layers[len(s.Layers)-1]
			if last[layer] != step || moved[layer] {
				return
			}
			set, err := a.Of(layer)
			require.NoError(t, err)
			layers++
			if set.Only {
				known++
			}
			for _, v := range numbers(x) {
				if !contains(set, v) {
					require.Fail(t, "a value that is not in the set", "%s: layer %d (%T) gives %v, which is not in %+v", c.Name, layer, net.Layers[layer].Op, v, set)
				}
			}
		})
		require.NoError(t, err, c.Name)
	}
	t.Logf("of %d outputs of steps %d are multiples", layers, known)
	require.Positive(t, known)
}

// analysis returns that of a whole network.
func analysis(t testing.TB, net *bcnn.Network) *values.Analysis {
	shapes, err := net.Shapes()
	require.NoError(t, err)
	a := values.New(net, budget.New(t.Context(), math.MaxInt64))
	for _, s := range shapes {
		a.Append(s)
	}
	return a
}

// numbers returns the values of a tensor.
func numbers(x bcnn.Tensor) []float64 {
	var out []float64
	switch x.DType {
	case bcnn.Float32:
		for _, v := range x.F32 {
			out = append(out, float64(v))
		}
	case bcnn.Uint8:
		for _, v := range x.U8 {
			out = append(out, float64(v))
		}
	case bcnn.Bits:
		words := bits.Words(x.Shape.C)
		for pixel := range x.N * x.Shape.Pixels() {
			for c := range x.Shape.C {
				out = append(out, float64(2*int(x.Words[pixel*words+c/bits.WordBits]>>(c%bits.WordBits)&1)-1))
			}
		}
	}
	return out
}

// contains reports whether a value is one of a set.
func contains(s sets.Set, v float64) bool {
	if math.IsNaN(v) {
		return true
	}
	if v < s.Min || v > s.Max {
		return false
	}
	if !s.Only {
		return true
	}
	m := s.Often
	k := math.Round(v / m.Unit)
	off := math.Abs(v - k*m.Unit)
	if m.Rounded && off > 1e-5*max(1, math.Abs(v)) || !m.Rounded && off != 0 {
		return false
	}
	odd := math.Mod(k, 2) != 0
	return math.Abs(k)-0.5 <= m.Most/m.Unit && (odd && m.Odd || !odd && m.Even)
}
