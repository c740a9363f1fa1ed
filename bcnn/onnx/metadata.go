package onnx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/described"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxMetadata is the size of the longest entry in bytes: the header of a .bcnn file has room for
// it.
const maxMetadata = 4 << 20

type metadata struct {
	name      string
	labels    []string
	resize    int
	photo     *bcnn.Photo
	detection *bcnn.Detection
}

// describe returns what the options say, and what metadata_props say where they do not.
func describe(m *pb.Model, opts Options, work *budget.Budget) (metadata, error) {
	meta := metadata{name: opts.Name, labels: opts.Labels, resize: opts.Resize}
	for _, key := range []string{"name", "labels", "resize", "photo", "detection"} {
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
	if b := m.Metadata["photo"]; len(b) > 0 {
		var p described.Photo
		if err := strictly(b, &p); err != nil {
			return meta, fmt.Errorf("metadata \"photo\": %w", err)
		}
		meta.photo = p.Photo()
		if opts.Resize != 0 {
			meta.photo.Fit = bcnn.FitCrop
		}
		if len(opts.Mean)+len(opts.Scale) > 0 {
			meta.photo.Mean, meta.photo.Scale = nil, nil
		}
	}
	if b := m.Metadata["detection"]; len(b) > 0 {
		err := work.Charge(64 * int64(len(b))) // heads of three bytes each
		if err == nil {
			meta.detection, err = detection(b)
		}
		if err != nil {
			return meta, fmt.Errorf("metadata \"detection\": %w", err)
		}
	}
	return meta, nil
}

// apply says of a network what the metadata and the options say, given the shapes of its outputs.
func (meta *metadata) apply(net *bcnn.Network, outputs []bcnn.Shape, opts Options) error {
	net.Name, net.Inputs[0].Resize, net.Inputs[0].Photo = meta.name, meta.resize, meta.photo
	if opts.Detection != "" {
		err := opts.Detection.describe(net, opts)
		net.Labels = meta.labels // which are of the boxes, if there are any
		return err
	}
	net.Labels, net.Detection = meta.labels, meta.detection
	if err := net.CheckDetection(outputs); err != nil {
		return fmt.Errorf("metadata \"detection\": %w", err)
	}
	return nil
}

// detection reads how boxes are made of the outputs, by heads without tensors.
func detection(b []byte) (*bcnn.Detection, error) {
	j := described.Detection{Background: -1}
	if err := strictly(b, &j); err != nil {
		return nil, err
	}
	d := j.Detection()
	for i, h := range j.Heads {
		if h.Kind != (bcnn.YOLO{}).Kind() || len(h.Tensors) > 0 {
			return nil, fmt.Errorf("head %d is of kind %s with %s, want one of kind yolo with none", i, text.Quote(h.Kind), text.Count(len(h.Tensors), "tensor"))
		}
		var p described.YOLO
		if err := strictly(h.Params, &p); err != nil {
			return nil, fmt.Errorf("head %d: params: %w", i, err)
		}
		y, err := p.Head()
		if err != nil {
			return nil, fmt.Errorf("head %d: %w", i, err)
		}
		d.Heads = append(d.Heads, y)
	}
	return d, nil
}

// strictly is json.Unmarshal that refuses members which are not known.
func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something stands behind the JSON")
	}
	return nil
}
