package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

// floatSource computes float32 sums in the order of the numeric contract, over
// the taps inside the image only: adding a product of 0 would turn −0 into +0.
type floatSource struct {
	window
	set     *kern.Set
	in      *bcnn.Tensor
	weights []float32 // [group][ky][kx][channel][output], or [ky][kx][channel] for each
	each    bool      // every channel has a filter of its own
	bias    []float32
	outs    int // output channels of a group
	stride  int // of the sums of a pixel

	// Pixels from from to before to of a row have all taps of a row inside the
	// image; whole says that there are kernels for such.
	whole    bool
	from, to int
	at       kern.Patches
}

func newFloatSource(c *schedule.Context, op *bcnn.ConvStep, w window, stride int) *floatSource {
	f := &floatSource{window: w, set: c.Set, in: c.In, bias: op.Bias, stride: stride, outs: op.Out / op.Groups}
	taps := w.taps()
	f.whole = c.Set.FMAPixels != nil && w.groups == 1 && w.DilationW == 1
	f.from = num.CeilDiv(w.Pad.Left, w.StrideW)
	f.to = (w.image.W-w.KW+w.Pad.Left)/w.StrideW + 1
	if w.image.W < w.KW {
		f.to = 0
	}
	rowLen := w.image.W * w.image.C
	f.at = kern.Patches{Step: w.StrideW * w.image.C, Rows: w.KH, RowStep: w.DilationH * rowLen, RowLen: w.KW * w.image.C}
	f.each = w.groups > 1 && w.group == 1 && f.outs == 1
	// The outputs that are side by side: those of a group, or one of each.
	outs := f.outs
	if f.each {
		outs = op.Out
	}
	f.weights = schedule.Share(c, func() []float32 {
		weights := make([]float32, len(op.F32))
		for o := range op.Out {
			if c.Ended() {
				break
			}
			for k := range taps {
				weights[(o/outs*taps+k)*outs+o%outs] = op.F32[o*taps+k]
			}
		}
		return weights
	})
	return f
}

func (f *floatSource) size(_, pixels int) tiles.Size {
	return tiles.Size{Floats: num.Product(pixels, f.stride)}
}

func (f *floatSource) prepare(s *tiles.Scratch, image, first, _ int) {
	s.Image, s.Base = image, first
}

func (f *floatSource) sums(s *tiles.Scratch, y, x, pixels, channel, outs int) {
	top := (s.Base+y)*f.StrideH - f.Pad.Top
	ky0, ky1 := num.Inside(top, f.KH, f.DilationH, f.image.H)
	wholeRow := f.whole && ky0 == 0 && ky1 == f.KH
	for p := 0; p < pixels; p++ {
		if wholeRow && x+p >= f.from && x+p < f.to {
			n := min(x+pixels, f.to) - (x + p)
			f.wholePatches(s, top, x+p, n, s.Floats[p*f.stride:], channel, outs)
			p += n - 1
			continue
		}
		left := (x+p)*f.StrideW - f.Pad.Left
		kx0, kx1 := num.Inside(left, f.KW, f.DilationW, f.image.W)
		acc := s.Floats[p*f.stride:][:outs]
		copy(acc, f.bias[channel:])
		for ky := ky0; ky < ky1 && kx0 < kx1; ky++ {
			row := (s.Image*f.image.H + top + ky*f.DilationH) * f.image.W
			if f.groups == 1 && f.DilationW == 1 {
				values := f.in.F32[(row+left+kx0)*f.image.C:][:(kx1-kx0)*f.image.C]
				f.set.FMA(acc, values, f.weights[(ky*f.KW+kx0)*f.group*f.outs+channel:], f.outs)
				continue
			}
			for kx := kx0; kx < kx1; kx++ {
				values := f.in.F32[(row+left+kx*f.DilationW)*f.image.C:][:f.image.C]
				f.tap(acc, values, ky*f.KW+kx, channel)
			}
		}
	}
}

// wholePatches computes sums of pixels from x on whose taps are all inside the
// image.
func (f *floatSource) wholePatches(s *tiles.Scratch, top, x, pixels int, dst []float32, channel, n int) {
	at := &s.At
	*at = f.at
	at.Pixels = pixels
	src := f.in.F32[((s.Image*f.image.H+top)*f.image.W+x*f.StrideW-f.Pad.Left)*f.image.C:]
	f.set.FMAPixels(dst, f.stride, src, at, f.weights[channel:], f.outs, f.bias[channel:][:n])
}

// tap adds one tap to the sums of all groups.
func (f *floatSource) tap(acc, values []float32, tap, channel int) {
	if f.each {
		f.set.FMAEach(acc, values, f.weights[tap*len(acc):])
		return
	}
	if f.groups == 1 {
		f.set.FMA(acc, values, f.weights[tap*f.group*f.outs+channel:], f.outs)
		return
	}
	for g := range f.groups {
		w := f.weights[(g*f.KH*f.KW+tap)*f.group*f.outs:]
		f.set.FMA(acc[g*f.outs:][:f.outs], values[g*f.group:][:f.group], w, f.outs)
	}
}
