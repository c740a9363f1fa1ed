package flat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxKeys is how many entries a map may have: those of custom operators have less
// than twenty.
const maxKeys = 64

// Map holds the integers of a FlexBuffer that is a map; truth values are 0 and 1.
type Map map[string]int64

// Types of FlexBuffers.
const (
	flexInt          = 1
	flexUint         = 2
	flexIndirectInt  = 6
	flexIndirectUint = 7
	flexMap          = 9
	flexBool         = 26
)

var errFlex = errors.New("the custom options are not a valid FlexBuffer")

// flex is a FlexBuffer: values of 1, 2, 4 or 8 bytes that refer backwards to others.
type flex []byte

// uint reads an unsigned integer of so many bytes.
func (f flex) uint(pos, width int) (uint64, error) {
	if width < 1 || width > 8 || width&(width-1) != 0 || pos < 0 || pos > len(f)-width {
		return 0, errFlex
	}
	var b [8]byte
	copy(b[:], f[pos:pos+width])
	return binary.LittleEndian.Uint64(b[:]), nil
}

// back returns where the offset at pos leads to.
func (f flex) back(pos, width int) (int, error) {
	offset, err := f.uint(pos, width)
	if err != nil || offset > uint64(pos) {
		return 0, errFlex
	}
	return pos - int(offset), nil
}

// length returns the number of elements of a vector, which is in front of them.
func (f flex) length(pos, width int) (int, error) {
	n, err := f.uint(pos-width, width)
	if err != nil || n > uint64(len(f)) {
		return 0, errFlex
	}
	return int(n), nil
}

// ReadMap reads a FlexBuffer that is a map of integers. A value of another type is an error,
// since nothing that is left out could be missed, and so is a key that is there twice.
func ReadMap(data []byte) (Map, error) {
	f := flex(data)
	if len(f) < 3 {
		return nil, fmt.Errorf("the custom options have %d bytes, too few for a FlexBuffer", len(f))
	}
	// The end: the value of the root, its type, and its width.
	width := int(f[len(f)-1])
	if f[len(f)-2]>>2 != flexMap {
		return nil, errors.New("the custom options are a FlexBuffer, but not a map")
	}
	values, err := f.back(len(f)-2-width, width)
	if err != nil {
		return nil, err
	}
	width = 1 << (f[len(f)-2] & 3)
	// In front of the values: where the keys are, their width, and how many there are.
	n, err := f.length(values, width)
	if err != nil {
		return nil, err
	}
	keys, err := f.back(values-3*width, width)
	if err != nil {
		return nil, err
	}
	keyWidth, err := f.uint(values-2*width, width)
	if err != nil || keyWidth > 8 {
		return nil, errFlex
	}
	m, err := f.length(keys, int(keyWidth))
	if err != nil || m != n {
		return nil, errFlex
	}
	if n > maxKeys {
		return nil, fmt.Errorf("the custom options have %d entries, at most %d are expected", n, maxKeys)
	}
	out := make(Map, n)
	for i := range n {
		at, err := f.back(keys+i*int(keyWidth), int(keyWidth))
		if err != nil {
			return nil, err
		}
		const longest = 64
		key, _, ok := bytes.Cut(f[at:min(at+longest, len(f))], []byte{0})
		if !ok {
			return nil, errFlex
		}
		if _, twice := out[string(key)]; twice {
			return nil, fmt.Errorf("option %q is there twice", key)
		}
		kind, err := f.uint(values+n*width+i, 1)
		if err != nil {
			return nil, err
		}
		if out[string(key)], err = f.integer(key, kind, values+i*width, width); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// integer reads the value of a key at a position of a map.
func (f flex) integer(key []byte, kind uint64, pos, width int) (int64, error) {
	size := width
	switch kind >> 2 {
	case flexIndirectInt, flexIndirectUint:
		var err error
		if pos, err = f.back(pos, width); err != nil {
			return 0, err
		}
		size = 1 << (kind & 3)
	case flexInt, flexUint, flexBool:
	default:
		return 0, fmt.Errorf("option %q is of type %d of FlexBuffers, want an integer or a truth value", key, kind>>2)
	}
	v, err := f.uint(pos, size)
	if err != nil {
		return 0, err
	}
	switch kind >> 2 {
	case flexInt, flexIndirectInt: // extend the sign
		shift := 64 - 8*size
		return int64(v<<shift) >> shift, nil
	}
	if int64(v) < 0 {
		return 0, fmt.Errorf("option %q is %d, which is too large", key, v)
	}
	return int64(v), nil
}
