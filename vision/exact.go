package vision

import (
	"image"
	"math"
	"slices"
)

// exactly computes an output pixel in the order and with the roundings of
// draw.BiLinear, which goes along the rows of the upright picture first.
func (s seen) exactly(across, down axis, x, y int) uint64 {
	at := s.orientation.upright(image.Pt(x, y), image.Pt(across.out, down.out))
	if s.orientation.swaps() {
		across, down = down, across
	}
	xs, ys := across.tent(at.X), down.tent(at.Y)
	row := make([]uint64, len(xs.weights))
	var sums [3]float64
	for i, wy := range ys.weights {
		s.uprightRow(row, xs.from, ys.from+i)
		var r, g, b float64
		for j, wx := range xs.weights {
			pr, pg, pb := unpack(row[j])
			r += float64(float64(0x101*pr) * wx)
			g += float64(float64(0x101*pg) * wx)
			b += float64(float64(0x101*pb) * wx)
		}
		for k, v := range [3]float64{r, g, b} {
			mean := v * (xs.inverse / 0xffff)
			sums[k] += float64(mean * wy)
		}
	}
	var p uint64
	for k, v := range sums {
		mean := v * ys.inverse
		b := min(int32(float64(0xffff*mean)+0.5), 0xffff) >> 8
		p |= uint64(b) << (k * laneBits)
	}
	return p
}

// uprightRow reads pixels of the picture as it is seen, from (x, y) of the crop
// to the right.
func (s seen) uprightRow(dst []uint64, x, y int) {
	if !s.orientation.swaps() {
		size := s.crop.Size()
		p := s.orientation.stored(image.Pt(x, y), size)
		q := s.orientation.stored(image.Pt(x+len(dst)-1, y), size)
		s.read(dst, s.crop.Min.X+min(p.X, q.X), s.crop.Min.Y+p.Y)
		if s.orientation.mirrorsX() {
			slices.Reverse(dst)
		}
		return
	}
	for i := range dst {
		p := s.orientation.stored(image.Pt(x+i, y), s.crop.Size()).Add(s.crop.Min)
		s.read(dst[i:i+1], p.X, p.Y)
	}
}

// tent is the filter of an output pixel: the weights of the input pixels from
// a first one on, and 1 divided by their sum.
type tent struct {
	from    int
	weights []float64
	inverse float64
}

func (a axis) tent(x int) tent {
	scale := float64(a.in) / float64(a.out)
	half, narrow := 1.0, 1.0
	if scale > 1 {
		half, narrow = scale, 1/scale
	}
	centre := float64((float64(x)+0.5)*scale) - 0.5
	t := tent{from: max(0, int(math.Floor(centre-half)))}
	sum := 0.0
	for c := t.from; c < min(int(math.Ceil(centre+half)), a.in); c++ {
		w := max(0, 1-math.Abs((centre-float64(c))*narrow))
		t.weights = append(t.weights, w)
		sum += w
	}
	t.inverse = 1 / sum
	return t
}
