// Package modelfile reads and writes .bcnn files: networks in a safetensors
// container. docs/model-file.md describes the format.
//
// A file that is truncated, altered or hostile gives an error that names it
// and the reason. Sizes are checked against the size of the file before
// anything is allocated, and reading takes time and memory linear in it.
package modelfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
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
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := read(ctx, f, f.Size(), opts)
	return n, files.Name(path, err)
}

// Read reads the network in a file's bytes.
func Read(ctx context.Context, b []byte, opts Options) (*bcnn.Network, error) {
	return read(ctx, bytes.NewReader(b), int64(len(b)), opts)
}

func read(ctx context.Context, r io.ReaderAt, size int64, opts Options) (*bcnn.Network, error) {
	defer fpmode.Enter().Leave()
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	if size > limits.FileBytes {
		return nil, fmt.Errorf("the file has %d bytes, at most %d are allowed; Limits.FileBytes allows more", size, limits.FileBytes)
	}
	return newDecoder(ctx, size, limits).network(r, size)
}

// Encode returns the bytes of the network's file: the same bytes for the same
// network. A network that is not well formed is an error.
func Encode(n *bcnn.Network) ([]byte, error) {
	meta, tensors, err := checked(n)
	if err != nil {
		return nil, err
	}
	return writeContainer(meta, tensors)
}

// Sizes are the bytes of a network's file.
type Sizes struct {
	// Weights are those of the weights and bias of each layer that has any, by its name.
	Weights map[string]int64
	// Tensors are those of all tensors, weights and biases among them; Metadata are the others.
	Tensors, Metadata int64
}

// Size returns the bytes of the network's file. A network that has no file is an error, as for
// Encode.
func Size(n *bcnn.Network) (Sizes, error) {
	meta, list, err := checked(n)
	if err != nil {
		return Sizes{}, err
	}
	header, tensors, err := makeHeader(meta, list)
	if err != nil {
		return Sizes{}, err
	}
	s := Sizes{Weights: make(map[string]int64), Tensors: tensors, Metadata: 8 + int64(header.Len())}
	for _, t := range list {
		for _, role := range []string{weight, bias} {
			if layer, ok := strings.CutSuffix(t.name, "."+role); ok {
				s.Weights[layer] += t.bytes()
			}
		}
	}
	return s, nil
}

// checked is encodeNetwork for any network.
func checked(n *bcnn.Network) (meta metadata, tensors []*tensor, err error) {
	if err := n.Check(); err != nil {
		return meta, nil, err
	}
	if meta, tensors, err = smallest(n); err != nil {
		return meta, nil, fmt.Errorf("network %q: %w", n.Name, err)
	}
	return meta, sorted(tensors), nil
}

// smallest describes a network, packed if that saves enough: a file of an earlier version is read by
// more programs.
func smallest(n *bcnn.Network) (metadata, []*tensor, error) {
	meta, tensors, err := encodeNetwork(n, false)
	if err != nil {
		return meta, nil, err
	}
	small, packed, err := encodeNetwork(n, true)
	if before := stored(meta, tensors); err == nil && stored(small, packed)+max(before/leastPart, leastBytes) <= before {
		return small, packed, nil
	}
	return meta, tensors, err
}

// What packing must save: a part of the file, and some bytes.
const (
	leastPart  = 20
	leastBytes = 256
)

// stored is about how many bytes the file of a network takes.
func stored(meta metadata, tensors []*tensor) int64 {
	size := int64(len(meta.Network))
	for _, t := range tensors {
		size += t.bytes()
	}
	return size
}

// Save writes the network to a file, replacing one that is there, whose mode it
// keeps. The file appears complete or not at all. Errors name the file.
func Save(path string, n *bcnn.Network) error {
	b, err := Encode(n)
	if err == nil {
		err = files.Replace(path, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write %w", files.Name(path, err))
	}
	return nil
}
