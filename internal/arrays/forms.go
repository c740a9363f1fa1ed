package arrays

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Numbers reads an array as numbers to compare with those that Results makes: of packed
// bits their signs, else the elements.
func (p Port) Numbers(a *npy.Array) ([]float64, error) {
	numbers := make([]float64, a.Len())
	if err := npy.Values(numbers, a, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Quote(p.Name), err)
	}
	if p.form != bcnn.SourceBits {
		return numbers, nil
	}
	signs := make([]float64, 0, len(numbers)/p.elements*p.Shape.Values())
	words := p.elements / p.Shape.Pixels()
	for ; len(numbers) > 0; numbers = numbers[words:] {
		for c := range p.Shape.C {
			word := numbers[c/bcnn.SourceWordBits]
			if word != math.Trunc(word) || word < math.MinInt32 || word > math.MaxUint32 {
				return nil, fmt.Errorf("%s: %v is not a 32-bit word", text.Quote(p.Name), word)
			}
			bit := uint32(int64(word)) >> (c % bcnn.SourceWordBits) & 1
			signs = append(signs, 1-2*float64(bit))
		}
	}
	return signs, nil
}

// Results replaces values by the numbers that arrays hold, or the signs of packed bits.
func (p Port) Results(values []float32) {
	var lo, hi float64
	switch p.form {
	case bcnn.SourceInt8:
		lo, hi = math.MinInt8, math.MaxInt8
	case bcnn.SourceUint8:
		lo, hi = 0, math.MaxUint8
	default:
		return
	}
	for i, v := range values {
		values[i] = float32(min(max(math.Round(float64(v)/float64(p.scale))+float64(p.offset), lo), hi))
	}
}

// Array makes an array of results for so many images.
func (p Port) Array(images int, results []float32) *npy.Array {
	shape := append([]int{images}, p.Dims...)
	switch p.form {
	case bcnn.SourceInt8:
		return npy.From(shape, convert[int8](results))
	case bcnn.SourceUint8:
		return npy.From(shape, convert[uint8](results))
	case bcnn.SourceInt32:
		return npy.From(shape, convert[int32](results))
	case bcnn.SourceInt64:
		return npy.From(shape, convert[int64](results))
	case bcnn.SourceBits:
		words := make([]int32, images*p.elements)
		per := p.elements / p.Shape.Pixels()
		for i, v := range results {
			if pixel, c := i/p.Shape.C, i%p.Shape.C; v < 0 {
				words[pixel*per+c/bcnn.SourceWordBits] |= int32(uint32(1) << (c % bcnn.SourceWordBits))
			}
		}
		return npy.From(shape, words)
	}
	return npy.From(shape, results)
}

func convert[T int8 | uint8 | int32 | int64](results []float32) []T {
	out := make([]T, len(results))
	for i, v := range results {
		out[i] = T(v)
	}
	return out
}
