//go:build arm64 && !purego

package neon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackBits(t *testing.T) {
	const bytes, pieces, carries = "bytes", "pieces of 128", "carries of 128"
	inOrder, slow := Cores{InOrder: "Cortex-A53"}, Cores{SlowInsert: "Cortex-A72"}
	for _, c := range []struct {
		cores   Cores
		rows, n int
		want    string
	}{
		{Cores{}, 3, 3 * 512, carries},
		{Cores{}, 3, 3 * 128, carries},
		{Cores{}, 3, 3 * 192, carries},
		{Cores{}, 3, 3 * 160, carries},
		{Cores{}, 3, 3 * 64, carries},
		{Cores{}, 3, 3 * 32, bytes},
		{Cores{}, 5, 5 * 32, carries},
		{Cores{}, 5, 5 * 512, pieces}, // no memory for the parities
		{Cores{}, 1, 640, carries},
		{Cores{}, 1, 512, pieces},
		{Cores{}, 1, 256, pieces},
		{Cores{}, 1, 128, bytes},
		{Cores{}, 1, 64, bytes},
		{Cores{}, 2, 121, pieces},
		{slow, 3, 3 * 512, pieces},
		{slow, 3, 3 * 128, pieces},
		{slow, 3, 3 * 192, pieces}, // 72 bytes in 5 pieces
		{slow, 3, 3 * 160, bytes},  // 60 bytes in 5
		{slow, 3, 3 * 64, bytes},
		{slow, 5, 5 * 32, bytes},
		{slow, 1, 256, pieces},
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
