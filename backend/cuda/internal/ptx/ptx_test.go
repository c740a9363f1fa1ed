package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	all := []variant{{53, 60}, {61, 60}, {75, 70}, {80, 71}, {90, 78}}
	for _, c := range []struct {
		capability, driver, arch int
		err                      string
	}{
		{90, 12020, 90, ""},
		{121, 12090, 90, ""},
		{90, 11080, 90, ""},
		{90, 11070, 80, ""},
		{89, 12000, 80, ""},
		{86, 11010, 80, ""},
		{86, 11000, 75, ""},
		{86, 10020, 61, ""},
		{72, 9000, 61, ""},
		{60, 9000, 53, ""},
		{53, 10020, 53, ""},
		{53, 8000, 0, "supports CUDA 8.0, and the kernels need 9.0"},
		{52, 12000, 0, "compute capability 5.2, and 5.3 is needed"},
	} {
		v, err := choose(all, c.capability, c.driver)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.arch, v.arch, c)
	}
	_, err := choose(nil, 90, 12000)
	require.Error(t, err)

	embedded, err := variants()
	require.NoError(t, err)
	for _, jetpack := range []struct{ capability, driver, arch int }{ // docs/gpu.md
		{53, 10020, 53}, {62, 10020, 61}, {72, 10020, 61}, // 4.6: Nano, TX2, Xavier
		{72, 11040, 61}, {87, 11040, 80}, // 5: Xavier, Orin
		{87, 12020, 80}, {87, 12060, 80}, // 6.0, 6.1: Orin
	} {
		arch, err := Choose(jetpack.capability, jetpack.driver)
		require.NoError(t, err)
		require.Equal(t, jetpack.arch, arch, jetpack)
	}
	require.Equal(t, 53, embedded[0].arch)
	require.Equal(t, 9000, embedded[0].driver())
	arch, err := Choose(90, 12020)
	require.NoError(t, err)
	require.Equal(t, 90, arch)
	_, err = Choose(52, 12020)
	require.ErrorContains(t, err, "is needed")
	require.Equal(t, "12.2", Version(12020))

	for _, c := range []struct {
		capability, driver int
		bits, bytes        bool
	}{{90, 12000, true, false}, {90, 12040, true, true}, {90, 12030, true, false}, {90, 11080, false, false}, {89, 12060, false, false}, {100, 12080, false, false}} {
		bits, bytes := Warpgroups(c.capability, c.driver)
		require.Equal(t, []bool{c.bits, c.bytes}, []bool{bits, bytes}, c)
	}
}
