package ref_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// pack packs rows of n values ±1.
// relu is the activation that most steps have.
var relu = plan.Activation{Kind: plan.ActivationReLU}

func pack(n int, values ...int8) []uint64 {
	words := make([]uint64, len(values)/n*bits.Words(n))
	bits.Pack(words, values, n)
	return words
}

func bitTensor(h, w, c int, values ...int8) bcnn.Tensor {
	s := bcnn.Shape{H: h, W: w, C: c}
	return bcnn.Tensor{DType: bcnn.Bits, N: len(values) / s.Values(), Shape: s, Words: pack(c, values...)}
}

func byteTensor(h, w, c int, values ...uint8) bcnn.Tensor {
	s := bcnn.Shape{H: h, W: w, C: c}
	return bcnn.Tensor{DType: bcnn.Uint8, N: len(values) / s.Values(), Shape: s, U8: values}
}

func floatTensor(h, w, c int, values ...float32) bcnn.Tensor {
	s := bcnn.Shape{H: h, W: w, C: c}
	return bcnn.Tensor{DType: bcnn.Float32, N: len(values) / s.Values(), Shape: s, F32: values}
}

// single is a plan of one step, whose result has the shape of want. Another step
// makes Float32 of it where it is not.
func single(op plan.Op, in, want bcnn.Tensor) *plan.Plan {
	p := &plan.Plan{
		Name:   "single",
		Inputs: []bcnn.Input{{DType: in.DType, Shape: in.Shape}},
		Tensors: []plan.Tensor{
			{Name: "in", DType: in.DType, Shape: in.Shape},
			{Name: "out", DType: want.DType, Shape: want.Shape},
		},
		Steps:   []plan.Step{{Name: "step", In: []int{0}, Out: 1, Op: op}},
		Outputs: []int{1},
	}
	switch op := op.(type) {
	case *plan.Add:
		p.Steps[0].In = []int{0, 0}
	case *plan.Conv:
		if in.DType == bcnn.Bits && op.PadValue != -1 { // what backends need, and the reference does not look at
			out := op.Window.Output(in.Shape, op.Out)
			op.Border = &plan.Border{Row: make([]int, out.H), Col: make([]int, out.W), Rows: 1, Cols: 1, Correction: make([]int32, op.Out)}
		}
	}
	if want.DType != bcnn.Float32 {
		p.Tensors = append(p.Tensors, plan.Tensor{Name: "values", DType: bcnn.Float32, Shape: want.Shape})
		p.Steps = append(p.Steps, plan.Step{Name: "values", In: []int{1}, Out: 2, Op: &plan.Affine{}})
		p.Outputs = []int{2}
	}
	return p
}

// requireStep runs one step and compares bit by bit.
func requireStep(t *testing.T, op plan.Op, in, want bcnn.Tensor) {
	t.Helper()
	plan, taps := single(op, in, want), 0
	got, err := ref.Run(t.Context(), plan, in, func(step int, name string, tapped bcnn.Tensor) {
		require.Equal(t, taps, step)
		require.Equal(t, plan.Steps[step].Name, name)
		if taps++; step == 0 {
			requireSame(t, want, tapped)
		}
	})
	require.NoError(t, err)
	require.Equal(t, len(plan.Steps), taps)
	reads := make([]bcnn.Tensor, len(plan.Steps[0].In))
	for k := range reads {
		reads[k] = in
	}
	alone, err := ref.Step(t.Context(), plan, 0, reads)
	require.NoError(t, err)
	requireSame(t, want, alone)
	_, err = ref.Step(t.Context(), plan, 0, nil)
	require.ErrorContains(t, err, "0 tensors for step 0 (step)")
	if want.DType == bcnn.Float32 {
		requireSame(t, want, got)
	}
}

func requireSame(t *testing.T, want, got bcnn.Tensor) {
	t.Helper()
	require.NoError(t, got.Check(want.DType, want.Shape))
	require.Equal(t, want.N, got.N)
	if want.DType != bcnn.Float32 {
		require.Equal(t, want, got)
		return
	}
	for i := range want.F32 {
		require.Equal(t, math.Float32bits(want.F32[i]), math.Float32bits(got.F32[i]),
			"value %d: want %g, got %g", i, want.F32[i], got.F32[i])
	}
}

func window(kh, kw int) bcnn.Window {
	return bcnn.Window{KH: kh, KW: kw, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
}

var (
	// The image and the filter of the literal cases.
	image3x3 = bitTensor(3, 3, 1,
		1, -1, 1,
		-1, 1, -1,
		1, -1, -1)
	filter2x2 = pack(1,
		1, -1,
		-1, 1)
)

func TestBinaryConv(t *testing.T) {
	topLeft := bcnn.Padding{Top: 1, Left: 1}
	row := bitTensor(1, 5, 1, 1, 1, -1, 1, -1)
	column := bitTensor(5, 1, 1, 1, 1, -1, 1, -1)
	tests := []struct {
		name string
		op   plan.Conv
		in   bcnn.Tensor
		want bcnn.Tensor
	}{
		{"valid", plan.Conv{Window: window(2, 2), Bits: filter2x2}, image3x3,
			floatTensor(2, 2, 1, 4, -4, -4, 2)},
		{"padding 0 excludes taps", plan.Conv{Window: window(2, 2), Bits: filter2x2}, image3x3,
			floatTensor(3, 3, 1, 1, -2, 2, -2, 4, -4, 2, -4, 2)},
		{"padding -1", plan.Conv{Window: window(2, 2), Bits: filter2x2, PadValue: -1}, image3x3,
			floatTensor(3, 3, 1, 2, -2, 2, -2, 4, -4, 2, -4, 2)},
		{"padding +1", plan.Conv{Window: window(2, 2), Bits: filter2x2, PadValue: 1}, image3x3,
			floatTensor(3, 3, 1, 0, -2, 2, -2, 4, -4, 2, -4, 2)},
		{"stride 2", plan.Conv{Window: bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 2, DilationH: 1, DilationW: 1}, Bits: pack(1, 1, -1)}, row,
			floatTensor(1, 2, 1, 0, -2)},
		{"stride 2 down", plan.Conv{Window: bcnn.Window{KH: 2, KW: 1, StrideH: 2, StrideW: 1, DilationH: 1, DilationW: 1}, Bits: pack(1, 1, -1)}, column,
			floatTensor(2, 1, 1, 0, -2)},
		{"dilation 2", plan.Conv{Window: bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 2}, Bits: pack(1, 1, -1)}, row,
			floatTensor(1, 3, 1, 2, 0, 0)},
		{"dilation 3 down", plan.Conv{Window: bcnn.Window{KH: 2, KW: 1, StrideH: 1, StrideW: 1, DilationH: 3, DilationW: 1}, Bits: pack(1, 1, -1)}, column,
			floatTensor(2, 1, 1, 0, 2)},
		{"groups", plan.Conv{Window: window(1, 1), Groups: 2, Out: 4, Bits: pack(2, 1, 1, 1, -1, 1, 1, -1, 1)}, bitTensor(1, 1, 4, 1, -1, 1, 1),
			floatTensor(1, 1, 4, 0, 2, 2, 0)},
		{"dense", plan.Conv{Window: window(1, 2), Dense: true, Out: 2, Bits: pack(2, 1, 1, 1, 1, 1, -1, 1, -1)}, bitTensor(1, 2, 2, 1, -1, 1, -1),
			floatTensor(1, 1, 2, 0, 4)},
		{"batch", plan.Conv{Window: window(1, 2), Bits: pack(1, 1, 1)}, bitTensor(1, 2, 1, 1, 1, 1, -1, -1, -1),
			floatTensor(1, 1, 1, 2, 0, -2)},
		{"threshold, ties count", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{2}}}, image3x3,
			bitTensor(2, 2, 1, 1, -1, -1, 1)},
		{"threshold above", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{3}}}, image3x3,
			bitTensor(2, 2, 1, 1, -1, -1, -1)},
		{"always", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{math.MinInt32}}}, image3x3,
			bitTensor(2, 2, 1, 1, 1, 1, 1)},
		{"never", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{math.MaxInt32}}}, image3x3,
			bitTensor(2, 2, 1, -1, -1, -1, -1)},
		{"flip", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{2}, Flip: []uint64{1}}}, image3x3,
			bitTensor(2, 2, 1, -1, 1, 1, -1)},
		{"pool", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{2}}, Pool: &bcnn.Window{KH: 1, KW: 2}}, image3x3,
			bitTensor(2, 1, 1, 1, 1)},
		{"pool before flip", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{4}, Flip: []uint64{1}}, Pool: &bcnn.Window{KH: 1, KW: 2}}, image3x3,
			bitTensor(2, 1, 1, -1, 1)},
		{"pool drops the last row and column", plan.Conv{Window: window(2, 2), Bits: filter2x2, Threshold: &plan.Threshold{I32: []int32{4}}, Pool: &bcnn.Window{KH: 2, KW: 2}}, image3x3,
			bitTensor(1, 1, 1, 1)},
		{"scale, shift, ReLU", plan.Conv{Window: window(2, 2), Bits: filter2x2, Scale: []float32{-0.5}, Shift: []float32{1.5}, Activation: relu}, image3x3,
			floatTensor(2, 2, 1, 0, 3.5, 3.5, 0.5)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			op := test.op
			op.Out, op.Groups = max(op.Out, 1), max(op.Groups, 1)
			if test.want.Shape.H == 3 {
				op.Pad = topLeft
			}
			requireStep(t, &op, test.in, test.want)
		})
	}
}

func TestBinaryConvPadsBottomAndRight(t *testing.T) {
	op := &plan.Conv{Window: window(2, 2), Bits: filter2x2, Out: 1, Groups: 1, PadValue: 1}
	op.Pad = bcnn.Padding{Bottom: 1, Right: 1}
	requireStep(t, op, bitTensor(1, 1, 1, -1), floatTensor(1, 1, 1, -2)) // −1 −1 −1 +1
}

func TestBytesConv(t *testing.T) {
	window := bcnn.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Pad: bcnn.Padding{Left: 1, Right: 1}}
	in := byteTensor(1, 3, 1, 10, 200, 0)
	op := plan.Conv{Window: window, Out: 1, Groups: 1, Bits: pack(1, 1, -1, 1)}
	requireStep(t, &op, in, floatTensor(1, 3, 1, 190, -190, 200))
	op.ZeroPoint = 5 // padding is the zero point, so padded taps still add 0
	requireStep(t, &op, in, floatTensor(1, 3, 1, 190, -195, 200))
	op.Threshold = &plan.Threshold{I32: []int32{-195}}
	requireStep(t, &op, in, bitTensor(1, 3, 1, 1, 1, 1))
	op.Threshold = &plan.Threshold{I32: []int32{-194}}
	requireStep(t, &op, in, bitTensor(1, 3, 1, 1, -1, 1))
}

func TestConvGeneralShape(t *testing.T) {
	// Two input and two output channels, two images: o0 adds both channels of
	// two pixels, o1 subtracts the second channel and the second pixel.
	in := byteTensor(1, 2, 2, 1, 2, 3, 4, 10, 20, 30, 40)
	op := &plan.Conv{Window: window(1, 2), Out: 2, Groups: 1, Bits: pack(2, 1, 1, 1, 1, 1, -1, -1, 1)}
	requireStep(t, op, in, floatTensor(1, 1, 2, 10, 0, 100, 0))
}

func TestSumsBecomeFloatsWithOneRounding(t *testing.T) {
	// 16 777 217 lies between two float32 values; ties go to even.
	in := make([]uint8, 65794)
	weights := make([]int8, len(in))
	for i := range in {
		in[i], weights[i] = 255, 1
	}
	in[len(in)-1] = 2
	op := &plan.Conv{Window: window(1, 1), Dense: true, Out: 1, Groups: 1, Bits: pack(len(in), weights...)}
	requireStep(t, op, byteTensor(1, 1, len(in), in...), floatTensor(1, 1, 1, 16777216))

	// 4097·(1 + 2⁻¹²) − 4098 = 2⁻¹² with one rounding, 0 with two.
	bytes := append(make([]uint8, 0, 17), 17)
	for range 16 {
		bytes = append(bytes, 255)
	}
	op = &plan.Conv{Window: window(1, 1), Out: 1, Groups: 1, Bits: pack(17, weights[:17]...),
		Scale: []float32{1 + 0x1p-12}, Shift: []float32{-4098}}
	requireStep(t, op, byteTensor(1, 1, 17, bytes...), floatTensor(1, 1, 1, 0x1p-12))
}

func TestFloatConv(t *testing.T) {
	const big = 1 << 24 // big + 1 is big in float32
	ones := []float32{1, 1, 1, 1}
	tests := []struct {
		name string
		op   plan.Conv
		in   bcnn.Tensor
		want bcnn.Tensor
	}{
		{"one rounding", plan.Conv{Window: window(1, 1), F32: []float32{1 + 0x1p-12}, Bias: []float32{-(1 + 0x1p-11)}},
			floatTensor(1, 1, 1, 1+0x1p-12), floatTensor(1, 1, 1, 0x1p-24)},
		{"bias first", plan.Conv{Window: window(1, 1), F32: ones[:2], Bias: []float32{big}},
			floatTensor(1, 1, 2, 1, -big), floatTensor(1, 1, 1, 0)},
		{"channels in order", plan.Conv{Window: window(1, 1), F32: ones[:3]},
			floatTensor(1, 1, 3, big, 1, -big), floatTensor(1, 1, 1, 0)},
		{"columns in order", plan.Conv{Window: window(1, 3), F32: ones[:3]},
			floatTensor(1, 3, 1, big, 1, -big), floatTensor(1, 1, 1, 0)},
		{"rows in order", plan.Conv{Window: window(3, 1), F32: ones[:3]},
			floatTensor(3, 1, 1, big, 1, -big), floatTensor(1, 1, 1, 0)},
		{"channels within columns", plan.Conv{Window: window(1, 2), F32: ones},
			floatTensor(1, 2, 2, big, 1, -big, 0), floatTensor(1, 1, 1, 0)},
		{"columns within rows", plan.Conv{Window: window(2, 2), F32: ones},
			floatTensor(2, 2, 1, big, 1, -big, 0), floatTensor(1, 1, 1, 0)},
		{"other orders differ", plan.Conv{Window: window(1, 1), F32: ones[:3]},
			floatTensor(1, 1, 3, big, -big, 1), floatTensor(1, 1, 1, 1)},
		{"padded taps are left out", plan.Conv{Window: bcnn.Window{KH: 1, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Pad: bcnn.Padding{Left: 1, Right: 1}},
			F32: []float32{0.5, 2, 4}, Bias: []float32{1}},
			floatTensor(1, 2, 1, 3, 5), floatTensor(1, 2, 1, 1+6+20, 1+1.5+10)},
		{"groups", plan.Conv{Window: window(1, 1), Out: 2, Groups: 2, F32: []float32{2, 3}, Bias: []float32{0, 1}},
			floatTensor(1, 1, 2, 5, 7), floatTensor(1, 1, 2, 10, 22)},
		{"threshold", plan.Conv{Window: window(1, 1), Out: 3, F32: []float32{1, 1, 1}, Bias: []float32{0, 0, 0},
			Threshold: &plan.Threshold{F32: []float32{2.5, 2.5000002, float32(math.Inf(-1))}, Flip: []uint64{0b100}}},
			floatTensor(1, 1, 1, 2.5), bitTensor(1, 1, 3, 1, -1, -1)},
		{"scale, shift, ReLU", plan.Conv{Window: window(1, 1), F32: []float32{1}, Scale: []float32{1 + 0x1p-12}, Shift: []float32{-(1 + 0x1p-11)}, Activation: relu},
			floatTensor(1, 2, 1, 1+0x1p-12, 0.5), floatTensor(1, 2, 1, 0x1p-24, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			op := test.op
			op.Out, op.Groups = max(op.Out, 1), max(op.Groups, 1)
			if op.Bias == nil {
				op.Bias = []float32{0}
			}
			requireStep(t, &op, test.in, test.want)
		})
	}
}

func TestMaxPool(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	padded := bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 1, Pad: bcnn.Padding{Left: 1, Right: 1}}
	tests := []struct {
		name string
		op   plan.MaxPool
		in   bcnn.Tensor
		want bcnn.Tensor
	}{
		{"bits drop the last row", plan.MaxPool{Window: bcnn.Window{KH: 2, KW: 1, StrideH: 2, StrideW: 1}},
			bitTensor(3, 1, 2, -1, -1, 1, -1, -1, 1), bitTensor(1, 1, 2, 1, -1)},
		{"bits overlap", plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 1}},
			bitTensor(1, 4, 1, -1, 1, -1, -1), bitTensor(1, 3, 1, 1, 1, -1)},
		{"bits padded", plan.MaxPool{Window: padded},
			bitTensor(1, 3, 1, -1, -1, 1), bitTensor(1, 4, 1, -1, -1, 1, 1)},
		{"bits flip", plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 2}, Flip: []uint64{0b10}},
			bitTensor(1, 2, 2, -1, -1, 1, -1), bitTensor(1, 1, 2, 1, 1)},
		{"padding never wins", plan.MaxPool{Window: padded},
			floatTensor(1, 3, 1, -5, -7, -6), floatTensor(1, 4, 1, -5, -5, -6, -6)},
		{"stride beyond the window", plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 2}},
			floatTensor(1, 5, 1, 1, 2, 3, 4, 5), floatTensor(1, 3, 1, 1, 3, 5)},
		{"two dimensions, two channels", plan.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}},
			floatTensor(2, 2, 2, 1, -1, 4, -2, 3, -3, 2, -4), floatTensor(1, 1, 2, 4, -1)},
		{"the first zero stays", plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 2, StrideH: 1, StrideW: 2}},
			floatTensor(1, 4, 1, negative, 0, 0, negative), floatTensor(1, 2, 1, negative, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { requireStep(t, &test.op, test.in, test.want) })
	}
}

func TestAffineSignAddFlatten(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	tiny := float32(math.SmallestNonzeroFloat32)
	inf := float32(math.Inf(1))
	tests := []struct {
		name string
		op   plan.Op
		in   bcnn.Tensor
		want bcnn.Tensor
	}{
		{"bytes", &plan.Affine{Scale: []float32{0.5, 2}, Shift: []float32{-1, 1}},
			byteTensor(1, 2, 2, 0, 255, 3, 128), floatTensor(1, 2, 2, -1, 511, 0.5, 257)},
		{"bytes as they are", &plan.Affine{}, byteTensor(1, 1, 2, 0, 255), floatTensor(1, 1, 2, 0, 255)},
		{"bits", &plan.Affine{Scale: []float32{3}, Shift: []float32{1}},
			bitTensor(1, 2, 1, 1, -1), floatTensor(1, 2, 1, 4, -2)},
		{"bits as they are, ReLU", &plan.Affine{Activation: relu}, bitTensor(1, 2, 1, 1, -1), floatTensor(1, 2, 1, 1, 0)},
		{"one rounding", &plan.Affine{Scale: []float32{1 + 0x1p-12}, Shift: []float32{-(1 + 0x1p-11)}},
			floatTensor(1, 1, 1, 1+0x1p-12), floatTensor(1, 1, 1, 0x1p-24)},
		{"ReLU makes +0", &plan.Affine{Activation: relu}, floatTensor(1, 1, 4, negative, 0, -1, tiny), floatTensor(1, 1, 4, negative, 0, 0, tiny)},
		{"−0 stays", &plan.Affine{}, floatTensor(1, 1, 1, negative), floatTensor(1, 1, 1, negative)},
		{"x ≥ 0", &plan.Sign{Threshold: plan.Threshold{F32: []float32{0, 0, 0, 0}}},
			floatTensor(1, 1, 4, negative, 0, tiny, -tiny), bitTensor(1, 1, 4, 1, 1, 1, -1)},
		{"x > 0", &plan.Sign{Threshold: plan.Threshold{F32: []float32{tiny, tiny, tiny, tiny}}},
			floatTensor(1, 1, 4, negative, 0, tiny, -tiny), bitTensor(1, 1, 4, -1, -1, 1, -1)},
		{"constants", &plan.Sign{Threshold: plan.Threshold{F32: []float32{-inf, inf, -inf}, Flip: []uint64{0b100}}},
			floatTensor(1, 1, 3, -math.MaxFloat32, math.MaxFloat32, 0), bitTensor(1, 1, 3, 1, -1, -1)},
		{"add to itself", &plan.Add{}, floatTensor(1, 1, 2, 1.5, -2), floatTensor(1, 1, 2, 3, -4)},
		{"add, ReLU", &plan.Add{Activation: relu}, floatTensor(1, 1, 2, 1.5, -2), floatTensor(1, 1, 2, 3, 0)},
		{"flatten bits", &plan.Flatten{},
			bitTensor(2, 1, 3, 1, 1, -1, -1, 1, 1), bitTensor(1, 1, 6, 1, 1, -1, -1, 1, 1)},
		{"flatten floats", &plan.Flatten{}, floatTensor(2, 1, 2, 1, 2, 3, 4), floatTensor(1, 1, 4, 1, 2, 3, 4)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { requireStep(t, test.op, test.in, test.want) })
	}
}

func TestBinarize(t *testing.T) {
	tests := []struct {
		name string
		op   plan.Binarize
		in   bcnn.Tensor
		want bcnn.Tensor
	}{
		{"threshold per channel", plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &plan.Threshold{I32: []int32{127, 100, 256}}},
			byteTensor(1, 2, 3, 127, 99, 255, 126, 100, 0), bitTensor(1, 2, 3, 1, -1, -1, -1, 1, -1)},
		{"thresholds beyond bytes", plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &plan.Threshold{I32: []int32{-3, math.MinInt32, math.MaxInt32}}},
			byteTensor(1, 1, 3, 0, 0, 255), bitTensor(1, 1, 3, 1, 1, -1)},
		{"flip", plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &plan.Threshold{I32: []int32{5, 5}, Flip: []uint64{0b01}}},
			byteTensor(1, 1, 2, 5, 5), bitTensor(1, 1, 2, -1, 1)},
		{"luma 18 reaches 18", plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: &plan.Threshold{I32: []int32{18}}},
			byteTensor(1, 1, 3, 10, 20, 30), bitTensor(1, 1, 1, 1)},
		{"luma 18 misses 19", plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: &plan.Threshold{I32: []int32{19}}},
			byteTensor(1, 1, 3, 10, 20, 30), bitTensor(1, 1, 1, -1)},
		{"luma of white is 255", plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: &plan.Threshold{I32: []int32{255}}},
			byteTensor(1, 2, 3, 255, 255, 255, 254, 255, 255), bitTensor(1, 2, 1, 1, -1)},
		{"grey image", plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: &plan.Threshold{I32: []int32{7}}},
			byteTensor(1, 2, 1, 7, 6), bitTensor(1, 2, 1, 1, -1)},
		{"LBP rising and falling", plan.Binarize{Scheme: bcnn.SchemeLBP},
			byteTensor(2, 2, 1, 10, 20, 30, 40, 40, 30, 20, 10),
			bitTensor(2, 2, 3,
				-1, 1, 1, -1, -1, 1, -1, 1, -1, -1, -1, -1,
				-1, -1, -1, 1, -1, -1, 1, -1, -1, 1, -1, 1)},
		{"LBP looks at three neighbours only", plan.Binarize{Scheme: bcnn.SchemeLBP},
			byteTensor(3, 3, 1, 0, 9, 9, 9, 1, 0, 0, 9, 9),
			bitTensor(3, 3, 3,
				-1, 1, 1, -1, -1, -1, -1, -1, -1,
				-1, -1, -1, -1, -1, -1, 1, -1, 1,
				1, 1, -1, -1, -1, -1, -1, -1, -1)},
		{"LBP of colours", plan.Binarize{Scheme: bcnn.SchemeLBP},
			byteTensor(1, 2, 3, 10, 20, 30, 0, 0, 200), // luma 18 and 22
			bitTensor(1, 2, 3, -1, 1, -1, -1, -1, -1)},
		{"range of the whole image, per image", plan.Binarize{Scheme: bcnn.SchemeMinMax},
			byteTensor(1, 2, 2, 0, 100, 50, 51, 50, 52, 51, 50), bitTensor(1, 2, 2, -1, 1, -1, 1, -1, 1, -1, -1)},
		{"flat image", plan.Binarize{Scheme: bcnn.SchemeMinMax}, byteTensor(1, 2, 1, 9, 9), bitTensor(1, 2, 1, -1, -1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { requireStep(t, &test.op, test.in, test.want) })
	}
}

func TestAddOfTwoTensorsAndOrderOfTaps(t *testing.T) {
	in := floatTensor(1, 1, 2, 1, -3)
	p := single(&plan.Affine{Scale: []float32{2, 2}, Shift: []float32{1, 1}}, in, in)
	p.Tensors = append(p.Tensors, plan.Tensor{Name: "sum", DType: bcnn.Float32, Shape: in.Shape})
	p.Steps = append(p.Steps, plan.Step{Name: "add", In: []int{1, 0}, Out: 2, Op: &plan.Add{}})
	p.Outputs = []int{2}
	var names []string
	got, err := ref.Run(t.Context(), p, in, func(_ int, name string, _ bcnn.Tensor) { names = append(names, name) })
	require.NoError(t, err)
	requireSame(t, floatTensor(1, 1, 2, 4, -8), got)
	require.Equal(t, []string{"step", "add"}, names)
	requireSame(t, floatTensor(1, 1, 2, 1, -3), in) // the input stays the caller's
}

// countdown is a context that ends when it has been looked at a number of times.
type countdown struct {
	context.Context
	looks int
}

func (c *countdown) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// A step that takes long stops in its middle.
func TestRunLooksAtTheContext(t *testing.T) {
	// 64 pixels, each of 2^16 sums of 4 products, or of windows of 64×64 values.
	conv := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	large := bcnn.Window{KH: 64, KW: 64, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Pad: bcnn.Padding{Top: 63, Left: 63}}
	vector := floatTensor(64, 1, 4, make([]float32, 64*4)...)
	square := floatTensor(64, 64, 1, make([]float32, 64*64)...)
	for name, c := range map[string]struct {
		op      plan.Op
		in, out bcnn.Tensor
		looks   int // of the whole step, one in 2^20 products or comparisons
	}{
		"conv": {&plan.Conv{Window: conv, Out: 1 << 16, Groups: 1, F32: make([]float32, 4<<16), Bias: make([]float32, 1<<16)},
			vector, bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 64, W: 1, C: 1 << 16}), 17},
		"pool": {&plan.MaxPool{Window: large}, square, square, 17},
	} {
		t.Run(name, func(t *testing.T) {
			plan := single(c.op, c.in, c.out)
			ctx := &countdown{t.Context(), 1000}
			_, err := ref.Run(ctx, plan, c.in, nil)
			require.NoError(t, err)
			require.GreaterOrEqual(t, 1000-ctx.looks, c.looks)
			for _, looks := range []int{0, 1, c.looks / 2} {
				ctx = &countdown{t.Context(), looks}
				_, err = ref.Run(ctx, plan, c.in, func(int, string, bcnn.Tensor) { t.Error("a step that was not finished") })
				require.Equal(t, context.Canceled, err)
				require.Equal(t, -1, ctx.looks)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	in := floatTensor(1, 1, 2, 1, -3)
	p := single(&plan.Affine{}, in, in)
	p.Tensors = append(p.Tensors, p.Tensors[1], p.Tensors[1])
	p.Steps = append(p.Steps, plan.Step{Name: "add", In: []int{1, 0}, Out: 2, Op: &plan.Add{}},
		plan.Step{Name: "more", In: []int{2}, Out: 3, Op: &plan.Affine{}})
	p.Outputs = []int{3}
	bits := bitTensor(3, 3, 2, make([]int8, 18)...)
	conv := &plan.Conv{Window: window(3, 3), Out: 70, Groups: 1, Bits: make([]uint64, 70*9), Threshold: &plan.Threshold{I32: make([]int32, 70)}}
	for name, c := range map[string]struct {
		plan *plan.Plan
		n    int
		want int64
	}{
		"three tensors and a copy": {p, 1, 4 * 8},
		"ten images":               {p, 10, 10 * 4 * 8},
		"weights and sums":         {single(conv, bits, bitTensor(1, 1, 70, make([]int8, 70)...)), 1, 18 + 70 + 70 + 70*9*2},
	} {
		got, err := ref.Memory(c.plan, c.n)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	_, err := ref.Memory(nil, 1)
	require.ErrorContains(t, err, "no plan")
}

func TestRunWithoutAContext(t *testing.T) {
	in := floatTensor(1, 1, 2, 1, -3)
	var none context.Context
	_, err := ref.Run(none, single(&plan.Affine{}, in, in), in, nil)
	require.ErrorContains(t, err, "no context")
}

func TestRunChecksItsArguments(t *testing.T) {
	bytes := byteTensor(1, 2, 3, 1, 2, 3, 4, 5, 6)
	floats := floatTensor(1, 2, 3, 1, 2, 3, 4, 5, 6)
	_, err := ref.Run(t.Context(), nil, bytes, nil)
	require.ErrorContains(t, err, "no plan")
	_, err = ref.Run(t.Context(), single(nil, bytes, floats), bytes, nil)
	require.ErrorContains(t, err, "not supported: step 0 (step): no operation")
	_, err = ref.Run(t.Context(), single(&plan.Affine{}, bytes, floats), floats, nil)
	require.ErrorContains(t, err, "in: tensor is float32")
	dirty := bitTensor(1, 1, 3, 1, 1, 1)
	dirty.Words[0] |= 8
	_, err = ref.Run(t.Context(), single(&plan.Affine{}, dirty, floatTensor(1, 1, 3, 0, 0, 0)), dirty, nil)
	require.ErrorContains(t, err, "padding bits")
}
