package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
)

func TestMeters(t *testing.T) {
	for _, isa := range sets.Names() {
		rate, err := Device().Peak(backend.Options{ISA: isa, Threads: 2})
		require.NoError(t, err)
		require.Positive(t, rate, isa)
	}
	_, err := Device().Peak(backend.Options{ISA: "8080"})
	require.ErrorContains(t, err, "8080")

	for _, size := range []int64{1, 4097, 1 << 20} {
		rate, err := Device().Bandwidth(backend.Options{Threads: 2}, size)
		require.NoError(t, err)
		require.Positive(t, rate, size)
	}
	_, err = Device().Bandwidth(backend.Options{}, -1)
	require.ErrorContains(t, err, "-1 bytes")
}
