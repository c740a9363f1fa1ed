// Package idx reads and writes the IDX files of the MNIST data sets: arrays of
// unsigned bytes with their dimensions.
//
// A file is two zero bytes, the type (0x08, unsigned byte), the number of
// dimensions, each dimension as a big-endian 32-bit number, and the data.
package idx

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Array is an array of bytes, the last dimension innermost.
type Array struct {
	Dims []int
	Data []uint8
}

const (
	unsignedByte = 0x08
	maxDims      = 4
	// MaxBytes is the largest array that Read accepts.
	MaxBytes = 1<<31 - 1
)

// Load reads a file, unpacking it if it is compressed with gzip. Errors name
// the file.
func Load(path string) (*Array, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := Read(f)
	return a, files.Name(path, err)
}

// Read reads an array, unpacking it if it is compressed with gzip. Nothing may
// follow it.
func Read(r io.Reader) (*Array, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		in = bufio.NewReader(z)
	}
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, fmt.Errorf("no IDX file: %w", short(err))
	}
	if head[0] != 0 || head[1] != 0 {
		return nil, errors.New("no IDX file: it must begin with two zero bytes")
	}
	if head[2] != unsignedByte {
		return nil, fmt.Errorf("IDX type 0x%02x, want 0x%02x (unsigned bytes)", head[2], unsignedByte)
	}
	if head[3] < 1 || head[3] > maxDims {
		return nil, fmt.Errorf("%d dimensions, want 1 to %d", head[3], maxDims)
	}
	dims := make([]uint32, head[3])
	if err := binary.Read(in, binary.BigEndian, dims); err != nil {
		return nil, fmt.Errorf("dimensions: %w", short(err))
	}
	a := &Array{Dims: make([]int, len(dims))}
	size := int64(1)
	for i, d := range dims {
		// Each by itself too: the others may be 0.
		if d > MaxBytes || size*int64(d) > MaxBytes {
			return nil, fmt.Errorf("dimensions %v are more than %d bytes", dims, MaxBytes)
		}
		a.Dims[i] = int(d)
		size *= int64(d)
	}
	// A file that claims more than it has costs no more than what it has.
	data, err := io.ReadAll(io.LimitReader(in, size+1))
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if int64(len(data)) < size {
		return nil, fmt.Errorf("%d bytes of data, dimensions %v need %d", len(data), dims, size)
	}
	if int64(len(data)) > size {
		return nil, fmt.Errorf("data goes on after the %d bytes of dimensions %v", size, dims)
	}
	a.Data = data
	return a, nil
}

func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write writes an array, uncompressed.
func Write(w io.Writer, a *Array) error {
	if len(a.Dims) < 1 || len(a.Dims) > maxDims {
		return fmt.Errorf("%d dimensions, want 1 to %d", len(a.Dims), maxDims)
	}
	head := []byte{0, 0, unsignedByte, byte(len(a.Dims))}
	size := int64(1)
	for _, d := range a.Dims {
		if d < 0 || int64(d) > MaxBytes {
			return fmt.Errorf("dimensions %v", a.Dims)
		}
		if size *= int64(d); size > MaxBytes {
			return fmt.Errorf("dimensions %v are more than %d bytes", a.Dims, MaxBytes)
		}
		head = binary.BigEndian.AppendUint32(head, uint32(d))
	}
	if int64(len(a.Data)) != size {
		return fmt.Errorf("%d bytes of data, dimensions %v need %d", len(a.Data), a.Dims, size)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(a.Data)
	return err
}
