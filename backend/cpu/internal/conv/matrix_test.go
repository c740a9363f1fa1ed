package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// TestMatrixTiles looks where the sums of every pixel are: in the row of the tile whose line is that of
// the pixel. No tile has lines behind the last pixel.
func TestMatrixTiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		rows, cols := 1+rng.IntN(60), 1+rng.IntN(60)
		pitch := cols + rng.IntN(4)
		tiles, multiplied, count := newMatrixTiles(rows, cols, pitch)
		pixels := make([]kern.MatrixPixel, rows*cols)
		line := 1 + rng.IntN(2*kern.LineBytes)
		tiles.fill(pixels, rows, cols, pitch, line, count)
		require.GreaterOrEqual(t, multiplied, rows*cols)
		require.LessOrEqual(t, multiplied, (rows-1)*pitch+cols+leastRows)
		next, left := 0, count
		for i, b := range tiles.blocks {
			require.Equal(t, next, int(b.First))
			for k := range int(b.Tiles) {
				n := tiles.rows
				if left--; left == 0 {
					n = tiles.last
				}
				require.LessOrEqual(t, int(b.Lines[k])/line+n, (rows-1)*pitch+cols)
			}
			for p := next; p < next+int(b.Pixels); p++ {
				tile, row := int(pixels[p].Sums)/kern.LineBytes/kern.TileRows, int(pixels[p].Sums)/kern.LineBytes%kern.TileRows
				require.Less(t, tile, int(b.Tiles))
				require.Less(t, row, tiles.rows)
				at := int(b.Lines[tile])/line + row
				require.Equal(t, p/cols*pitch+p%cols, at, "%d×%d, pitch %d: block %d, pixel %d", rows, cols, pitch, i, p)
			}
			next += int(b.Pixels)
		}
		require.Equal(t, rows*cols, next)
		require.Zero(t, left)
	}
}
