package bcnn

import (
	"fmt"
	"math"
	"slices"
)

// What functions of one value make of a byte has at most 256 values for a channel, so any
// chain of steps that treat bytes one by one is a table.

// TableSize is the number of values that a byte can have.
const TableSize = 256

// TableStep looks up Uint8 values: of value x of channel c it makes
//
//	Float32: Values[x], or Values[256·c + x] where every channel has a table
//	Uint8:   the same as a whole number from 0 to 255
//	Bits:    the same as a whole number from 0 to 2^Planes − 1, in its planes
type TableStep struct {
	Values []float32
	Planes int // of Bits; 0 means 1
}

func (*TableStep) stepKind() string { return "table" }

// Of returns the values of all bytes of a channel.
func (t *TableStep) Of(channel int) []float32 {
	return t.Values[channel*TableSize%len(t.Values):][:TableSize]
}

// check returns the shape of the output.
func (t *TableStep) check(in Shape, out DType) (Shape, error) {
	if len(t.Values) != TableSize && int64(len(t.Values)) != TableSize*int64(in.C) {
		return in, fmt.Errorf("%d values of bytes for %d channels, want 256 for all channels or for each", len(t.Values), in.C)
	}
	if out != Bits && t.Planes != 0 {
		return in, fmt.Errorf("%d planes need an output of bits, not %v", t.Planes, out)
	}
	if err := checkPlanes(t.Planes, 0); err != nil {
		return in, err
	}
	planes, numbers, what := max(t.Planes, 1), TableSize, "not a byte"
	switch out {
	case Float32:
		return in, nil
	case Bits:
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

// threshold returns a table of single bits as thresholds, or nil where bits change more
// than once.
func (t *TableStep) threshold(channels int) *Threshold {
	if t.Planes > 1 {
		return nil
	}
	out := &Threshold{I32: make([]int32, channels)}
	flips := newFlips(channels)
	var at int32
	var falls bool
	for c := range channels {
		if c*TableSize < len(t.Values) { // what all channels share is searched once
			var once bool
			if at, falls, once = step(t.Of(c)); !once {
				return nil
			}
		}
		out.I32[c] = at
		flips.set(c, falls)
	}
	out.Flip = flips.words()
	return out
}

// step returns from which value on bits of all bytes change, and whether from 1 to 0; once is
// false where they change more than once.
func step(values []float32) (at int32, falls, once bool) {
	first, last := values[0], values[TableSize-1]
	n := 1
	for n < TableSize && values[n] == first {
		n++
	}
	switch {
	case n == TableSize && first == 1:
		return math.MinInt32, false, true
	case n == TableSize:
		return math.MaxInt32, false, true
	}
	changed := slices.ContainsFunc(values[n:], func(v float32) bool { return v != last })
	return int32(n), first == 1, !changed
}
