package zoo_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// Every operator is one step from bits to bits, and nothing else is in it but
// its threshold.
func TestOperators(t *testing.T) {
	names := map[string]bool{}
	for _, o := range zoo.Operators() {
		require.False(t, names[o.Name], o.Name)
		names[o.Name] = true
		require.Contains(t, zoo.OperatorGroups(), o.Group)
		p, err := lower.Network(t.Context(), o.Network(seed), lower.Options{})
		require.NoError(t, err, o.Name)
		require.Len(t, p.Steps, 3, o.Name)
		step := p.Steps[1]
		require.True(t, slices.Contains(step.Layers, 1), o.Name)
		in, out := p.Tensors[step.In[0]], p.Tensors[step.Out]
		require.Equal(t, bcnn.Bits, in.DType, o.Name)
		require.Equal(t, bcnn.Bits, out.DType, o.Name)
		require.Equal(t, o.In, in.Shape, o.Name)
		if conv, ok := step.Op.(*plan.Conv); ok {
			require.Nil(t, conv.Pool, o.Name)
			require.NotNil(t, conv.Threshold, o.Name)
			require.Equal(t, conv.Out, out.Shape.C, o.Name)
		}
	}
	for _, name := range []string{"conv2.1", "conv3.1", "conv4.1", "conv5.1", "fc6", "fc7", "pool4", "pool5"} {
		require.True(t, names[name], name)
	}
}

// The operators of BitFlow are layers of its VGG-16.
func TestOperatorsOfVGG(t *testing.T) {
	net, vgg := lowered(t, "vgg16")
	products := map[string]int64{}
	for _, r := range plan.Summarize(net, vgg) {
		products[r.Layer] = r.MACs
	}
	for _, o := range zoo.Operators() {
		if _, pool := o.Op.(bcnn.MaxPool); pool || o.Group != "bitflow" {
			continue
		}
		n := o.Network(seed)
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, products[o.Name], plan.Summarize(n, p)[0].MACs, o.Name)
	}
}
