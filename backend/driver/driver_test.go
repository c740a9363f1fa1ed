package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnavailableSaysWhy(t *testing.T) {
	b := Unavailable("cuda", "not part of this build")
	require.Equal(t, "cuda", b.Name())
	devices, err := b.Devices()
	require.Empty(t, devices)
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualError(t, err, "not available: not part of this build")
}

func TestKindNames(t *testing.T) {
	for kind, want := range map[Kind]string{
		DiscreteGPU: "discrete GPU", IntegratedGPU: "integrated GPU", CPU: "CPU", Emulated: "emulated",
		-1: "Kind(-1)", Emulated + 1: "Kind(4)",
	} {
		require.Equal(t, want, kind.String())
	}
}

func TestCheckMemory(t *testing.T) {
	c := Config{MaxBatch: 3, ArenaBytes: 10}
	require.NoError(t, c.CheckMemory(10))
	err := c.CheckMemory(11)
	require.ErrorIs(t, err, ErrTooLarge)
	require.EqualError(t, err, "too large for the device: the tensors of a batch of 3 need at least 11 bytes of memory, and the limit is 10")
}
