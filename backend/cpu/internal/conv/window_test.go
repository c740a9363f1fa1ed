package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestWindow compares with what the taps of every output are, one by one.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[bool]int{}
	for range 2000 {
		op := &plan.Conv{
			Window: bcnn.Window{
				KH: 1 + rng.IntN(4), KW: 1 + rng.IntN(4), StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(3),
				DilationH: 1 + rng.IntN(2), DilationW: 1 + rng.IntN(2),
			},
			Groups: 2, InPlanes: rng.IntN(4),
		}
		planes := max(op.InPlanes, 1)
		image := bcnn.Shape{H: 1 + rng.IntN(12), W: 1 + rng.IntN(12), C: 6}
		if rng.IntN(2) == 0 {
			op.Pad = bcnn.Padding{Top: rng.IntN(3), Left: rng.IntN(3), Bottom: rng.IntN(3), Right: rng.IntN(3)}
		}
		out := op.Window.Output(image, 1)
		if out.H < 1 || out.W < 1 {
			continue
		}
		// Pooling may leave the last rows and columns out.
		height, width := 1+rng.IntN(out.H), 1+rng.IntN(out.W)
		w := newWindow(op, bcnn.Shape{H: image.H * planes, W: image.W, C: 6}, height, width)
		taps, padded, lastY, lastX := 0, false, 0, 0
		for y := range height {
			for x := range width {
				for ky := range w.KH {
					for kx := range w.KW {
						iy, ix := y*op.StrideH+ky*op.DilationH, x*op.StrideW+kx*op.DilationW
						for j := range planes {
							row := iy*planes + j
							lastY, lastX = max(lastY, row), max(lastX, ix)
							require.Equal(t, row, w.row(y*planes+j)+ky*w.DilationH, "%+v", w)
							taps += w.group
						}
						iy, ix = iy-op.Pad.Top, ix-op.Pad.Left
						padded = padded || iy < 0 || iy >= image.H || ix < 0 || ix >= image.W
					}
				}
			}
		}
		seen[padded]++
		rows, cols := w.span(w.rows)
		require.Equal(t, lastY+1, rows, "%+v", w)
		require.Equal(t, lastX+1, cols, "%+v", w)
		require.Equal(t, padded, w.pads, "%+v", w)
		require.Equal(t, taps, w.taps()*w.rows*w.cols, "%+v", w)
	}
	require.Greater(t, min(seen[false], seen[true]), 100)
}
