package tflite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// weightsOf returns the weights of a network's first layer that has some.
func weightsOf(t *testing.T, net *bcnn.Network) (kind string, w bcnn.Weights) {
	for _, l := range net.Layers {
		switch op := l.Op.(type) {
		case bcnn.Dense:
			return "dense", op.Weights
		case bcnn.Conv2D:
			return "conv", op.Weights
		}
	}
	t.Fatal("no layer with weights")
	return "", bcnn.Weights{}
}

// TestFactors imports rows of weights behind a SIGN: only those that are ±α for one α > 0 of
// each row are bits; multiples of α are integers, others stay floats. All compute the same.
func TestFactors(t *testing.T) {
	for _, c := range []struct {
		rows [2][3]float32
		want string
	}{
		{[2][3]float32{{1, -1, 1}, {-1, 1, 1}}, "bits"},
		{[2][3]float32{{0.5, 0.5, -0.5}, {-3, -3, 3}}, "bits"},
		{[2][3]float32{{-0.5, 0.5, 0.5}, {3, 3, 3}}, "bits"},
		{[2][3]float32{{1, 1, 1}, {1, 1, 1}}, "bits"},
		{[2][3]float32{{1, -1, 1}, {1, 3, -1}}, "integers"},
		{[2][3]float32{{1, -1, 1}, {1, 0, -1}}, "integers"},
		{[2][3]float32{{0, -1, 1}, {1, 1, -1}}, "integers"},
		{[2][3]float32{{1, -1, 1}, {2, 3, 1}}, "integers"},
		{[2][3]float32{{1, -1, 1}, {1, -1.7, 0.0703125}}, "floats"},
		{[2][3]float32{{1.3, -0.0703125, 1}, {1, -1, 1}}, "floats"},
	} {
		for _, sign := range []bool{true, false} {
			t.Run(fmt.Sprint(c.rows, sign), func(t *testing.T) {
				g := newGraph(1, 3)
				g.tensors[1].dims = []int32{1, 2}
				x := int32(0)
				if sign {
					x = g.add("SIGN", nil, []int32{1, 3}, 0)
				}
				var list []float32
				for _, row := range c.rows {
					list = append(list, row[:]...)
				}
				g.operators = append(g.operators, testOperator{name: "FULLY_CONNECTED", inputs: []int32{x, g.floats([]int32{2, 3}, list...), -1}, outputs: []int32{1}})
				input := []float32{2, -3, -0.5}
				net, got := runGraph(t, g, input...)
				want := make([]float32, 2)
				for i, row := range c.rows {
					for k, w := range row {
						v := input[k]
						if sign {
							v = map[bool]float32{true: 1, false: -1}[v > 0]
						}
						want[i] += w * v
					}
				}
				require.InDeltaSlice(t, want, got, 1e-6)
				_, w := weightsOf(t, net)
				kind := map[bool]string{w.Bits != nil: "bits", w.Int8 != nil: "integers", w.F32 != nil: "floats"}[true]
				if sign {
					require.Equal(t, c.want, kind)
				} else if c.want != "bits" {
					require.Equal(t, "floats", kind)
				}
			})
		}
	}
}

// Operators on constants are computed while importing; an activation behind one is refused.
func TestActivationsOnConstants(t *testing.T) {
	for _, act := range []uint8{actNone, 1, 2, 3} {
		for name, want := range map[string]float32{"ADD": -1, "SUB": -5, "MUL": -6} {
			g := newGraph(1, 2)
			c := g.add(name, map[int]any{0: act}, []int32{1}, g.floats([]int32{1}, -3), g.floats([]int32{1}, 2))
			g.operators = append(g.operators, testOperator{name: "ADD", inputs: []int32{0, c}, outputs: []int32{1}})
			if act != actNone {
				refused(t, g.encode(), fmt.Sprintf("option fused_activation_function = %d is not supported here, only 0", act))
				continue
			}
			_, got := runGraph(t, g, 10, 20)
			require.Equal(t, []float32{10 + want, 20 + want}, got, name)
		}
	}
}

// align_corners puts the outer pixels onto each other; of one pixel there is no distance.
func TestAlignCorners(t *testing.T) {
	corners := map[string]int{"RESIZE_NEAREST_NEIGHBOR": 0, "RESIZE_BILINEAR": 2}
	for _, c := range []struct {
		name string
		to   int32
		want []float32
	}{
		{"RESIZE_NEAREST_NEIGHBOR", 1, []float32{0}},
		{"RESIZE_NEAREST_NEIGHBOR", 2, []float32{0, 4}},
		{"RESIZE_NEAREST_NEIGHBOR", 3, []float32{0, 2, 4}},
		{"RESIZE_NEAREST_NEIGHBOR", 4, []float32{0, 1, 3, 4}},
		{"RESIZE_BILINEAR", 1, []float32{0}},
		{"RESIZE_BILINEAR", 2, []float32{0, 4}},
		{"RESIZE_BILINEAR", 3, []float32{0, 2, 4}},
		{"RESIZE_BILINEAR", 9, []float32{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4}},
	} {
		g := newGraph(1, 1, 5, 1)
		g.tensors[1].dims = []int32{1, 1, c.to, 1}
		g.operators = []testOperator{{name: c.name, inputs: []int32{0, g.ints(1, c.to)}, outputs: []int32{1}, options: map[int]any{corners[c.name]: uint8(1)}}}
		_, got := runGraph(t, g, 0, 1, 2, 3, 4)
		require.Equal(t, c.want, got, "%s to %d", c.name, c.to)
	}
}

// Signs whose pixels are repeated stay signs, so that layers behind are of bits; what
// interpolates between them has other values.
func TestSignsResized(t *testing.T) {
	for name, binary := range map[string]bool{"RESIZE_NEAREST_NEIGHBOR": true, "RESIZE_BILINEAR": false} {
		g := newGraph(1, 1, 2, 8)
		s := g.add("SIGN", nil, []int32{1, 1, 2, 8}, 0)
		r := g.add(name, nil, []int32{1, 1, 4, 8}, s, g.ints(1, 4))
		g.tensors[1].dims = []int32{1, 1}
		weights := make([]float32, 32)
		for i := range weights {
			weights[i] = []float32{1, -1, -1}[i%3]
		}
		g.operators = append(g.operators, testOperator{name: "FULLY_CONNECTED", inputs: []int32{r, g.floats([]int32{1, 32}, weights...), -1}, outputs: []int32{1}})
		x := make([]float32, 16)
		for i := range x {
			x[i] = float32(i%5) - 1.5
		}
		net, got := runGraph(t, g, x...)
		want := float32(0)
		for i, w := range weights {
			at, c := float32(i/8)/2, i%8
			sign := func(p int) float32 { return map[bool]float32{true: 1, false: -1}[x[min(p, 1)*8+c] > 0] }
			low := int(at)
			v := sign(low)
			if !binary {
				v += (sign(low+1) - v) * (at - float32(low))
			}
			want += w * v
		}
		require.Equal(t, []float32{want}, got, name)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, binary, plan.Summarize(net, p)[0].Precision < plan.Float, name)
	}
}

// A softmax with another β is that of β·x.
func TestBeta(t *testing.T) {
	for _, beta := range []float32{0.5, 1, 2, 3} {
		g := newGraph(1, 3)
		g.operators = []testOperator{{name: "SOFTMAX", inputs: []int32{0}, outputs: []int32{1}, options: map[int]any{0: beta}}}
		net, got := runGraph(t, g, -1, 0.25, 2)
		require.Equal(t, []float32{-beta, 0.25 * beta, 2 * beta}, got) // the layer gives what softmax is of
		require.IsType(t, bcnn.Softmax{}, net.Layers[len(net.Layers)-1].Op)
	}
}
