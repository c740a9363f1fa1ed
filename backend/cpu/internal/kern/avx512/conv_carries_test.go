//go:build amd64 && !purego

package avx512

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func TestPickCarries(t *testing.T) {
	for _, c := range []struct {
		outputs, rows, n, times int
		carries                 bool
	}{
		{64, 3, 3 * 64, 1, false},
		{512, 3, 3 * 64, 1, true},
		{512, 3, 3 * 64, 8, false}, // patches for each block
		{64, 3, 3 * 128, 1, true},
		{128, 3, 3 * 128, 1, true},
		{100, 3, 3 * 128, 1, false}, // blocks of 64, not vectors of 16
		{256, 3, 3 * 64, 4, false},  // groups
		{256, 3, 3 * 96, 1, true},
		{128, 5, 5 * 128, 1, true},
		{256, 1, 256, 1, false},
		{512, 1, 512, 1, true},
	} {
		f := pickCarries(make([]uint64, c.outputs*c.rows*bits.Words(c.n)), c.outputs, c.rows, c.n, c.times)
		require.Equal(t, c.carries, f != nil, "%+v", c)
		if f != nil {
			require.Equal(t, "carries", f.Form)
			require.Contains(t, f.Why, "vector operations for an output")
		}
	}
}
