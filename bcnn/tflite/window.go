package tflite

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// maxSide is the largest kernel, stride or dilation.
const maxSide = 1 << 16

// padValid is the kind of padding that pads nothing.
const padValid = 1

// geometry is a sliding window as files describe it.
type geometry struct {
	kh, kw, sh, sw, dh, dw int
	valid                  bool
}

// windowed reads the padding and the strides that convolutions and pools have in common.
func windowed(o *schema.Operator) geometry {
	return geometry{
		dh: 1, dw: 1, valid: o.Options.Uint8(0, 0) == padValid,
		sw: int(o.Options.Int32(1, 0)), sh: int(o.Options.Int32(2, 0)),
	}
}

// window returns the window over a value, and the shape of what it makes of it, with the same channels.
func (g geometry) window(v *value) (bcnn.Window, bcnn.Shape) {
	b := v.blocks
	if !b.some() {
		b.h, b.w = 1, 1
	} else if g.sh != 1 || g.sw != 1 {
		try.Failf("between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND only a stride of 1 is supported, not %d×%d", g.sh, g.sw)
	}
	// A step in one of the images of a block is one over all of them.
	w := bcnn.Window{KH: g.kh, KW: g.kw, StrideH: g.sh, StrideW: g.sw, DilationH: g.dh * b.h, DilationW: g.dw * b.w}
	for _, n := range []int{g.kh, g.kw, g.sh, g.sw, g.dh, g.dw, w.DilationH, w.DilationW} {
		if n < 1 || n > maxSide {
			try.Failf("kernel %d×%d, stride %d×%d, dilation %d×%d: want values from 1 to %d",
				g.kh, g.kw, g.sh, g.sw, g.dh, g.dw, maxSide)
		}
	}
	in := v.shape
	if !g.valid {
		w.Pad.Top, w.Pad.Bottom = same(in.H/b.h, g.kh, g.sh, g.dh)
		w.Pad.Left, w.Pad.Right = same(in.W/b.w, g.kw, g.sw, g.dw)
		w.Pad.Top, w.Pad.Bottom = w.Pad.Top*b.h, w.Pad.Bottom*b.h
		w.Pad.Left, w.Pad.Right = w.Pad.Left*b.w, w.Pad.Right*b.w
	}
	out := w.Output(v.shape, v.shape.C)
	if out.H < 1 || out.W < 1 {
		try.Failf("the window is larger than its padded input")
	}
	return w, out
}

// same returns the padding with which a window has ⌈size/stride⌉ positions.
func same(size, kernel, stride, dilation int) (before, after int) {
	out := (size + stride - 1) / stride
	total := max((out-1)*stride+(kernel-1)*dilation+1-size, 0)
	return total / 2, total - total/2
}
