package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// TestWindow compares with what the taps of every output are, one by one.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[bool]int{}
	for range 2000 {
		w := window{
			Window: bcnn.Window{
				KH: 1 + rng.IntN(4), KW: 1 + rng.IntN(4), StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(3),
				DilationH: 1 + rng.IntN(2), DilationW: 1 + rng.IntN(2),
			},
			image: bcnn.Shape{H: 1 + rng.IntN(12), W: 1 + rng.IntN(12), C: 6}, groups: 2, group: 3,
		}
		if rng.IntN(2) == 0 {
			w.Pad = bcnn.Padding{Top: rng.IntN(3), Left: rng.IntN(3), Bottom: rng.IntN(3), Right: rng.IntN(3)}
		}
		out := w.Output(w.image, 1)
		if out.H < 1 || out.W < 1 {
			continue
		}
		// Pooling may leave the last rows and columns out.
		w.rows, w.cols = 1+rng.IntN(out.H), 1+rng.IntN(out.W)
		taps, padded, lastY, lastX := 0, false, 0, 0
		for y := range w.rows {
			for x := range w.cols {
				for ky := range w.KH {
					for kx := range w.KW {
						iy, ix := y*w.StrideH+ky*w.DilationH, x*w.StrideW+kx*w.DilationW
						lastY, lastX = max(lastY, iy), max(lastX, ix)
						iy, ix = iy-w.Pad.Top, ix-w.Pad.Left
						padded = padded || iy < 0 || iy >= w.image.H || ix < 0 || ix >= w.image.W
						taps += w.group
					}
				}
			}
		}
		seen[padded]++
		rows, cols := w.span(w.rows)
		require.Equal(t, lastY+1, rows, "%+v", w)
		require.Equal(t, lastX+1, cols, "%+v", w)
		require.Equal(t, padded, w.padded(), "%+v", w)
		require.Equal(t, taps, w.taps()*w.rows*w.cols, "%+v", w)
	}
	require.Greater(t, min(seen[false], seen[true]), 100)
}
