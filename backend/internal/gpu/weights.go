package gpu

import "github.com/bitcnn/bitcnn/bcnn/bits"

// Sizes are the sizes of a convolution by which its weights are ordered, for kernels in
// which every lane of a block computes one output channel.
type Sizes struct {
	Taps     int // of the window
	In, Out  int // channels of a group, all outputs
	PerGroup int // outputs of a group
	Words    int // 32-bit words of a tap
	Lanes    int // output channels of a block
	Blocks   int // that have output channels
}

// Half returns 32-bit word k of a row of 64-bit words.
func Half(row []uint64, k int) uint32 { return uint32(row[k/2] >> (k % 2 * 32)) }

// PadTo returns a copy of s of length n, filled up with a value.
func PadTo[T any](s []T, n int, with T) []T {
	padded := make([]T, n)
	for i := copy(padded, s); i < n; i++ {
		padded[i] = with
	}
	return padded
}

// Rows splits rows of 64-bit words into 32-bit words. Nothing is made of nil.
func Rows(weights []uint64) []uint32 {
	if weights == nil {
		return nil
	}
	out := make([]uint32, 2*len(weights))
	for i := range out {
		out[i] = Half(weights, i)
	}
	return out
}

// Bits orders packed weights [output][tap][word] as
// [block][tap][word/vector][lane][word%vector], in 32-bit words. vector divides
// Words.
func (s Sizes) Bits(weights []uint64, vector int) []uint32 {
	stride := bits.Words(s.In)
	out := make([]uint32, s.Blocks*s.Taps*s.Words*s.Lanes)
	for o := range s.Out {
		for t := range s.Taps {
			row := weights[(o*s.Taps+t)*stride:][:stride]
			for k := range s.Words {
				at := ((o/s.Lanes*s.Taps+t)*s.Words + k/vector*vector) * s.Lanes
				out[at+o%s.Lanes*vector+k%vector] = Half(row, k)
			}
		}
	}
	return out
}

// MixedWords is how many 32-bit words of a pixel the channels of a group, in of
// them, touch at the most.
func MixedWords(in, groups int) int {
	words := 0
	for g := range groups {
		words = max(words, (g*in%32+in+31)/32)
	}
	return words
}

// Mixed orders packed weights of groups that do not fill words as
// [block][tap][word][lane], where word 0 is the first word of the pixel that the
// group touches, with the bits in the places that they have in the pixel; and the
// masks [block][word][lane] of those places.
func (s Sizes) Mixed(weights []uint64) (out, masks []uint32) {
	stride := bits.Words(s.In)
	out = make([]uint32, s.Blocks*s.Taps*s.Words*s.Lanes)
	masks = make([]uint32, s.Blocks*s.Words*s.Lanes)
	for o := range s.Out {
		shift := o / s.PerGroup * s.In % 32
		for i := range s.In {
			k, bit := (shift+i)/32, uint32(1)<<((shift+i)%32)
			masks[(o/s.Lanes*s.Words+k)*s.Lanes+o%s.Lanes] |= bit
			for t := range s.Taps {
				if bits.At(weights[(o*s.Taps+t)*stride:], i) > 0 {
					out[((o/s.Lanes*s.Taps+t)*s.Words+k)*s.Lanes+o%s.Lanes] |= bit
				}
			}
		}
	}
	return out, masks
}

// Signs orders weights of ±1 [output][tap][channel] as [block][tap][channel][lane]: 0 for
// +1 and where there is no output, all bits set for −1. negatives is the number of −1 of
// each output.
func (s Sizes) Signs(weights []int8) (out, negatives []int32) {
	out = s.Int32(weights)
	negatives = make([]int32, s.Out)
	for i, w := range weights {
		if w < 0 {
			negatives[i/(s.Taps*s.In)]++
		}
	}
	for i, w := range out {
		out[i] = min(w, 0)
	}
	return out, negatives
}

// Bytes orders weights [output][tap][channel], four channels to a word, as
// [block][tap][channel/4][lane], with 0 where there is no channel. sums is the sum of the
// weights of each output.
func (s Sizes) Bytes(weights []int8) (out []uint32, sums []int32) {
	words := (s.In + 3) / 4
	out = make([]uint32, s.Blocks*s.Taps*words*s.Lanes)
	sums = make([]int32, s.Out)
	for o := range s.Out {
		for t := range s.Taps {
			for i, w := range weights[(o*s.Taps+t)*s.In:][:s.In] {
				sums[o] += int32(w)
				out[((o/s.Lanes*s.Taps+t)*words+i/4)*s.Lanes+o%s.Lanes] |= uint32(uint8(w)) << (i % 4 * 8)
			}
		}
	}
	return out, sums
}

// Runs is Bytes, with so many taps that follow each other taken as one: without gaps
// between them, [block][tap/run][byte/4][lane]. run divides Taps.
func (s Sizes) Runs(weights []int8, run int) (out []uint32, sums []int32) {
	s.Taps, s.In = s.Taps/run, s.In*run
	return s.Bytes(weights)
}

// ByteRows are the weights [output][tap][channel] of dense layers as rows of so many
// words, four bytes each, filled up with 0. sums is the sum of the weights of each output.
func (s Sizes) ByteRows(weights []int8, words int) (out []uint32, sums []int32) {
	out = make([]uint32, s.Out*words)
	sums = make([]int32, s.Out)
	row := s.Taps * s.In
	for i, w := range weights {
		sums[i/row] += int32(w)
		out[i/row*words+i%row/4] |= uint32(uint8(w)) << (i % row % 4 * 8)
	}
	return out, sums
}

// Fragments orders the result of Bytes, so many words to an output, for tensor cores: in
// steps of 8 words, filled up with 0, as [block][step][half][lane][4]. Words i of halves
// h of lane l are those of output 4·(l/4) + 2h + i%2 of the block, and l%4 + 4·(i/2) of
// the step.
func Fragments(of []uint32, words int) []uint32 {
	const lanes = 32
	steps := (words + 7) / 8
	out := make([]uint32, 0, len(of)/words*steps*8)
	for ; len(of) > 0; of = of[words*lanes:] {
		for at := range steps * 2 * lanes * 4 {
			i, lane, half, step := at%4, at/4%lanes, at/(4*lanes)%2, at/(8*lanes)
			w := uint32(0)
			if k := 8*step + lane%4 + i/2*4; k < words {
				w = of[k*lanes+lane/4*4+half*2+i%2]
			}
			out = append(out, w)
		}
	}
	return out
}

// Columns transposes the rows of so many outputs to [word][output], with stride words to
// a row of the result.
func Columns(weights []uint64, outputs, stride int) []uint32 {
	words := 2 * len(weights) / outputs
	out := make([]uint32, words*stride)
	for o := range outputs {
		for k := range words {
			out[k*stride+o] = Half(weights[o*words/2:], k)
		}
	}
	return out
}

// Floats orders weights [output][tap][channel] as [block][tap][channel][lane].
func (s Sizes) Floats(weights []float32) []float32 { return ofLanes[float32](s, weights) }

// Int32 is Floats of integers.
func (s Sizes) Int32(weights []int8) []int32 { return ofLanes[int32](s, weights) }

// Int32Weights are the weights of a convolution of bytes as Int32 lays them out.
func (c *Conv) Int32Weights() []int32 {
	if c.op.Int16 != nil {
		return ofLanes[int32](c.Sizes, c.op.Int16)
	}
	return c.Int32(c.Int8())
}

func ofLanes[To, From int8 | int16 | int32 | float32](s Sizes, weights []From) []To {
	out := make([]To, s.Blocks*s.Taps*s.In*s.Lanes)
	for o := range s.Out {
		for i, w := range weights[o*s.Taps*s.In:][:s.Taps*s.In] {
			out[(o/s.Lanes*s.Taps*s.In+i)*s.Lanes+o%s.Lanes] = To(w)
		}
	}
	return out
}

// Patches packs the bits of an output's weights without gaps between taps:
// [output][word].
func (s Sizes) Patches(weights []uint64) []uint32 {
	stride := bits.Words(s.In)
	row := make([]uint64, bits.Words(s.Taps*s.In))
	words := (s.Taps*s.In + 31) / 32
	out := make([]uint32, 0, s.Out*words)
	for o := range s.Out {
		clear(row)
		bits.Join(row, 0, weights[o*s.Taps*stride:], s.Taps, s.In)
		for k := range words {
			out = append(out, Half(row, k))
		}
	}
	return out
}

// Corrections lays the corrections of border classes [class][output] out for blocks
// of lanes, [class][stride], and converts the classes of rows and columns.
func Corrections(row, col []int, correction []int32, outputs, stride int) (rows, cols, padded []int32) {
	for _, class := range row {
		rows = append(rows, int32(class))
	}
	for _, class := range col {
		cols = append(cols, int32(class))
	}
	classes := len(correction) / outputs
	padded = make([]int32, classes*stride)
	for class := range classes {
		copy(padded[class*stride:], correction[class*outputs:][:outputs])
	}
	return rows, cols, padded
}
