package onnx

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// maxFile is the largest ONNX file: protocol buffers end at 2 GiB.
const maxFile = 1<<31 - 1

// What one attempt to import a model may spend: base units, and perByte for each
// byte of the model and of the files that it refers to. An INT8 becomes eight
// bytes when it is unpacked and several FLOATs on the way to a layer.
const (
	base    = 64 << 20
	perByte = 64
)

// openUnits is what it costs to open a file beside the model.
const openUnits = 4096

// source is where a model comes from, and the account of what it may spend.
type source struct {
	budget *budget.Budget
	eval   *eval.Evaluator
	limits bcnn.Limits
	// beside has the files that a model may refer to, in the folder dir; nil if
	// it may not.
	beside fs.FS
	dir    string
	// name is the name of a network that has none.
	name  string
	bytes int64           // of the files that were opened
	known map[string]bool // those beside the model
}

// begin opens the account.
func (s *source) begin(ctx context.Context, limits bcnn.Limits) error {
	var err error
	if s.limits, err = limits.WithDefaults(); err != nil {
		return err
	}
	s.budget, s.known = budget.New(ctx, base), map[string]bool{}
	s.eval = &eval.Evaluator{Budget: s.budget, External: s.external}
	return nil
}

// attempt lets the budget grow by what another attempt may spend.
func (s *source) attempt() {
	s.budget.Grow(base)
	s.budget.Grow(perByte * s.bytes)
}

// add takes a file into the account.
func (s *source) add(bytes int64) error {
	if bytes > s.limits.FileBytes-s.bytes {
		return fmt.Errorf("the model and the files that it refers to have more than the %d bytes that are allowed", s.limits.FileBytes)
	}
	s.bytes += bytes
	s.budget.Grow(perByte * bytes)
	return nil
}

// model reads the file of the model.
func (s *source) model(fsys fs.FS, name string) ([]byte, error) {
	file, size, err := open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > maxFile {
		return nil, fmt.Errorf("%s: %d bytes are more than an ONNX file can have", name, size)
	}
	if err := s.add(size); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := s.read(file, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// external reads the data of a tensor from a file beside the model.
func (s *source) external(location string, offset, size int64) ([]byte, error) {
	if s.beside == nil {
		return nil, fmt.Errorf("%.200q cannot be read: the model does not come from a folder", location)
	}
	name := path.Clean(location)
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%.200q lies outside of the model's folder", location)
	}
	name = path.Join(s.dir, name)
	if err := s.budget.Charge(openUnits); err != nil {
		return nil, err
	}
	file, end, err := open(s.beside, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if offset > end || size > end-offset {
		return nil, fmt.Errorf("bytes %d to %d of %.200q, which has %d", offset, offset+size, location, end)
	}
	if !s.known[name] {
		s.known[name] = true
		if err := s.add(end); err != nil {
			return nil, err
		}
	}
	var r io.Reader = file
	if at, ok := file.(io.ReaderAt); ok {
		r = io.NewSectionReader(at, offset, size)
	} else if err := s.pieces(offset, func(n int64) error {
		_, err := io.CopyN(io.Discard, file, n)
		return err
	}); err != nil {
		return nil, fmt.Errorf("%.200q: %w", location, err)
	}
	data, err := s.read(r, size)
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", location, err)
	}
	return data, nil
}

// read reads size bytes.
func (s *source) read(r io.Reader, size int64) ([]byte, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes are more than this processor can address", size)
	}
	data := make([]byte, size)
	rest := data
	err := s.pieces(size, func(n int64) error {
		_, err := io.ReadFull(r, rest[:n])
		rest = rest[n:]
		return err
	})
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the file has become shorter
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// pieces calls f for pieces of size bytes, charged one by one so that reading
// ends with the context.
func (s *source) pieces(size int64, f func(n int64) error) error {
	const most = 1 << 20
	for size > 0 {
		n := min(size, most)
		if err := s.budget.Charge(n); err != nil {
			return err
		}
		if err := f(n); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// open opens a regular file and returns its size. It looks before it opens:
// opening a named pipe would wait for a writer.
func open(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, 0, err
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

func regular(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%.200q is not a regular file", name)
	}
	return nil
}

// paths are the files of the system by the names that it gives them.
type paths struct{}

func (paths) Open(name string) (fs.File, error)     { return os.Open(name) }
func (paths) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// folder is a folder of the system, which no link leads out of.
type folder string

func (dir folder) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close() // what it has opened stays open
	return root.Open(name)
}

func (dir folder) Stat(name string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(name)
}
