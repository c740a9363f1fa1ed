package bcnn

import "fmt"

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
	rest := of.Values()
	for _, d := range s.Dims {
		if d < 1 || rest%d != 0 {
			return fmt.Errorf("the dimensions %v of the source are not those of %v", s.Dims, of)
		}
		rest /= d
	}
	if rest != 1 {
		return fmt.Errorf("the dimensions %v of the source are not those of %v", s.Dims, of)
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
