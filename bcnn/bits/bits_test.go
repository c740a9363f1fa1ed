package bits

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestCopyMovesBits compares with one bit at a time.
func TestCopyMovesBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	random := func(n int) []uint64 {
		words := make([]uint64, n)
		for i := range words {
			words[i] = rng.Uint64()
		}
		return words
	}
	for range 5000 {
		n, at, from := rng.IntN(200), rng.IntN(130), rng.IntN(130)
		src := random(Words(from + n))
		dst := random(Words(at+n) + rng.IntN(2))
		before := slices.Clone(dst)
		Copy(dst, at, src, from, n)
		for i := range len(dst) * WordBits {
			want := At(before, i)
			if i >= at && i < at+n {
				want = At(src, from+i-at)
			}
			require.Equal(t, want, At(dst, i), "n=%d at=%d from=%d bit %d", n, at, from, i)
		}
	}
}

func TestJoinAndSplitAreInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		n, rows, at := 1+rng.IntN(150), rng.IntN(20), rng.IntN(130)
		values := randomRow(rng, rows*n)
		apart := make([]uint64, rows*Words(n))
		Pack(apart, values, n)

		joined := make([]uint64, Words(at+rows*n)+1)
		for i := range at {
			joined[i/WordBits] |= 1 << (i % WordBits) // what stands before must stay
		}
		Join(joined, at, apart, rows, n)
		for i := range len(joined) * WordBits {
			want := -1
			switch {
			case i < at:
				want = 1
			case i < at+rows*n:
				want = int(values[i-at])
			}
			require.Equal(t, want, At(joined, i), "n=%d rows=%d at=%d bit %d", n, rows, at, i)
		}

		dense := make([]uint64, Words(rows*n))
		Join(dense, 0, apart, rows, n)
		back := make([]uint64, len(apart))
		for i := range back {
			back[i] = rng.Uint64() // padding must be overwritten
		}
		Split(back, dense, rows*n, n)
		require.Equal(t, apart, back, "n=%d rows=%d", n, rows)

		if cut := rng.IntN(n); rows > 0 && cut > 0 { // a last row that is shorter
			Split(back, dense, rows*n-cut, n)
			last := back[(rows-1)*Words(n):]
			for c := range len(last) * WordBits {
				want := -1
				if c < n-cut {
					want = At(apart[(rows-1)*Words(n):], c)
				}
				require.Equal(t, want, At(last, c))
			}
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
