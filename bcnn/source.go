package bcnn

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Source tells which tensor of the model that a network was imported from an input or
// the output of a layer is, and how its arrays are laid out there.
type Source struct {
	// Name is the name of the tensor; it may be empty.
	Name string
	// Dims are the dimensions of its arrays behind the first one, which is the batch.
	// They have as many values as an image, in the order channel, row, column (NCHW)
	// if ChannelsFirst, else row, column, channel (NHWC).
	Dims          []int
	ChannelsFirst bool
	// Type is that of the elements of the arrays, where they are not the values; Offset
	// is about integers.
	Type   SourceType
	Offset int
	// Scale, of integers of 8 bits, is what one of them stands for, such as 1/256 of a
	// probability; 0 means 1.
	Scale float32
}

// SourceType is how an array holds the values of a network.
type SourceType string

const (
	// SourceValues: the elements are the values.
	SourceValues SourceType = ""
	// SourceBits: int32 words of the signs of 32 channels, NHWC: bit i of word w is
	// channel 32·w + i, where 1 stands for −1 and 0 for +1. Dims count words.
	SourceBits SourceType = "bits"
	// SourceInt8 and SourceUint8: integers that are a value, divided by Scale, rounded, halves
	// away from 0, plus Offset, and limited to their range.
	SourceInt8  SourceType = "int8"
	SourceUint8 SourceType = "uint8"
	// SourceInt32 and SourceInt64: the values, which are integers, such as those of TopK.
	SourceInt32 SourceType = "int32"
	SourceInt64 SourceType = "int64"
)

// SourceWordBits is the number of channels in a word of SourceBits.
const SourceWordBits = 32

// Elements returns the number of elements of an array for an image of a shape.
func (s *Source) Elements(of Shape) int {
	if s != nil && s.Type == SourceBits {
		return of.Pixels() * ((of.C + SourceWordBits - 1) / SourceWordBits)
	}
	return of.Values()
}

// maxDims is the number of dimensions that an array has at the most, in NumPy as well.
const maxDims = 32

// check tests the description of a tensor of a shape.
func (s *Source) check(of Shape) error {
	if s == nil {
		return nil
	}
	if err := checkText(s.Name); err != nil {
		return fmt.Errorf("the name of the source %w", err)
	}
	if len(s.Name) > maxName {
		return fmt.Errorf("the name of the source has %d bytes, at most %d are allowed", len(s.Name), maxName)
	}
	if len(s.Dims) >= maxDims {
		return fmt.Errorf("the source has %d dimensions behind the batch, at most %d are allowed", len(s.Dims), maxDims-1)
	}
	if err := s.checkType(of); err != nil {
		return err
	}
	rest := s.Elements(of)
	for _, d := range s.Dims {
		if d < 1 || rest%d != 0 {
			return fmt.Errorf("the dimensions %v of the source do not fit %v", s.Dims, of)
		}
		rest /= d
	}
	if rest != 1 {
		return fmt.Errorf("the dimensions %v of the source do not fit %v", s.Dims, of)
	}
	return nil
}

// checkType tests the type of a tensor of a shape, and what belongs to the type.
func (s *Source) checkType(of Shape) error {
	if s.Scale != 0 && (!(s.Scale > 0) || s.Scale > math.MaxFloat32 || s.Type != SourceInt8 && s.Type != SourceUint8) {
		return fmt.Errorf("the source has a scale of %v, want a finite number above 0, and a type of 8-bit integers", s.Scale)
	}
	switch s.Type {
	case SourceValues, SourceInt32, SourceInt64:
		if s.Offset != 0 {
			return fmt.Errorf("the source has an offset of %d, which only 8-bit integers may have", s.Offset)
		}
	case SourceBits:
		if s.Offset != 0 || s.ChannelsFirst || len(s.Dims) == 0 || s.Dims[len(s.Dims)-1] != s.Elements(of)/of.Pixels() {
			return fmt.Errorf("the source's dimensions of packed words, %v, do not fit %v", s.Dims, of)
		}
	case SourceInt8, SourceUint8:
		if s.Offset < -255 || s.Offset > 255 {
			return fmt.Errorf("the offset of the source is %d, want -255 to 255", s.Offset)
		}
	default:
		return fmt.Errorf("unknown type of the source %s", text.Quote(string(s.Type)))
	}
	return nil
}

// size is what the description holds, in bytes.
func (s *Source) size() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.Name)) + 8*int64(len(s.Dims))
}

// nameUnits is what a name takes besides its bytes.
const nameUnits = 16

// maxAbsorbed is how many bytes the names of absorbed tensors have at the most, so that a
// network fits into a file with them.
const maxAbsorbed = 1 << 20

// Absorb sets Absorbed to those of the names that no layer has as its source. It is for
// importers, which give the names of all tensors that are no constants; what is no name, as
// Check has it, is left out.
func (n *Network) Absorb(names []string) {
	sources := map[string]bool{}
	for _, l := range n.Layers {
		if l.Source != nil {
			sources[l.Source.Name] = true
		}
	}
	bytes := 0
	n.Absorbed = []string{}
	for _, name := range names {
		if name == "" || sources[name] || len(name) > maxName || checkText(name) != nil {
			continue
		}
		sources[name] = true
		n.Absorbed = append(n.Absorbed, name)
		if bytes += len(name) + nameUnits; bytes > maxAbsorbed {
			n.Absorbed = nil
			return
		}
	}
}
