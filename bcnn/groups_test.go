package bcnn_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// slicedConv draws a convolution of four channels in two groups as slices, convolutions
// and a concatenation, with a scale for each channel and a ReLU behind it: layers 0 to 7.
func slicedConv() drawing {
	rng := rand.New(rand.NewPCG(1, 2))
	real := func(n int) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = rng.Float32() - 0.5
		}
		return all
	}
	w := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	conv := func() bcnn.Conv2D {
		return bcnn.Conv2D{Window: w, Out: 3, Weights: bcnn.Weights{F32: real(3 * 9 * 2)}, Bias: real(3)}
	}
	return draw(bcnn.Uint8, 5, 4, 4).add("a", bcnn.Affine{Scale: real(4), Bias: real(4)}).
		add("s0", bcnn.Channels{Index: []int32{0, 1}}, 0).add("s1", bcnn.Channels{Index: []int32{2, 3}}, 0).
		add("c0", conv(), 1).add("c1", conv(), 2).add("+", bcnn.Concat{}, 3, 4).
		add("b", bcnn.Affine{Scale: real(6)}).add("r", bcnn.ReLU{})
}

// change gives layer i of a drawing another operation.
func change[T bcnn.Op](d drawing, i int, by func(*T)) {
	op := d.Layers[i].Op.(T)
	by(&op)
	d.Layers[i].Op = op
}

func TestSlicedConvolutionsAreGroups(t *testing.T) {
	for name, c := range map[string]struct {
		groups int // of the step; 0 for none
		change func(d drawing) drawing
	}{
		"as it is":       {2, func(d drawing) drawing { return d }},
		"without biases": {2, func(d drawing) drawing { change(d, 3, unbiased); change(d, 4, unbiased); return d }},
		"groups of groups": {4, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.Out, c.Groups, c.Bias = 4, 2, nil; c.Weights.F32 = c.Weights.F32[:4*9] })
			}
			change(d, 6, func(a *bcnn.Affine) { a.Scale = constant(8, 0.5) })
			return d
		}},
		"strides": {2, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.StrideH, c.StrideW = 2, 2 })
			}
			return d
		}},
		"of an image of bytes": {2, func(d drawing) drawing { d.Layers[0].Op = bcnn.Channels{Index: []int32{0, 1, 2, 3}}; return d }},
		"of signs": {2, func(d drawing) drawing {
			d.Layers[0].Op = bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{3, 4, 5, 6}}
			return d
		}},
		"read twice": {2, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 2, 2}}, 0).add("m", bcnn.Mul{}, 7, 8)
		}},
		"a slice that two read": {0, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 0, 1}}, 1).add("m", bcnn.Mul{}, 7, 8)
		}},
		"sums that two read": {0, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 2, 2}}, 3).add("m", bcnn.Mul{}, 7, 8)
		}},
		"sums that are an output": {0, func(d drawing) drawing { d.Outputs = []int{7, 3}; return d }},
		"in another order":        {0, func(d drawing) drawing { d.Layers[5].Inputs = []int{4, 3}; return d }},
		"overlapping slices":      {0, func(d drawing) drawing { d.Layers[2].Op = bcnn.Channels{Index: []int32{1, 2}}; return d }},
		"slices of two layers":    {0, func(d drawing) drawing { d.Layers[2].Inputs = []int{bcnn.NetworkInput}; return d }},
		"a function in front of the other": {0, func(d drawing) drawing {
			d.Layers[2].Op = bcnn.ReLU{}
			d.Layers[2].Inputs[0] = 1
			d.Layers[3].Inputs[0] = 2
			return d
		}},
		"a bias for one": {0, func(d drawing) drawing { change(d, 4, unbiased); return d }},
		"other windows": {0, func(d drawing) drawing {
			change(d, 4, func(c *bcnn.Conv2D) {
				c.KH, c.KW, c.Pad, c.Weights.F32 = 1, 1, bcnn.Padding{}, c.Weights.F32[:3*2]
			})
			return d
		}},
		"weights of 8 bits": {0, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.Weights = bcnn.Weights{Int8: make([]int8, 3*9*2)} })
			}
			return d
		}},
	} {
		t.Run(name, func(t *testing.T) {
			net := c.change(slicedConv()).Network
			plan := requireSameUnfused(t, net)
			groups := 0
			for i, s := range plan.Steps {
				op, ok := s.Op.(*bcnn.ConvStep)
				if !ok || op.Groups == 1 {
					continue
				}
				groups = op.Groups
				require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, s.Layers)
				require.Equal(t, 7, bcnn.Results(net, plan)[i])
			}
			require.Equal(t, c.groups, groups, strings.Join(lines(plan), "; "))
			requirePlaced(t, plan)

			unfused, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{Unfused: true})
			require.NoError(t, err)
			want := bcnn.Summarize(net, unfused)
			got := bcnn.Summarize(net, plan)
			byName := func(a, b bcnn.LayerReport) int { return strings.Compare(a.Layer, b.Layer) }
			slices.SortFunc(want, byName)
			slices.SortFunc(got, byName)
			for i := range want { // scaled bytes may be the reason that one says
				want[i].WhyFloat, got[i].WhyFloat = "", ""
			}
			require.Equal(t, want, got)
		})
	}
}

func unbiased(c *bcnn.Conv2D) { c.Bias = nil }
