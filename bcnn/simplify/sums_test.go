package simplify_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// TestSums looks at what is left of sums with channels of zeros.
func TestSums(t *testing.T) {
	for _, c := range []struct {
		name  string
		index []int32 // of the channels that are added to 2, 3 and 1 others
		want  []string
	}{
		{"the last part", []int32{-1, -1, -1, -1, -1, 0}, []string{"concat", "channels", "add", "concat"}},
		{"a part as it is", []int32{-1, -1, 0, 1, 2, -1}, []string{"concat", "add", "concat"}},
		{"two parts", []int32{1, 0, -1, -1, -1, 2}, []string{"concat", "channels", "add", "channels", "add", "concat"}},
		{"half of a part", []int32{-1, -1, -1, 1, 2, -1}, []string{"concat", "channels", "add"}},
		{"all zeros", []int32{-1, -1, -1, -1, -1, -1}, []string{"concat", "channels", "add"}},
		{"no zeros", []int32{0, 1, 2, 2, 1, 0}, []string{"concat", "channels", "add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, turned := range []bool{false, true} {
				n := network(bcnn.Shape{H: 2, W: 3, C: 3})
				two := then(n, bcnn.Channels{Index: []int32{0, 2}}, bcnn.NetworkInput)
				three := then(n, bcnn.Affine{Scale: []float32{2}}, bcnn.NetworkInput)
				one := then(n, bcnn.Channels{Index: []int32{1}}, bcnn.NetworkInput)
				source := then(n, bcnn.Affine{Bias: []float32{1}}, bcnn.NetworkInput)
				first := source + 1
				operands := []int{then(n, bcnn.Concat{}, two, three, one), 0}
				operands[1] = then(n, bcnn.Channels{Index: c.index}, source)
				if turned {
					slices.Reverse(operands)
				}
				then(n, bcnn.Add{}, operands...)
				n.Outputs = []int{operands[0], len(n.Layers) - 1} // one of them is still needed
				if turned {
					n.Outputs[0] = operands[1]
				}
				m, _, err := simplify.Network(t.Context(), n, simplify.Options{})
				require.NoError(t, err)
				requireSame(t, n, m, 1)
				var kinds []string
				for _, l := range m.Layers[first:] {
					kinds = append(kinds, l.Op.Kind())
				}
				require.Equal(t, c.want, kinds)
				without, found, err := simplify.Network(t.Context(), n, simplify.Options{Without: []simplify.Rule{simplify.Sums}})
				require.NoError(t, err)
				require.Same(t, n, without)
				require.Empty(t, found)
			}
		})
	}
}
