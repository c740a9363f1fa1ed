package onnx

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxMetadata is the size of the longest entry in bytes: the header of a .bcnn file has room for
// it.
const maxMetadata = 4 << 20

type metadata struct {
	name   string
	labels []string
	resize int
}

// describe returns what the options say, and what metadata_props say where they do not.
func describe(m *pb.Model, opts Options, work *budget.Budget) (metadata, error) {
	meta := metadata{opts.Name, opts.Labels, opts.Resize}
	for _, key := range []string{"name", "labels", "resize"} {
		if n := len(m.Metadata[key]); n > maxMetadata {
			return meta, fmt.Errorf("metadata %q has %d bytes, at most %d are allowed", key, n, maxMetadata)
		} else if err := work.Charge(32 * int64(n)); err != nil {
			return meta, err
		}
	}
	if meta.name == "" {
		meta.name = string(m.Metadata["name"])
	}
	if b := m.Metadata["labels"]; len(b) > 0 && meta.labels == nil {
		if err := json.Unmarshal(b, &meta.labels); err != nil {
			return meta, fmt.Errorf("metadata \"labels\" is not a JSON array of strings: %w", err)
		}
	}
	if b := m.Metadata["resize"]; len(b) > 0 && meta.resize == 0 {
		v, err := strconv.Atoi(string(b))
		if err != nil || v < 0 {
			return meta, fmt.Errorf("metadata \"resize\" is %s, want a number of pixels", text.Quote(string(b)))
		}
		meta.resize = v
	}
	return meta, nil
}
