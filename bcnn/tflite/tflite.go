// Package tflite imports networks from TensorFlow Lite files, above all those that
// Larq Compute Engine (LCE) has converted: binary convolutions with bit-packed weights
// between float layers.
//
// What a bcnn.Network cannot represent is an error that names all such operators (see
// bcnn.ObstaclesError); nothing is approximated silently.
//
// # Operators
//
// Of LCE: LceBconv2d, LceBMaxPool2d, LceDequantize, LceQuantize. Of MediaPipe:
// Convolution2DTransposeBias. Of TensorFlow Lite, on float values: ABS, ADD, ADD_N, ARG_MAX and ARG_MIN
// over channels, AVERAGE_POOL_2D, CAST of comparisons, CEIL, FLOOR and ROUND of what is limited
// before or behind, CONCATENATION, CONV_2D, DEPTH_TO_SPACE, DEPTHWISE_CONV_2D, ELU, EQUAL,
// NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL, EXP, EXPAND_DIMS, FULLY_CONNECTED, GELU,
// HARD_SWISH, L2_NORMALIZATION, LEAKY_RELU, LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT, LOGISTIC,
// LOG_SOFTMAX at the end, MAX_POOL_2D, MAXIMUM, MINIMUM, MEAN, SUM, REDUCE_MAX and REDUCE_MIN over
// heights, widths and channels, MIRROR_PAD, MUL, NEG, PAD, PADV2, PRELU, RELU, RELU6,
// RELU_N1_TO_1, RESHAPE, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, RSQRT, SELECT and SELECT_V2 by
// comparisons, SIGN, SLICE and STRIDED_SLICE of channels, rows and columns, SOFTMAX at the end,
// SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND around convolutions, SPACE_TO_DEPTH, SPLIT and SPLIT_V of
// channels, SQRT, SQUARE, SQUARED_DIFFERENCE, SQUEEZE, SUB, TANH, TILE of dimensions of 1,
// TRANSPOSE, TRANSPOSE_CONV; QUANTIZE and DEQUANTIZE; SHAPE and what computes shapes of it; and on
// constants what converters leave to be computed, DENSIFY too.
//
// On INT8 values between layers: ABS, ADD, SUB, MUL, MAXIMUM and MINIMUM of two tensors or
// with a constant of channels, AVERAGE_POOL_2D, comparisons with constants but EQUAL and NOT_EQUAL,
// CONCATENATION, CONV_2D, DEPTHWISE_CONV_2D, ELU, EXP, FULLY_CONNECTED, GELU, HARD_SWISH,
// LEAKY_RELU, LOGISTIC, MAX_POOL_2D, MEAN, SUM, REDUCE_MAX and REDUCE_MIN, PRELU, QUANTIZE to another
// scale, RELU, RELU6, RELU_N1_TO_1, RESIZE_BILINEAR, SELECT and SELECT_V2, SOFTMAX and LOG_SOFTMAX
// at the end, TANH, TRANSPOSE_CONV, and those that move values. Values of UINT8 are those of INT8,
// 128 higher, at the input and the output of a model.
//
// Where a file takes a batch of any size, shapes are computed for one image, and a tensor whose
// dimensions are no longer those of an image, such as one that is normalised, is moved back where an
// operator needs an image.
//
// What a file says of an operator or a tensor, such as an option, and that is not read, is an
// error, unless it changes no result: options.go and internal/schema list what, and why.
//
// # Values
//
// Feature maps are NHWC in both. The bit-packed tensors of LCE (INT32, bit i of word w is
// channel 32·w + i, 1 stands for −1) are values +1 and −1. Where one is the input of the
// file, the network takes FLOAT32, of which LCE's rule makes bits: −1 where x < 0, +1
// elsewhere. Where one is the output, the network gives +1 and −1 as FLOAT32. The 8-bit
// input of a file is one of bytes: q of UINT8, q + 128 of INT8. Its 8-bit output comes as
// integers in FLOAT32. Report.Inputs and Report.Outputs tell which, and convert them.
//
// Zero padding and padding with +1 are those of the file. A NaN becomes −1 where LCE's
// bits make +1 of it. MAXIMUM and MINIMUM of two tensors pass a NaN of either on, where
// TensorFlow Lite loses that of the first.
//
// An 8-bit or bit-packed output of a binary convolution is the same as LCE's, bit for bit,
// and so are the integers of operators on INT8 values, as the interpreter computes them on
// x86, but for what Report.Deviations names. A layer with weights is
// refused where its sums may leave 32 bits (in groups, 2^24), or where its output changes at
// one beyond 2^24. SOFTMAX of INT8 gives probabilities, which Tensor.Int8 rounds.
// Numbers differ from those of LCE's interpreter by rounding: a sum and its factor are one
// fma here, sums of products are added in another order, and means are multiplied with a
// reciprocal. DEQUANTIZE is (q − zero)·scale, rounded once. Where such a number is next to 0, its sign may be another.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 32 MiB and 128 bytes for each
// byte of the file, and takes steps in proportion; Options.Limits bound the rest. More is an
// error. Whoever adds an operator keeps to this: a loop whose length the file decides, and
// memory whose size it decides, are charged to the budget before.
//
// # Rooms
//
//	internal/flat    FlatBuffers and FlexBuffers, every offset checked
//	internal/schema  the tables of a file: operators, tensors, constants
//	tflite           the graph: its input and output, operators, layers
//
// The file format: https://ai.google.dev/edge/litert/models/metadata; LCE's operators:
// https://docs.larq.dev/compute-engine/.
package tflite

import (
	"context"
	"fmt"

	"io/fs"

	"path"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Options are the options of an import. The zero value is good for most files.
type Options struct {
	// InputType is the type that a network is fed with whose file takes one FLOAT32 tensor:
	// bcnn.Float32, which is the default, or bcnn.Uint8 for the values of bytes.
	InputType bcnn.DType
	// Mean and Scale put (x − Mean)·Scale before it: one value,
	// one per channel, or none.
	Mean, Scale []float32
	// Name is the name of the network; that of the file if it is empty.
	Name   string
	Labels []string // of the outputs
	Resize int      // see bcnn.Input

	// Limits bound the file, the operators, the layers and every tensor.
	Limits bcnn.Limits
}

// What an import may spend: base units, and perByte for each byte of the file.
const (
	base    = 32 << 20
	perByte = 128
)

// Load imports the TensorFlow Lite file at path. The network takes and returns images
// one by one: the batch dimension of the file is dropped. Which layers are binary shows
// when the network is lowered; see plan.Summarize. When ctx ends, its error is returned.
// Errors name the file, the sub-graph, and where they can the operator.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, *Report, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	data, err := files.ReadAll(path, limits.FileBytes)
	if err != nil {
		return nil, nil, err
	}
	net, report, err := decode(ctx, data, stem(filepath.Base(path)), opts)
	return net, report, files.Name(path, err)
}

// Read is Load for the file called name of a file system, such as an embed.FS.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	data, err := files.ReadAllFS(fsys, name, limits.FileBytes)
	if err != nil {
		return nil, nil, err
	}
	net, report, err := decode(ctx, data, stem(path.Base(name)), opts)
	return net, report, files.Name(name, err)
}

// Decode is Load for a file in memory. The network does not keep data.
func Decode(ctx context.Context, data []byte, opts Options) (*bcnn.Network, *Report, error) {
	return decode(ctx, data, "", opts)
}

// decode imports a file; name is that of a network that the options give none.
func decode(ctx context.Context, data []byte, name string, opts Options) (net *bcnn.Network, report *Report, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limits.FileBytes {
		return nil, nil, fmt.Errorf("the file has %d bytes, at most %d are allowed; Limits.FileBytes allows more", len(data), limits.FileBytes)
	}
	b := budget.New(ctx, base)
	b.Grow(perByte * int64(len(data)))
	im, err := decodeWithin(b, data, opts, limits)
	if err != nil {
		return nil, nil, err
	}
	if im.net.Name == "" {
		im.net.Name = name
	}
	return im.simplified(ctx)
}

// simplified returns the network with the layers that are binary, or of a few bits, as such.
func (im *importer) simplified(ctx context.Context) (*bcnn.Network, *Report, error) {
	net, findings, err := simplify.Network(ctx, im.net, simplify.Options{
		Limits: im.limits, Rounding: func(int) float64 { return weights.OfFloat32 },
	})
	if err != nil {
		return nil, nil, err
	}
	im.report.Findings = findings
	for _, f := range findings {
		if f.Deviation > 0 && !f.Nearly {
			im.deviates(im.by[f.Layer], "%s, which they differ from by up to %.2g of α", f.Text, f.Deviation)
		}
	}
	net.Deviations = im.report.Deviations
	return net, im.report, nil
}

// decodeWithin imports a file within a budget.
func decodeWithin(b *budget.Budget, data []byte, opts Options, limits bcnn.Limits) (*importer, error) {
	m, err := schema.Decode(data, limits.Layers, b)
	if err != nil {
		if err := b.Charge(0); err != nil { // not the fault of the format
			return nil, err
		}
		return nil, fmt.Errorf("not a valid TensorFlow Lite file: %w", err)
	}
	im := newImporter(m, opts, limits, b)
	if err := im.run(); err != nil {
		return nil, fmt.Errorf("sub-graph 0: %w", err)
	}
	im.net.Name, im.net.Labels, im.net.Inputs[0].Resize = opts.Name, opts.Labels, opts.Resize
	if err := im.absorb(); err != nil {
		return nil, err
	}
	return im, nil
}

// stem is the name of a file without its extension. A file may be called anything.
func stem(name string) string { return text.Escape(strings.TrimSuffix(name, filepath.Ext(name))) }
