// Package onnx imports binary and float convolutional networks from ONNX files, opset 7 to 28. Later
// ones are read as 28, which Report.Deviations says.
//
// The importer evaluates constants, turns NCHW into NHWC, and follows thresholds, roundings and
// limits through whatever operators an exporter has written them with (see internal/build). Package
// simplify then finds the binary layers: those whose weights are ±α for one α per filter, or small
// multiples of it, and whose inputs have a few levels. What a bcnn.Network cannot represent is an
// error that names all such nodes (see bcnn.ObstaclesError); nothing is approximated silently.
//
// FLOAT16, BFLOAT16 and DOUBLE tensors are computed in float32, without the rounding of the file;
// see Report.Deviations. Constants are evaluated in the type that the file gives them.
//
// # Operators
//
// On computed tensors: Abs, Add, And, ArgMax, ArgMin, AveragePool, BatchNormalization, Cast,
// CastLike, Ceil, Celu, Clip, Col2Im of windows of one pixel, Concat of channels, rows or columns,
// Constant, Conv, ConvTranspose, DepthToSpace, DequantizeLinear, Div, Dropout, Einsum of
// two matrices, Elu, Equal, Erf, Exp, Expand, Flatten, Floor, Gather of channels, rows or columns, of
// windows (F.unfold), and of constants by numbers of levels, GatherND of a list of them or of rows
// and columns, Gelu, Gemm, GlobalAveragePool, GlobalMaxPool, Greater, GreaterOrEqual, GroupNormalization, HardSigmoid,
// HardSwish, Identity, If with a constant condition, InstanceNormalization, LayerNormalization,
// LeakyRelu, Less, LessOrEqual, LogSoftmax, LpNormalization, LRN, MatMul, Max,
// MaxPool (dilated, too), Mean, MeanVarianceNormalization, Min, Mish, Mul, Neg, Not, Or, Pad, Pow
// (multiples of ¼ from −4 to 4), PRelu, QuantizeLinear, Reciprocal, ReduceL1, ReduceL2, ReduceMax,
// ReduceMean, ReduceMin, ReduceSum and ReduceSumSquare over heights, widths and channels or groups
// of them, Relu, Reshape, Resize and Upsample of heights and widths (nearest, linear, cubic),
// RMSNormalization, Round, ScatterElements and ScatterND that assign to slices, Selu, Shape, Shrink, Sigmoid, Sign, Size, Slice and Split of channels,
// rows or columns, Softmax, Softplus, Softsign, SpaceToDepth, SplitToSequence and the operators of
// sequences, Sqrt, Squeeze, Sub, Sum, Swish, Tanh, ThresholdedRelu, Tile, TopK over channels,
// Transpose, Unsqueeze, Where, Xor; of QONNX BipolarQuant, Im2Col, IntQuant, MultiThreshold, Quant
// and Trunc, and its domain channels_last; of com.microsoft QuantizeLinear and DequantizeLinear; of
// org.openvinotoolkit FakeQuantize; of
// the domain bitcnn Binarize.
//
// On constants: the same, but for Binarize, Col2Im, ConvTranspose, Im2Col, LRN, MultiThreshold,
// Resize, Trunc and Upsample; and the operators with which exporters compute shapes and weights:
// BitShift, Bitwise*, CenterCropPad, Compress, ConstantOfShape, CumSum, EyeLike, GatherElements,
// Hardmax, IsInf, IsNaN, Log, Mod, NonZero, OneHot, Range, Reduce*, ReverseSequence, Scatter*,
// Trilu, Unique, and the other functions of single values.
//
// Convolutions, pools and Resize may be one-dimensional (batch, channels, positions); their tensors
// become images of one row. AveragePool and MaxPool may be three-dimensional, and inputs volumes or
// single numbers. Channel indices, which ArgMax and TopK give, are float32 in a network;
// bcnn.SourceInt64 says that they were integers in the file. Truth values are 0 and 1, and
// bcnn.SourceUint8.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 64 MiB and 128 bytes for each byte of
// the files that it reads, and takes steps in proportion. That holds for each attempt: up to three
// layouts of the input are tried, and each a second time, with values put in another order in
// memory, if none of them fits without. Options.Limits bound the rest. More is an error.
//
// Whoever adds an operator keeps to this: a loop whose length the file decides, and memory whose
// size it decides, are charged to the budget first (budget.Loop does it for loops). TestCost and
// FuzzCost find what is not, TestUnits that a charge is lost.
//
// # Rooms
//
// A file goes through these packages; each knows only those before it.
//
//	internal/pb     messages of the format, and the attributes of nodes
//	internal/eval   constants: unpacked, computed with, moved
//	internal/view   how the dimensions of a tensor lie in memory
//	internal/build  layers: what is pending on a value, steps, weights
//	onnx            the graph: its files, inputs, operators, report
//
// Here, operators.go is the table of operators, and each family of them has a file. An operator
// reads attributes (pb) and operands (importer.go), and computes with constants (eval) or makes
// layers (build). Files whose names do not tell which operators they have:
//
//	assign        ScatterElements and ScatterND of values
//	across        convolutions over the channels of one pixel (ECA)
//	batch         constants computed from the batch size
//	cache         files through links of Hugging Face's cache
//	fold*         operators on constants alone
//	integers      operators on quantised values
//	largest       ArgMax and TopK of values; select of constants
//	last          the domain channels_last of QONNX
//	linear        QuantizeLinear and DequantizeLinear
//	quotient      quotients, roots, powers and normalisations of values
//	rows          matrices whose rows are the positions of all images
//	spatial       one-dimensional operators as operators on images
//	standardised  normalisations of constants
//	volumes       tensors of batch, channels, depth, height and width
//	windows       convolutions written as im2col and a product
//
// The format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3; the operators:
// https://onnx.ai/onnx/operators/.
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
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// DefaultWeightTolerance is how far weights may be from ±α, as a fraction of α. It covers the
// float32 rounding of exporters: sums such as w + (sign(w) − w) miss ±1 by about 1e-7.
const DefaultWeightTolerance = 1e-6

// Options are the options of an import. The zero value is good for most files. If the graph has
// several inputs, the options about the input apply to the first.
type Options struct {
	// InputType is the type of the bytes or floats that the network is fed with. 0 means the type
	// of the graph's input: bcnn.Uint8 for UINT8, bcnn.Float32 for FLOAT. With bcnn.Uint8, a graph
	// that takes FLOAT is fed with the values of the bytes.
	InputType bcnn.DType
	// InputShape gives dimensions that the file leaves open, apart from the batch. A field of 0
	// leaves the dimension to the file.
	InputShape bcnn.Shape
	// Mean and Scale put (x − Mean)·Scale in front of a graph that takes FLOAT: one value, one per
	// channel, or none.
	Mean, Scale []float32
	// SignOfZero makes a sign of ±1 of the ONNX operator Sign, which gives 0 for 0. Without it, a
	// Sign stays exact: it is ±1 if its input is never 0 (odd integer sums), {0, 1} if it is never
	// negative (behind a ReLU), and otherwise keeps three values, for which layers behind it need
	// two products of bits instead of one. See Report.Ternary and Report.Zeros.
	SignOfZero bcnn.ZeroRule
	// OverrideZeros applies SignOfZero also where the input of a Sign is often 0, as even integer
	// sums are. Without it such a Sign keeps its three values. It changes what the network
	// computes.
	OverrideZeros bool
	// WeightTolerance is the largest distance, as a fraction of α, of weights that are taken as ±α
	// for one α per filter, or as small multiples of it. 0 means DefaultWeightTolerance, or more
	// where rounding explains it: for weights that were FLOAT16 or BFLOAT16, and for large
	// multiples of α. With a negative number weights must be equal. The report has what is taken
	// so, with the largest distance, and the layers that are just beyond the tolerance.
	WeightTolerance float64
	// Name, Labels and Resize override the entries "name", "labels" (a JSON array of strings) and
	// "resize" (pixels) of the file's metadata_props. A network that is named in neither place has
	// the name of the file. The entries "photo" and "detection" are JSON as in model files: how
	// photos become the input, in which Resize, Mean and Scale replace what they are about, and how
	// boxes are made of the outputs, by heads of the kind "yolo".
	Name   string
	Labels []string
	Resize int
	// Detection says how boxes are made of the outputs of a detector; none if it is empty. What the
	// graph does with the maps is left out. Labels of a file of Ultralytics are its entry "names",
	// and dimensions that it leaves open its entry "imgsz".
	Detection Detection

	// Limits bound the file together with the files that it refers to, the nodes, the layers and
	// every tensor. Within them an import takes memory and time in proportion to the bytes that it
	// reads.
	Limits bcnn.Limits
}

// Load imports the ONNX file at path. The network takes and returns images one by one: the batch
// dimension of the file is dropped. Feature maps are NHWC. Which layers are binary shows when the
// network is lowered; see plan.Summarize.
//
// Tensors stored outside the file are read from its folder and nowhere else. When ctx ends, its
// error is returned. Errors name the file and, where they can, the node.
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

// load imports a model of size bytes from r.
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

// decode imports a model from memory.
func (s *source) decode(ctx context.Context, data []byte, opts Options) (net *bcnn.Network, report *Report, err error) {
	defer func() {
		if err != nil {
			net, report = nil, nil
		}
	}()
	defer try.Recover(&err)
	im, err := s.translate(data, opts)
	if err != nil {
		return nil, nil, err
	}
	net, findings, err := simplify.Network(ctx, im.build.Net, simplify.Options{
		WeightTolerance: tolerance(opts), Limits: s.limits,
		Rounding:  func(layer int) float64 { return im.build.Tolerance(layer).Rounding },
		Quantised: im.build.IsQuantised,
	})
	if err != nil {
		return nil, nil, err
	}
	if report, err = im.report(net, findings); err != nil {
		return nil, nil, err
	}
	net.Deviations = report.Deviations
	return net, report, nil
}

// translate makes a network of the model as it is written, before package simplify.
func (s *source) translate(data []byte, opts Options) (*importer, error) {
	defer fpmode.Enter().Leave()
	m, err := s.parse(data)
	if err != nil {
		return nil, err
	}
	if err := opts.Detection.prepare(&opts); err != nil {
		return nil, err
	}
	cut, err := opts.Detection.cut(m.Graph, s.budget)
	if err != nil {
		return nil, err
	}
	names, size, err := ultralytics(m, s.budget)
	if err != nil {
		return nil, err
	}
	if opts.InputShape == (bcnn.Shape{}) {
		opts.InputShape = openSize(m.Graph, size)
	}
	meta, err := describe(m, opts, s.budget)
	if err != nil {
		return nil, err
	}
	if opts.Detection != "" && meta.labels == nil {
		meta.labels = names
	}
	opts.Resize = meta.resize
	if meta.name == "" {
		meta.name = text.Escape(s.name) // a file may be called anything
	}
	layouts, err := inputLayouts(s.eval, m.Graph, opts)
	if err != nil {
		return nil, err
	}
	im, err := s.fitting(m, layouts, opts)
	if err != nil {
		return nil, err
	}
	im.cut = cut
	return im, meta.apply(im.build.Net, im.ends, opts)
}

// parse reads a model of a version that is known here, or of a newer one: see importer.deviations.
func (s *source) parse(data []byte) (*pb.Model, error) {
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
		return nil, fmt.Errorf("operator set %d of ONNX is not supported, want 7 or later: export with a larger opset_version", m.Opset)
	}
	return m, nil
}

// fitting imports the model with the first of several layouts of its inputs that fits: only the
// nodes that read the inputs show which one does. If there are several, values are put in another
// order in memory only on a second round, when none has fit without.
func (s *source) fitting(m *pb.Model, layouts [][]layout, opts Options) (*importer, error) {
	var best attempt
	again := false
	for i := 0; i < len(layouts) || i < 2*len(layouts) && again; i++ {
		if i > 0 {
			s.attempt()
		}
		im := newImporter(m, opts, s)
		im.build.Rearranges = len(layouts) == 1 || i >= len(layouts)
		err := im.run(layouts[i%len(layouts)])
		if errors.Is(err, try.ErrPanic) { // which another layout would hide
			return nil, err
		}
		if missing := s.missing(m.Graph.Initializers); missing != nil { // else an obstacle for each of its tensors
			return nil, missing
		}
		if err == nil {
			return im, nil
		}
		failed := attempt{err, im.build.Refused}
		again = again || failed.refused
		if best.err == nil || failed.nearer(best) {
			best = failed
		}
		if end := s.budget.Charge(0); end != nil && !errors.Is(end, budget.ErrExceeded) {
			return nil, err // of the context
		}
	}
	return nil, best.err
}

// attempt is one that failed.
type attempt struct {
	err     error
	refused bool // to put values in another order
}

// nearer reports whether an attempt came nearer to a network than another one: it did not refuse, or
// met fewer obstacles.
func (a attempt) nearer(b attempt) bool {
	if a.refused != b.refused {
		return b.refused
	}
	var fewer, more *bcnn.ObstaclesError
	return errors.As(b.err, &more) && errors.As(a.err, &fewer) && len(fewer.Obstacles) < len(more.Obstacles)
}
