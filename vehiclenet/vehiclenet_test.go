package vehiclenet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func TestTopologyHasThePapersShapes(t *testing.T) {
	for _, scheme := range InputSchemes {
		n, err := Topology(scheme, 4, 1)
		require.NoError(t, err)
		shapes, err := n.Shapes()
		require.NoError(t, err)
		got := map[string]bcnn.Shape{}
		for i, l := range n.Layers {
			got[l.Name] = shapes[i]
		}
		require.Equal(t, bcnn.Shape{H: 96, W: 96, C: 32}, got["conv1"])
		require.Equal(t, bcnn.Shape{H: 48, W: 48, C: 32}, got["conv2"])
		require.Equal(t, bcnn.Shape{H: 24, W: 24, C: 32}, got["sign2"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 18432}, got["flatten"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 100}, got["dense4"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 4}, shapes[len(shapes)-1])

		same, err := Topology(scheme, 4, 1)
		require.NoError(t, err)
		require.Equal(t, n, same)
		other, err := Topology(scheme, 4, 2)
		require.NoError(t, err)
		require.NotEqual(t, n, other)
	}
	_, err := Topology("sepia", 4, 1)
	require.ErrorContains(t, err, `"sepia"`)
	_, err = Topology(LBP, 0, 1)
	require.ErrorContains(t, err, "0 classes")
}

func TestEmbeddedModels(t *testing.T) {
	schemes := map[string]InputScheme{
		"vehiclenet": NoBinarization, "vehiclenet-rgb": RGBThreshold, "vehiclenet-grey": GreyThreshold, "vehiclenet-lbp": LBP,
	}
	require.Len(t, Models(), len(schemes))
	entries, err := files.ReadDir("models")
	require.NoError(t, err)
	require.Len(t, entries, len(Models()))
	kinds := func(n *bcnn.Network) (kinds []string, shapes []bcnn.Shape) {
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		for i, s := range p.Steps {
			kinds = append(kinds, s.Kind())
			shapes = append(shapes, p.Tensors[s.Out].Shape)
			if c, ok := s.Op.(*plan.Conv); ok {
				require.Empty(t, p.Note(i).WhyFloat, s.Name)
				require.NotNil(t, c.Bits, s.Name)
			}
		}
		return kinds, shapes
	}
	for _, name := range Models() {
		t.Run(name, func(t *testing.T) {
			n, err := Load(t.Context(), name)
			require.NoError(t, err)
			gotKinds, gotShapes := kinds(n)
			require.Equal(t, []string{"bike", "car", "juggernaut", "minibus", "pickup", "truck"}, n.Labels)
			require.Equal(t, bcnn.Input{Shape: bcnn.Shape{H: 96, W: 96, C: 3}, DType: bcnn.Uint8, Resize: 100}, n.Inputs[0])
			same, err := Topology(schemes[name], 6, 1)
			require.NoError(t, err)
			wantKinds, wantShapes := kinds(same)
			require.Equal(t, wantKinds, gotKinds)
			require.Equal(t, wantShapes, gotShapes)
		})
	}
	_, err = Load(t.Context(), "planenet")
	require.ErrorContains(t, err, `"planenet"; available: vehiclenet, `)
	_, err = Load(t.Context(), "../models/vehiclenet")
	require.Error(t, err)
}
