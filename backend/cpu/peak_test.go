package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
)

func TestMeters(t *testing.T) {
	for _, isa := range ISAs() {
		rate, err := device{}.Peak(backend.Options{ISA: isa, Threads: 2})
		require.NoError(t, err)
		require.Positive(t, rate, isa)
	}
	_, err := device{}.Peak(backend.Options{ISA: "8080"})
	require.ErrorContains(t, err, "8080")

	for _, size := range []int64{0, 1, 4097, 1 << 20} {
		rate, err := device{}.Bandwidth(backend.Options{Threads: 2}, size)
		require.NoError(t, err)
		require.Positive(t, rate, size)
	}
	_, err = device{}.Bandwidth(backend.Options{}, -1)
	require.ErrorContains(t, err, "-1 bytes")
}
