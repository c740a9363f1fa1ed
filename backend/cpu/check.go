package cpu

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

const (
	// maxDim bounds every size that a plan names, so that sums of a few cannot
	// overflow.
	maxDim = 1 << 24
	// maxBytes bounds the memory for tensors and workers together, if the
	// machine does not have less: no address space is larger.
	maxBytes = min(1<<42, math.MaxInt/2)
)

// product multiplies sizes that are not negative. What overflows is MaxInt,
// which no length equals.
func product(sizes ...int) int {
	p := 1
	for _, n := range sizes {
		if n != 0 && p > math.MaxInt/n {
			return math.MaxInt
		}
		p *= n
	}
	return p
}

// windowShape returns the shape of what a window makes of an image.
func windowShape(w bcnn.Window, in bcnn.Shape, channels int) bcnn.Shape {
	positions := func(size, k, stride, dilation int) int {
		span := product(dilation, k-1) // at most 2^48
		if size <= span {
			return 0
		}
		return (size-span-1)/stride + 1
	}
	return bcnn.Shape{
		H: positions(in.H+w.Pad.Top+w.Pad.Bottom, w.KH, w.StrideH, w.DilationH),
		W: positions(in.W+w.Pad.Left+w.Pad.Right, w.KW, w.StrideW, w.DilationW),
		C: channels,
	}
}

// readsPadding reports whether any output has a padded tap.
func readsPadding(w bcnn.Window, in, out bcnn.Shape) bool {
	return w.Pad.Top > 0 || w.Pad.Left > 0 ||
		(out.H-1)*w.StrideH+(w.KH-1)*w.DilationH >= in.H ||
		(out.W-1)*w.StrideW+(w.KW-1)*w.DilationW >= in.W
}

// poolWindow sets the dilation of a pool, which may be left out, to 1.
func poolWindow(w bcnn.Window) bcnn.Window {
	w.DilationH, w.DilationW = max(w.DilationH, 1), max(w.DilationW, 1)
	return w
}
