package plan_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// tensor describes a tensor of a plan.
func tensor(d bcnn.DType, h, w, c int) plan.Tensor {
	return plan.Tensor{Name: "t", DType: d, Shape: bcnn.Shape{H: h, W: w, C: c}}
}

// single is a plan of one step, and of another one that makes float32 values of its
// result.
func single(op plan.Op, in, out plan.Tensor) *plan.Plan {
	last := out
	last.DType = bcnn.Float32
	p := &plan.Plan{
		Name: "single", Inputs: []bcnn.Input{{DType: in.DType, Shape: in.Shape}}, Tensors: []plan.Tensor{in, out, last}, Outputs: []int{2},
		Steps: []plan.Step{{Name: "one", In: []int{0}, Out: 1, Op: op}, {Name: "values", In: []int{1}, Out: 2, Op: &plan.Affine{}}},
	}
	switch op.(type) {
	case *plan.Add, *plan.Pair, *plan.Concat, *plan.MatMul:
		p.Steps[0].In = []int{0, 0}
	}
	return p
}

// unknownOp is an operation that nothing knows.
type unknownOp struct{ plan.Op }

func TestPlanCheck(t *testing.T) {
	bytes, floats, packed := tensor(bcnn.Uint8, 2, 3, 3), tensor(bcnn.Float32, 2, 3, 3), tensor(bcnn.Bits, 2, 3, 3)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	one, oneFloat := tensor(bcnn.Bits, 2, 3, 1), tensor(bcnn.Float32, 2, 3, 1)
	threshold := &plan.Threshold{I32: []int32{1}}
	window := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	conv := func(change func(c *plan.Conv)) *plan.Conv {
		c := &plan.Conv{Window: window, Out: 1, Groups: 1, Bits: []uint64{7}, Threshold: threshold}
		change(c)
		return c
	}
	padded := func(change func(c *plan.Conv)) *plan.Conv { // to 4×3, of which two rows are padding
		return conv(func(c *plan.Conv) {
			c.Pad = bcnn.Padding{Top: 1, Bottom: 1}
			c.Border = &plan.Border{Row: []int{1, 0, 0, 1}, Col: []int{0, 0, 0}, Rows: 2, Cols: 1, Correction: []int32{0, 3}}
			change(c)
		})
	}
	int8Conv := func(change func(c *plan.Conv)) *plan.Conv {
		c := &plan.Conv{Window: window, Out: 1, Groups: 1, Int8: []int8{-128, 0, 127}}
		change(c)
		return c
	}
	int16Conv := func(change func(c *plan.Conv)) *plan.Conv {
		c := &plan.Conv{Window: window, Out: 1, Groups: 1, Int16: []int16{-32768, 0, 32767}}
		change(c)
		return c
	}
	tall := tensor(bcnn.Bits, 4, 3, 1)
	pool := func(change func(w *bcnn.Window)) *plan.MaxPool {
		w := bcnn.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 1}
		change(&w)
		return &plan.MaxPool{Window: w}
	}
	pooled := tensor(bcnn.Bits, 1, 2, 3)
	tanh := plan.Activation{Kind: plan.ActivationFunction, Function: bcnn.Tanh}
	dense := &plan.Conv{Window: bcnn.Window{KH: 2, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, Out: 1, Groups: 1, Dense: true,
		Bits: make([]uint64, 6), Threshold: threshold}
	for _, c := range []struct {
		want    string // empty if it is right
		op      plan.Op
		in, out plan.Tensor
		change  func(p *plan.Plan)
	}{
		{"", &plan.Affine{}, bytes, floats, nil},
		{"", &plan.Binarize{Scheme: bcnn.SchemeLBP}, bytes, packed, nil},
		{"", &plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: threshold}, bytes, one, nil},
		{"", conv(func(*plan.Conv) {}), packed, one, nil},
		{"", conv(func(*plan.Conv) {}), bytes, one, nil},
		{"", conv(func(c *plan.Conv) { c.Pool = &bcnn.Window{KH: 2, KW: 2} }), packed, tensor(bcnn.Bits, 1, 1, 1), nil},
		{"", padded(func(*plan.Conv) {}), packed, tall, nil},
		{"", padded(func(c *plan.Conv) { c.PadValue, c.Border = -1, nil }), packed, tall, nil},
		{"", dense, packed, tensor(bcnn.Bits, 1, 1, 1), nil},
		{"", pool(func(*bcnn.Window) {}), packed, pooled, nil},
		{"", pool(func(w *bcnn.Window) { w.DilationH, w.DilationW = 1, 1 }), packed, pooled, nil},
		// Padding may be as large as the window where strides pass over it.
		{"", pool(func(w *bcnn.Window) { w.StrideH, w.Pad.Bottom = 3, 2 }), packed, pooled, nil},

		{"", &plan.AvgPool{Window: pool(func(*bcnn.Window) {}).Window}, packed, tensor(bcnn.Float32, 1, 2, 3), nil},
		{"", &plan.AvgPool{Window: pool(func(w *bcnn.Window) { w.Pad.Top = 1 }).Window, CountPadding: true}, floats, tensor(bcnn.Float32, 2, 2, 3), nil},
		{"", &plan.Pair{}, floats, floats, nil},
		{"", &plan.Concat{}, floats, tensor(bcnn.Float32, 2, 3, 6), nil},
		{"", &plan.Concat{}, packed, tensor(bcnn.Bits, 2, 3, 9), func(p *plan.Plan) { p.Steps[0].In = []int{0, 0, 0} }},
		{"", &plan.Channels{Index: []int32{2}}, packed, one, nil},
		{"", &plan.Channels{Index: []int32{-1}}, floats, oneFloat, nil},
		{"", &plan.Add{Activation: plan.Activation{Kind: plan.ActivationPReLU, Slope: make([]float32, 3)}}, floats, floats, nil},
		{"", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationClip, Max: inf}}, floats, floats, nil},

		{"", &plan.Affine{Activation: tanh}, bytes, floats, nil},
		{`unknown function "sine"`, &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationFunction, Function: "sine"}}, bytes, floats, nil},
		{`activation "tanh" is supported only in affine steps`, &plan.Add{Activation: tanh}, floats, floats, nil},
		{`activation "tanh" is supported only in affine steps`, conv(func(c *plan.Conv) { c.Threshold, c.Activation = nil, tanh }), bytes, oneFloat, nil},
		{"not supported: step 0 (one): unknown activation ActivationKind(9)", &plan.Add{Activation: plan.Activation{Kind: 9}}, floats, floats, nil},
		{"2 slopes for 3 channels, want one for each", &plan.Add{Activation: plan.Activation{Kind: plan.ActivationPReLU, Slope: make([]float32, 2)}}, floats, floats, nil},
		{"0 slopes for 3 channels, want one for each", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationPReLU}}, floats, floats, nil},
		{"0 slopes for 1 channels, want one for each", conv(func(c *plan.Conv) { c.Threshold, c.Activation.Kind = nil, plan.ActivationPReLU }), bytes, oneFloat, nil},
		{"activation relu takes no slopes", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationReLU, Slope: make([]float32, 3)}}, floats, floats, nil},
		{"clip from 2 to 1, want the lower bound first", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationClip, Min: 2, Max: 1}}, floats, floats, nil},
		{"clip without a finite bound", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationClip, Min: -inf, Max: inf}}, floats, floats, nil},
		{"not supported: step 0 (one): avgpool from uint8 to float32", &plan.AvgPool{Window: pool(func(*bcnn.Window) {}).Window}, bytes, tensor(bcnn.Float32, 1, 2, 3), nil},
		{"not supported: step 0 (one): avgpool from bits to bits", &plan.AvgPool{Window: pool(func(*bcnn.Window) {}).Window}, packed, pooled, nil},
		{"in the padding", &plan.AvgPool{Window: pool(func(w *bcnn.Window) { w.Pad.Top = 2 }).Window}, packed, tensor(bcnn.Float32, 3, 2, 3), nil},
		{"an average pool of 4194305 taps", &plan.AvgPool{Window: pool(func(w *bcnn.Window) { w.KH, w.KW = 1, 1<<22+1 }).Window}, tensor(bcnn.Bits, 1, 1<<22+1, 1), tensor(bcnn.Float32, 1, 1, 1), nil},
		{"its output has shape 1×3×3, want 1×2×3", &plan.AvgPool{Window: pool(func(*bcnn.Window) {}).Window}, packed, tensor(bcnn.Float32, 1, 3, 3), nil},
		{"not supported: step 0 (one): mul from bits to float32", &plan.Pair{}, packed, floats, nil},
		{"", &plan.Table{Values: make([]float32, 256)}, bytes, floats, nil},
		{"", &plan.Table{Values: make([]float32, 3*256), Planes: 1}, bytes, packed, nil},
		{"512 values of bytes for 3 channels, want 256 for all channels or for each", &plan.Table{Values: make([]float32, 512)}, bytes, floats, nil},
		{"1 planes need an output of bits, not float32", &plan.Table{Values: make([]float32, 256), Planes: 1}, bytes, floats, nil},
		{"5 planes", &plan.Table{Values: make([]float32, 256), Planes: 5}, bytes, packed, nil},
		{"value 0, 2, is not a number of 1 planes", &plan.Table{Values: constant(256, 2)}, bytes, packed, nil},
		{"value 0, 0.5, is not a number of 1 planes", &plan.Table{Values: constant(256, 0.5)}, bytes, packed, nil},
		{"value 0, -1, is not a number of 1 planes", &plan.Table{Values: constant(256, -1)}, bytes, packed, nil},
		{"value 0, NaN, is not a number of 1 planes", &plan.Table{Values: constant(256, float32(math.NaN()))}, bytes, packed, nil},
		{"its output has shape 2×3×3, want 4×3×3", &plan.Table{Values: slices.Repeat([]float32{3}, 256), Planes: 2}, bytes, packed, nil},
		{"not supported: step 0 (one): table from float32 to float32", &plan.Table{Values: make([]float32, 256)}, floats, floats, nil},
		{"not supported: step 0 (one): PairKind(4)", &plan.Pair{Kind: 4}, floats, floats, nil},
		{"it has 1 inputs, want 2", &plan.Pair{}, floats, floats, func(p *plan.Plan) { p.Steps[0].In = []int{0} }},
		{"it has 1 inputs, want 2 or more", &plan.Concat{}, floats, floats, func(p *plan.Plan) { p.Steps[0].In = []int{0} }},
		{"its output has shape 2×3×3, want 2×3×6", &plan.Concat{}, floats, floats, nil},
		{"not supported: step 0 (one): concat from uint8 to uint8", &plan.Concat{}, bytes, tensor(bcnn.Uint8, 2, 3, 6), nil},
		{"not supported: step 0 (one): concat from bits to float32", &plan.Concat{}, packed, tensor(bcnn.Float32, 2, 3, 6), nil},
		{"bits have no channel of zeros", &plan.Channels{Index: []int32{-1}}, packed, one, nil},
		{"channel 0 of the output is channel 3 of an input with 3 channels", &plan.Channels{Index: []int32{3}}, floats, oneFloat, nil},
		{"channel 0 of the output is channel -2 of an input with 3 channels", &plan.Channels{Index: []int32{-2}}, floats, oneFloat, nil},
		{"its output has shape 2×3×1, want 2×3×0", &plan.Channels{}, floats, oneFloat, nil},
		{"not supported: step 0 (one): channels from bits to float32", &plan.Channels{Index: []int32{0}}, packed, oneFloat, nil},

		{"", &plan.Pixels{Rows: []int32{1, -1}, Cols: []int32{0, 2, 2}, Fill: -1, BlockH: 1, BlockW: 1}, packed, packed, nil},
		{"bits cannot be filled with pixels of 0", &plan.Pixels{Rows: []int32{1, -1}, Cols: []int32{0, 2, 2}, BlockH: 1, BlockW: 1}, packed, packed, nil},
		{"blocks of 0×0 pixels", &plan.Pixels{Rows: []int32{1, -1}, Cols: []int32{0, 2, 2}}, floats, floats, nil},
		{"row 1 of the output is row 2 of an input with 2", &plan.Pixels{Rows: []int32{1, 2}, Cols: []int32{0, 2, 2}, BlockH: 1, BlockW: 1}, floats, floats, nil},
		{"its output has shape 2×3×3, want 2×2×3", &plan.Pixels{Rows: []int32{1, 1}, Cols: []int32{0, 2}, BlockH: 1, BlockW: 1}, floats, floats, nil},
		{"not supported: step 0 (one): pixels from uint8 to uint8", &plan.Pixels{Rows: []int32{1, 1}, Cols: []int32{0, 2, 2}, BlockH: 1, BlockW: 1}, bytes, bytes, nil},
		{"not supported: step 0 (one): resample from bits to float32", &plan.Resample{}, packed, floats, nil},
		{"0 taps, 0 for each of the rows", &plan.Resample{}, floats, floats, nil},
		{"", &plan.TopK{K: 1}, floats, oneFloat, nil},
		{"K is 4, want 1 to the number of channels, 3", &plan.TopK{K: 4}, floats, floats, nil},
		{"not supported: step 0 (one): topk from float32 to bits", &plan.TopK{K: 3}, floats, packed, nil},

		{"", &plan.Transpose{}, floats, tensor(bcnn.Float32, 2, 3, 3), nil},
		{"", &plan.Transpose{}, packed, tensor(bcnn.Bits, 2, 3, 3), nil},
		{"its output has shape 2×3×1, want 2×3×3", &plan.Transpose{}, floats, oneFloat, nil},
		{"not supported: step 0 (one): transpose from bits to float32", &plan.Transpose{}, packed, floats, nil},
		{"it has 1 inputs, want 2", &plan.MatMul{}, floats, floats, func(p *plan.Plan) { p.Steps[0].In = []int{0} }},
		{"", &plan.MatMul{}, floats, floats, nil},
		{"", &plan.MatMul{}, packed, floats, nil},
		{"its output has shape 2×3×1, want 2×3×3", &plan.MatMul{}, packed, oneFloat, nil},
		{"not supported: step 0 (one): matmul from uint8", &plan.MatMul{}, bytes, floats, nil},
		{"not supported: step 0 (one): matmul from bits", &plan.MatMul{}, packed, packed, nil},

		{"it has no tensors", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Tensors = nil }},
		{"tensor 1 (t): shape 0×3×3", &plan.Affine{}, bytes, tensor(bcnn.Float32, 0, 3, 3), nil},
		{"tensor 1 (t): shape 16777216×16777216×16777216", &plan.Affine{}, bytes, tensor(bcnn.Float32, 1<<24, 1<<24, 1<<24), nil},
		{"tensor 1 (t): shape 16777217×1×1", &plan.Affine{}, bytes, tensor(bcnn.Float32, 1<<24+1, 1, 1), nil},
		{"tensor 1 (t): unknown type DType(9)", &plan.Affine{}, bytes, tensor(9, 2, 3, 3), nil},
		{"tensor 0 is uint8 2×3×3, but the input is float32 2×3×3", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Inputs[0].DType = bcnn.Float32 }},
		{"tensor 0 is uint8 2×3×3, but the input is uint8 2×3×4", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Inputs[0].Shape.C = 4 }},
		{"not supported: step 0 (one): no operation", nil, bytes, floats, nil},
		{"not supported: step 0 (one): no operation", (*plan.Conv)(nil), bytes, floats, nil},
		{"not supported: step 0 (one): unknown operation plan_test.unknownOp", unknownOp{}, bytes, floats, nil},
		{"step 0 (one): it has 2 inputs, want 1", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[0].In = []int{0, 0} }},
		{"step 0 (one): it has 1 inputs, want 2", &plan.Add{}, floats, floats, func(p *plan.Plan) { p.Steps[0].In = []int{0} }},
		{"step 0 (one): it reads tensor 1, which no step before it writes", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[0].In[0] = 1 }},
		{"it reads tensor -1", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[0].In[0] = -1 }},
		{"it reads tensor 3", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[1].In[0] = 3 }},
		{"it writes tensor 0, which does not exist, is an input, or is written already", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[0].Out = 0 }},
		{"it writes tensor 3, which does not exist, is an input, or is written already", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[0].Out = 3 }},
		{"step 1 (values): it writes tensor 1, which does not exist, is an input, or is written already", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Steps[1].Out = 1 }},
		{"output tensor 3 must be float32, written by a step,", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Outputs = []int{3} }},
		{"output tensor 3 must be float32, written by a step, and not another output, too", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Outputs = append(p.Outputs, 3) }},
		{"output tensor -1 must be float32, written by a step,", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Outputs = append(p.Outputs, -1) }},
		{"output tensor 2 must be float32, written by a step,", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Outputs = append(p.Outputs, p.Outputs[0]) }},
		{"output tensor 0 must be float32, written by a step,", &plan.Affine{}, floats, floats, func(p *plan.Plan) { p.Outputs = append(p.Outputs, 0) }},
		{"tensor 1 is float32", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Inputs = append(p.Inputs, bcnn.Input{DType: bcnn.Uint8}) }},
		{"it has no inputs", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Inputs = nil }},
		{"it has no outputs", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Outputs = nil }},
		{"it has 3 tensors, less than its 4 inputs", &plan.Affine{}, bytes, floats, func(p *plan.Plan) { p.Inputs = make([]bcnn.Input, 4) }},
		{"output tensor 1 must be float32, written by a step,", &plan.Binarize{Scheme: bcnn.SchemeLBP}, bytes, packed, func(p *plan.Plan) { p.Outputs = []int{1} }},
		{"its output has shape 1×1×6, want 2×3×3", &plan.Affine{}, bytes, tensor(bcnn.Float32, 1, 1, 6), nil},
		{"2 scales and 1 shifts for 3 channels, want one of each for each channel, or none", &plan.Affine{Scale: []float32{1, 2}, Shift: []float32{1}}, bytes, floats, nil},
		{"2 scales and 2 shifts for 3 channels, want one of each for each channel, or none", &plan.Affine{Scale: make([]float32, 2), Shift: make([]float32, 2)}, bytes, floats, nil},
		{"not supported: step 0 (one): affine from uint8 to bits", &plan.Affine{}, bytes, packed, nil},

		{`not supported: step 0 (one): unknown scheme "rgb"`, &plan.Binarize{Scheme: "rgb"}, bytes, one, nil},
		{"it has no threshold", &plan.Binarize{Scheme: bcnn.SchemeGrey}, bytes, one, nil},
		{"1 thresholds for 3 channels", &plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: threshold}, bytes, packed, nil},
		{"scheme minmax takes no thresholds", &plan.Binarize{Scheme: bcnn.SchemeMinMax, Threshold: threshold}, bytes, packed, nil},
		{"its output has shape 2×3×1, want 2×3×3", &plan.Binarize{Scheme: bcnn.SchemeLBP}, bytes, one, nil},
		{"scheme lbp of 2 channels, want 1 or 3", &plan.Binarize{Scheme: bcnn.SchemeLBP}, tensor(bcnn.Uint8, 2, 3, 2), packed, nil},
		{"not supported: step 0 (one): binarize from float32 to bits", &plan.Binarize{Scheme: bcnn.SchemeLBP}, floats, packed, nil},

		{"it has no threshold", conv(func(c *plan.Conv) { c.Threshold = nil }), bytes, one, nil},
		{"0 thresholds for 1 channels", conv(func(c *plan.Conv) { c.F32, c.Bias = make([]float32, 3), make([]float32, 1) }), floats, one, nil},
		{"an output of float32 takes no threshold and no pool", conv(func(*plan.Conv) {}), bytes, oneFloat, nil},
		{"an output of bits takes no scale, shift or activation", conv(func(c *plan.Conv) { c.Activation.Kind = plan.ActivationReLU }), bytes, one, nil},
		{"an output of bits takes no scale, shift or activation", conv(func(c *plan.Conv) { c.Shift = []float32{1} }), bytes, one, nil},
		{"2 words of weights, want 1", conv(func(c *plan.Conv) { c.Bits = make([]uint64, 2) }), bytes, one, nil},
		{"weights: row 0: padding bits", conv(func(c *plan.Conv) { c.Bits = []uint64{8} }), bytes, one, nil},
		{"0 weights and 0 biases, want 3 and 1", conv(func(*plan.Conv) {}), floats, one, nil},
		{"3 weights and 2 biases, want 3 and 1", conv(func(c *plan.Conv) { c.F32, c.Bias = make([]float32, 3), make([]float32, 2) }), floats, one, nil},
		{"2 groups do not fit 3 input and 1 output", conv(func(c *plan.Conv) { c.Groups = 2 }), bytes, one, nil},
		{"0 groups do not fit 3 input", conv(func(c *plan.Conv) { c.Groups = 0 }), bytes, one, nil},
		{"1 groups do not fit 3 input and 16777217 output", conv(func(c *plan.Conv) { c.Out = 1<<24 + 1 }), bytes, one, nil},
		{"padding value 2", conv(func(c *plan.Conv) { c.PadValue = 2 }), bytes, one, nil},
		{"padding value -2", conv(func(c *plan.Conv) { c.PadValue = -2 }), bytes, one, nil},
		{"padding -1, want 0 to 16777216", conv(func(c *plan.Conv) { c.Pad.Top = -1 }), bytes, one, nil},
		{"padding 16777217", conv(func(c *plan.Conv) { c.Pad.Right = 1<<24 + 1 }), bytes, one, nil},
		{"stride 0×1", conv(func(c *plan.Conv) { c.StrideH = 0 }), bytes, one, nil},
		{"dilation 1×16777217", conv(func(c *plan.Conv) { c.DilationW = 1<<24 + 1 }), bytes, one, nil},
		{"a window of 3×1 does not fit into 2×3×3", conv(func(c *plan.Conv) { c.KH = 3 }), bytes, one, nil},
		{"a flip mask of 2 words does not fit 1 channels", conv(func(c *plan.Conv) { c.Threshold = &plan.Threshold{I32: threshold.I32, Flip: make([]uint64, 2)} }), bytes, one, nil},
		{"flip mask: row 0: padding bits", conv(func(c *plan.Conv) { c.Threshold = &plan.Threshold{I32: threshold.I32, Flip: []uint64{2}} }), bytes, one, nil},
		{"pool {KH:0 KW:2", conv(func(c *plan.Conv) { c.Pool = &bcnn.Window{KW: 2} }), packed, one, nil},
		{"pool {KH:2 KW:2", conv(func(c *plan.Conv) { c.Pool = &bcnn.Window{KH: 2, KW: 2, Pad: bcnn.Padding{Left: 1}} }), packed, one, nil},
		{"a dense layer needs a window of its whole input, no padding and one group", conv(func(c *plan.Conv) { c.Dense = true }), packed, one, nil},
		{"sums of 16777216 taps do not fit into 32 bits", conv(func(c *plan.Conv) { c.Bits = make([]uint64, 1<<18) }), tensor(bcnn.Uint8, 1, 1, 1<<24), tensor(bcnn.Bits, 1, 1, 1), nil},
		{"not supported: step 0 (one): conv from uint8 to uint8", conv(func(*plan.Conv) {}), bytes, tensor(bcnn.Uint8, 2, 3, 1), nil},

		{"", int8Conv(func(*plan.Conv) {}), bytes, oneFloat, nil},
		{"", int8Conv(func(c *plan.Conv) { c.ZeroPoint, c.Activation.Kind = 255, plan.ActivationReLU }), bytes, oneFloat, nil},
		{"", int8Conv(func(c *plan.Conv) { c.Int8 = make([]int8, 65793) }), tensor(bcnn.Uint8, 1, 1, 65793), tensor(bcnn.Float32, 1, 1, 1), nil},
		{"sums of 65794 taps do not fit into 32 bits", int8Conv(func(c *plan.Conv) { c.Int8 = make([]int8, 65794) }), tensor(bcnn.Uint8, 1, 1, 65794), tensor(bcnn.Float32, 1, 1, 1), nil},
		{"2 weights of 8 bits, want 3; besides 0 words of bits, want none", int8Conv(func(c *plan.Conv) { c.Int8 = c.Int8[1:] }), bytes, oneFloat, nil},
		{"4 weights of 8 bits, want 3; besides 0 words of bits, want none", int8Conv(func(c *plan.Conv) { c.Int8 = make([]int8, 4) }), bytes, oneFloat, nil},
		{"0 weights of 8 bits, want 3; besides 0 words of bits, want none", int8Conv(func(c *plan.Conv) { c.Int8 = []int8{} }), bytes, oneFloat, nil},
		{"3 weights of 8 bits, want 3; besides 1 words of bits, want none", int8Conv(func(c *plan.Conv) { c.Bits = []uint64{7} }), bytes, oneFloat, nil},
		{"integer weights need an input of uint8 and an output of float32, not uint8 and bits", int8Conv(func(c *plan.Conv) { c.Threshold = threshold }), bytes, one, nil},
		{"integer weights need an input of uint8 and an output of float32, not bits and float32", int8Conv(func(*plan.Conv) {}), packed, oneFloat, nil},
		{"integer weights need an input of uint8 and an output of float32, not float32 and float32", int8Conv(func(c *plan.Conv) { c.F32, c.Bias = make([]float32, 3), make([]float32, 1) }), floats, oneFloat, nil},
		{"", int16Conv(func(*plan.Conv) {}), bytes, oneFloat, nil},
		{"", int16Conv(func(c *plan.Conv) { c.Int16 = append(slices.Repeat([]int16{-32767}, 257), 385) }), tensor(bcnn.Uint8, 1, 1, 258), tensor(bcnn.Float32, 1, 1, 1), nil},
		{"weights of one output add up to 8421505 in magnitude: 255 times that does not fit into 32 bits", int16Conv(func(c *plan.Conv) { c.Int16 = append(slices.Repeat([]int16{-32767}, 257), 386) }),
			tensor(bcnn.Uint8, 1, 1, 258), tensor(bcnn.Float32, 1, 1, 1), nil},
		{"2 weights of 16 bits, want 3; besides 0 of 8 bits and 0 words of bits, want none", int16Conv(func(c *plan.Conv) { c.Int16 = c.Int16[1:] }), bytes, oneFloat, nil},
		{"3 weights of 16 bits, want 3; besides 3 of 8 bits and 0 words of bits, want none", int16Conv(func(c *plan.Conv) { c.Int8 = make([]int8, 3) }), bytes, oneFloat, nil},
		{"3 weights of 16 bits, want 3; besides 0 of 8 bits and 1 words of bits, want none", int16Conv(func(c *plan.Conv) { c.Bits = []uint64{7} }), bytes, oneFloat, nil},
		{"integer weights need an input of uint8 and an output of float32, not uint8 and bits", int16Conv(func(c *plan.Conv) { c.Threshold = threshold }), bytes, one, nil},
		{"padding value 1", int8Conv(func(c *plan.Conv) { c.PadValue = 1 }), bytes, oneFloat, nil},
		{"planes", int8Conv(func(c *plan.Conv) { c.InPlanes = 2 }), bytes, oneFloat, nil},
		{"", &plan.Quantize{Levels: 256, Thresholds: make([]float32, 255)}, floats, bytes, nil},
		{"", &plan.MaxPool{Window: pool(func(*bcnn.Window) {}).Window}, bytes, tensor(bcnn.Uint8, 1, 2, 3), nil},
		{"a flip mask and planes need an input of bits", &plan.MaxPool{Window: window, Planes: 2}, bytes, bytes, nil},
		{"2 thresholds for 4 levels and 3 channels, want one less than levels, for all channels or for each", &plan.Quantize{Levels: 4, Thresholds: make([]float32, 2)}, floats, bytes, nil},
		{"not supported: step 0 (one): quantize from uint8 to uint8", &plan.Quantize{Levels: 2, Thresholds: make([]float32, 1)}, bytes, bytes, nil},
		{"not supported: step 0 (one): quantize from float32 to bits", &plan.Quantize{Levels: 2, Thresholds: make([]float32, 1)}, floats, packed, nil},

		{"padding with 0 needs a border", padded(func(c *plan.Conv) { c.Border = nil }), packed, tall, nil},
		{"border of 3×3 positions", padded(func(c *plan.Conv) { c.Border.Row = c.Border.Row[1:] }), packed, tall, nil},
		{"border row class 2 does not exist among 2", padded(func(c *plan.Conv) { c.Border.Row[3] = 2 }), packed, tall, nil},
		{"border row class -1 does not exist among 2", padded(func(c *plan.Conv) { c.Border.Row[0] = -1 }), packed, tall, nil},
		{"border column class 1 does not exist among 1", padded(func(c *plan.Conv) { c.Border.Col[0] = 1 }), packed, tall, nil},
		{"0×1 classes", padded(func(c *plan.Conv) { c.Border.Rows, c.Border.Correction = 0, nil }), packed, tall, nil},
		{"1 corrections", padded(func(c *plan.Conv) { c.Border.Correction = make([]int32, 1) }), packed, tall, nil},
		{"border correction 7 is too large for a sum of 3 taps", padded(func(c *plan.Conv) { c.Border.Correction[1] = 7 }), packed, tall, nil},
		{"border correction -2147483648 is too large", padded(func(c *plan.Conv) { c.Border.Correction[1] = math.MinInt32 }), packed, tall, nil},

		{"wholly in the padding", pool(func(w *bcnn.Window) { w.Pad.Left = 2 }), packed, tensor(bcnn.Bits, 1, 4, 3), nil},
		{"wholly in the padding", pool(func(w *bcnn.Window) { w.Pad.Right = 2 }), packed, tensor(bcnn.Bits, 1, 4, 3), nil},
		{"a pool with dilation", pool(func(w *bcnn.Window) { w.DilationH = 2 }), packed, pooled, nil},
		{"a pool with dilation", pool(func(w *bcnn.Window) { w.DilationW = -1 }), packed, pooled, nil},
		{"a flip mask and planes need an input of bits", &plan.MaxPool{Window: window, Flip: []uint64{1}}, floats, floats, nil},
		{"flip mask of 2 words", &plan.MaxPool{Window: window, Flip: make([]uint64, 2)}, packed, packed, nil},
		{"not supported: step 0 (one): maxpool from uint8 to float32", &plan.MaxPool{Window: window}, bytes, floats, nil},
		{"not supported: step 0 (one): add from uint8 to float32", &plan.Add{}, bytes, floats, nil},
		{"it adds 2×3×3 and 2×3×1, whose shapes differ", &plan.Add{}, floats, floats, func(p *plan.Plan) {
			p.Tensors[2].Shape.C = 1
			p.Steps = []plan.Step{{Name: "one", In: []int{0}, Out: 2, Op: &plan.Conv{Window: window, Out: 1, Groups: 1, F32: make([]float32, 3), Bias: make([]float32, 1)}},
				{Name: "two", In: []int{0, 2}, Out: 1, Op: &plan.Add{}}}
		}},
		{"not supported: step 0 (one): sign from uint8 to bits", &plan.Sign{Threshold: plan.Threshold{F32: make([]float32, 3)}}, bytes, packed, nil},
		{"", &plan.Sign{Planes: 2, Threshold: plan.Threshold{F32: []float32{0, 0, nan, 1, nan, nan, nan, nan, nan}}}, floats, tensor(bcnn.Bits, 4, 3, 3), nil},
		{"threshold 1 of channel 2 is above the next one", &plan.Sign{Planes: 2, Threshold: plan.Threshold{F32: []float32{0, 0, 0, 0, 0, nan, 0, 0, 1}}}, floats, tensor(bcnn.Bits, 4, 3, 3), nil},
		{"2 thresholds for 3 channels", &plan.Sign{Threshold: plan.Threshold{F32: make([]float32, 2)}}, floats, packed, nil},
		{"not supported: step 0 (one): flatten from uint8 to uint8", &plan.Flatten{}, bytes, tensor(bcnn.Uint8, 1, 1, 18), nil},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := single(c.op, c.in, c.out)
			if c.change != nil {
				c.change(p)
			}
			err := p.Check()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `plan "single": `)
		})
	}
	var none *plan.Plan
	require.ErrorContains(t, none.Check(), "no plan")
}

func TestPlanCheckNamesEveryUnsupportedStep(t *testing.T) {
	p := single(nil, tensor(bcnn.Uint8, 2, 3, 3), tensor(bcnn.Float32, 2, 3, 3))
	p.Steps[0].Name, p.Steps[1].Op = "a\nb", unknownOp{}
	err := p.Check()
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.EqualError(t, err, `plan "single": not supported: step 0 (a\nb): no operation; step 1 (values): unknown operation plan_test.unknownOp`)
	var unsupported *plan.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, []plan.UnsupportedStep{
		{Step: 0, Name: "a\nb", Reason: "no operation"},
		{Step: 1, Name: "values", Reason: "unknown operation plan_test.unknownOp"},
	}, unsupported.Steps)
	p.Steps[1].In = nil // which is worse
	require.NotErrorIs(t, p.Check(), errors.ErrUnsupported)
}

// constant is a vector of n values from seed on, no two alike.
func constant(n int, seed float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = seed + float32(i)/float32(n)
	}
	return v
}
