// Package bcnn describes binary convolutional neural networks.
//
// A Network is what a user builds or imports: layers in the field's terms. Package lower turns it
// into the Plan of package plan, a flat list of fused steps with static shapes, which backends
// execute. The numeric contract that plans obey is written down in docs/numeric-contract.md.
package bcnn

import (
	"fmt"
	"math"
)

// Network is a directed acyclic graph of layers, most often with one input and one
// output, the last layer. It is plain data; Check says whether it is well formed.
type Network struct {
	Name string
	// Inputs are what the network is fed with, one or more. A layer refers to number i
	// of them by NetworkInput−i.
	Inputs []Input
	Layers []Layer
	// Outputs are the layers whose outputs are those of the network, in their order;
	// none means the last layer.
	Outputs []int
	// Labels names the values of the first output, in order, or the classes of Detection; empty if
	// unknown.
	Labels []string
	// Detection says how boxes are made of the outputs; nil where the network is no detector.
	Detection *Detection
	// Absorbed names tensors of the imported model that no layer's output is, as their
	// operators became part of other layers; nil where they are not known.
	Absorbed []string
	// Deviations say what the network computes otherwise than the file that it was imported from,
	// and by how much at most; a sentence each, empty if there is nothing of the kind.
	Deviations []string
}

// OutputLayers returns the layers whose outputs are those of the network.
func (n *Network) OutputLayers() []int {
	if len(n.Outputs) == 0 {
		return []int{len(n.Layers) - 1}
	}
	return n.Outputs
}

// Input describes what a network is fed with.
type Input struct {
	Shape Shape
	// DType is Uint8 for images (three channels are R, G, B; one is grey) or
	// Float32 for anything else.
	DType DType
	// Resize is the length in pixels that the shorter side of a photo is
	// resized to before the centre is cropped to Shape. 0 means that the crop
	// just fits. Photos that already have the size of Shape are used as is.
	Resize int
	// Photo says what else becomes of a photo; nil if nothing is known.
	Photo *Photo
	// Source is the input of the model that the network was imported from; nil if
	// there is none, or nothing to say about it.
	Source *Source
}

// NetworkInput is the index by which a layer refers to the network's first input;
// the indices below it are those of the further inputs.
const NetworkInput = -1

// Layer is one node of the graph.
type Layer struct {
	Name string
	// Inputs are indices of earlier layers, or NetworkInput or below.
	Inputs []int
	Op     Op
	// Source is the tensor of an imported model that has the values of the layer's
	// output; nil if there is none.
	Source *Source
}

// Op is the operation of a layer: one of the types of this package that
// implement it (Binarize, Conv2D, Dense, BatchNorm, Affine, Sign, Quantize, ReLU,
// PReLU, Clip, Function, MaxPool, AvgPool, Add, Mul, Min, Max, Mask, Concat, Channels,
// Pixels, Resample, TopK, Flatten, MatMul, Transpose, Softmax).
type Op interface {
	// Kind is the name of the operation, as used in model files.
	Kind() string
	// output checks the operation's parameters against its inputs and returns
	// the type of its result.
	output(in []ValueType) (ValueType, error)
}

// Append adds a layer that takes the given layers as inputs, or the layer
// before it if none is given, and returns its index.
func (n *Network) Append(name string, op Op, inputs ...int) int {
	if len(inputs) == 0 {
		inputs = []int{len(n.Layers) - 1} // NetworkInput for the first layer
	}
	n.Layers = append(n.Layers, Layer{Name: name, Inputs: inputs, Op: op})
	return len(n.Layers) - 1
}

// Scheme is a way to turn an image of bytes into ±1 values. The first three are
// the input binarisations of Khan, Huttunen and Boutellier, "Binarized
// Convolutional Neural Networks for Efficient Inference on GPUs" (EUSIPCO 2018);
// the fourth is what the program published with it calls norm.
type Scheme string

const (
	// SchemeThreshold compares every channel with its own threshold.
	SchemeThreshold Scheme = "threshold"
	// SchemeGrey compares the luma with one threshold; one output channel.
	SchemeGrey Scheme = "grey"
	// SchemeLBP is the modified local binary pattern: three channels that tell
	// whether the luma of the top-left, right and bottom-left neighbour (radius
	// 1, clockwise stride 3 from the top-left) exceeds the luma of the centre.
	// Outside the image the nearest pixel of the image counts.
	SchemeLBP Scheme = "lbp"
	// SchemeMinMax compares every value with the middle of the range of the
	// whole image: +1 where 2·(x − min) > max − min.
	SchemeMinMax Scheme = "minmax"
)

// Luma returns the grey level of a pixel as every scheme and every backend
// computes it: (77·R + 150·G + 29·B) >> 8 in integers. The luma of a
// one-channel image is its value.
func Luma(r, g, b uint8) uint8 {
	return uint8((77*uint32(r) + 150*uint32(g) + 29*uint32(b)) >> 8)
}

// Binarize turns the bytes of the network's input into ±1 values.
type Binarize struct {
	Scheme Scheme
	// Thresholds: the value is +1 where x ≥ threshold. One per channel for
	// SchemeThreshold, one for SchemeGrey, none otherwise.
	Thresholds []int32
}

// Weights are the weights of a Conv2D or Dense layer: binary (Bits), integers of 8 bits
// (Int8) or real (F32), one of them.
type Weights struct {
	// Bits holds ±1 weights, packed along the input channels:
	// [output][ky][kx][bits.Words(C/Groups)] for Conv2D,
	// [output][bits.Words(H·W·C)] for Dense.
	Bits []uint64
	// Int8 holds integer weights, such as ternary ones: [output][ky][kx][C/Groups]
	// for Conv2D, [output][H·W·C] for Dense.
	Int8 []int8
	// F32 holds real weights, in the same order.
	F32 []float32
}

// Binary reports whether the weights are ±1.
func (w Weights) Binary() bool { return w.Bits != nil }

// Real reports whether the weights are neither ±1 nor integers.
func (w Weights) Real() bool { return w.Bits == nil && w.Int8 == nil }

// Window is the geometry of a sliding window. Strides and dilations of 0 mean 1.
type Window struct {
	KH, KW               int
	StrideH, StrideW     int
	DilationH, DilationW int
	Pad                  Padding
}

// Padding is the number of rows and columns added on each side.
type Padding struct {
	Top, Left, Bottom, Right int
}

// Conv2D is a two-dimensional convolution (cross-correlation, as everywhere in
// the field). Output size: (in + pad − dilation·(k−1) − 1)/stride + 1, rounded
// down.
type Conv2D struct {
	Window
	Out    int // output channels
	Groups int // 0 means 1
	// PadValue is the value of padded taps: −1, 0 or +1. Only 0 is possible
	// where the input is not a Sign or Binarize layer.
	PadValue int
	Weights  Weights
	Bias     []float32 // per output channel, or empty
}

// Dense is a fully connected layer over all H·W·C values of its input, in
// NHWC order.
type Dense struct {
	Out     int
	Weights Weights
	Bias    []float32 // per output, or empty
}

// BatchNorm is batch normalisation at inference, per channel:
// (x − Mean)·Gamma/√(Var + Epsilon) + Beta.
type BatchNorm struct {
	Gamma, Beta, Mean, Var []float32
	Epsilon                float32
}

// Affine is x·Scale + Bias, per channel, or with one value for all channels.
type Affine struct {
	Scale, Bias []float32
}

// ZeroRule says what Sign makes of 0. There is no default: published networks
// differ, and ties are common in real data.
type ZeroRule uint8

const (
	ZeroIsPlus  ZeroRule = iota + 1 // +1 where x ≥ 0
	ZeroIsMinus                     // +1 where x > 0
)

func (r ZeroRule) String() string {
	switch r {
	case ZeroIsPlus:
		return "x ≥ 0"
	case ZeroIsMinus:
		return "x > 0"
	}
	return fmt.Sprintf("ZeroRule(%d)", uint8(r))
}

// Sign turns values into +1 and −1.
type Sign struct {
	Zero ZeroRule
}

// Quantize turns values into integers of a few levels: Low plus the number of
// thresholds that the value reaches (x ≥ threshold), so from Low to
// Low + Levels − 1. A layer with Bits or Int8 weights behind it, or behind a
// max-pool of it, is computed in exact integers, but where a step's WhyFloat says why not.
type Quantize struct {
	Low, Levels int
	// Thresholds do not fall: Levels−1 for all channels, or for each channel,
	// [channel][Levels−1].
	Thresholds []float32
}

// MaxLevels is the largest number of levels of a Quantize layer, and bounds the
// magnitude of each.
const MaxLevels = 256

// Ternary is the sign with three values: −1 where x < 0, 0 where x = 0, +1 where
// x > 0.
func Ternary() Quantize {
	return Quantize{Low: -1, Levels: 3, Thresholds: []float32{0, math.SmallestNonzeroFloat32}}
}

// ReLU is 0 where x < 0, else x: −0 and NaN stay.
type ReLU struct{}

// PReLU is x where x ≥ 0, else x·Slope, per channel, or with one slope for all
// channels (leaky ReLU).
type PReLU struct {
	Slope []float32
}

// Clip is Min where x < Min, Max where x > Max, else x: NaN stays. One of the bounds may
// be infinite.
type Clip struct {
	Min, Max float32
}

// Function is an elementary function of one value, rounded as
// docs/numeric-contract.md says.
type Function struct {
	Name FunctionName
}

// FunctionName says which function a Function layer, or the end of a step, is.
type FunctionName string

// All but SiLU and those behind it never fall.
const (
	Tanh      FunctionName = "tanh"
	Sigmoid   FunctionName = "sigmoid"   // 1/(1 + e^−x)
	Exp       FunctionName = "exp"       // e^x
	Softplus  FunctionName = "softplus"  // log(1 + e^x)
	ELU       FunctionName = "elu"       // x where x ≥ 0, else e^x − 1
	Erf       FunctionName = "erf"       // the error function
	SiLU      FunctionName = "silu"      // x·sigmoid(x)
	GELU      FunctionName = "gelu"      // x·(1 + erf(x/√2))/2
	GELUTanh  FunctionName = "gelu_tanh" // x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2
	Mish      FunctionName = "mish"      // x·tanh(softplus(x))
	HardSwish FunctionName = "hardswish" // x·min(max(x + 3, 0), 6)/6

	// What quotients and roots are made of, for every x: with r the RootPower of x, which is a
	// power of two, y = x·r·r is exact and below 1 in magnitude, and at least ¼, or 2^-17
	// where x is below 2^-126. Then 1/x = Inverse(y)·r·r, a/x = (a·r)·(Inverse(y)·r),
	// 1/√x = InverseRoot(y)·r and √x = (x·r)·RootFactor(y).
	Inverse     FunctionName = "inverse"      // 1/x for 2^-17 ≤ |x| < 4; of the sign of x, infinite nearer to 0, else 0
	InverseRoot FunctionName = "inverse_root" // 1/√x for 2^-17 ≤ x < 4, else 0; NaN for x ≤ −2^-17; nearer to 0 infinite, of the sign of x
	RootFactor  FunctionName = "root_factor"  // 1/√x for 2^-17 ≤ x < 4; NaN for x ≤ −2^-17; else 1
	RootPower   FunctionName = "root_power"   // 2^(−1−⌊e/2⌋) for 2^e ≤ |x| < 2^(e+1); e is −133 for smaller x, 127 for an infinite one

	// What roundings to 16 bits are made of. With s the shift of x, x + s − s is x with as many bits as
	// the format has; a FLOAT16 is that times its range.
	Float16Shift  FunctionName = "float16_shift"  // 1.5·2^(e+13) for 2^e ≤ |x| < 2^(e+1); e is −14 for smaller x; 0 from 2^16 on
	Float16Range  FunctionName = "float16_range"  // 1 for |x| < 2^16, else infinite
	BFloat16Shift FunctionName = "bfloat16_shift" // 1.5·2^(e+16) likewise; e is −126 for smaller x; 0 from 2^111 on

	// What importers made quotients and roots of before these: with r the RootScale of x,
	// 1/x = Reciprocal(x·r·r)·r·r and 1/√x = RSqrt(x·r·r)·r, finite for every x.
	Reciprocal FunctionName = "reciprocal" // 1/x for 1 ≤ |x| < 4, else that of the nearest such number of the same sign
	RSqrt      FunctionName = "rsqrt"      // 1/√x for 1 ≤ x < 4, else that of the nearest such number
	RootScale  FunctionName = "rootscale"  // 2^−⌊e/2⌋ for 2^e ≤ |x| < 2^(e+1); e is −126 for smaller x, 127 for an infinite one
)

// FunctionNames returns the names of all functions.
func FunctionNames() []FunctionName {
	return []FunctionName{Tanh, Sigmoid, Exp, Softplus, ELU, Erf, SiLU, GELU, GELUTanh, Mish, HardSwish, Reciprocal, RSqrt, RootScale,
		Inverse, InverseRoot, RootFactor, RootPower, Float16Shift, Float16Range, BFloat16Shift}
}

// MaxPool takes the maximum over windows. Padded positions never win; dilation
// is not supported.
type MaxPool struct {
	Window
}

// AvgPool takes the mean over windows of at most MaxPoolTaps taps. Padded
// positions add nothing; they count as taps only where CountPadding is set. A
// global pool has a window of the size of its input. Dilation is not supported.
type AvgPool struct {
	Window
	CountPadding bool
}

// Add is the sum of two layers of the same shape.
type Add struct{}

// Mul is the product of two layers. The second one has the shape of the first,
// H×W×C, or is repeated over its pixels (1×1×C), its channels (H×W×1), or both.
type Mul struct{}

// Min and Max are the smaller and the larger of the values of two layers, whose shapes
// are as those of Mul. A NaN in either is the result; of values that are equal, such
// as +0 and −0, the second one is.
type (
	Min struct{}
	Max struct{}
)

// Mask is the first of two layers where the second one is not 0, and +0 elsewhere. Shapes are
// as those of Mul. A NaN of the second layer is not 0. Infinities and NaN of the first one
// stay where the second is not 0, and become +0 elsewhere, where a product with 0 is NaN.
type Mask struct{}

// Concat joins two or more layers of the same height and width along their
// channels.
type Concat struct{}

// Channels picks channels: channel c of the output is channel Index[c] of the
// input, or all zeros where Index[c] is −1. Slices, padding and shuffles of
// channels are such.
type Channels struct {
	Index []int32
}

// Flatten makes a vector of all values, in NHWC order.
type Flatten struct{}

// Softmax is that of the channels of each pixel. It may only stand at the end, as an output.
// Executables return the logits before it; the function Probabilities computes it on the
// host in float64.
type Softmax struct {
	// Log asks for the logarithms of the probabilities: see LogProbabilities.
	Log bool
}

func (Binarize) Kind() string   { return "binarize" }
func (Conv2D) Kind() string     { return "conv2d" }
func (Dense) Kind() string      { return "dense" }
func (BatchNorm) Kind() string  { return "batchnorm" }
func (Affine) Kind() string     { return "affine" }
func (Sign) Kind() string       { return "sign" }
func (Quantize) Kind() string   { return "quantize" }
func (ReLU) Kind() string       { return "relu" }
func (PReLU) Kind() string      { return "prelu" }
func (Clip) Kind() string       { return "clip" }
func (f Function) Kind() string { return string(f.Name) }
func (MaxPool) Kind() string    { return "maxpool" }
func (AvgPool) Kind() string    { return "avgpool" }
func (Add) Kind() string        { return "add" }
func (Mul) Kind() string        { return "mul" }
func (Min) Kind() string        { return "min" }
func (Max) Kind() string        { return "max" }
func (Mask) Kind() string       { return "mask" }
func (Concat) Kind() string     { return "concat" }
func (Channels) Kind() string   { return "channels" }
func (Flatten) Kind() string    { return "flatten" }

func (s Softmax) Kind() string {
	if s.Log {
		return "logsoftmax"
	}
	return "softmax"
}
