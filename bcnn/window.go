package bcnn

// Result returns the shape of what the window makes of an image of the given
// shape, with channels channels. Height or width are 0 where it does not fit.
// Kernel, stride and dilation must be at least 1.
func (w Window) Result(in Shape, channels int) Shape {
	positions := func(size, k, stride, dilation int) int {
		span := int64(dilation) * int64(k-1)
		if int64(size) <= span {
			return 0
		}
		return (size-int(span)-1)/stride + 1
	}
	return Shape{
		H: positions(in.H+w.Pad.Top+w.Pad.Bottom, w.KH, w.StrideH, w.DilationH),
		W: positions(in.W+w.Pad.Left+w.Pad.Right, w.KW, w.StrideW, w.DilationW),
		C: channels,
	}
}

// ReadsPadding reports whether any position of the window has a padded tap; out
// is its Result.
func (w Window) ReadsPadding(in, out Shape) bool {
	return w.Pad.Top > 0 || w.Pad.Left > 0 ||
		(out.H-1)*w.StrideH+(w.KH-1)*w.DilationH >= in.H ||
		(out.W-1)*w.StrideW+(w.KW-1)*w.DilationW >= in.W
}

// Undilated returns the window with dilations that are left out made 1: pools
// need not name them.
func (w Window) Undilated() Window {
	w.DilationH, w.DilationW = max(w.DilationH, 1), max(w.DilationW, 1)
	return w
}
