package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Weights on bits are binary only if a product of bits is enough.
func TestPrecisionOfWeights(t *testing.T) {
	for _, c := range []struct {
		weights []int8
		want    plan.Precision
	}{
		{[]int8{1, -1}, 1},
		{[]int8{1, 1}, 1},
		{[]int8{0, 1}, 2},
		{[]int8{-1, 0}, 2},
		{[]int8{0, 0}, 2},
		{[]int8{-2, 1}, 2},
		{[]int8{3, -1}, 2},
		{[]int8{2, -2}, 3},
		{[]int8{-4, 3}, 3},
		{[]int8{7, -7}, 3},
		{[]int8{-8, 7}, 4},
		{[]int8{-9, 8}, plan.Float}, // too many products of bits
	} {
		n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 2}, DType: bcnn.Float32}}}
		n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		n.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Int8: c.weights}})
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, plan.Summarize(n, p)[0].Precision, c.weights)
	}
}

// The bits of an input are those of its levels or of an image, also behind other layers.
func TestPrecisionOfInputs(t *testing.T) {
	levels := func(n int) bcnn.Op {
		q := bcnn.Quantize{Low: 0, Levels: n}
		for i := range n - 1 {
			q.Thresholds = append(q.Thresholds, float32(i))
		}
		return q
	}
	pool := bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}}
	for name, c := range map[string]struct {
		dtype bcnn.DType
		ops   []bcnn.Op
		want  plan.Precision
	}{
		"image":          {bcnn.Uint8, nil, 8},
		"of an image":    {bcnn.Uint8, []bcnn.Op{levels(3)}, 2},
		"of levels":      {bcnn.Float32, []bcnn.Op{levels(3), levels(16)}, 2},
		"{0, 1}":         {bcnn.Float32, []bcnn.Op{levels(2)}, 1},
		"three levels":   {bcnn.Float32, []bcnn.Op{levels(3)}, 2},
		"four levels":    {bcnn.Float32, []bcnn.Op{levels(4), pool}, 2},
		"sixteen levels": {bcnn.Float32, []bcnn.Op{levels(16), pool}, 4},
		"more levels":    {bcnn.Float32, []bcnn.Op{levels(17), pool}, 5},
		"bytes":          {bcnn.Float32, []bcnn.Op{levels(256)}, 8},
		"floats":         {bcnn.Float32, nil, plan.Float},
	} {
		n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 8}, DType: c.dtype}}}
		for i, op := range c.ops {
			n.Append(fmt.Sprint(i), op)
		}
		n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 2, Weights: bcnn.Weights{Bits: make([]uint64, 8)}})
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, plan.Summarize(n, p)[0].Precision, name)
	}
}

func TestMultiplications(t *testing.T) {
	m := plan.Count([]plan.LayerReport{{Precision: plan.Float, MACs: 5}, {Precision: 2, MACs: 6}, {Precision: plan.Binary, MACs: 8}, {Precision: 2, MACs: 1}})
	require.Equal(t, plan.Multiplications{{plan.Binary, 8}, {2, 7}, {plan.Float, 5}}, m)
	require.EqualValues(t, []int64{20, 7, 0}, []int64{m.All(), m.Of(2), m.Of(8)})
	require.Equal(t, "40.0 % binary, 35.0 % 2-bit, 25.0 % float32", m.String())
	require.Equal(t, "0.0 % binary, 100.0 % 8-bit", plan.Multiplications{{8, 3}}.String())
	require.Equal(t, "none", plan.Count(nil).String())
}
