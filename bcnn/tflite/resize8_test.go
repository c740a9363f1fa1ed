package tflite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// bilinearIntegers is RESIZE_BILINEAR of 8-bit integers [h][w] as TensorFlow Lite's
// reference kernel has it: ResizeBilinearInteger of
// tensorflow/lite/kernels/internal/reference/resize_bilinear.h.
func bilinearIntegers(x []int8, h, w, toH, toW int, corners, half bool) (y []float32) {
	place := func(i, from, to int) (lower, upper, part int) {
		scale := (1<<10*from + to/2) / to
		if corners && to > 1 {
			scale = (1<<10*(from-1) + (to-1)/2) / (to - 1)
		}
		at := i * scale
		if half {
			at += scale/2 - 1<<9
		}
		lower, upper = max(at/(1<<10), 0), min((at+1<<10-1)/(1<<10), from-1)
		return lower, upper, at - 1<<10*lower
	}
	for i := range toH {
		y0, y1, dy := place(i, h, toH)
		for j := range toW {
			x0, x1, dx := place(j, w, toW)
			at := func(r, c int) int { return int(x[r*w+c]) }
			sum := at(y0, x0)*(1<<10-dy)*(1<<10-dx) + at(y1, x0)*dy*(1<<10-dx) + at(y0, x1)*(1<<10-dy)*dx + at(y1, x1)*dy*dx
			round := 1 << 19
			if sum <= 0 {
				round = -round
			}
			y = append(y, float32((sum+round)/(1<<20)))
		}
	}
	return y
}

// Resized 8-bit integers are those of the reference kernel, or the report says that a few
// are next to them.
func TestResizeInt8(t *testing.T) {
	for _, c := range []struct {
		h, w, toH, toW int
		deviates       bool
	}{
		{1, 2, 1, 4, false}, {1, 2, 1, 3, false}, {1, 4, 1, 2, false}, {1, 4, 1, 1, false}, {1, 5, 1, 7, false},
		{2, 1, 4, 1, false}, {3, 1, 2, 1, false}, {1, 3, 1, 5, false}, {2, 2, 4, 4, false}, {4, 4, 2, 2, false},
		{4, 4, 8, 8, false}, {3, 3, 1, 1, false}, {2, 2, 3, 3, true}, {5, 7, 3, 4, false}, {5, 7, 3, 5, true}, {3, 3, 9, 7, true},
		{2, 2, 128, 3, false}, {2, 2, 256, 3, true},
	} {
		for _, corners := range []bool{false, true} {
			for _, half := range []bool{false, true} {
				if corners && half {
					continue // which no converter writes
				}
				t.Run(fmt.Sprintf("%d×%d to %d×%d corners %v half %v", c.h, c.w, c.toH, c.toW, corners, half), func(t *testing.T) {
					options := map[int]any{}
					if corners {
						options[2] = uint8(1)
					}
					if half {
						options[3] = uint8(1)
					}
					g := newGraph(1, int32(c.h), int32(c.w), 1)
					g.quantised(0, 0.5, -7)
					g.outputs[0] = g.add("RESIZE_BILINEAR", options, []int32{1, int32(c.toH), int32(c.toW), 1}, 0, g.ints(int32(c.toH), int32(c.toW)))
					g.quantised(g.outputs[0], 0.5, -7)
					q := make([]int8, c.h*c.w)
					for i := range q {
						q[i] = int8(201*i*i + 57*i - 100)
					}
					report, y := runInt8(t, g, q...)
					want := bilinearIntegers(q, c.h, c.w, c.toH, c.toW, corners, half)
					if len(report.Deviations) == 0 {
						require.Equal(t, want, y)
					} else {
						require.Equal(t, []string{"operator 0 (RESIZE_BILINEAR): pixels may differ by at most 1, if they are almost halfway between two integers"}, report.Deviations)
						require.InDeltaSlice(t, want, y, 1)
					}
					if !corners && !half {
						require.Equal(t, c.deviates, len(report.Deviations) > 0)
					}
				})
			}
		}
	}
	g := newGraph(1, 1, 2, 1)
	g.quantised(0, 0.5, -7)
	g.outputs[0] = g.add("RESIZE_BILINEAR", nil, []int32{1, 1, 4, 1}, 0, g.ints(1, 4))
	for _, q := range []struct {
		scale float32
		zero  int64
	}{{0.5, -8}, {0.25, -7}} {
		g.quantised(g.outputs[0], q.scale, q.zero)
		refused(t, g.encode(), "its output has another scale or zero point than its input")
	}
}
