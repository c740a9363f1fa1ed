package bcnn

// Output returns the shape of what the window makes of an image of the given
// shape, with so many channels. Along each side it has
//
//	⌊(size + padding − dilation·(kernel − 1) − 1)/stride⌋ + 1
//
// positions, and none where it does not fit.
func (w Window) Output(in Shape, channels int) Shape {
	w = w.Normal()
	positions := func(size, kernel, stride, dilation int) int {
		span := int64(dilation) * int64(kernel-1)
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

// Normal returns the window with strides and dilations of 0 made 1.
func (w Window) Normal() Window {
	for _, p := range []*int{&w.StrideH, &w.StrideW, &w.DilationH, &w.DilationW} {
		if *p == 0 {
			*p = 1
		}
	}
	return w
}

// ReadsPadding reports whether any position of the window has a padded tap; out
// is its Output.
func (w Window) ReadsPadding(in, out Shape) bool {
	return w.Pad.Top > 0 || w.Pad.Left > 0 ||
		(out.H-1)*w.StrideH+(w.KH-1)*w.DilationH >= in.H ||
		(out.W-1)*w.StrideW+(w.KW-1)*w.DilationW >= in.W
}
