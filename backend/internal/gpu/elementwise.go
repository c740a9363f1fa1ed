package gpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/num"
)

// RangeParts is the number of parts of an image of which ImageRanges finds the smallest
// and largest byte each.
const RangeParts = 32

// ImageRanges is the kernel that comes before binarize where an image is scaled to its
// range.
const ImageRanges = "image_ranges"

// MatMulPart is the number of pixels of an item of a matrix product, as in matmul.cl.
const MatMulPart = 4

// Planes is the file of the kernels of bit planes.
const Planes = "planes"

// Elementwise is a kernel whose every item makes a value of the output, one or four bytes
// of it, or 32 channels of a pixel where the output is bits.
type Elementwise struct {
	Kernel
	Items int // of an image
}

// Elementwise returns the kernels of a step that is no convolution.
func (s Step) Elementwise(op plan.Op) ([]Elementwise, error) {
	e := Elementwise{Kernel: Kernel{File: "elementwise", G: s.geometry()}, Items: s.Out.Shape.Values()}
	if s.Out.DType == bcnn.Bits {
		e.Items = s.Out.Shape.Pixels() * words32(s.Out.Shape.C)
	}
	switch op := op.(type) {
	case *plan.Binarize:
		return s.binarize(op, e), nil
	case *plan.MaxPool:
		e.G.setWindow(op.Window)
		e.Name, e.Args = "max_pool_float", []any{s.X, s.Y}
		switch s.In.DType {
		case bcnn.Uint8:
			e.Name = "max_pool_bytes"
			e.vectors(s.Out.Shape.C)
		case bcnn.Bits:
			e.G.Flip = flag(op.Flip != nil)
			e.Name, e.Args = "max_pool_bits", append(e.Args, Rows(op.Flip))
			if op.Planes > 1 {
				e.File, e.Name = Planes, "max_pool_planes"
				e.G.setPlanes(op.Planes, op.Planes)
				e.Items /= op.Planes
			}
		}
	case *plan.AvgPool:
		e.G.setWindow(op.Window)
		e.Name, e.Args = s.named("avg_pool"), []any{s.X, s.Y, s.divisors(op)}
	case *plan.Affine:
		e.G.Scaled, e.G.Activation = flag(op.Scale != nil), int32(op.Activation.Kind)
		e.Name, e.Args = "affine", []any{s.X, s.Y, op.Scale, op.Shift, Slope(op.Activation)}
	case *plan.Table:
		e.G.OtherC = int32(len(op.Values) / plan.TableSize)
		e.Name, e.Args = "table_float", []any{s.X, s.Y, op.Values}
		switch s.Out.DType {
		case bcnn.Uint8:
			e.Name = "table_bytes"
			e.vectors(e.Items)
		case bcnn.Bits:
			e.Name = "table_bits"
			e.G.setPlanes(1, op.Planes)
			e.Items /= int(e.G.OutPlanes)
		}
	case *plan.Sign:
		e.G.Flip = flag(op.Threshold.Flip != nil)
		e.G.setPlanes(1, op.Planes)
		e.Items /= int(e.G.OutPlanes)
		e.Name, e.Args = "sign_bits", []any{s.X, s.Y, op.Threshold.F32, Rows(op.Threshold.Flip)}
	case *plan.Quantize:
		e.G.First, e.G.End = int32(op.Low), int32(op.Low+op.Levels-1)
		e.G.OtherC = int32(len(op.Thresholds) / (op.Levels - 1))
		e.Name, e.Args = "quantize", []any{s.X, s.Y, op.Thresholds}
		if s.Out.DType == bcnn.Uint8 {
			e.Name = "quantize_bytes"
			e.vectors(e.Items)
		}
	case *plan.Add:
		e.G.Activation = int32(op.Activation.Kind)
		e.Name, e.Args = "add", []any{s.X, s.More[0].At, s.Y, Slope(op.Activation)}
	case *plan.Pair:
		other := s.More[0]
		e.G.OtherPixels, e.G.OtherC = int32(other.Shape.Pixels()), int32(other.Shape.C)
		e.G.Scheme = int32(op.Kind)
		e.Name, e.Args = "pair", []any{s.X, other.At, s.Y}
	case *plan.Concat:
		return s.concat(e), nil
	case *plan.Channels:
		return []Elementwise{s.gather(e, Operand{s.In, s.X}, 0, op.Index)}, nil
	case *plan.Pixels:
		e.G.Kh, e.G.Kw = int32(op.BlockH), int32(op.BlockW)
		e.Name, e.Args = s.named("pixels"), []any{s.X, s.Y, slices.Concat(op.Rows, op.Cols, []int32{int32(math.Float32bits(op.Fill))})}
	case *plan.Resample:
		e.G.Kh, e.G.Kw = int32(op.Rows.N), int32(op.Cols.N)
		e.Name, e.Args = "resample", []any{s.X, s.Y, slices.Concat(op.Rows.Index, op.Cols.Index), slices.Concat(op.Rows.Weight, op.Cols.Weight)}
	case *plan.TopK:
		e.G.Flip = flag(op.Values)
		e.Name, e.Args, e.Items = "top_k", []any{s.X, s.Y}, s.Out.Shape.Pixels()
	case *plan.MatMul:
		e.File, e.Name, e.Args = "matmul", s.named("matmul"), []any{s.X, s.More[0].At, s.Y}
		e.Items = num.Product(s.Out.Shape.H, num.CeilDiv(s.Out.Shape.W, MatMulPart), s.Out.Shape.C)
	case *plan.Transpose:
		e.File, e.Name, e.Args = "matmul", s.named("transpose"), []any{s.X, s.Y}
	case *plan.Flatten:
		e.Name, e.Args = s.named("flatten"), []any{s.X, s.Y}
	default:
		return nil, plan.Unsupported(fmt.Sprintf("operation %T", op))
	}
	return []Elementwise{e}, nil
}

// named is the name of a kernel that there is for bits and for float32 values.
func (s Step) named(kernel string) string {
	if s.In.DType == bcnn.Bits {
		return kernel + "_bits"
	}
	return kernel + "_float"
}

// vectors lets an item make four bytes where n of them are whole words.
func (e *Elementwise) vectors(n int) {
	e.G.Vector = 1
	if n%4 == 0 {
		e.G.Vector = 4
		e.Items /= 4
	}
}

// Slope are the values that kernels take for an activation: the slopes of a PReLU, one
// per channel; the smallest and the largest value of a clip; the table of a function; nil for
// the others.
func Slope(a plan.Activation) []float32 {
	switch a.Kind {
	case plan.ActivationClip:
		return []float32{a.Min, a.Max}
	case plan.ActivationFunction:
		return f32.Named(string(a.Function)).Table()
	}
	return a.Slope
}

// divisors are the number of taps of the mean of every pixel of the output, and its
// reciprocal.
func (s Step) divisors(op *plan.AvgPool) []float32 {
	taps := func(at, stride, pad, window, size int) int {
		first := at*stride - pad
		if op.CountPadding {
			return window
		}
		return min(first+window, size) - max(first, 0)
	}
	all := make([]float32, 0, 2*s.Out.Shape.Pixels())
	for y := range s.Out.Shape.H {
		rows := taps(y, op.StrideH, op.Pad.Top, op.KH, s.In.Shape.H)
		for x := range s.Out.Shape.W {
			n := float32(rows * taps(x, op.StrideW, op.Pad.Left, op.KW, s.In.Shape.W))
			all = append(all, n, 1/n)
		}
	}
	return all
}

// concat copies one input after the other to its channels of the output. A word of bits
// that two of them share is completed by the second.
func (s Step) concat(e Elementwise) []Elementwise {
	var all []Elementwise
	first := 0
	for _, in := range append([]Operand{{s.In, s.X}}, s.More...) {
		c := in.Shape.C
		e.G.InC, e.G.InWords = int32(c), int32(words32(c))
		index := make([]int32, c)
		for i := range index {
			index[i] = int32(i)
		}
		all = append(all, s.gather(e, in, first, index))
		first += c
	}
	return all
}

// gather makes the channels from first on of the channels of an input that index names.
func (s Step) gather(e Elementwise, in Operand, first int, index []int32) Elementwise {
	end, pixels := first+len(index), s.Out.Shape.Pixels()
	e.G.First, e.G.End = int32(first), int32(end)
	e.Name, e.Args, e.Items = "gather_float", []any{in.At, s.Y, index}, pixels*len(index)
	if s.Out.DType == bcnn.Bits {
		words := num.CeilDiv(end, 32)
		if end == s.Out.Shape.C { // and the words of padding
			words = words32(end)
		}
		e.Name, e.Items = "gather_bits", pixels*(words-first/32)
	}
	return e
}

// SchemeNumber is the number that kernels have for a way to binarise.
func SchemeNumber(s bcnn.Scheme) int32 {
	return map[bcnn.Scheme]int32{bcnn.SchemeThreshold: 0, bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 2, bcnn.SchemeMinMax: 3}[s]
}

func (s Step) binarize(op *plan.Binarize, e Elementwise) []Elementwise {
	e.File, e.Name = "binarize", "binarize"
	e.G.Scheme, e.G.Parts = SchemeNumber(op.Scheme), RangeParts
	var thresholds []int32
	var mask []uint32
	if op.Threshold != nil {
		thresholds, mask = op.Threshold.I32, Rows(op.Threshold.Flip)
	}
	e.G.Flip = flag(mask != nil)
	ranges := Scratch{SumMemory, s.Batch * RangeParts * 2 * 4}
	e.Args = []any{s.X, s.Y, thresholds, ranges, mask}
	if op.Scheme != bcnn.SchemeMinMax {
		return []Elementwise{e}
	}
	search := Elementwise{Kernel: Kernel{File: e.File, Name: ImageRanges, G: e.G, Args: []any{s.X, ranges}}, Items: RangeParts}
	return []Elementwise{search, e}
}
