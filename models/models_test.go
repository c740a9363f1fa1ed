package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestLoad(t *testing.T) {
	labels := map[string][]string{"digits": {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}}
	inputs := map[string]bcnn.Shape{"digits": {H: 28, W: 28, C: 1}}
	require.Len(t, Names(), 5)
	for _, name := range Names() {
		n, err := Load(t.Context(), name)
		require.NoError(t, err, name)
		require.NoError(t, n.Check(), name)
		if labels[name] == nil {
			labels[name] = []string{"bike", "car", "juggernaut", "minibus", "pickup", "truck"}
			inputs[name] = bcnn.Shape{H: 96, W: 96, C: 3}
		}
		require.Equal(t, labels[name], n.Labels)
		require.Equal(t, inputs[name], n.Inputs[0].Shape)
		require.Equal(t, bcnn.Uint8, n.Inputs[0].DType)
	}
	for _, name := range []string{"planenet", "", "../models/digits", "digits.bcnn"} {
		_, err := Load(t.Context(), name)
		require.ErrorContains(t, err, "there are vehiclenet, ")
	}
}
