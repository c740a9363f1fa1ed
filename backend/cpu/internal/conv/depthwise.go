package conv

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// maxPlanes bounds the bits of the counts of a depthwise convolution.
const maxPlanes = 8

// depthwise is a convolution on bits in which every channel has a filter of its
// own. The number of taps in which input and filter differ is counted for 64
// channels at once: word i of the planes holds bit i of all counts, and adding
// a tap is adding a bit to numbers that lie across the words.
type depthwise struct {
	window
	epilogue
	in           *bcnn.Tensor
	outShape     bcnn.Shape
	poolH, poolW int      // 1 for no pooling
	weights      []uint64 // [ky][kx][word]
	planes       int      // bits of a count
	// bounds holds, for every border class and word, what the counts must not
	// exceed, in planes like the counts, and after them the channels that are
	// always 0.
	bounds   []uint64
	tileRows int
	rowTiles int
	long     bool // a row takes longer than a tile should
}

func newDepthwise(c *schedule.Context, op *plan.Conv, w window, out plan.Tensor) (tiles.Step, tiles.Size) {
	d := &depthwise{window: w, in: c.In, outShape: out.Shape, poolH: 1, poolW: 1}
	if op.Pool != nil {
		d.poolH, d.poolW = op.Pool.KH, op.Pool.KW
	}
	d.epilogue = newEpilogue(c, op, bcnn.Bits, num.RoundUp(op.Out, bits.WordBits))
	for 1<<d.planes <= w.taps() {
		d.planes++
	}
	d.weights = schedule.Share(c, func() []uint64 {
		weights := make([]uint64, w.taps()*d.words)
		for o := range op.Out {
			if c.Ended() {
				break
			}
			for k := range w.taps() {
				weights[k*d.words+o/bits.WordBits] |= op.Bits[o*w.taps()+k] & 1 << (o % bits.WordBits)
			}
		}
		return weights
	})
	for _, t := range d.thresholds {
		d.bounds = append(d.bounds, d.classBounds(t)...)
	}
	// About two instructions for each tap and plane of a word.
	work := float64(w.rows*w.cols*d.words) * float64(w.taps()*d.planes)
	d.tileRows, _ = sumTiles(c, op, w, bcnn.Bits, out.Shape.H, work)
	d.long = work*float64(d.poolH) > schedule.MaxTile*float64(w.rows)
	_, cols := w.span(1)
	var need tiles.Size
	for {
		height, _ := w.span(d.tileRows * d.poolH)
		need = tiles.Size{Words: num.Product(height, cols, d.words)}
		if d.tileRows == 1 || need.Words*8 <= c.L1 {
			break
		}
		d.tileRows = num.CeilDiv(d.tileRows, 2)
	}
	d.rowTiles = num.CeilDiv(out.Shape.H, d.tileRows)
	need.Row = num.Product(w.cols, d.words)
	need.Sums = d.stride
	c.Choice.Kernel = "depthwise, bit-sliced"
	c.Choice.Tile = schedule.Count(d.tileRows, "row") + ", " + schedule.Count(d.rowTiles, "tile")
	return d, need
}

// classBounds slices the thresholds of a border class: sums taps − 2·c ≥ t.
func (d *depthwise) classBounds(thresholds []int32) []uint64 {
	out := make([]uint64, d.words*(d.planes+1))
	most := 1<<d.planes - 1
	for o, t := range thresholds {
		word, bit := out[o/bits.WordBits*(d.planes+1):], uint64(1)<<(o%bits.WordBits)
		bound := most // always
		if t != math.MinInt32 {
			bound = int(min((int64(d.taps())-int64(t))>>1, int64(most)))
		}
		if t == math.MaxInt32 || bound < 0 {
			word[d.planes] |= bit
			continue
		}
		for i := range d.planes {
			if bound>>i&1 == 1 {
				word[i] |= bit
			}
		}
	}
	for i := d.channels; i < d.words*bits.WordBits; i++ {
		out[i/bits.WordBits*(d.planes+1)+d.planes] |= 1 << (i % bits.WordBits)
	}
	return out
}

func (d *depthwise) Tiles(n int) int { return n * d.rowTiles }

func (d *depthwise) Run(tile int, s *tiles.Scratch) {
	image, y0 := tile/d.rowTiles, tile%d.rowTiles*d.tileRows
	y1 := min(y0+d.tileRows, d.outShape.H)
	first, rows := y0*d.poolH, (y1-y0)*d.poolH
	height, cols := d.span(rows)
	row := cols * d.words
	d.border(s.Words, image, first, height, cols)
	pixel := (image*d.outShape.H + y0) * d.outShape.W
	for y := range rows {
		src := s.Words[y*d.StrideH*row:]
		if d.thresholds == nil {
			d.sumRow(s, src, row, pixel+y*d.cols, first+y)
			continue
		}
		dst := d.out.Words[(pixel+y/d.poolH*d.outShape.W)*d.words:][:d.outShape.W*d.words]
		if d.poolH*d.poolW == 1 {
			d.bitRow(s, dst, src, row, first+y)
			continue
		}
		d.bitRow(s, s.Row[:d.cols*d.words], src, row, first+y)
		if y%d.poolH == 0 {
			clear(dst)
		}
		for x := range d.cols {
			d.set.Or(dst[x/d.poolW*d.words:], s.Row[x*d.words:][:d.words])
		}
	}
	if d.thresholds != nil && d.flip != nil {
		d.flipPixels(pixel, (y1-y0)*d.outShape.W, 0, d.channels)
	}
}

// border copies rows of the input and puts a border of 0 bits around them.
func (d *depthwise) border(dst []uint64, image, first, height, cols int) {
	left := min(d.Pad.Left, cols)
	inside := min(d.image.W, cols-left)
	for r := range height {
		row := dst[r*cols*d.words:][:cols*d.words]
		y := first*d.StrideH - d.Pad.Top + r
		if y < 0 || y >= d.image.H {
			clear(row)
			continue
		}
		clear(row[:left*d.words])
		copy(row[left*d.words:], d.in.Words[(image*d.image.H+y)*d.image.W*d.words:][:inside*d.words])
		clear(row[(left+inside)*d.words:])
	}
}

// count counts the taps that differ in the words from at on.
func (d *depthwise) count(planes *[maxPlanes]uint64, src []uint64, at, row, word int) {
	*planes = [maxPlanes]uint64{}
	for ky := range d.KH {
		line := src[ky*d.DilationH*row+at:]
		weights := d.weights[ky*d.KW*d.words+word:]
		for kx := range d.KW {
			v := line[kx*d.DilationW*d.words] ^ weights[kx*d.words]
			for i := range d.planes {
				p := &planes[i%maxPlanes]
				*p, v = *p^v, *p&v
			}
		}
	}
}

// bitRow computes a row of packed pixels.
func (d *depthwise) bitRow(s *tiles.Scratch, dst, src []uint64, row, y int) {
	var planes [maxPlanes]uint64
	step := d.words * (d.planes + 1)
	for x := 0; x < d.cols; {
		class, pixels := d.classRun(y, x, d.cols-x)
		for ; pixels > 0; pixels-- {
			if d.long && s.Ended() {
				return
			}
			for word := range d.words {
				d.count(&planes, src, x*d.StrideW*d.words+word, row, word)
				bound := d.bounds[class*step+word*(d.planes+1):][:d.planes+1]
				notMore := ^uint64(0)
				for i, b := range bound[:d.planes] {
					c := planes[i%maxPlanes]
					notMore = ^c&b | ^(c^b)&notMore
				}
				dst[x*d.words+word] = notMore &^ bound[d.planes]
			}
			x++
		}
	}
}

// sumRow computes a row of float32 pixels.
func (d *depthwise) sumRow(s *tiles.Scratch, src []uint64, row, pixel, y int) {
	const (
		spread = 0x0101010101010101
		each   = 0x8040201008040201 // bit i of byte i
	)
	var planes [maxPlanes]uint64
	taps := int32(d.taps())
	for x := range d.cols {
		if d.long && s.Ended() {
			return
		}
		for word := range d.words {
			d.count(&planes, src, x*d.StrideW*d.words+word, row, word)
			for i := 0; i < bits.WordBits; i += 8 {
				// The counts of 8 channels, one in every byte.
				var counts uint64
				for k := range d.planes {
					b := planes[k%maxPlanes] >> i & 0xff * spread & each
					counts += (b + 0x7f*spread) >> 7 & spread << k
				}
				sums := s.Sums[word*bits.WordBits+i:][:8]
				for j := range sums {
					sums[j] = taps - 2*int32(counts>>(8*j)&0xff)
				}
			}
		}
		class, _ := d.classRun(y, x, 1)
		d.writeFloats(s, pixel+x, class, 0, 1, 0, d.channels)
	}
}
