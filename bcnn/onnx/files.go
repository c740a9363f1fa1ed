package onnx

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxFile is the size of the largest ONNX file in bytes: protocol buffers end at 2 GiB.
const maxFile = 1<<31 - 1

// The budget of one attempt to import a model: base units, and perByte units for each byte of the
// model and of the files that it refers to. An INT8 weight becomes eight bytes when it is unpacked,
// and several float32 numbers on the way to a layer.
const (
	base    = 64 << 20
	perByte = 128
)

// openUnits is the cost of opening a file beside the model.
const openUnits = 4096

// source is where a model comes from, and the budget of its import.
type source struct {
	budget *budget.Budget
	eval   *eval.Evaluator
	limits bcnn.Limits
	// open opens a file beside the model and returns its size. It is nil for a model in memory.
	open func(name string) (io.ReadCloser, int64, error)
	// name becomes the name of a network that has none.
	name  string
	bytes int64           // in all files opened so far
	known map[string]bool // files beside the model that bytes includes
	// unopened is the first file beside the model that could not be opened, by its location.
	unopened *unopened
}

// unopened says why a file beside the model could not be opened.
type unopened struct {
	location string
	err      error
}

// begin sets the limits and opens the budget.
func (s *source) begin(ctx context.Context, limits bcnn.Limits) error {
	var err error
	if s.limits, err = limits.WithDefaults(); err != nil {
		return err
	}
	s.budget, s.known = budget.New(ctx, base), map[string]bool{}
	s.eval = &eval.Evaluator{Budget: s.budget, TensorBytes: min(s.limits.TensorBytes, math.MaxInt), External: s.external}
	return nil
}

// attempt grows the budget for another attempt.
func (s *source) attempt() {
	s.budget.Grow(base)
	s.budget.Grow(perByte * s.bytes)
}

// add counts the bytes of a file, and grows the budget for it. It fails beyond the limit of files.
func (s *source) add(bytes int64) error {
	if bytes > s.limits.FileBytes-s.bytes {
		return fmt.Errorf("the model and the files that it refers to have more than the %d bytes that are allowed", s.limits.FileBytes)
	}
	s.bytes += bytes
	s.budget.Grow(perByte * bytes)
	return nil
}

// model reads the model, of size bytes.
func (s *source) model(r io.Reader, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, fmt.Errorf("%d bytes are more than an ONNX file can have: save the weights as external data", size)
	}
	if err := s.add(size); err != nil {
		return nil, err
	}
	return s.read(r, size)
}

// external returns size bytes from offset on of a file beside the model.
func (s *source) external(location string, offset, size int64) ([]byte, error) {
	if err := s.budget.Charge(openUnits); err != nil {
		return nil, err
	}
	name := path.Clean(location)
	file, end, err := s.beside(name, location)
	if err != nil {
		if s.unopened == nil {
			s.unopened = &unopened{location, err}
		}
		return nil, err
	}
	defer file.Close()
	data, err := s.part(name, file, end, offset, size)
	return data, files.Name(name, err)
}

// beside opens a file beside the model. The error names it.
func (s *source) beside(name, location string) (io.ReadCloser, int64, error) {
	if s.open == nil {
		return nil, 0, fmt.Errorf("%s cannot be read, since the model was decoded without its folder: use Load", text.Quote(location))
	}
	if !fs.ValidPath(name) || filepath.IsAbs(location) {
		return nil, 0, fmt.Errorf("%s lies outside of the model's folder", text.Quote(location))
	}
	return s.open(name)
}

// missing returns one error for all tensors that are in a file which could not be opened.
func (s *source) missing(initializers map[string]*pb.Tensor) error {
	if s.unopened == nil {
		return nil
	}
	n := 0
	for _, t := range initializers {
		if t.External != nil && t.External.Location == s.unopened.location {
			n++
		}
	}
	return fmt.Errorf("external data of %s: %w", text.Count(max(n, 1), "tensor"), s.unopened.err)
}

// part reads size bytes from offset on of an open file of end bytes.
func (s *source) part(name string, file io.Reader, end, offset, size int64) ([]byte, error) {
	if offset > end || size > end-offset {
		return nil, fmt.Errorf("the tensor takes %d bytes from byte %d on, but the file has %d", size, offset, end)
	}
	if !s.known[name] {
		s.known[name] = true
		if err := s.add(end); err != nil {
			return nil, err
		}
	}
	if at, ok := file.(io.ReaderAt); ok {
		return s.read(io.NewSectionReader(at, offset, size), size)
	}
	err := s.chunks(offset, func(n int64) error {
		_, err := io.CopyN(io.Discard, file, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.read(file, size)
}

func (s *source) read(r io.Reader, size int64) ([]byte, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes are more than this processor can address", size)
	}
	data := make([]byte, size)
	rest := data
	err := s.chunks(size, func(n int64) error {
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

// chunks calls f for chunks of size bytes, and charges each before, so that reading ends with the
// context.
func (s *source) chunks(size int64, f func(n int64) error) error {
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

// inFolder returns a function that opens files of a folder. Links cannot lead out of it, but to the
// blobs of a cache: see openCached.
func inFolder(dir string) func(name string) (io.ReadCloser, int64, error) {
	return func(name string) (io.ReadCloser, int64, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, 0, err
		}
		defer root.Close() // what it has opened stays open
		f, err := files.OpenIn(root, name)
		if err != nil {
			cached, ok := openCached(dir, root, name)
			if !ok {
				return nil, 0, err
			}
			f = cached
		}
		return f, f.Size(), nil
	}
}
