package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// signWords bounds the words in which bits of pixels are collected before they are
// put side by side.
const signWords = 512

// sign compiles thresholds, so many bits for a channel.
func sign(c *schedule.Context, op *bcnn.SignStep, shape bcnn.Shape, each int) (tiles.Step, tiles.Size) {
	set, src, dst := c.Set, c.In, c.Out
	words := bits.Words(shape.C * each)
	flip := op.Threshold.Flip
	flipped := func(out []uint64) {
		for ; flip != nil && len(out) > 0; out = out[words:] {
			for i, v := range flip {
				out[i] ^= v
			}
		}
	}
	work := 2*float64(shape.Pixels()) + c.Set.Cost.Value*float64(shape.Values()*each)
	if each == 1 {
		do := func(_ *tiles.Scratch, image, from, to int) {
			first, pixels := image*shape.Pixels()+from, to-from
			out := dst.Words[first*words:][:pixels*words]
			set.ThresholdFloat(out, words, src.F32[first*shape.C:], shape.C, op.Threshold.F32, pixels)
			flipped(out)
		}
		return c.Pixels("threshold and pack", shape.Pixels(), work, do), tiles.Size{}
	}
	// All channels at once for each of their bits, then the bits of a channel side by
	// side.
	apart := make([][]float32, each)
	for i := range apart {
		apart[i] = make([]float32, shape.C)
		for k := range apart[i] {
			apart[i][k] = op.Threshold.F32[k*each+i]
		}
	}
	row := bits.Words(shape.C)
	chunk := max(1, signWords/row)
	weave := newWeave(each)
	do := func(s *tiles.Scratch, image, from, to int) {
		for p := image*shape.Pixels() + from; p < image*shape.Pixels()+to; p += chunk {
			n := min(chunk, image*shape.Pixels()+to-p)
			out := dst.Words[p*words:][:n*words]
			clear(out)
			for i, thresholds := range apart {
				set.ThresholdFloat(s.Words[:n*row], row, src.F32[p*shape.C:], shape.C, thresholds, n)
				for k := range n {
					weave.put(out[k*words:][:words], s.Words[k*row:][:row], i)
				}
			}
			flipped(out)
		}
	}
	return c.Pixels("threshold and pack", shape.Pixels(), work, do), tiles.Size{Words: min(chunk, shape.Pixels()) * row}
}

// weave puts bits side by side, so many for a channel, a group of channels at a time.
type weave struct {
	each  int
	group int // channels; the bits of a group fit into a word
	// table has the bits of a group at their places.
	table []uint64
}

func newWeave(each int) *weave {
	w := &weave{each: each, group: 8}
	for w.group*each > bits.WordBits && w.group > 1 {
		w.group /= 2
	}
	w.table = make([]uint64, 1<<w.group)
	for v := range w.table {
		for k := range w.group {
			w.table[v] |= uint64(v>>k&1) << (k * each)
		}
	}
	return w
}

// put sets bit i of each channel whose bit is set in a packed row.
func (w *weave) put(row, from []uint64, i int) {
	for n, word := range from {
		at := n*bits.WordBits*w.each + i
		for ; word != 0; word >>= w.group {
			v := w.table[word&uint64(len(w.table)-1)]
			k, shift := at/bits.WordBits, at%bits.WordBits
			row[k] |= v << shift
			if high := v >> (bits.WordBits - shift); high != 0 {
				row[k+1] |= high
			}
			at += w.group * w.each
		}
	}
}
