// Package onnx imports binary and float convolutional networks from ONNX
// files.
//
// What a file computes in FLOAT16, BFLOAT16 or DOUBLE is computed in float32, without the
// rounding of the file; see Report.Deviations. Constants are folded in the type that the file has.
//
// The importer evaluates what is constant, recognises the ways in which
// exporters write binarisation and quantisation (see internal/build), turns NCHW into NHWC, and
// finds the layers whose weights are ±1, or ±α per output filter, or small multiples of
// it, and activations of a few levels. What a
// bcnn.Network cannot represent is an error that names all such nodes (see
// bcnn.ObstaclesError); nothing is approximated silently.
//
// Operators: Abs, Add, ArgMax, ArgMin, AveragePool, BatchNormalization,
// Cast, Ceil, Celu, Clip, Col2Im of windows of one pixel, Concat of channels, rows or columns, Constant, Conv,
// ConvTranspose, DepthToSpace, DequantizeLinear, Div, Dropout, Einsum of a constant, Elu, Erf, Exp, Expand, Flatten, Floor, Gather of channels,
// rows or columns, and of windows (F.unfold), GatherND of a list of them or of rows and columns, Gelu, Gemm, GlobalAveragePool, GlobalMaxPool,
// GroupNormalization, HardSigmoid, HardSwish, Identity, If with a constant condition, InstanceNormalization, LayerNormalization,
// LeakyRelu, LogSoftmax, LpNormalization, LRN, MatMul with a constant, Max, MaxPool (dilated, too), Mean, Min,
// MeanVarianceNormalization, Mish, Mul, Neg, Pad, Pow (multiples of ¼ from −4 to 4), PRelu, QuantizeLinear,
// Reciprocal, ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceMin, ReduceSum and ReduceSumSquare
// over heights, widths and channels or groups of them, Relu, Reshape, Resize and Upsample of heights and widths (nearest, linear, cubic),
// Round, Selu, Shape, Shrink, Sigmoid, Sign, RMSNormalization, Slice and Split of channels, rows or columns, Softmax,
// Softplus, Softsign, SpaceToDepth, SplitToSequence and the operators of sequences, Sqrt, Squeeze, Sub, Sum, Swish, Tanh, ThresholdedRelu, Tile, TopK
// over channels, Transpose, Unsqueeze, Where, the
// comparisons and And, Or, Xor and Not of them, QONNX BipolarQuant, Im2Col, IntQuant, MultiThreshold, Quant and Trunc (and its domain
// channels_last), bitcnn Binarize. Opset 7 and later.
//
// What depends on constants alone is evaluated, by all of these operators but Col2Im, ConvTranspose, LRN,
// Resize, Upsample and those of QONNX that compute with windows, and by what exporters compute shapes and weights with: BitShift, Bitwise*, CastLike, CenterCropPad, Compress,
// ConstantOfShape, CumSum, EyeLike, GatherElements, Hardmax, IsInf, IsNaN, Log, Mod, NonZero, OneHot, Range, Reduce*, ReverseSequence, Scatter*,
// Size, Trilu, Unique, and the other functions of single values.
//
// Convolutions, pools and Resize may be one-dimensional, of batch, channels and positions:
// images of one row. Numbers of channels (ArgMax, TopK) are float32 in a network, and
// bcnn.SourceInt64 says that they were integers; truth values are 0 and 1, bcnn.SourceUint8.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 64 MiB and 128 bytes
// for each byte of the files that it reads, and takes steps in proportion, for
// each of the at most three ways to see the input that it tries, twice where none fits
// unless values are put in another order in memory; Options.Limits
// bound the rest. More is an error. Whoever adds an operator keeps to this: a loop
// whose length the file decides, and memory whose size it decides, are charged to
// the budget before (budget.Loop does it for loops). TestCost and FuzzCost find
// what is not.
//
// # Rooms
//
// A file goes through these packages; each knows those before it only.
//
//	internal/pb     messages of the format, and the attributes of nodes
//	internal/eval   constants: unpacked, computed with, moved
//	internal/view   how the dimensions of a tensor lie in memory
//	internal/build  layers of values: what is pending on them, steps, weights
//	onnx            the graph: its files, inputs, operators, report
//
// Here, operators.go is the table of operators, and a family of them is a file of
// its own: conv, dense, pool, average, pad, normalization, activation, function, elementwise,
// arithmetic, quantize, linear, reshape, constants, select, if, slice, sequence, channels, gathernd, windows, lrn, resize, transposed,
// spatial, largest; fold, foldmoves and foldwindows evaluate. An operator reads attributes (pb) and
// operands (importer.go), computes with constants (eval) or makes layers (build).
//
// The format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3; the
// operators: https://onnx.ai/onnx/operators/.
package onnx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// DefaultWeightTolerance is what the rounding of float32 leaves of weights ±α in a file:
// sums that an exporter has computed, such as w + (sign(w) − w), miss ±1 by some 1e-7.
const DefaultWeightTolerance = 1e-6

// Options are the options of an import. The zero value is good for most files. What is
// said of the input is about the first, where the graph has several.
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
	// SignOfZero asks for a network of ±1 where the ONNX operator Sign stands, whose
	// result for 0 is 0. Without it, a Sign is exact: as ±1 where its input is never 0
	// (odd integer sums), as {0, 1} where it is never negative (behind a ReLU), and
	// with three values otherwise, which cost layers behind two products of bits for
	// one. See Report.Ternary and Report.Zeros.
	SignOfZero bcnn.ZeroRule
	// OverrideZeros applies SignOfZero also where the input of a Sign often is 0, as
	// even integer sums are; else such a Sign keeps its three values. That makes
	// another network.
	OverrideZeros bool
	// WeightTolerance takes weights as ±α, for one α per filter, or as small multiples
	// of it, that differ from that by at most this fraction of α: 0 means
	// DefaultWeightTolerance, or what roundings leave of weights of FLOAT16, or of multiples
	// of α, the larger the more; with a negative number they must be equal. What is taken is
	// in the report, with the largest deviation, and so are layers that miss it narrowly.
	WeightTolerance float64
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
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	s := &source{open: inFolder(filepath.Dir(path)), name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	net, report, err := s.load(ctx, f, f.Size(), opts)
	return net, report, files.Name(path, err)
}

// Read is Load for the file called name of a file system, such as an embed.FS.
// Tensors stored outside the file are read from its folder in fsys.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	f, size, err := files.OpenFS(fsys, name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	s := &source{name: strings.TrimSuffix(path.Base(name), path.Ext(name))}
	s.open = func(other string) (io.ReadCloser, int64, error) {
		return files.OpenFS(fsys, path.Join(path.Dir(name), other))
	}
	net, report, err := s.load(ctx, f, size, opts)
	return net, report, files.Name(name, err)
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
	return s.decode(ctx, data, opts)
}

// load imports a model of size bytes.
func (s *source) load(ctx context.Context, r io.Reader, size int64, opts Options) (*bcnn.Network, *Report, error) {
	if err := s.begin(ctx, opts.Limits); err != nil {
		return nil, nil, err
	}
	data, err := s.model(r, size)
	if err != nil {
		return nil, nil, err
	}
	return s.decode(ctx, data, opts)
}

// decode imports a model.
func (s *source) decode(ctx context.Context, data []byte, opts Options) (*bcnn.Network, *Report, error) {
	im, err := s.translate(data, opts)
	if err != nil {
		return nil, nil, err
	}
	net, findings, err := simplify.Network(ctx, im.build.Net, simplify.Options{
		WeightTolerance: tolerance(opts), Limits: s.limits,
		Rounding: func(layer int) float64 { return im.build.Tolerance(layer).Rounding },
	})
	if err != nil {
		return nil, nil, err
	}
	report, err := im.report(net, findings)
	if err != nil {
		return nil, nil, err
	}
	return net, report, nil
}

// translate makes a network of a model, as the model writes it.
func (s *source) translate(data []byte, opts Options) (*importer, error) {
	defer fpmode.Enter().Leave()
	m, err := pb.Decode(data, s.budget)
	if err != nil {
		if err := s.budget.Charge(0); err != nil { // not the fault of the format
			return nil, err
		}
		return nil, fmt.Errorf("not a valid ONNX file: %w", err)
	}
	if n := len(m.Graph.Nodes); n > s.limits.Layers {
		return nil, fmt.Errorf("the graph has %d nodes, at most %d are allowed", n, s.limits.Layers)
	}
	if m.Opset < 7 {
		return nil, fmt.Errorf("operator set %d of ONNX is not supported, want 7 or later", m.Opset)
	}
	meta, err := describe(m, opts, s.budget)
	if err != nil {
		return nil, err
	}
	if meta.name == "" {
		meta.name = text.Escape(s.name) // a file may be called anything
	}
	layouts, err := inputLayouts(s.eval, m.Graph, opts)
	if err != nil {
		return nil, err
	}
	// Which way a graph's inputs lie in memory shows only when the nodes that
	// read it fit.
	var best error // of the attempt with the fewest obstacles
	refused := true
	// Nor is anything rearranged in memory while another way may fit as it is.
	again := false
	for i := 0; i < len(layouts) || i < 2*len(layouts) && again; i++ {
		if i > 0 {
			s.attempt()
		}
		im := newImporter(m, opts, s)
		im.build.Rearranges = len(layouts) == 1 || i >= len(layouts)
		err := im.run(layouts[i%len(layouts)])
		again = again || im.build.Refused
		if err == nil {
			net := im.build.Net
			net.Name, net.Labels, net.Inputs[0].Resize = meta.name, meta.labels, meta.resize
			return im, nil
		}
		var fewer, most *bcnn.ObstaclesError
		switch {
		case best == nil, refused && !im.build.Refused:
			best, refused = err, im.build.Refused
		case refused == im.build.Refused && errors.As(best, &most) && errors.As(err, &fewer) && len(fewer.Obstacles) < len(most.Obstacles):
			best = err
		}
		if end := s.budget.Charge(0); end != nil && !errors.Is(end, budget.ErrExceeded) {
			return nil, err // of the context
		}
	}
	return nil, best
}
