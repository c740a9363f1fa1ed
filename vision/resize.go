package vision

import (
	"context"
	"image"
	"math"
	"runtime"

	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/parallel"
)

// Resizing gives the bytes of golang.org/x/image/draw.BiLinear. That computes in
// floating point with one multiplication for each colour of each pixel and tap;
// here the same weighted means are computed in whole numbers, in one pass and
// with two additions for a pixel. Where the mean is so close to the next byte
// that the rounding errors of the former could matter, they are reproduced (see
// exact.go).

// An axis resizes one dimension by a tent filter (linear interpolation), which
// is widened where it shrinks, so that every pixel counts. In units that make
// all positions whole numbers, the centre of input pixel c is at (2c+1)·out, that
// of output pixel x at (2x+1)·in, and the weight of c in x is
//
//	2·max(in, out) − |(2c+1)·out − (2x+1)·in|
//
// if that is positive.
type axis struct{ in, out int }

func (a axis) position(c int) int64 { return (2*int64(c) + 1) * int64(a.out) }
func (a axis) centre(x int) int64   { return (2*int64(x) + 1) * int64(a.in) }
func (a axis) reach() int64         { return 2 * int64(max(a.in, a.out)) }

func (a axis) weight(x, c int) int64 {
	d := a.position(c) - a.centre(x)
	return a.reach() - max(d, -d)
}

// taps returns the input pixels lo ≤ c < hi that have a weight in x.
func (a axis) taps(x int) (lo, hi int) {
	return a.behind(a.centre(x) - a.reach()), a.behind(a.centre(x) + a.reach() - 1)
}

// behind returns the first input pixel whose position is greater than at.
func (a axis) behind(at int64) int {
	out := int64(a.out)
	return int(min(max(0, (at+out)/(2*out)), int64(a.in)))
}

// total returns the sum of the weights in x.
func (a axis) total(x int) float64 {
	sum := 0.0
	for c, hi := a.taps(x); c < hi; c++ {
		sum += float64(a.weight(x, c))
	}
	return sum
}

// maxSide is the greatest length of a side that can be resized: with it the sums
// of a row fit into 63 bits.
const maxSide = 1 << 26

// rowFilter computes the weighted sums of rows.
type rowFilter struct {
	axis
	// segments are the parts of a row between the centres of output pixels,
	// where it shrinks: segment s, from segments[s] to segments[s+1], lies between
	// those of s−1 and s, and its pixels have weights in these two only.
	segments []int
	totals   []float64 // of the output pixels
}

func newRowFilter(a axis) *rowFilter {
	f := &rowFilter{axis: a, totals: make([]float64, a.out)}
	for x := range f.totals {
		f.totals[x] = a.total(x)
	}
	if a.in >= a.out {
		f.segments = make([]int, a.out+2)
		for x := range a.out {
			f.segments[x+1] = a.behind(a.centre(x))
		}
		f.segments[a.out+1] = a.in
	}
	return f
}

// apply writes the sums of R, G and B for each output pixel to dst.
func (f *rowFilter) apply(dst []float64, row []uint64) {
	if f.segments != nil {
		f.shrink(dst, row)
		return
	}
	for x := range f.out {
		var r, g, b int64
		for c, hi := f.taps(x); c < hi; c++ {
			w := f.weight(x, c)
			pr, pg, pb := unpack(row[c])
			r, g, b = r+w*pr, g+w*pg, b+w*pb
		}
		dst[3*x], dst[3*x+1], dst[3*x+2] = float64(r), float64(g), float64(b)
	}
}

// maxRun is the number of pixels whose running sums may be added in the lanes of
// packed pixels: 255·(1 + 2 + … + maxRun) is less than 1<<laneBits.
const maxRun = 127

// shrink goes from segment to segment. The weight of a pixel in the output pixel
// at the end of the segment, at(c) = position(c) − centre(s−1), rises by 2·out
// from pixel to pixel, that in the one at its beginning is 2·in − at(c): the sum
// of the pixels and the sum of their running sums are all that is needed.
func (f *rowFilter) shrink(dst []float64, row []uint64) {
	full, step := 2*int64(f.in), 2*int64(f.out)
	var lastR, lastG, lastB int64 // sums of the segment before, for its end
	for s := range f.out + 1 {
		from, to := f.segments[s], f.segments[s+1]
		var r, g, b int64    // sums of the segment
		var nr, ng, nb int64 // the same with the factors 0, 1, 2, …
		for a := from; a < to; a += maxRun {
			run := row[a:min(a+maxRun, to)]
			var sum, sums uint64
			for _, p := range run {
				sum += p
				sums += sum
			}
			// The first pixel is in all running sums of the run, the last in one.
			n := int64(a - from + len(run))
			sr, sg, sb := unpack(sum)
			tr, tg, tb := unpack(sums)
			r, g, b = r+sr, g+sg, b+sb
			nr, ng, nb = nr+n*sr-tr, ng+n*sg-tg, nb+n*sb-tb
		}
		first := f.position(from) - f.centre(s-1)
		endR, endG, endB := first*r+step*nr, first*g+step*ng, first*b+step*nb
		if s > 0 {
			d := dst[3*s-3 : 3*s]
			d[0] = float64(lastR + full*r - endR)
			d[1] = float64(lastG + full*g - endG)
			d[2] = float64(lastB + full*b - endB)
		}
		lastR, lastG, lastB = endR, endG, endB
	}
}

// bandPixels is the number of pixels that are worth a goroutine.
const bandPixels = 1 << 18

// resize resizes what is seen to size and hands the output pixels to put, packed,
// from several goroutines if the image may be read by them.
func (s seen) resize(ctx context.Context, size image.Point, put func(x, y int, p uint64)) {
	across, down := newRowFilter(axis{s.crop.Dx(), size.X}), axis{s.crop.Dy(), size.Y}
	bands := 1
	if s.shareable {
		most := 1 + int64(s.crop.Dx())*int64(s.crop.Dy())/bandPixels
		bands = int(min(int64(runtime.GOMAXPROCS(0)), int64(size.Y), most))
	}
	parallel.For(bands, func(i int) {
		s.resizeBand(ctx, across, down, size.Y*i/bands, size.Y*(i+1)/bands, put)
	})
}

// resizeBand computes the output rows from ≤ y < to. Every row of the image is
// read once and added to the output rows in which it has a weight.
func (s seen) resizeBand(ctx context.Context, across *rowFilter, down axis, from, to int, put func(x, y int, p uint64)) {
	row := make([]uint64, across.in)
	sums := make([]float64, 3*across.out)
	// Output rows that have begun and are not complete: two where the image
	// shrinks.
	open := make([][]float64, min(to-from, 2+2*(num.CeilDiv(down.out, down.in))))
	for i := range open {
		open[i] = make([]float64, len(sums))
	}
	first, _ := down.taps(from)
	_, last := down.taps(to - 1)
	begun := from
	for c := first; c < last; c++ {
		if ctx.Err() != nil {
			return
		}
		s.read(row, s.crop.Min.X, s.crop.Min.Y+c)
		across.apply(sums, row)
		for ; begun < to; begun++ {
			if lo, _ := down.taps(begun); lo > c {
				break
			}
			clear(open[begun%len(open)])
		}
		for y := from; y < begun; y++ {
			w := float64(down.weight(y, c))
			out := open[y%len(open)]
			for i, v := range sums {
				out[i] += w * v
			}
			if _, hi := down.taps(y); hi == c+1 {
				s.finish(out, across, down, y, put)
				from++
			}
		}
	}
}

// finish makes bytes of the sums of an output row.
func (s seen) finish(sums []float64, across *rowFilter, down axis, y int, put func(x, y int, p uint64)) {
	all := down.total(y)
	for x, total := range across.totals {
		// As draw does, of the mean in 16 bits the upper ones are taken.
		scale := 0x101 / (total * all)
		var p uint64
		for i, v := range sums[3*x : 3*x+3] {
			mean := v*scale + 0.5
			b := math.Floor(mean / 0x100)
			if d := mean - 0x100*b; d < margin || d > 0x100-margin {
				p = s.exactly(across.axis, down, x, y)
				break
			}
			p |= uint64(b) << (i * laneBits)
		}
		put(x, y, p)
	}
}

// margin is more than all rounding errors, here and in package draw: of at most
// 2²⁶ pixels in a window they are below 2⁻²⁶ of the greatest mean, 0xffff, for
// each of the two directions. Even colours are not that close to the next byte.
const margin = 1.0 / 64
