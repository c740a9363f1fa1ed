// Package openvino imports networks of OpenVINO in its intermediate representation (IR): an .xml
// file, the graph, and a .bin file, the constants. IR 10 and 11 are read, and IR 4 to 7, in which
// the first binary networks of Open Model Zoo were published. No release wrote IR 8 or 9.
//
// A FakeQuantize of two levels is a comparison, x > t, and a BinaryConvolution (mode
// xnor-popcount) a sum of products of signs, with the padding that its pad_value says: they become
// bcnn.Sign and bcnn.Conv2D with packed weights, exactly. A FakeQuantize of 3 to 256 levels
// becomes a bcnn.Quantize. What else is binary, package simplify finds.
//
// Operators: Add, AvgPool, BatchNormInference, BinaryConvolution, Clamp, Concat, Const, Convert,
// Convolution, ConvolutionBackpropData, Divide, Elu, Erf, Exp, FakeQuantize, Gather of shapes, Gelu,
// Greater and other comparisons with numbers, GroupConvolution, GroupConvolutionBackpropData, HSwish,
// Interpolate of two dimensions (nearest, linear, cubic), LRN, MatMul with weights, Maximum, MaxPool,
// Minimum, Mish, Multiply, Negative, NormalizeL2, Pad of two dimensions, Parameter, Power by a number,
// PReLU, ReduceMax, ReduceMean, ReLU, ReorgYolo, Reshape, Result, Select of two numbers, ShapeOf,
// ShuffleChannels, Sigmoid, Sign, SoftMax at the end, SoftPlus, Split, Sqrt, Squeeze, StridedSlice of
// shapes, Subtract, Swish, Tanh, Transpose, Unsqueeze and VariadicSplit, and those of IR 4 to 7 that
// docs/importing.md lists. An attribute, an input or a version of an operator that is not read is an
// error that names the layer, see bcnn.ObstaclesError.
//
// A DetectionOutput, which decodes and selects boxes, and a RegionYolo are no layers of a network.
// Where they are outputs of the graph, what they read are the outputs of the network instead;
// Report.Detections and the network's Deviations say so. Network.Detection says how boxes are made of
// them: its priors are those of PriorBox and PriorBoxClustered, which are computed here. A
// DetectionOutput of another form than CENTER_SIZE, with shared and normalised locations, has no
// Detection; the Deviations say why. For a RegionYolo the threshold is 0.5 and the overlap 0.45,
// which no file says. Photos are taken to be stretched to the input, as B, G, R, which is the order
// of Open Model Zoo.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 64 MiB and 192 bytes for each byte
// of the two files, and takes steps in proportion; Options.Limits bound the rest. What the files
// decide is charged to a budget before it is done; TestCost and FuzzCost find what is not.
package openvino

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Options are the options of an import.
type Options struct {
	// Params is the file of the constants: a path for Load, a name in the file system for
	// Read. Without it NAME.bin beside NAME.xml is taken.
	Params string
	// InputShape is the size of the first input, where the file leaves dimensions of it open.
	InputShape bcnn.Shape
	// InputType is the type that the first input is fed with: bcnn.Float32, or bcnn.Uint8 for the
	// values of bytes. Without it that is what the file says.
	InputType bcnn.DType
	// Mean and Scale put (x − Mean)·Scale before the graph, on its first input: one value, one
	// per channel, or none.
	Mean, Scale []float32
	// Name is the name of the network. Without it that is NAME, for Decode the name in the file,
	// which often is that of the program that wrote it.
	Name string
	// Labels are those of the network. For a detector whose first class is the background, that may
	// be left out.
	Labels []string
	// Resize is Input.Resize of the first input.
	Resize int

	// Limits bound both files together, the layers of the graph and of the network, and every
	// tensor.
	Limits bcnn.Limits
}

// Report tells what became of a network.
type Report struct {
	// Version is that of the IR: 4 to 7, 10 or 11.
	Version int
	// Detections are the names of the DetectionOutput and RegionYolo layers that were left out:
	// what they read are outputs of the network.
	Detections []string
	// Findings are what package simplify has found in it.
	Findings []simplify.Finding
}

// Load imports the network whose graph is in the file at path. It takes and returns images one
// by one; feature maps are NHWC. When ctx ends, its error is returned. Errors name the file and,
// where they can, the layer.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, *Report, error) {
	return load(ctx, place{read: files.ReadAll, ext: filepath.Ext, base: filepath.Base}, path, opts)
}

// Read is Load for the file called name of a file system, such as an embed.FS.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	return load(ctx, place{
		read: func(file string, limit int64) ([]byte, error) { return files.ReadAllFS(fsys, file, limit) },
		ext:  path.Ext,
		base: path.Base,
	}, name, opts)
}

// Decode is Load for files in memory: the .xml and the .bin. The network does not keep them.
func Decode(ctx context.Context, xml, bin []byte, opts Options) (*bcnn.Network, *Report, error) {
	im, err := decode(ctx, xml, bin, opts)
	if err != nil {
		return nil, nil, err
	}
	return im.simplified(ctx)
}

// decode makes a network that is not simplified.
func decode(ctx context.Context, xml, bin []byte, opts Options) (im *importer, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	if im, err = begin(ctx, int64(len(xml)), int64(len(bin)), opts); err != nil {
		return nil, err
	}
	im.bin = bin
	if im.graph, err = decodeXML(xml, im.limits.Layers, im.budget); err != nil {
		return im, err
	}
	return im, im.network()
}

// simplified returns the network of an import with the layers that are binary, or of a few bits,
// as such.
func (im *importer) simplified(ctx context.Context) (*bcnn.Network, *Report, error) {
	net, err := try.DoSafely(func() *bcnn.Network {
		net, findings, err := simplify.Network(ctx, im.net, simplify.Options{Limits: im.opts.Limits})
		im.report.Findings = findings
		return try.Value(net, err)
	})
	if err != nil {
		return nil, nil, err
	}
	return net, im.report, nil
}

// place is where files are.
type place struct {
	read func(file string, limit int64) ([]byte, error)
	ext  func(file string) string
	base func(file string) string
}

func load(ctx context.Context, p place, file string, opts Options) (*bcnn.Network, *Report, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	xml, err := p.read(file, min(limits.FileBytes, maxXML))
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	weights := opts.Params
	if weights == "" {
		weights = strings.TrimSuffix(file, p.ext(file)) + ".bin"
	}
	bin, err := p.read(weights, limits.FileBytes-int64(len(xml)))
	if errors.Is(err, fs.ErrNotExist) && opts.Params == "" {
		return nil, nil, fmt.Errorf("the constants of %s: %w; name their file with Options.Params, or 'bcnn convert --params'", text.Escape(file), err)
	}
	if err != nil {
		return nil, nil, err
	}
	if opts.Name == "" {
		opts.Name = text.Escape(strings.TrimSuffix(p.base(file), p.ext(file))) // a file may be called anything
	}
	net, report, err := Decode(ctx, xml, bin, opts)
	if err != nil {
		return nil, nil, files.Name(file, err)
	}
	return net, report, nil
}

// What an import may spend: base units, and perByte for each byte of the files.
const (
	base    = 64 << 20
	perByte = 192
)

// maxXML is the largest graph in bytes: that of ResNet-50 has 600,000.
const maxXML = 64 << 20

// begin opens the account of an import of files of so many bytes.
func begin(ctx context.Context, xml, bin int64, opts Options) (*importer, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	switch {
	case xml > maxXML:
		return nil, fmt.Errorf("the graph has %d bytes, at most %d are supported", xml, maxXML)
	case bin > limits.FileBytes-xml:
		return nil, fmt.Errorf("graph and constants have more than %d bytes; Limits.FileBytes allows more", limits.FileBytes)
	case opts.InputType != 0 && opts.InputType != bcnn.Uint8 && opts.InputType != bcnn.Float32:
		return nil, fmt.Errorf("the type of the input is %v, want uint8 or float32", opts.InputType)
	}
	b := budget.New(ctx, base)
	b.Grow(perByte * (xml + bin))
	return &importer{
		opts: opts, limits: limits, budget: b, net: &bcnn.Network{}, names: map[string]int{}, more: map[source]operand{}, report: &Report{},
	}, b.Charge(xml + bin)
}
