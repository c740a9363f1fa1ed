// Package onnx imports binary and float convolutional networks from ONNX
// files.
//
// The importer evaluates what is constant, recognises the ways in which
// exporters write binarisation (see internal/build), turns NCHW into NHWC, and
// finds the layers whose weights are ±1, or ±α per output filter. What a
// bcnn.Network cannot represent is an error that names the node; nothing is
// approximated silently.
//
// Operators: Add, BatchNormalization, Cast, Clip, Constant, Conv, Div, Dropout,
// Flatten, Gemm, HardSigmoid, Identity, MatMul, MaxPool, Mul, Pad, Relu,
// Reshape, Shape, Sign, Softmax, Squeeze, Sub, Transpose, Unsqueeze, Where, the
// comparisons, QONNX BipolarQuant and Quant, bitcnn Binarize; and more on
// constants. Opset 7 and later.
//
// The format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3; the
// operators: https://onnx.ai/onnx/operators/.
package onnx

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Options are the options of an import. The zero value is good for most files.
type Options struct {
	// InputType is the type that the network is fed with. 0 means that of the
	// graph's input: bcnn.Uint8 for UINT8, bcnn.Float32 for FLOAT. With
	// bcnn.Uint8, a graph that takes FLOAT is fed with the values of the bytes.
	InputType bcnn.DType
	// InputShape gives the dimensions that the file leaves open, apart from the
	// batch. Fields of 0 leave it to the file.
	InputShape bcnn.Shape
	// Mean and Scale put (x − Mean)·Scale before a graph that takes FLOAT: one
	// value, one per channel, or none.
	Mean, Scale []float32
	// SignOfZero is the rule for the ONNX operator Sign, whose result for 0 is
	// 0, which a bit cannot represent. Without a rule, Sign is an error.
	SignOfZero bcnn.ZeroRule
	// Name, Labels and Resize override the entries "name", "labels" (a JSON
	// array of strings) and "resize" (pixels) of the file's metadata_props.
	// Without either the name is that of the file.
	Name   string
	Labels []string
	Resize int

	// Limits bound the file with the files that it refers to, the nodes, the
	// layers and every tensor. Within them an import takes memory and time in
	// proportion to the bytes that it reads.
	Limits bcnn.Limits
}

// Load imports the ONNX file at path. The network takes and returns images one
// by one: the batch dimension of the file is dropped. Feature maps are NHWC. Which
// layers are binary shows when the network is lowered; see bcnn.Summarize.
//
// Tensors stored outside the file are read from its folder and nowhere else. When
// ctx ends, its error is returned. Errors name the file and, where they can, the
// node.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, *Report, error) {
	return load(ctx, paths{}, path, opts, &source{
		beside: folder(filepath.Dir(path)), dir: ".",
		name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)),
	})
}

// Read is Load for the file called name of a file system, such as an embed.FS.
// Tensors stored outside the file are read from its folder in fsys.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	return load(ctx, fsys, name, opts, &source{
		beside: fsys, dir: path.Dir(name),
		name: strings.TrimSuffix(path.Base(name), path.Ext(name)),
	})
}

// Decode is Load for a file in memory, which cannot refer to others. The network
// does not keep data.
func Decode(ctx context.Context, data []byte, opts Options) (*bcnn.Network, *Report, error) {
	s := &source{}
	if err := s.begin(ctx, opts.Limits); err != nil {
		return nil, nil, err
	}
	if err := s.add(int64(len(data))); err != nil {
		return nil, nil, err
	}
	return s.decode(data, opts)
}

func load(ctx context.Context, fsys fs.FS, name string, opts Options, s *source) (*bcnn.Network, *Report, error) {
	if err := s.begin(ctx, opts.Limits); err != nil {
		return nil, nil, err
	}
	data, err := s.model(fsys, name)
	if err != nil {
		return nil, nil, err // names the file
	}
	net, report, err := s.decode(data, opts)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return net, report, nil
}

// decode imports a model.
func (s *source) decode(data []byte, opts Options) (*bcnn.Network, *Report, error) {
	m, err := pb.Decode(data)
	if err != nil {
		return nil, nil, fmt.Errorf("not a valid ONNX file: %w", err)
	}
	if m.Opset < 7 {
		return nil, nil, fmt.Errorf("operator set %d of ONNX is not supported, want 7 or later", m.Opset)
	}
	meta, err := describe(m, opts)
	if err != nil {
		return nil, nil, err
	}
	if meta.name == "" {
		meta.name = s.name
	}
	layouts, err := inputLayouts(s.eval, m.Graph, opts)
	if err != nil {
		return nil, nil, err
	}
	// Which way a graph's input lies in memory shows only when the nodes that
	// read it fit.
	var first error
	for i, layout := range layouts {
		if i > 0 {
			s.attempt()
		}
		im := newImporter(m, opts, s)
		err := im.run(layout)
		if err == nil {
			im.build.Net.Name, im.build.Net.Labels, im.build.Net.Input.Resize = meta.name, meta.labels, meta.resize
			if err := im.build.Net.Check(); err != nil {
				return nil, nil, err
			}
			return im.build.Net, im.report(), nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, first
}
