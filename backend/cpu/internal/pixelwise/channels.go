package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// pair compiles a step of two values each, of which the second one may be repeated.
func pair(c *schedule.Context, kind plan.PairKind, shape bcnn.Shape) tiles.Step {
	x, others, dst := c.In, c.Others[0], c.Out
	pixels, channels := shape.Pixels(), shape.C
	name, p := "multiply", kern.Mul
	switch kind {
	case plan.PairMin:
		name, p = "minimum", kern.Min
	case plan.PairMax:
		name, p = "maximum", kern.Max
	case plan.PairMask:
		name, p = "mask", kern.Mask
	}
	kernels := &c.Set.Pairs[p]
	do := func(_ *tiles.Scratch, image, from, to int) {
		out := dst.F32[(image*pixels+from)*channels : (image*pixels+to)*channels]
		values := x.F32[(image*pixels+from)*channels:][:len(out)]
		f := others.F32[image*others.Shape.Values():][:others.Shape.Values()]
		switch others.Shape {
		case shape:
			kernels.All(out, values, f[from*channels:])
		case bcnn.Shape{H: 1, W: 1, C: channels}:
			kernels.Rows(out, values, f)
		case bcnn.Shape{H: 1, W: 1, C: 1}:
			kernels.Each(out, values, f, len(out))
		default: // one for each pixel
			kernels.Each(out, values, f[from:to], channels)
		}
	}
	return c.Pixels(name, pixels, c.Set.Cost.Value*float64(shape.Values()), do)
}

// concat compiles a step that joins tensors along their channels. The first one may lie
// in the output already.
func concat(c *schedule.Context, in, out plan.Tensor) tiles.Step {
	set := c.Set
	parts, dst, pixels := append([]*bcnn.Tensor{c.In}, c.Others...), c.Out, out.Shape.Pixels()
	values, begin := bits.Words(out.Shape.C), 0 // of a pixel
	if out.DType == bcnn.Float32 {
		values = c.OutPitch
		if c.InPitch > in.Shape.C {
			parts, begin = parts[1:], in.Shape.C
		}
	}
	do := func(_ *tiles.Scratch, image, from, to int) {
		first, last := image*pixels+from, image*pixels+to
		if out.DType == bcnn.Bits {
			clear(dst.Words[first*values : last*values])
		}
		at := begin // first channel of a part
		for _, part := range parts {
			n := part.Shape.C
			if out.DType == bcnn.Float32 {
				set.ScaleFloat(dst.F32[first*values+at:], values, part.F32[first*n:], n, n, last-first, kern.End{})
			} else {
				words := bits.Words(n)
				for p := first; p < last; p++ {
					bits.Copy(dst.Words[p*values:][:values], at, part.Words[p*words:][:words], 0, n)
				}
			}
			at += n
		}
	}
	return c.Pixels("copy channels", pixels, c.Set.Cost.Value*float64(out.Shape.Elements(out.DType)-begin*pixels), do)
}

// channelRun is a run of output channels that are neighbours in the input too.
type channelRun struct{ to, from, n int } // from −1: zeros

func channelRuns(index []int32) []channelRun {
	var runs []channelRun
	for c, channel := range index {
		from := int(channel)
		if last := len(runs) - 1; last >= 0 {
			r := &runs[last]
			if from < 0 && r.from < 0 || from >= 0 && r.from >= 0 && from == r.from+r.n {
				r.n++
				continue
			}
		}
		runs = append(runs, channelRun{c, from, 1})
	}
	return runs
}

// pickValues bounds the values of pixels that are picked from at a time: they are
// read once for each vector of the output, and stay in the first-level cache.
const pickValues = 4096

// channels compiles a step that picks channels.
func channels(c *schedule.Context, op *plan.Channels, in plan.Tensor) (tiles.Step, tiles.Size) {
	src, dst, pixels, n := c.In, c.Out, in.Shape.Pixels(), len(op.Index)
	work := c.Set.Cost.Value * float64(n)
	if in.DType == bcnn.Float32 {
		set, channels := c.Set, in.Shape.C
		picks := kern.NewPicks(set.PickLanes, channels, op.Index)
		c.Reserve(picks.Bytes())
		chunk := max(1, pickValues/(channels+n))
		do := func(_ *tiles.Scratch, image, from, to int) {
			for p, last := image*pixels+from, image*pixels+to; p < last; p += chunk {
				set.Pick(dst.F32[p*n:], src.F32[p*channels:], picks, min(chunk, last-p))
			}
		}
		return c.Pixels("pick channels", pixels, work, do), tiles.Size{}
	}
	runs, words, outWords := channelRuns(op.Index), bits.Words(in.Shape.C), bits.Words(n)
	copyRuns := func(_ *tiles.Scratch, image, from, to int) {
		for p := image*pixels + from; p < image*pixels+to; p++ {
			out, row := dst.Words[p*outWords:][:outWords], src.Words[p*words:][:words]
			clear(out)
			for _, r := range runs {
				bits.Copy(out, r.to, row, r.from, r.n)
			}
		}
	}
	// A square takes as long with one pixel in it as with 64.
	least := num.CeilDiv(runsOfSquare*(words+outWords), len(runs))
	if min(pixels, bits.WordBits) < least || words > mostPicked {
		return c.Pixels("pick channels", pixels, work, copyRuns), tiles.Size{}
	}
	do := func(s *tiles.Scratch, image, from, to int) {
		for ; to-from >= least; from += min(bits.WordBits, to-from) {
			at := image*pixels + from
			pickBits(dst.Words[at*outWords:], src.Words[at*words:], s.Words, op.Index, min(bits.WordBits, to-from), words)
		}
		copyRuns(s, image, from, to)
	}
	return c.Pixels("pick channels, 64 pixels in a word", pixels, work, do), tiles.Size{Words: words * bits.WordBits}
}

const (
	// runsOfSquare is how many runs take as long to copy as a square of 64 pixels and channels to
	// transpose: 0.53 µs, where a run takes 6.3 ns (Zen 3).
	runsOfSquare = 84
	// mostPicked bounds the words of a pixel whose channels are transposed: 128 KiB.
	mostPicked = 256
)

// pickBits picks channels of up to 64 pixels of words words each: of a square of pixels and channels
// that has been transposed, a channel is a word.
func pickBits(dst, src, channels []uint64, index []int32, pixels, words int) {
	var square [bits.WordBits]uint64
	for w := range words {
		for p := range pixels {
			square[p] = src[p*words+w]
		}
		clear(square[pixels:])
		transposeSquare(&square)
		copy(channels[w*bits.WordBits:], square[:])
	}
	outWords := bits.Words(len(index))
	for w := range outWords {
		picks := index[w*bits.WordBits:]
		picks = picks[:min(bits.WordBits, len(picks))]
		for k, from := range picks {
			square[k] = channels[from]
		}
		clear(square[len(picks):])
		transposeSquare(&square)
		for p := range pixels {
			dst[p*outWords+w] = square[p]
		}
	}
}
