package onnx

import (
	"fmt"
	"io"
	"os"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// maxFile is the largest file that is read: protocol buffers end at 2 GiB.
const maxFile = 1 << 31

// The memory that an import may use for constants and weights: unpackFactor
// bytes for each byte read, as an INT8 becomes several FLOATs on the way, and
// baseBudget to begin with. That keeps small files from unpacking to large
// networks, and from reading the same constant for hours.
const (
	baseBudget   = 64 << 20
	unpackFactor = 32
)

// folder is where a model lies, whose external tensors are read from there.
type folder struct {
	dir    string
	budget *budget.Budget
	// credited are the files that have been added to the budget.
	credited map[string]bool
}

// read reads bytes of a file in the folder. os.Root keeps "..", absolute paths
// and symbolic links inside.
func (f *folder) read(location string, offset, size int64) ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Stat first: opening a named pipe would wait for a writer.
	info, err := root.Stat(location)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", location)
	case offset > info.Size() || size > info.Size()-offset:
		return nil, fmt.Errorf("bytes %d to %d of %s, which has %d", offset, offset+size, location, info.Size())
	}
	file, err := root.Open(location)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(file, offset, size), data); err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	if !f.credited[location] {
		f.credited[location] = true
		f.budget.Grow(unpackFactor * min(info.Size(), maxFile))
	}
	return data, nil
}

func readFile(path string, limits bcnn.Limits) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	case info.Size() >= min(maxFile, limits.FileBytes):
		return nil, fmt.Errorf("%s: %d bytes is more than an ONNX file can have", path, info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}
