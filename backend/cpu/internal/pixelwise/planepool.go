package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// newPlanePool compiles a maximum of the numbers of planes.
func newPlanePool(c *schedule.Context, op *plan.MaxPool, in, out plan.Tensor) tiles.Step {
	src, dst, planes, w := c.In, c.Out, op.Planes, op.Window
	words := bits.Words(in.Shape.C)
	height, width := in.Shape.H/planes, in.Shape.W
	outH, outW := out.Shape.H/planes, out.Shape.W
	const perWord = 2 // nanoseconds for a plane
	taps := float64(min(w.KH, height)) * float64(min(w.KW, width))
	row := perWord * taps * float64(words*planes*outW)
	do := func(s *tiles.Scratch, image, y0, y1 int) {
		for y := y0; y < y1; y++ {
			to := dst.Words[(image*outH+y)*planes*outW*words:][:planes*outW*words]
			clear(to)
			top := y*w.StrideH - w.Pad.Top
			ky0, ky1 := num.Inside(top, w.KH, 1, height)
			for x := range outW {
				if taps*float64(words) > 1<<12 && s.Ended() {
					return
				}
				left := x*w.StrideW - w.Pad.Left
				kx0, kx1 := num.Inside(left, w.KW, 1, width)
				for ky := ky0; ky < ky1; ky++ {
					for kx := kx0; kx < kx1; kx++ {
						from := src.Words[(((image*height+top+ky)*planes)*width+left+kx)*words:]
						for i := range words {
							bits.MaxPlanes(to[x*words+i:], outW*words, from[i:], width*words, planes)
						}
					}
				}
			}
			for i := range to {
				if op.Flip != nil {
					to[i] ^= op.Flip[i%words]
				}
			}
		}
	}
	return c.Rows("maximum of planes", outH, row*float64(outH), do)
}
