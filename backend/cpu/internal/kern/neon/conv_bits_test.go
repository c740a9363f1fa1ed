//go:build arm64 && !purego

package neon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackBits(t *testing.T) {
	const bytes, pieces = "bytes", "pieces of 128"
	inOrder := Cores{InOrder: "Cortex-A53"}
	for _, c := range []struct {
		cores   Cores
		rows, n int
		want    string
	}{
		{Cores{}, 3, 3 * 512, pieces},
		{Cores{}, 3, 3 * 128, pieces},
		{Cores{}, 3, 3 * 192, pieces}, // 72 bytes in 5 pieces
		{Cores{}, 3, 3 * 160, bytes},  // 60 bytes in 5
		{Cores{}, 3, 3 * 64, bytes},
		{Cores{}, 5, 5 * 32, bytes},
		{Cores{}, 1, 256, pieces},
		{Cores{}, 1, 128, bytes},
		{Cores{}, 1, 64, bytes},
		{Cores{}, 2, 121, pieces},
		{inOrder, 3, 3 * 128, pieces},
		{inOrder, 3, 3 * 192, bytes},
		{inOrder, 3, 3 * 64, bytes},
		{inOrder, 1, 128, bytes},
	} {
		for _, outputs := range []int{1, 20, 64, 100} {
			f := packBits(c.cores, make([]uint64, outputs*c.rows*((c.n+63)/64)), outputs, c.rows, c.n)
			require.Equal(t, c.want, f.Form, "%+v", c)
			require.NotEmpty(t, f.Why, "%+v", c)
		}
	}
}
