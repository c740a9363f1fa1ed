package parity

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// tap is a read of a window: of pixel (row, col) of image n, which may be padding, for tap
// (ky, kx) of output pixel (y, x), before a fused pool.
type tap struct {
	n, row, col  int
	y, x, ky, kx int

	w             bcnn.Window
	pool          *bcnn.Window
	images, H, W  int // of the input
	height, width int // of the output, before a fused pool
}

// of returns the tap of the same number of another output pixel.
func (t tap) of(y, x int) tap {
	t.row, t.col = y*t.w.StrideH-t.w.Pad.Top+t.ky*t.w.DilationH, x*t.w.StrideW-t.w.Pad.Left+t.kx*t.w.DilationW
	return t
}

func (t tap) inside() bool { return t.row >= 0 && t.row < t.H && t.col >= 0 && t.col < t.W }

// windowOf returns the window of an operation, and the one of its fused pool.
func windowOf(op plan.Op) (w bcnn.Window, pool *bcnn.Window, ok bool) {
	switch op := op.(type) {
	case *plan.Conv:
		return op.Window, op.Pool, !op.Dense && op.InPlanes < 2 && op.Offset == nil
	case *plan.MaxPool:
		return op.Window, nil, op.Planes < 2
	case *plan.AvgPool:
		return op.Window, nil, true
	}
	return w, nil, false
}

// apart returns the operation for an input in which windows lie side by side.
func apart(op plan.Op, w bcnn.Window) plan.Op {
	w.StrideH, w.StrideW, w.DilationH, w.DilationW, w.Pad = w.KH, w.KW, 1, 1, bcnn.Padding{}
	switch op := op.(type) {
	case *plan.Conv:
		c := *op
		if c.Window = w; c.Border != nil {
			c.PadValue, c.Border = -1, nil // there is no padding
		}
		return &c
	case *plan.MaxPool:
		return &plan.MaxPool{Window: w, Flip: op.Flip}
	}
	return &plan.AvgPool{Window: w}
}

// padPixel makes a pixel what padding counts as, or returns false where no value does.
func padPixel(op plan.Op, t bcnn.Tensor, pixel int) bool {
	c, words := t.Shape.C, bits.Words(t.Shape.C)
	conv, isConv := op.(*plan.Conv)
	_, mean := op.(*plan.AvgPool)
	switch {
	case mean, isConv && t.DType == bcnn.Bits && conv.PadValue == 0:
		return false
	case isConv && t.DType == bcnn.Bits && conv.PadValue == 1:
		for i := range words {
			t.Words[pixel*words+i] = math.MaxUint64
		}
		t.Words[pixel*words+words-1] = bits.TailMask(c)
	case isConv && t.DType == bcnn.Uint8:
		for i := range c {
			t.U8[pixel*c+i] = conv.ZeroPoint
		}
	case !isConv && t.DType == bcnn.Float32:
		for i := range c {
			t.F32[pixel*c+i] = float32(math.Inf(-1))
		}
	}
	return true
}

// copyPixel copies all channels of a pixel.
func copyPixel(to bcnn.Tensor, i int, from bcnn.Tensor, k int) {
	switch c := to.Shape.C; to.DType {
	case bcnn.Uint8:
		copy(to.U8[i*c:(i+1)*c], from.U8[k*c:])
	case bcnn.Float32:
		copy(to.F32[i*c:(i+1)*c], from.F32[k*c:])
	default:
		words := bits.Words(c)
		copy(to.Words[i*words:(i+1)*words], from.Words[k*words:])
	}
}

// misread is the fault that windows read other pixels: from returns the one that is read for a
// tap, or the tap itself.
func misread(from func(t tap) tap) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		s := x.plan.Steps[step]
		w, pool, ok := windowOf(s.Op)
		if !ok {
			return nil
		}
		image := in[0].Shape
		size := w.Output(image, 1)
		t := tap{w: w, pool: pool, images: in[0].N, H: image.H, W: image.W, height: size.H, width: size.W}
		read := bcnn.NewTensor(in[0].DType, in[0].N, bcnn.Shape{H: size.H * w.KH, W: size.W * w.KW, C: image.C})
		other, known := make([]bool, in[0].N*size.Pixels()), make([]bool, in[0].N*size.Pixels())
		some := false
		for n := range in[0].N {
			for pixel := range size.Pixels() {
				at := n*size.Pixels() + pixel
				t.y, t.x, known[at] = pixel/size.W, pixel%size.W, true
				for k := range w.KH * w.KW {
					t.n, t.ky, t.kx = n, k/w.KW, k%w.KW
					right := t.of(t.y, t.x)
					wrong := from(right)
					to := (n*read.Shape.H+t.y*w.KH+t.ky)*read.Shape.W + t.x*w.KW + t.kx
					if wrong.inside() {
						copyPixel(read, to, in[0], (wrong.n*t.H+wrong.row)*t.W+wrong.col)
					} else {
						known[at] = padPixel(s.Op, read, to) && known[at]
					}
					if wrong != right && (wrong.inside() || right.inside()) {
						other[at], some = true, true
					}
				}
			}
		}
		if !some {
			return nil
		}
		made, err := x.single(s)(apart(s.Op, w), read)
		if err != nil {
			return err
		}
		kh, kw := 1, 1
		if pool != nil {
			kh, kw = pool.KH, pool.KW
		}
		take(out, made, planesOf(s.Op), func(s spot) bool {
			change, all := false, true
			for k := range kh * kw {
				at := s.n*size.Pixels() + (s.y*kh+k/kw)*size.W + s.x*kw + k%kw
				change, all = change || other[at], all && known[at]
			}
			return change && all
		})
		return nil
	}
}

// Faults of reads, by what kernels and executors do with windows.
var (
	// Tiles of 4 rows whose buffer is a row too short, so that the last one is that of the
	// tile before.
	halo = misread(func(t tap) tap {
		if t.w.KH > t.w.StrideH && t.y%4 == 3 && t.y+1 < t.height && t.ky == t.w.KH-1 && t.row >= 4*t.w.StrideH {
			t.row -= 4 * t.w.StrideH
		}
		return t
	})
	// Tiles of 8 rows that begin with padding, as the image does.
	haloAbove = misread(func(t tap) tap {
		if t.y%8 == 0 && t.y > 0 && t.ky == 0 && t.w.Pad.Top > 0 {
			t.row = -1
		}
		return t
	})
	// Tiles of 8 columns that end with padding.
	haloRight = misread(func(t tap) tap {
		if t.x%8 == 7 && t.kx == t.w.KW-1 && t.w.KW > t.w.StrideW && t.x+1 < t.width {
			t.col = t.W
		}
		return t
	})
	// Tiles of 4 columns that begin with the column before them twice.
	haloLeft = misread(func(t tap) tap {
		if t.x%4 == 0 && t.x > 0 && t.kx == 0 && t.w.KW > 1 {
			t.col = max(t.col, 0) + t.w.DilationW
		}
		return t
	})
	// Rows without a border: what lies behind them in memory is the next row.
	edgeRight = misread(func(t tap) tap {
		if t.col >= t.W && t.col < 2*t.W && t.row >= 0 && t.row+1 < t.H {
			t.row, t.col = t.row+1, t.col-t.W
		}
		return t
	})
	edgeLeft = misread(func(t tap) tap {
		if t.col < 0 && t.col >= -t.W && t.row > 0 && t.row < t.H {
			t.row, t.col = t.row-1, t.col+t.W
		}
		return t
	})
	// And that behind an image the next one.
	edgeBelow = misread(func(t tap) tap {
		if t.row >= t.H && t.row < 2*t.H && t.n+1 < t.images {
			t.n, t.row = t.n+1, t.row-t.H
		}
		return t
	})
	edgeAbove = misread(func(t tap) tap {
		if t.row < 0 && t.row >= -t.H && t.n > 0 {
			t.n, t.row = t.n-1, t.row+t.H
		}
		return t
	})
	dilatedRows = misread(func(t tap) tap {
		if t.w.DilationH > 1 && t.ky == t.w.KH-1 && t.row+1 < t.H {
			t.row++
		}
		return t
	})
	dilatedColumns = misread(func(t tap) tap {
		t.col -= t.kx * (t.w.DilationW - 1)
		return t
	})
	// Strides larger than the kernel: rows that no window reads are not loaded, but counted.
	skippedRows = misread(func(t tap) tap {
		if gap := t.w.StrideH - t.w.KH; gap > 0 && t.inside() {
			t.row = max(t.row-gap*t.y, 0)
		}
		return t
	})
	skippedColumns = misread(func(t tap) tap {
		if gap := t.w.StrideW - t.w.KW; gap > 0 && t.inside() {
			t.col = max(t.col-gap*t.x, 0)
		}
		return t
	})
	// Windows that overlap, taken for such as move by one column.
	sliding = misread(func(t tap) tap {
		if t.w.StrideW > 1 && t.w.KW > t.w.StrideW && t.inside() {
			t.col = max(t.col-t.x*(t.w.StrideW-1), 0)
		}
		return t
	})
	// The second of two pixels that are computed together.
	secondOfPair = misread(func(t tap) tap {
		if t.w.StrideW > 1 && t.x%2 == 1 {
			t.col -= t.w.StrideW - 1
		}
		return t
	})
	// Outputs that read padding alone, of which there are some where it is wider than the window.
	beyondPadding = misread(func(t tap) tap {
		if top := t.y*t.w.StrideH - t.w.Pad.Top; top+(t.w.KH-1)*t.w.DilationH < 0 {
			t.row = t.ky % t.H
		}
		return t
	})
	// A row that two windows share comes from the window before.
	sharedRow = misread(func(t tap) tap {
		if t.w.StrideH < t.w.KH && t.ky == 0 && t.y > 1 && t.row > 0 {
			t.row -= t.w.StrideH
		}
		return t
	})
	sharedColumn = misread(func(t tap) tap {
		if t.w.StrideW < t.w.KW && t.kx == t.w.KW-1 && t.x%2 == 1 && t.col > 0 {
			t.col--
		}
		return t
	})
	// Rows that fill no window of a fused pool are dropped, but the first ones.
	poolRows = misread(func(t tap) tap {
		if t.pool == nil {
			return t
		}
		return t.of(t.y+t.height%t.pool.KH, t.x)
	})
	poolColumns = misread(func(t tap) tap {
		if t.pool == nil {
			return t
		}
		return t.of(t.y, t.x+t.width%t.pool.KW)
	})
	// Pairs of pixels go on beyond the end of a row with one left over.
	poolPairs = misread(func(t tap) tap {
		if t.pool == nil || t.width < t.pool.KW {
			return t
		}
		pixel := t.y*(t.width-t.width%t.pool.KW) + t.x
		return t.of(pixel/t.width, pixel%t.width)
	})
)

// wherever is a fault of some inputs.
func wherever(is func(in bcnn.Tensor) bool, fault ranFunc) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		if !is(in[0]) {
			return nil
		}
		return fault(x, step, in, out)
	}
}

// brokenReads are faults of what windows read.
var brokenReads = []brokenDevice{
	{"a row of the next tile, of bits", in("conv of bits", halo), "conv/bits/", "(conv): image"},
	{"a row of the next tile, of bytes", in("conv of uint8", halo), "conv/bytes/", "(conv): image"},
	{"a row of the next tile, of floats", in("conv of float32", halo), "conv/float/", "(conv): image"},
	{"a row of the next tile, of pools", in("maxpool", halo), "maxpool/", "(maxpool): image"},
	{"a row of the tile before, of bits", in("conv of bits", haloAbove), "conv/bits/", "(conv): image"},
	{"a row of the tile before, of bytes", in("conv of uint8", haloAbove), "conv/bytes/", "(conv): image"},
	{"a row of the tile before, of floats", in("conv of float32", haloAbove), "conv/float/", "(conv): image"},
	{"a column of the next tile, of bits", in("conv of bits", haloRight), "conv/bits/", "(conv): image"},
	{"a column of the next tile, of floats", in("conv of float32", haloRight), "conv/float/", "(conv): image"},
	{"a column of the tile before, of bits", in("conv of bits", haloLeft), "conv/bits/", "(conv): image"},
	{"a column of the tile before, of bytes", in("conv of uint8", haloLeft), "conv/bytes/", "(conv): image"},
	{"a column of the tile before, of means", in("avgpool", haloLeft), "avgpool/", "(avgpool): image"},
	{"the next row for padding at the right", in("conv of bits", edgeRight), "conv/bits/", "(conv): image"},
	{"the next row for padding at the right, of bytes", in("conv of uint8", edgeRight), "bytes/", "(conv): image"},
	{"the next row for padding at the right, of pools", in("maxpool", edgeRight), "maxpool/", "(maxpool): image"},
	{"the row before for padding at the left", in("conv of float32", edgeLeft), "conv/float/", "(conv): image"},
	{"the row before for padding at the left, of pools", in("maxpool of bits", edgeLeft), "maxpool/", "(maxpool): image"},
	{"the next image for padding below", in("conv of bits", edgeBelow), "conv/bits/", "(conv): image 0"},
	{"the next image for padding below, of floats", in("conv of float32", edgeBelow), "conv/float/", "(conv): image 0"},
	{"the image before for padding above", in("conv of uint8", edgeAbove), "conv/bytes/", "(conv): image 1"},
	{"the image before for padding above, of pools", in("maxpool of float32", edgeAbove), "maxpool/", "(maxpool): image 1"},
	{"the row behind a dilated tap, of bits", in("conv of bits", dilatedRows), "conv/bits/", "(conv): image"},
	{"the row behind a dilated tap, of bytes", in("conv of uint8", dilatedRows), "conv/bytes/", "(conv): image"},
	{"dilated columns side by side, of bits", in("conv of bits", dilatedColumns), "conv/bits/", "(conv): image"},
	{"dilated columns side by side, of floats", in("conv of float32", dilatedColumns), "conv/float/", "(conv): image"},
	{"rows between windows, of bits", in("conv of bits", skippedRows), "conv/bits/", "(conv): image"},
	{"rows between windows, of bytes", in("conv of uint8", skippedRows), "bytes/", "(conv): image"},
	{"columns between windows, of floats", in("conv of float32", skippedColumns), "conv/float/", "(conv): image"},
	{"columns between windows, of pools", in("maxpool", skippedColumns), "maxpool/", "(maxpool): image"},
	{"columns between windows, of means", in("avgpool of float32", skippedColumns), "avgpool/", "(avgpool): image"},
	{"rows between windows, of means", in("avgpool of float32", skippedRows), "avgpool/", "(avgpool): image"},
	{"columns between windows, of means of bits", in("avgpool of bits", skippedColumns), "avgpool/", "(avgpool): image"},
	{"windows that slide by one column, of means", in("avgpool of float32", sliding), "avgpool/", "(avgpool): image"},
	{"windows that slide by one column, of means of vectors", in("avgpool of float32", wherever(func(in bcnn.Tensor) bool { return in.Shape.C >= 16 }, sliding)), "avgpool/", "(avgpool): image"},
	{"windows that slide by one column, of means of bits", in("avgpool of bits", sliding), "avgpool/", "(avgpool): image"},
	{"windows that slide by one column, of pools", in("maxpool of float32", sliding), "maxpool/", "(maxpool): image"},
	{"windows that slide by one column, of bits", in("conv of bits", sliding), "conv/bits/", "(conv): image"},
	{"windows that slide by one column, of bytes", in("conv of uint8", sliding), "conv/bytes/", "(conv): image"},
	{"windows that slide by one column, of floats", in("conv of float32", sliding), "conv/float/", "(conv): image"},
	{"the second of two pixels at a stride, of bits", in("conv of bits", secondOfPair), "conv/bits/", "(conv): image"},
	{"the second of two pixels at a stride, of bytes", in("conv of uint8", secondOfPair), "bytes/", "(conv): image"},
	{"outputs of padding alone", in("conv of bits", beyondPadding), "conv/bits/", "(conv): image"},
	{"outputs of padding alone, of floats", in("conv of float32", beyondPadding), "conv/float/", "(conv): image"},
	{"a row that two pools share", in("maxpool of bits", sharedRow), "maxpool/", "(maxpool): image"},
	{"a row that two means share", in("avgpool of float32", sharedRow), "avgpool/", "(avgpool): image"},
	{"a column that two means share", in("avgpool of float32", sharedColumn), "avgpool/", "(avgpool): image"},
	{"a column that two pools share", in("maxpool of float32", sharedColumn), "maxpool/", "(maxpool): image"},
	{"the first row that fills no pool dropped", in("conv of bits", poolRows), "conv/bits/", "(conv): image"},
	{"the first column that fills no pool dropped, of bytes", in("conv of uint8", poolColumns), "conv/bytes/", "(conv): image"},
	{"pairs of pixels across rows", in("conv of bits", poolPairs), "conv/bits/", "(conv): image"},
	{"pairs of pixels across rows, of floats", in("conv of float32", poolPairs), "conv/float/", "(conv): image"},
	// Where steps are executed together.
	{"a row of the next tile, in a network", untapped(in("conv of bits", halo)), "whole/", "output: image"},
	{"the next row for padding at the right, in a network", untapped(in("conv of uint8", edgeRight)), "whole/", "output: image"},
	{"pairs of pixels across rows, in a network", untapped(in("conv of bits", poolPairs)), "whole/", "output: image"},
}
