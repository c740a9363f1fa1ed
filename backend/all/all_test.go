package all

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
)

func TestEveryBackendIsListed(t *testing.T) {
	var names []string
	for _, b := range backend.Backends() {
		names = append(names, b.Name())
		if devices, err := b.Devices(); len(devices) == 0 {
			require.ErrorIs(t, err, backend.ErrUnavailable)
		}
	}
	require.Equal(t, []string{"cpu", "cuda", "opencl"}, names)
	for _, name := range []string{"cpu", "cpu:0"} {
		d, err := backend.Open(name)
		require.NoError(t, err)
		require.Equal(t, "cpu", d.Info().ID)
		require.NotEmpty(t, d.Info().Name)
		require.Contains(t, d.Info().Detail, "threads")
	}
}
