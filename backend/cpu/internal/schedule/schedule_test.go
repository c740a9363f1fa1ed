package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/internal/num"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		threads            int
		work               float64
		rows, blocks       int
		tileRows, tileBlks int
		why                string
	}{
		{1, 1e6, 100, 4, 100, 4, "one thread"},
		{2, 100, 100, 4, 100, 4, "too little work to share"},
		{1, 20e6, 100, 1, 20, 1, "5 tiles for one thread, so that it can be interrupted"},
		{2, 1e6, 100, 4, 10, 4, "10 tiles shared by 2 threads"},
		{8, 1e6, 2, 16, 1, 1, "32 tiles shared by 8 threads"}, // too few rows
	} {
		s := Context{Threads: c.threads}
		rows, blocks, why := s.Split(c.work, c.rows, c.blocks)
		require.Equal(t, []any{c.tileRows, c.tileBlks, c.why}, []any{rows, blocks, why}, "%+v", c)
	}
}

func TestSplitKeepsItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		c := Context{Threads: 1 + rng.IntN(64)}
		rows, blocks, work := 1+rng.IntN(300), 1+rng.IntN(20), math.Exp(rng.Float64()*25)
		tileRows, tileBlocks, _ := c.Split(work, rows, blocks)
		what := fmt.Sprintf("%d threads, %g ns, %d×%d: tiles of %d×%d", c.Threads, work, rows, blocks, tileRows, tileBlocks)
		require.True(t, 1 <= tileRows && tileRows <= rows && 1 <= tileBlocks && tileBlocks <= blocks, what)
		// Both sides are rounded up, each to less than twice what is wanted.
		tile := work * float64(tileRows*tileBlocks) / float64(rows*blocks)
		require.True(t, tileRows*tileBlocks == 1 || tile <= 4*MaxTile, what)
		if tiles := num.CeilDiv(rows, tileRows) * num.CeilDiv(blocks, tileBlocks); tiles > 1 {
			require.Greater(t, work, float64(minTile), what)
		}
	}
}

// TestEveryItemIsInOneTile counts how often each row, pixel or block of images is
// computed.
func TestEveryItemIsInOneTile(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		c := Context{Threads: 1 + rng.IntN(9)}
		n, images, work := 1+rng.IntN(5000), 1+rng.IntN(3), math.Exp(rng.Float64()*20)
		times := make([]int, images*n)
		do := func(_ *tiles.Scratch, image, from, to int) {
			for i := from; i < to; i++ {
				times[image*n+i]++
			}
		}
		r := c.Rows("copy", n, work, do)
		if rng.IntN(2) == 0 {
			r = c.Pixels("copy", n, work, do)
		}
		for tile := range r.Tiles(images) {
			r.Run(tile, nil)
		}
		require.Equal(t, slices.Repeat([]int{1}, len(times)), times, "%d threads, %g ns", c.Threads, work)
		require.Equal(t, "copy", c.Choice.Kernel)
		require.Contains(t, c.Choice.Tile, Count(r.PerImage(), "tile"))
	}
}

func TestReserve(t *testing.T) {
	c := Context{Room: 100}
	require.True(t, c.Reserve(60))
	require.True(t, c.Reserve(40))
	require.False(t, c.Reserve(1))
	c = Context{Room: 100}
	require.False(t, c.Reserve(math.MaxInt))
	require.False(t, c.Reserve(math.MaxInt)) // their sum overflows
}
