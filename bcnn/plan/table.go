package plan

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// What functions of one value make of a byte has at most 256 values for a channel, so any
// chain of steps that treat bytes one by one is a table.

// TableSize is the number of values that a byte can have.
const TableSize = 256

// Table looks up Uint8 values: of value x of channel c it makes
//
//	Float32: Values[x], or Values[256·c + x] where every channel has a table
//	Uint8:   the same as a whole number from 0 to 255
//	Bits:    the same as a whole number from 0 to 2^Planes − 1, in its planes
type Table struct {
	Values []float32
	Planes int // of Bits; 0 means 1
}

func (*Table) stepKind() string { return "table" }

// Of returns the values of all bytes of a channel.
func (t *Table) Of(channel int) []float32 {
	return t.Values[channel*TableSize%len(t.Values):][:TableSize]
}

// check returns the shape of the output.
func (t *Table) check(in bcnn.Shape, out bcnn.DType) (bcnn.Shape, error) {
	if len(t.Values) != TableSize && int64(len(t.Values)) != TableSize*int64(in.C) {
		return in, fmt.Errorf("%d values of bytes for %d channels, want 256 for all channels or for each", len(t.Values), in.C)
	}
	if out != bcnn.Bits && t.Planes != 0 {
		return in, fmt.Errorf("%d planes need an output of bits, not %v", t.Planes, out)
	}
	if err := checkPlanes(t.Planes, 0); err != nil {
		return in, err
	}
	planes, numbers, what := max(t.Planes, 1), TableSize, "not a byte"
	switch out {
	case bcnn.Float32:
		return in, nil
	case bcnn.Bits:
		numbers, what = 1<<planes, fmt.Sprintf("not a number of %d planes", planes)
	}
	for i, v := range t.Values {
		if !(v >= 0 && v < float32(numbers)) || v != float32(int(v)) {
			return in, fmt.Errorf("value %d, %v, is %s", i, v, what)
		}
	}
	in.H *= planes
	return in, nil
}
