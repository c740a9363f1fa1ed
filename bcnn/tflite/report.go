package tflite

import (
	"cmp"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Report tells what became of a file.
type Report struct {
	Description string // what the program that wrote the file says of it
	Operators   int    // in the file
	// Folded is how many of them became no layer of their own.
	Folded int
	// Deviations say where the network's integers may be others than those of the
	// interpreter, and by how much at most.
	Deviations []string
	// Findings are what package simplify has found in the network.
	Findings []simplify.Finding
	// Inputs and Outputs are those of the file, in its order.
	Inputs, Outputs []Tensor
}

// Tensor is an input or an output of a file, which may hold its values in another form
// than the network.
type Tensor struct {
	Name string
	// Type is the type of the file: FLOAT32, UINT8, INT8, or INT32 for bits.
	Type string
	// Dims are the dimensions in the file; those of bits count words.
	Dims []int
	// Scale and ZeroPoint say what 8-bit values stand for: (q − ZeroPoint)·Scale.
	Scale     float32
	ZeroPoint int

	channels int     // of bits
	offset   int     // of 8-bit values
	unit     float32 // of the network's values, that an integer stands for; 0 means 1
}

func newTensor(t *schema.Tensor, v *value) Tensor {
	out := Tensor{Name: t.Name, Type: t.Type.String(), Dims: t.Dims, channels: v.shape.C, offset: v.offset}
	if len(t.Scale) == 1 && (t.Type == schema.Int8 || t.Type == schema.Uint8) {
		out.Scale, out.ZeroPoint = t.Scale[0], int(t.Zero[0])
		if v.probabilities {
			out.offset, out.unit = out.ZeroPoint, out.Scale
		}
	}
	return out
}

// wordBits is the number of channels in a word of LCE.
const wordBits = 32

func wordsOf(channels int) int { return (channels + wordBits - 1) / wordBits }

// Signs returns the values +1 and −1 of the packed words of an input of bits, as the
// network takes them.
func (t *Tensor) Signs(words []int32) []float32 {
	per := wordsOf(t.channels)
	out := make([]float32, 0, len(words)/per*t.channels)
	for ; len(words) >= per; words = words[per:] {
		for c := range t.channels {
			out = append(out, 1-2*float32(uint32(words[c/wordBits])>>(c%wordBits)&1))
		}
	}
	return out
}

// Words packs the values +1 and −1 that the network gives for an output of bits, as
// the file gives them.
func (t *Tensor) Words(values []float32) []int32 {
	per := wordsOf(t.channels)
	out := make([]int32, len(values)/t.channels*per)
	for i := range len(values) / t.channels * t.channels {
		if c := i % t.channels; values[i] < 0 {
			out[i/t.channels*per+c/wordBits] |= int32(uint32(1) << (c % wordBits))
		}
	}
	return out
}

// Int8 returns the integers of an output of INT8, which the network gives as numbers: behind a
// Softmax the probabilities, or their logarithms.
func (t *Tensor) Int8(values []float32) []int8 {
	out := make([]int8, len(values))
	for i, v := range values {
		out[i] = int8(t.integer(v, math.MinInt8, math.MaxInt8))
	}
	return out
}

// Uint8 is Int8 for an output of UINT8.
func (t *Tensor) Uint8(values []float32) []uint8 {
	out := make([]uint8, len(values))
	for i, v := range values {
		out[i] = uint8(t.integer(v, 0, math.MaxUint8))
	}
	return out
}

// integer is what a number of the network is in the file, limited to a range.
func (t *Tensor) integer(v float32, least, most float64) float64 {
	return min(max(math.Round(float64(v)/float64(cmp.Or(t.unit, 1)))+float64(t.offset), least), most)
}

// Bytes returns the bytes that the network takes for the integers of an input of INT8.
func (t *Tensor) Bytes(values []int8) []uint8 {
	out := make([]uint8, len(values))
	for i, v := range values {
		out[i] = uint8(int(v) - t.offset)
	}
	return out
}
