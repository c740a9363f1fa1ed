// Package compare holds tensors of a device against those that they must be, and what
// lies around them against what it was.
package compare

import (
	"fmt"
	"math"
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// Tensors returns an error that names the first place where got is not want: float32
// values by their bits, packed words with their padding. Two NaNs count as equal.
func Tensors(want, got bcnn.Tensor) error {
	if err := got.Check(want.DType, want.Shape); err != nil {
		return err
	}
	if got.N != want.N {
		return fmt.Errorf("batch of %d, want %d", got.N, want.N)
	}
	c := want.Shape.C
	switch want.DType {
	case bcnn.Uint8:
		for i, w := range want.U8 {
			if g := got.U8[i]; g != w {
				return fmt.Errorf("%s: want %d, got %d", place(want.Shape, i/c, i%c), w, g)
			}
		}
	case bcnn.Float32:
		for i, w := range want.F32 {
			g := got.F32[i]
			if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				return fmt.Errorf("%s: want %g (%#08x), got %g (%#08x)", place(want.Shape, i/c, i%c),
					w, math.Float32bits(w), g, math.Float32bits(g))
			}
		}
	case bcnn.Bits:
		words := bits.Words(c)
		for i, w := range want.Words {
			if diff := w ^ got.Words[i]; diff != 0 {
				channel := i%words*bits.WordBits + mathbits.TrailingZeros64(diff)
				at := place(want.Shape, i/words, channel)
				if channel >= c {
					return fmt.Errorf("%s: padding bit is 1", at)
				}
				return fmt.Errorf("%s: want %+d, got %+d", at,
					bits.At(want.Words[i:], channel%bits.WordBits), bits.At(got.Words[i:], channel%bits.WordBits))
			}
		}
	}
	return nil
}

// place names a channel of a pixel, counted over the batch.
func place(s bcnn.Shape, pixel, channel int) string {
	return fmt.Sprintf("image %d, y %d, x %d, channel %d", pixel/s.Pixels(), pixel/s.W%s.H, pixel%s.W, channel)
}

// Guarded is a tensor whose slice lies between guard words.
type Guarded struct {
	bcnn.Tensor
	// Check returns an error if a guard word has changed; name is what the tensor is
	// called in it.
	Check func(name string) error
}

// Guard copies the tensor. The odd number of words before it makes the slice
// start off any alignment but that of its elements.
func Guard(t bcnn.Tensor) Guarded {
	g := Guarded{Tensor: t}
	switch t.DType {
	case bcnn.Uint8:
		g.U8, g.Check = between(t.U8, 0xa5)
	case bcnn.Bits:
		g.Words, g.Check = between(t.Words, 0xa5a5a5a5a5a5a5a5)
	case bcnn.Float32:
		g.F32, g.Check = between(t.F32, -0x1.6b6b6bp-52)
	}
	return g
}

// GuardOutput is a tensor for an output of n images. It holds a value that is none
// of a case, so that gaps show.
func GuardOutput(n int, s bcnn.Shape) Guarded {
	const gap = -0x1.23456p+60
	g := Guarded{Tensor: bcnn.Tensor{DType: bcnn.Float32, N: n, Shape: s}}
	g.F32, g.Check = guards(n*s.Values(), float32(gap))
	return g
}

func between[T comparable](values []T, word T) ([]T, func(string) error) {
	middle, check := guards(len(values), word)
	copy(middle, values)
	return middle, check
}

// guards makes a slice of n words between others of the same value, and a function
// that checks the latter.
func guards[T comparable](n int, word T) ([]T, func(string) error) {
	const before, after = 67, 64
	whole := make([]T, before+n+after)
	for i := range whole {
		whole[i] = word
	}
	return whole[before : before+n], func(name string) error {
		for k := -before; k < n+after; k++ {
			if k == 0 {
				k = n
			}
			if whole[before+k] != word {
				return fmt.Errorf("Run wrote outside of %s, at element %d of %d", name, k, n)
			}
		}
		return nil
	}
}
