// Package plan has what backends execute: a flat list of fused steps with static shapes, each
// defined exactly (docs/numeric-contract.md), and where their tensors lie.
package plan

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Plan is a network lowered to steps: a flat list, executed in order, with
// static shapes. Backends execute plans and decide nothing about arithmetic.
// A plan is immutable and may be shared.
type Plan struct {
	Name string
	// Inputs are those of the network. Input number i is tensor number i.
	Inputs  []bcnn.Input
	Labels  []string
	Tensors []Tensor
	Steps   []Step
	// Outputs are the indices of the output tensors, one or more: different ones,
	// which steps write, always Float32.
	Outputs []int
	// Softmax says that the first output of the network ends in a Softmax layer. Such
	// layers are not part of the plan (see Probabilities).
	Softmax bool
	// Notes are what people are told of the steps, by step; see Note.
	Notes []Note
}

// InputTensors returns the tensors of the inputs.
func (p *Plan) InputTensors() []Tensor { return p.Tensors[:len(p.Inputs)] }

// Tensor is one tensor of a plan.
type Tensor struct {
	Name  string
	DType bcnn.DType
	Shape bcnn.Shape
	// Coded says that no layer's output is in it, but what stands for one: levels as
	// planes or as their numbers, or sums without their factor. It changes nothing in what is computed;
	// devices that time kernels draw values by it.
	Coded bool
}

// Bytes returns the memory that n images of the tensor take.
func (t Tensor) Bytes(n int) int64 {
	return int64(num.Product(n, int(t.Shape.Bytes(t.DType))))
}

// Step is one fused operation.
type Step struct {
	// Name joins the names of the fused layers with "+".
	Name   string
	Layers []int // the fused layers, as indices of Network.Layers
	In     []int // tensors read
	Out    int   // tensor written
	Op     Op
}

// MACs returns the number of multiply-accumulates of step i for one image: those of
// its convolution or dense layer, padded taps and outputs that pooling drops included, or of
// its matrix product. They are the network's: how many products of bits stand for one does
// not count. Other steps have none.
func (p *Plan) MACs(i int) int64 {
	if conv, ok := p.Steps[i].Op.(*Conv); ok {
		return p.Products(i) / int64(p.Note(i).products(conv))
	}
	return p.Products(i)
}

// Products returns the number of products that stand for those of MACs: of binary planes,
// one for each plane of the input and each part of a weight.
func (p *Plan) Products(i int) int64 {
	in := p.Tensors[p.Steps[i].In[0]].Shape
	switch op := p.Steps[i].Op.(type) {
	case *MatMul:
		return int64(p.Tensors[p.Steps[i].Out].Shape.Values()) * int64(in.C)
	case *Conv:
		image := op.Image(in)
		return int64(op.Window.Output(image, op.Out).Values()) * op.Taps(in.C) * int64(in.H/image.H)
	}
	return 0
}

// Integer reports whether the weights are whole numbers, apart from ±1.
func (c *Conv) Integer() bool { return c.Int8 != nil || c.Int16 != nil }

// Image returns the shape of the image that the step convolves, whose input has the
// given shape: planes lie in rows of their own.
func (c *Conv) Image(in bcnn.Shape) bcnn.Shape {
	in.H /= max(c.InPlanes, 1)
	return in
}

// Taps returns the number of products of a sum, over an image of so many channels.
func (c *Conv) Taps(channels int) int64 {
	return int64(c.KH) * int64(c.KW) * int64(channels/c.Groups)
}

// Op is one of *Binarize, *Conv, *MaxPool, *AvgPool,
// *Affine, *Table, *Sign, *Quantize, *Add, *Pair, *Concat,
// *Channels, *Pixels, *Resample, *TopK, *Flatten, *MatMul,
// *Transpose.
type Op interface{ stepKind() string }

// Kind returns the name of the kind of step: "binarize", "conv", "dense",
// "maxpool", "avgpool", "affine", "table", "sign", "quantize", "add", "mul", "min", "max",
// "mask", "concat", "channels", "pixels", "resample", "topk", "flatten", "matmul" or
// "transpose".
func (s Step) Kind() string { return s.Op.stepKind() }

// Threshold makes bits of the values of a channel:
//
//	bit = (value ≥ T[channel]) XOR flip[channel]
//
// T is I32 for integer sums and F32 for float32 values. A channel that is
// always 1 has the threshold math.MinInt32 or −Inf, one that is always 0
// math.MaxInt32 or +Inf. Of several thresholds of a channel, the last ones may be
// NaN, which no value reaches.
type Threshold struct {
	I32 []int32
	F32 []float32
	// Flip is a packed row of the output, XORed to every pixel after pooling;
	// nil if no channel is flipped. Its padding bits are 0.
	Flip []uint64
}

// Binarize makes bits of the bytes of the input image.
type Binarize struct {
	Scheme    bcnn.Scheme
	Threshold *Threshold // I32; nil for SchemeLBP and SchemeMinMax
}

// Several bits of a value are planes: the tensor of bits has Planes times the rows of
// the image, and row y·Planes + j of it has bit j of the values of row y. With the bits
// as 0 and 1, the number is q = Σ 2^j·bit j; as ±1, what the planes stand for is
//
//	Σ 2^j·(±1 of bit j) = 2q − (2^Planes − 1)
//
// A plane is an image, and the same as a tensor of bits without planes.

// Conv is a convolution or a dense layer (a window as large as the input),
// with everything that follows it fused.
//
// The accumulator of an output is, by input type,
//
//	Bits:    Σ x·w over the taps, int32; a padded tap has x = PadValue; where
//	         InPlanes is set, x is what the planes stand for
//	Uint8:   Σ (x − ZeroPoint)·w over the taps inside the image, int32, w = ±1 or,
//	         where Int8 or Int16 is set, a whole number; then the output is Float32
//	Float32: acc = Bias[o], then acc = fma(x, w, acc) in the order (ky, kx,
//	         channel) over the taps inside the image, float32, one rounding each
//
// The result is, by output type,
//
//	Bits:    Threshold, then OR over the windows of Pool if it is set, then Flip;
//	         where OutPlanes is set, the number of thresholds that the accumulator
//	         reaches, then the maximum over the windows, then Flip of every plane
//	Float32: fma(float32(acc), Scale[o], Shift[o]), or float32(acc) where Scale
//	         is nil; then Activation
//
// Output channel o reads the input channels of group o/(Out/Groups).
type Conv struct {
	bcnn.Window // strides and dilations are at least 1
	Out         int
	Groups      int // at least 1
	// Dense says that the window covers the whole input: one output pixel, no
	// padding, one group.
	Dense     bool
	PadValue  int   // Bits input: −1, 0 or +1; of planes, see MaxPadValue
	ZeroPoint uint8 // Uint8 input
	// Bits holds the weights for Bits and Uint8 input,
	// [Out][KH][KW][bits.Words(C/Groups)].
	Bits []uint64
	// Int8 holds the weights for Uint8 input instead of Bits where they are not ±1,
	// [Out][KH][KW][C/Groups].
	Int8 []int8
	// Int16 holds the weights for Uint8 input instead of either where they do not fit into
	// 8 bits, in the same order. With the weights of an output, 255·Σ|w| fits into int32.
	Int16 []int16
	// F32 holds the weights for Float32 input, [Out][KH][KW][C/Groups].
	F32  []float32
	Bias []float32 // Float32 input: one per output

	Scale, Shift []float32  // Float32 output, one per output channel
	Activation   Activation // Float32 output
	// Threshold is set for Bits output. For planes of a Bits input it has 2^OutPlanes − 1
	// thresholds for a channel, [threshold][channel], in ascending order.
	Threshold *Threshold
	// Pool is an OR over non-overlapping windows (stride = size, no padding)
	// of the thresholded bits; nil for none. Rows and columns that fill no
	// window are dropped.
	Pool *bcnn.Window
	// Offset is added to the sums of Bits input, one integer per output channel, so that
	// what levels stand for is exact before it is scaled: a sum of zeros is 0. nil for none.
	Offset []int32
	// Border is set for Bits input where padded taps do not all read as −1, or with an Offset.
	Border *Border
	// InPlanes and OutPlanes are the planes of Bits input and of Bits output of a Bits
	// input; 0 means 1.
	InPlanes, OutPlanes int
}

// Border corrects sums that were taken over an image bordered with 0 bits, so
// that one kernel serves every padding value:
//
//	acc = K − 2·popcount(x XOR w) + Correction[class][output channel]
//
// with K all taps of the window, padded ones included. The class of an output
// pixel (before pooling) is Row[y]·Cols + Col[x]; class 0 of rows and columns
// means no padded tap. Conv.Offset is in the corrections of all classes.
type Border struct {
	Row, Col   []int // class of each output row and column
	Rows, Cols int   // number of classes
	Correction []int32
}

// MaxPlanes is the largest number of planes, and MaxPadValue the largest magnitude of
// the padding value of planes.
const (
	MaxPlanes   = 4
	MaxPadValue = 4 * bcnn.MaxLevels
)

// MaxPool takes the maximum over windows: OR for Bits, max for Float32 and Uint8, the
// largest number for planes of Bits. Padded positions never win.
type MaxPool struct {
	bcnn.Window
	Planes int      // of Bits; 0 means 1
	Flip   []uint64 // as Threshold.Flip, of every plane; Bits only
}

// AvgPool makes Float32 of Bits or Float32: the mean over windows, without
// dilation. With n taps, all of the window if CountPadding is set, else those
// inside the image, of which there is one at least,
//
//	a = Σ x over the taps inside the image: for Float32 starting from +0, in the
//	    order (ky, kx), each addition rounded; for Bits an exact integer, as float32
//	y = 1/n, correctly rounded
//	q = a·y, r = fma(−n, q, a), mean = fma(r, y, q)
//
// which is the correctly rounded quotient a/n, for the at most MaxPoolTaps taps of
// a window, unless a is infinite or the quotient subnormal.
type AvgPool struct {
	bcnn.Window
	CountPadding bool
}

// Affine makes Float32 of any type: fma(float32(x), Scale[c], Shift[c]), then
// Activation. Bits are ±1. Where Scale is nil the value is taken as it is.
type Affine struct {
	Scale, Shift []float32 // per channel
	Activation   Activation
}

// Sign makes Bits of Float32:
//
//	(x[c] ≥ F32[c]) XOR Flip[c]
//
// or planes of the number of thresholds that x[c] reaches, of 2^Planes − 1 thresholds for
// a channel, [threshold][channel], in ascending order. Flip is XORed to every plane.
type Sign struct {
	Threshold Threshold // F32
	Planes    int       // 0 means 1
}

// Quantize makes Float32 of Float32: Low plus the number of thresholds that the
// value reaches, x ≥ Thresholds[k], of the Levels−1 thresholds of all channels, or of
// the channel, [channel][Levels−1]. Where the output is Uint8 it is the number alone.
type Quantize struct {
	Low, Levels int
	Thresholds  []float32
}

// Add is the float32 sum of two Float32 tensors of the same shape; then
// Activation.
type Add struct {
	Activation Activation
}

// Pair makes a float32 value of one each of two Float32 tensors. The second one, of
// shape H×W×C like the first and the output, 1×1×C, H×W×1 or 1×1×1, is repeated where
// it is smaller.
type Pair struct{ Kind PairKind }

// PairKind says what a Pair makes of x and y.
type PairKind uint8

// A comparison with a NaN is false.
const (
	PairMul  PairKind = iota // x·y
	PairMin                  // x where x < y or x is a NaN, else y
	PairMax                  // x where x > y or x is a NaN, else y
	PairMask                 // x where y is not 0 (a NaN is not), else +0
)

// Concat joins two or more tensors of the same type, Bits or Float32, and the
// same height and width along their channels.
type Concat struct{}

// Channels picks channels of a Bits or Float32 tensor: channel c of the output
// is channel Index[c] of the input, or +0 where Index[c] is −1, which only Float32
// can be.
type Channels struct {
	Index []int32 // one per output channel
}

// Flatten copies a Bits or Float32 tensor of shape H×W×C to 1×1×(H·W·C).
type Flatten struct{}

func (*Binarize) stepKind() string { return "binarize" }
func (c *Conv) stepKind() string {
	if c.Dense {
		return "dense"
	}
	return "conv"
}
func (*MaxPool) stepKind() string  { return "maxpool" }
func (*Affine) stepKind() string   { return "affine" }
func (*Sign) stepKind() string     { return "sign" }
func (*Quantize) stepKind() string { return "quantize" }
func (*Add) stepKind() string      { return "add" }
func (*Flatten) stepKind() string  { return "flatten" }
func (*AvgPool) stepKind() string  { return "avgpool" }
func (p *Pair) stepKind() string {
	switch p.Kind {
	case PairMin:
		return bcnn.Min{}.Kind()
	case PairMax:
		return bcnn.Max{}.Kind()
	case PairMask:
		return bcnn.Mask{}.Kind()
	}
	return bcnn.Mul{}.Kind()
}
func (*Concat) stepKind() string   { return "concat" }
func (*Channels) stepKind() string { return "channels" }

// OutputShape returns the shape of the first output.
func (p *Plan) OutputShape() bcnn.Shape { return p.Tensors[p.Outputs[0]].Shape }
