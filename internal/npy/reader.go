package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Limits of memory, in bytes.
const (
	// MaxBytes is the most that the elements may take that are read at a time: 4 GiB, and
	// 512 MiB where an int has 32 bits.
	MaxBytes = 512 << 20 << (3 * (^uint(0) >> 63))
	// MaxBuffered is the most that the elements of an array may take which can be read only as
	// a whole: one in Fortran order that is compressed, or on standard input.
	MaxBuffered = 64 << 20
)

const magic = "\x93NUMPY"

// maxHeader is the longest header in bytes. NumPy itself takes no more than 10,000.
const maxHeader = 1 << 16

// Reader reads an array row by row: a row has the elements of one index of the first
// dimension. An array without dimensions has one row.
type Reader struct {
	header
	name       string // for errors
	rows, next int
	row        int64 // bytes
	from       io.Reader
	known      int64 // bytes that are certain to be there
	// Of an array in Fortran order, whose rows do not lie together: all elements, and where
	// they begin.
	all    io.ReaderAt
	offset int64
	buffer []byte
	closer io.Closer
}

// source is where an array is read from.
type source struct {
	io.Reader
	size  int64       // bytes of it; −1 if unknown
	known int64       // bytes that are certain to be there
	at    io.ReaderAt // the same bytes at random; nil if they are compressed, or come one by one
}

// newReader reads the header of an array. Nothing may follow the array.
func newReader(s source) (*Reader, error) {
	h, size, err := readHeader(s.Reader)
	if err != nil {
		return nil, err
	}
	r := &Reader{header: *h, rows: 1, from: s.Reader, known: s.known}
	total, err := h.bytes()
	if err != nil {
		return nil, err
	}
	if len(h.shape) > 0 {
		r.rows = h.shape[0]
	}
	if r.rows > 0 {
		r.row = total / int64(r.rows)
	}
	switch left := s.size - size; {
	case s.size < 0:
	case left < total:
		return nil, truncated(io.EOF)
	case left > total:
		return nil, errAfter
	}
	if h.fortran && len(h.shape) > 1 {
		if r.all, r.offset = s.at, size; s.at == nil {
			if total > MaxBuffered {
				return nil, fmt.Errorf("an array in Fortran order of %d bytes, which is read as a whole: at most %d are, unless it is not compressed and in a file; numpy.ascontiguousarray gives the other order", total, MaxBuffered)
			}
			data, err := r.take(nil, int(total))
			if err == nil {
				err = r.end()
			}
			if err != nil {
				return nil, err
			}
			r.all, r.offset = bytes.NewReader(data), 0
		}
	} else if total == 0 {
		return r, r.end()
	}
	return r, nil
}

// readHeader reads what stands in front of the elements, and returns how many bytes that is.
func readHeader(r io.Reader) (*header, int64, error) {
	var start [len(magic) + 2]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return nil, 0, truncated(err)
	}
	if string(start[:len(magic)]) != magic {
		return nil, 0, errors.New("not an .npy file")
	}
	size := make([]byte, 4)
	switch version := start[len(magic)]; version {
	case 1:
		size = size[:2]
	case 2, 3:
	default:
		return nil, 0, fmt.Errorf("version %d of the .npy format, want 1 to 3", version)
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return nil, 0, truncated(err)
	}
	n := binary.LittleEndian.Uint32(append(slices.Clone(size), 0, 0)[:4])
	if n > maxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes, at most %d are read", n, maxHeader)
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, 0, truncated(err)
	}
	h, err := parseHeader(string(content))
	if err != nil {
		return nil, 0, fmt.Errorf("header: %w", err)
	}
	return h, int64(len(start)+len(size)) + int64(n), nil
}

// Shape returns the dimensions of the array.
func (r *Reader) Shape() []int { return slices.Clone(r.shape) }

// Type returns the name of the type of the elements, as NumPy calls it.
func (r *Reader) Type() string { return r.typ.String() }

// Next reads the next n rows, or those that are left. They are valid until the next call. With
// the last row it sees that nothing follows the array, and that its checksum is right.
func (r *Reader) Next(n int) (*Array, error) {
	a, err := r.part(n)
	if err != nil && r.name != "" {
		err = fmt.Errorf("array %s: %w", text.Quote(r.name), err)
	}
	return a, err
}

func (r *Reader) part(n int) (*Array, error) {
	n = min(n, r.rows-r.next)
	shape := slices.Clone(r.shape)
	if len(shape) > 0 {
		shape[0] = n
	}
	if r.row > 0 && int64(n) > MaxBytes/r.row {
		return nil, fmt.Errorf("an array %v of %v takes more than %d bytes", shape, r.typ, int64(MaxBytes))
	}
	a := &Array{Shape: shape, typ: r.typ, first: int64(r.next) * r.row / int64(r.typ.size)}
	var err error
	if r.all != nil {
		r.buffer, err = r.gather(r.buffer[:0], n)
	} else {
		r.buffer, err = r.take(r.buffer[:0], int(int64(n)*r.row))
	}
	if err != nil {
		return nil, err
	}
	a.data = r.buffer
	if r.next += n; r.next == r.rows && r.all == nil && n > 0 {
		if err := r.end(); err != nil {
			return nil, err
		}
	}
	if r.bigEndian {
		swapBytes(a.data, r.typ.size)
	}
	if r.typ.kind == 'b' {
		for _, b := range a.data {
			if b > 1 {
				return nil, fmt.Errorf("a bool is %d", b)
			}
		}
	}
	return a, nil
}

// take appends so many bytes. It makes no more room at once than what is known to be there.
func (r *Reader) take(data []byte, size int) ([]byte, error) {
	const step = 1 << 20
	if cap(data) < size && int64(size) <= r.known {
		data = make([]byte, 0, size)
	}
	for len(data) < size {
		from := len(data)
		part := min(size-from, max(cap(data)-from, step))
		data = slices.Grow(data, part)[:from+part]
		if _, err := io.ReadFull(r.from, data[from:]); err != nil {
			return data, truncated(err)
		}
	}
	return data, nil
}

// gather appends the next n rows of an array in Fortran order in C order. In the file, the
// elements of the rows lie together that have the same other indices, of which the first runs
// fastest.
func (r *Reader) gather(data []byte, n int) ([]byte, error) {
	size, rest := r.typ.size, r.shape[1:]
	columns := int(r.row) / size
	data = slices.Grow(data, n*int(r.row))[:n*int(r.row)]
	column := make([]byte, n*size)
	index, to := make([]int, len(rest)), 0
	strides := make([]int, len(rest)) // of data, in elements
	stride := 1
	for d := len(rest) - 1; d >= 0; d-- {
		strides[d] = stride
		stride *= rest[d]
	}
	for c := range columns {
		at := r.offset + (int64(c)*int64(r.rows)+int64(r.next))*int64(size)
		if k, err := r.all.ReadAt(column, at); k < len(column) {
			return data, truncated(err)
		}
		for i := range n {
			copy(data[(i*columns+to)*size:][:size], column[i*size:])
		}
		for d := range rest {
			index[d]++
			to += strides[d]
			if index[d] < rest[d] {
				break
			}
			to -= strides[d] * rest[d]
			index[d] = 0
		}
	}
	return data, nil
}

var errAfter = errors.New("there are bytes after the array")

// end sees that nothing follows.
func (r *Reader) end() error {
	switch n, err := io.ReadFull(r.from, make([]byte, 1)); {
	case n > 0:
		return errAfter
	case err != io.EOF: // such as a wrong checksum of a member
		return err
	}
	return nil
}

// Close closes what the array is read from.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

func truncated(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the file ends in the middle of the array")
	}
	return err
}

func swapBytes(data []byte, size int) {
	for i := 0; i < len(data); i += size {
		slices.Reverse(data[i : i+size])
	}
}
