package onnx

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

type metadata struct {
	name   string
	labels []string
	resize int
}

// describe reads what metadata_props say, unless the options do.
func describe(m *pb.Model, opts Options) (metadata, error) {
	meta := metadata{opts.Name, opts.Labels, opts.Resize}
	if meta.name == "" {
		meta.name = m.Metadata["name"]
	}
	if s := m.Metadata["labels"]; s != "" && meta.labels == nil {
		if err := json.Unmarshal([]byte(s), &meta.labels); err != nil {
			return meta, fmt.Errorf("metadata \"labels\" is not a JSON array of strings: %w", err)
		}
	}
	if s := m.Metadata["resize"]; s != "" && meta.resize == 0 {
		v, err := strconv.Atoi(s)
		if err != nil || v < 0 {
			return meta, fmt.Errorf("metadata \"resize\" is %q, want a number of pixels", s)
		}
		meta.resize = v
	}
	return meta, nil
}
