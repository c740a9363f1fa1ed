// Package modelfile reads and writes .bcnn files: networks in a safetensors
// container. docs/model-file.md describes the format.
//
// A file that is truncated, altered or hostile gives an error that names it
// and the reason. Sizes are checked against the size of the file before
// anything is allocated.
package modelfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Extension is the usual ending of the name of a model file.
const Extension = ".bcnn"

// Options are the options of Load and Read. The zero value is good.
type Options struct {
	Limits bcnn.Limits
}

// Load reads the network in the file at path. Errors name the file. When ctx
// ends, its error is returned.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, error) {
	n, err := load(ctx, path, opts)
	if err != nil {
		var inner *os.PathError // names the path already
		if errors.As(err, &inner) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

func load(ctx context.Context, path string, opts Options) (*bcnn.Network, error) {
	// Opening a named pipe would wait for a writer, so look first.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(ctx, f, info.Size(), opts)
}

// Read reads the network in a file's bytes.
func Read(ctx context.Context, b []byte, opts Options) (*bcnn.Network, error) {
	return read(ctx, bytes.NewReader(b), int64(len(b)), opts)
}

func read(ctx context.Context, r io.ReaderAt, size int64, opts Options) (*bcnn.Network, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	if size > limits.FileBytes {
		return nil, fmt.Errorf("the file has %d bytes, at most %d are allowed", size, limits.FileBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := readContainer(r, size)
	if err != nil {
		return nil, err
	}
	return decodeNetwork([]byte(c.network), c.tensors)
}

// Encode returns the bytes of the network's file: the same bytes for the same
// network. A network that is not well formed is an error.
func Encode(n *bcnn.Network) ([]byte, error) {
	if err := n.Check(); err != nil {
		return nil, err
	}
	description, tensors, err := encodeNetwork(n)
	if err != nil {
		return nil, fmt.Errorf("network %q: %w", n.Name, err)
	}
	return writeContainer(description, tensors)
}

// Save writes the network to a file, replacing one that is there. The file
// appears complete or not at all. Errors name the file.
func Save(path string, n *bcnn.Network) error {
	b, err := Encode(n)
	if err == nil {
		err = replace(path, b)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replace writes a file beside path and renames it.
func replace(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // CreateTemp makes it private
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
