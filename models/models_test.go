package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

func TestLoad(t *testing.T) {
	vehicles := []string{"bike", "car", "juggernaut", "minibus", "pickup", "truck"}
	for _, m := range All() {
		n, err := Load(t.Context(), m.Name)
		require.NoError(t, err, m.Name)
		require.NoError(t, n.Check(), m.Name)
		require.Equal(t, m.Name, n.Name)
		labels, shape := vehicles, bcnn.Shape{H: 96, W: 96, C: 3}
		switch m.Name {
		case "digits":
			labels, shape = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, bcnn.Shape{H: 28, W: 28, C: 1}
		case "canvas":
			labels, shape = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, bcnn.Shape{H: 96, W: 96, C: 1}
			require.Len(t, n.Detection.Heads, 2)
			require.Equal(t, bcnn.FitLetterbox, n.Inputs[0].Photo.Fit)
		case "vehicles":
			shape = bcnn.Shape{H: 128, W: 128, C: 3}
			require.Len(t, n.Detection.Heads, 2)
			require.Equal(t, bcnn.FitLetterbox, n.Inputs[0].Photo.Fit)
		case "cifar10":
			labels = []string{"Airplane", "Automobile", "Bird", "Cat", "Deer", "Dog", "Frog", "Horse", "Ship", "Truck"}
		case "streetview":
			labels = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "0"}
		case "roadsigns":
			require.Len(t, n.Labels, 44)
			labels = n.Labels
		}
		if m.Licence == bsd {
			shape = bcnn.Shape{H: 32, W: 32, C: 3}
		}
		require.Equal(t, labels, n.Labels)
		require.Equal(t, shape, n.Inputs[0].Shape)
		require.Equal(t, bcnn.Uint8, n.Inputs[0].DType)
		require.NotEmpty(t, m.On+m.Of+m.Source)
		require.Greater(t, m.Accuracy, 70.0)
	}
	require.Len(t, All(), 10)
	require.Subset(t, Names(), vehiclenet.Models())
	for _, name := range []string{"planenet", "", "../models/digits", "digits.bcnn"} {
		_, err := Load(t.Context(), name)
		require.ErrorContains(t, err, "available: vehiclenet, ")
	}
}
