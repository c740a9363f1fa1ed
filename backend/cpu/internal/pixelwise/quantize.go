package pixelwise

import (
	"sort"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
)

// fewThresholds are compared one after the other.
const fewThresholds = 16

// quantize compiles a step that makes whole numbers of floats.
func quantize(c *schedule.Context, op *bcnn.QuantizeStep, shape bcnn.Shape) tiles.Step {
	src, dst := c.In, c.Out
	n, low := op.Levels-1, op.Low
	shared := len(op.Thresholds) == n
	do := func(_ *tiles.Scratch, image, from, to int) {
		first := (image*shape.Pixels() + from) * shape.C
		out := dst.F32[first : (image*shape.Pixels()+to)*shape.C]
		list := op.Thresholds[:n]
		for i, v := range src.F32[first:][:len(out)] {
			if !shared {
				list = op.Thresholds[i%shape.C*n:][:n]
			}
			level := low
			if n <= fewThresholds {
				for _, t := range list {
					reached := 0
					if v >= t {
						reached = 1
					}
					level += reached
				}
			} else {
				level += sort.Search(n, func(k int) bool { return !(v >= list[k]) })
			}
			out[i] = float32(level)
		}
	}
	work := float64(shape.Values()) * float64(min(n, fewThresholds)) / 2
	return c.Pixels("count thresholds", shape.Pixels(), work, do)
}
