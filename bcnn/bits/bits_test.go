package bits

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var channelCounts = []int{1, 3, 31, 32, 33, 63, 64, 65, 96, 128, 130, 256, 512}

func randomRow(rng *rand.Rand, n int) []int8 {
	row := make([]int8, n)
	for i := range row {
		row[i] = int8(2*rng.IntN(2) - 1)
	}
	return row
}

func TestPackIsLSBFirstAndUnpackIsItsInverse(t *testing.T) {
	for _, n := range channelCounts {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			const rows = 3
			src := randomRow(rng, rows*n)
			packed := make([]uint64, rows*Words(n))
			for i := range packed {
				packed[i] = ^uint64(0) // Pack must overwrite padding too
			}
			Pack(packed, src, n)
			require.NoError(t, CheckPadding(packed, n))
			for i, v := range src {
				row := packed[i/n*Words(n):][:Words(n)]
				require.Equal(t, int(v), At(row, i%n))
				bit := row[i%n/64] >> (i % n % 64) & 1
				require.Equal(t, v == 1, bit == 1)
			}
			back := make([]int8, rows*n)
			Unpack(back, packed, n)
			require.Equal(t, src, back)
		})
	}
}

func TestZeroPacksAsMinusOne(t *testing.T) {
	packed := []uint64{0}
	Pack(packed, []float32{0, 1e-30, -0.5, 2}, 4)
	require.Equal(t, []uint64{0b1010}, packed)
}

func TestAppendAndSliceMoveBits(t *testing.T) {
	for _, n := range channelCounts {
		for _, at := range []int{0, 1, 31, 32, 63, 64, 65, 100} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(at)))
			row := randomRow(rng, n)
			packed := make([]uint64, Words(n))
			Pack(packed, row, n)

			long := make([]uint64, Words(at+n))
			Append(long, at, packed, n)
			for c := range row {
				require.Equal(t, int(row[c]), At(long, at+c), "n=%d at=%d c=%d", n, at, c)
			}
			cut := make([]uint64, Words(n))
			Slice(cut, long, at, n)
			require.Equal(t, packed, cut, "n=%d at=%d", n, at)
		}
	}
}

func TestTailMask(t *testing.T) {
	require.Equal(t, uint64(1), TailMask(1))
	require.Equal(t, ^uint64(0)>>1, TailMask(63))
	require.Equal(t, ^uint64(0), TailMask(64))
	require.Equal(t, uint64(1), TailMask(65))
}

func TestCheckPaddingNamesTheRow(t *testing.T) {
	require.NoError(t, CheckPadding([]uint64{7, 7}, 3))
	require.ErrorContains(t, CheckPadding([]uint64{7, 15}, 3), "row 1")
	require.NoError(t, CheckPadding([]uint64{^uint64(0)}, 64))
}
