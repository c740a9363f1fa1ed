package plan

import (
	"fmt"
	mathbits "math/bits"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Precision is what a multiplication takes: the bits of the wider of its two factors.
// It is Binary for two values of one bit each, more for integers, such as 2 where one
// factor has three or four levels and 8 for the bytes of an image, and Float for float32.
type Precision int

const (
	Binary Precision = 1
	Float  Precision = 32
)

// String returns "binary", "2-bit" and so on, or "float32".
func (p Precision) String() string {
	switch p {
	case Binary:
		return "binary"
	case Float:
		return "float32"
	}
	return fmt.Sprintf("%d-bit", int(p))
}

// Share is the number of multiplications of a precision, for one image.
type Share struct {
	Precision Precision `json:"bits"`
	MACs      int64     `json:"macs"`
}

// Multiplications are those of a network for one image, in ascending order of their
// precision. They are those of its layers, however many products of bits stand for one.
type Multiplications []Share

// Count counts the multiplications of layers.
func Count(layers []LayerReport) Multiplications {
	m := Multiplications{}
	for _, l := range layers {
		i, found := slices.BinarySearchFunc(m, l.Precision, func(s Share, p Precision) int { return int(s.Precision - p) })
		if !found {
			m = slices.Insert(m, i, Share{Precision: l.Precision})
		}
		m[i].MACs += l.MACs
	}
	return m
}

// All returns the number of all of them.
func (m Multiplications) All() (sum int64) {
	for _, s := range m {
		sum += s.MACs
	}
	return sum
}

// Of returns the number of those of a precision.
func (m Multiplications) Of(p Precision) int64 {
	for _, s := range m {
		if s.Precision == p {
			return s.MACs
		}
	}
	return 0
}

// String returns the share of each precision, that of binary ones always: "77.1 %
// binary, 22.9 % float32". It is "none" if there are no multiplications.
func (m Multiplications) String() string {
	all := m.All()
	if all == 0 {
		return "none"
	}
	share := func(p Precision) string { return fmt.Sprintf("%.1f %% %v", 100*float64(m.Of(p))/float64(all), p) }
	words := []string{share(Binary)}
	for _, s := range m {
		if s.Precision != Binary {
			words = append(words, share(s.Precision))
		}
	}
	return strings.Join(words, ", ")
}

// valueBits returns the bits of the values of each tensor that is an image, or levels as
// bytes.
func (p *Plan) valueBits() []Precision {
	const image = 8
	bits := make([]Precision, len(p.Tensors))
	for t := range p.Inputs {
		bits[t] = image
	}
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *Quantize:
			bits[s.Out] = Precision(mathbits.Len(uint(op.Levels - 1)))
			continue
		case *Table: // levels of levels
			if p.Tensors[s.Out].DType == bcnn.Uint8 {
				bits[s.Out] = Precision(mathbits.Len(uint(slices.Max(op.Values))))
				continue
			}
		}
		for _, t := range s.In {
			bits[s.Out] = max(bits[s.Out], bits[t])
		}
	}
	return bits
}

// precision returns that of a convolution or dense layer, whose weights in the network are
// w, on values of so many bits, if they are bytes.
func (c *Conv) precision(note Note, in Tensor, values Precision, w bcnn.Weights) Precision {
	switch {
	case note.WhyFloat != "" || in.DType == bcnn.Float32:
		return Float
	case in.DType == bcnn.Bits:
		values = Precision(max(c.InPlanes, 1))
	}
	weights := Binary
	switch {
	case c.Int16 != nil:
		weights = integerBits(c.Int16)
	case c.Int8 != nil:
		weights = integerBits(c.Int8)
	case w.Int8 != nil:
		weights = integerBits(w.Int8)
	}
	return max(values, weights, Binary)
}

// integerBits returns how many bits weights have, as ±1, ±3 and so on or in two's
// complement. Only ±1 has one: any other value takes more than a product of bits.
func integerBits[T int8 | int16](weights []T) Precision {
	low, high, odd := 0, 0, true
	for _, w := range weights {
		low, high, odd = min(low, int(w)), max(high, int(w)), odd && w%2 != 0
	}
	if odd {
		return Precision(mathbits.Len(uint(max(high, -low))))
	}
	return Precision(max(2, 1+mathbits.Len(uint(max(high, -low-1)))))
}
