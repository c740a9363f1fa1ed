package conv

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/activation"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// epilogue makes outputs of the sums of a convolution. Channels come in ranges
// that start at a multiple of 64.
type epilogue struct {
	set      *kern.Set
	out      *bcnn.Tensor
	channels int
	words    int // of an output pixel, for Bits
	// outPlanes are the planes of the output.
	outPlanes int
	stride    int  // of the sums of a pixel
	float     bool // sums are float32

	// Bits output. The thresholds of a border class include its correction.
	thresholds      [][]int32 // [class][channel]
	floatThresholds []float32
	flip            []uint64

	// Float32 output
	corrections [][]int32 // [class][channel], nil for none
	end         kern.End
	rest        activation.Rest

	row, col []int // border classes of the output positions, nil where there is one at most
	classes  int   // of columns
}

func newEpilogue(c *schedule.Context, op *plan.Conv, in bcnn.DType, stride int) epilogue {
	e := epilogue{
		set: c.Set, out: c.Out, outPlanes: max(op.OutPlanes, 1), channels: op.Out, words: bits.Words(op.Out), stride: stride,
		float: in == bcnn.Float32, end: activation.End(op), rest: activation.RestOf(c.Set, op.Activation),
	}
	var corrections [][]int32
	if b := op.Border; b != nil && in == bcnn.Bits {
		if b.Rows*b.Cols > 1 {
			e.row, e.col, e.classes = b.Row, b.Col, b.Cols
		}
		for k := range b.Rows * b.Cols {
			corrections = append(corrections, b.Correction[k*op.Out:][:op.Out])
		}
	}
	if op.Threshold == nil {
		e.corrections = corrections
		return e
	}
	e.flip = op.Threshold.Flip
	switch {
	case e.float:
		e.floatThresholds = op.Threshold.F32
	case corrections == nil:
		e.thresholds = [][]int32{op.Threshold.I32}
	default:
		for _, correction := range corrections {
			e.thresholds = append(e.thresholds, shifted(op.Threshold.I32, correction))
		}
	}
	return e
}

// shifted returns thresholds, [threshold][channel], for sums that lack a correction. Sums are far
// from the ends of the range, so that clamping does not matter, and thresholds
// at the ends, which mean always and never, stay there.
func shifted(thresholds, correction []int32) []int32 {
	out := make([]int32, len(thresholds))
	for o, t := range thresholds {
		out[o] = t
		if t != math.MinInt32 && t != math.MaxInt32 {
			out[o] = int32(min(max(int64(t)-int64(correction[o%len(correction)]), math.MinInt32), math.MaxInt32))
		}
	}
	return out
}

// classRun returns the border class of the pixel (y, x) and the number of
// pixels, at most limit, that share it from there on.
func (e *epilogue) classRun(y, x, limit int) (class, pixels int) {
	if e.row == nil {
		return 0, limit
	}
	col := e.col[x : x+limit]
	pixels = 1
	for pixels < limit && col[pixels] == col[0] {
		pixels++
	}
	return e.row[y]*e.classes + col[0], pixels
}

// write writes n channels of consecutive output pixels, the first of which has
// the index pixel and stands at (y, x), from the sums in s.
func (e *epilogue) write(s *tiles.Scratch, pixel, y, x, pixels, channel, n int) {
	if e.float && e.floatThresholds == nil {
		return // floatSource has written them
	}
	for p := 0; p < pixels; {
		class, run := e.classRun(y, x+p, pixels-p)
		if e.thresholds == nil && e.floatThresholds == nil {
			e.writeFloats(s, pixel+p, class, p, run, channel, n)
		} else {
			dst := e.out.Words[(pixel+p)*e.words+channel/bits.WordBits:]
			e.threshold(dst, e.words, s, class, p, run, channel, n)
		}
		p += run
	}
	if e.flip != nil {
		e.flipPixels(pixel, pixels, channel, n)
	}
}

// threshold packs the sums of pixels of one border class, from pixel p of the
// sums on.
func (e *epilogue) threshold(dst []uint64, step int, s *tiles.Scratch, class, p, pixels, channel, n int) {
	if e.float {
		e.set.ThresholdFloat(dst, step, s.Floats[p*e.stride:], e.stride, e.floatThresholds[channel:channel+n], pixels)
	} else {
		e.set.Threshold(dst, step, s.Sums[p*e.stride:], e.stride, e.thresholds[class][channel:channel+n], pixels)
	}
}

func (e *epilogue) writeFloats(s *tiles.Scratch, pixel, class, p, pixels, channel, n int) {
	sums := s.Sums[p*e.stride:]
	if e.corrections != nil {
		correction := e.corrections[class][channel : channel+n]
		for i := range pixels {
			row := sums[i*e.stride:][:n]
			for o, v := range correction {
				row[o] += v
			}
		}
	}
	dst := s.Out(e.out.F32, pixel*e.channels+channel)
	e.set.Scale(dst, e.channels, sums, e.stride, n, pixels, e.end.From(channel))
	e.rest.Do(dst, e.channels, n, pixels)
}

// pool thresholds the sums of pixels from (y, x) on, before pooling, and ORs
// them into the row of output pixels that starts with the index pixel.
func (e *epilogue) pool(s *tiles.Scratch, pixel, poolW, y, x, pixels, channel, n int) {
	words := bits.Words(n)
	for p := 0; p < pixels; {
		class, run := e.classRun(y, x+p, pixels-p)
		e.threshold(s.Row[p*words:], words, s, class, p, run, channel, n)
		p += run
	}
	out := e.out.Words[(pixel+x/poolW)*e.words+channel/bits.WordBits:]
	at, left := 0, poolW-x%poolW // of the output pixel
	for p := range pixels {
		if left == 0 {
			at, left = at+e.words, poolW
		}
		left--
		if words == 1 { // too little for a call
			out[at] |= s.Row[p]
		} else {
			e.set.Or(out[at:], s.Row[p*words:][:words])
		}
	}
}

// clear sets the bits of n channels of consecutive pixels to 0.
func (e *epilogue) clear(pixel, pixels, channel, n int) {
	words := bits.Words(n)
	for p := range pixels {
		clear(e.out.Words[(pixel+p)*e.words+channel/bits.WordBits:][:words])
	}
}

// flipPixels negates the channels that the flip mask says.
func (e *epilogue) flipPixels(pixel, pixels, channel, n int) {
	flip := e.flip[channel/bits.WordBits:][:bits.Words(n)]
	for p := range pixels {
		dst := e.out.Words[(pixel+p)*e.words+channel/bits.WordBits:][:len(flip)]
		for i, v := range flip {
			dst[i] ^= v
		}
	}
}

// codes counts the thresholds that the sums of pixels of an output row, the first of
// them number from of the sums, reach, from (y, x) on, before pooling. The planes of the row, pooled or not, start with the pixel
// that has the index pixel.
func (e *epilogue) codes(s *tiles.Scratch, from, pixel int, pooled bool, poolW, y, x, pixels, channel, n int) {
	words := bits.Words(n)
	width := e.out.Shape.W
	size := pixels * words
	reached, planes := s.Row[:size], s.Row[size:][:size*e.outPlanes]
	clear(planes)
	for p := 0; p < pixels; {
		class, run := e.classRun(y, x+p, pixels-p)
		for k := range 1<<e.outPlanes - 1 {
			t := e.thresholds[class][k*e.channels+channel:][:n]
			e.set.Threshold(reached, words, s.Sums[(from+p)*e.stride:], e.stride, t, run)
			// Bit j is set where an odd number of every 2^j-th threshold is reached.
			for j := 0; (k+1)>>j<<j == k+1 && j < e.outPlanes; j++ {
				plane := planes[j*size+p*words:]
				for i, v := range reached[:run*words] {
					plane[i] ^= v
				}
			}
		}
		p += run
	}
	out := e.out.Words[pixel*e.words+channel/bits.WordBits:]
	var flip []uint64
	if e.flip != nil && !pooled {
		flip = e.flip[channel/bits.WordBits:][:words]
	}
	for p := range pixels {
		if pooled {
			to := out[(x+p)/poolW*e.words:]
			for i := range words {
				bits.MaxPlanes(to[i:], width*e.words, planes[p*words+i:], size, e.outPlanes)
			}
			continue
		}
		for j := range e.outPlanes {
			to := out[(j*width+x+p)*e.words:][:words]
			copy(to, planes[j*size+p*words:])
			for i, v := range flip {
				to[i] ^= v
			}
		}
	}
}
