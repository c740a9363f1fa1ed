package gpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/kernels"
)

// TestElementwise lists the kernels of every kind of step that is no convolution.
func TestElementwise(t *testing.T) {
	shape := bcnn.Shape{H: 3, W: 5, C: 40}
	of := func(d bcnn.DType) plan.Tensor { return plan.Tensor{DType: d, Shape: shape} }
	const values, words = 3 * 5 * 40, 3 * 5 * 2
	base := kernels.Geometry{InH: 3, InW: 5, InC: 40, InWords: 2, OutH: 3, OutW: 5, OutC: 40, OutWords: 2, InPlanes: 1, OutPlanes: 1}
	scale, shift := make([]float32, 40), make([]float32, 40)
	flip, mask := []uint64{1<<33 | 2}, []uint32{2, 2}
	x, y, other := Tensor(4), Tensor(7), Tensor(5)
	slope := make([]float32, 40)
	window := bcnn.Window{KH: 2, KW: 3, StrideH: 1, StrideW: 2, DilationH: 1, DilationW: 1, Pad: bcnn.Padding{Top: 1, Left: 2}}
	windowed := func(g *kernels.Geometry) {
		g.Kh, g.Kw, g.StrideH, g.StrideW, g.DilationH, g.DilationW, g.PadT, g.PadL = 2, 3, 1, 2, 1, 1, 1, 2
	}
	i32, f32, table := make([]int32, 40), make([]float32, 40), make([]float32, 256)
	ranges := Scratch{SumMemory, 6 * RangeParts * 8}
	type change = func(g *kernels.Geometry)
	none := func(*kernels.Geometry) {}
	for name, c := range map[string]struct {
		op      plan.Op
		in, out bcnn.DType
		file    string
		kernel  string
		items   int
		args    []any
		g       change
	}{
		"max pool of bits": {&plan.MaxPool{Window: window, Flip: flip}, bcnn.Bits, bcnn.Bits,
			"elementwise", "max_pool_bits", words, []any{x, y, mask}, func(g *kernels.Geometry) { windowed(g); g.Flip = 1 }},
		"max pool of floats": {&plan.MaxPool{Window: window}, bcnn.Float32, bcnn.Float32,
			"elementwise", "max_pool_float", values, []any{x, y}, windowed},
		"affine": {&plan.Affine{Scale: scale, Shift: shift, Activation: plan.Activation{Kind: plan.ActivationReLU}}, bcnn.Bits, bcnn.Float32,
			"elementwise", "affine", values, []any{x, y, scale, shift, []float32(nil)}, func(g *kernels.Geometry) { g.Scaled, g.Activation = 1, 1 }},
		"conversion": {&plan.Affine{}, bcnn.Uint8, bcnn.Float32,
			"elementwise", "affine", values, []any{x, y, []float32(nil), []float32(nil), []float32(nil)}, none},
		"sign": {&plan.Sign{Threshold: plan.Threshold{F32: f32, Flip: flip}}, bcnn.Float32, bcnn.Bits,
			"elementwise", "sign_bits", words, []any{x, y, f32, mask}, func(g *kernels.Geometry) { g.Flip = 1 }},
		"quantize": {&plan.Quantize{Low: -2, Levels: 2, Thresholds: f32}, bcnn.Float32, bcnn.Float32,
			"elementwise", "quantize", values, []any{x, y, f32}, func(g *kernels.Geometry) { g.First, g.End, g.OtherC = -2, -1, int32(len(f32)) }},
		"quantize to bytes": {&plan.Quantize{Low: -2, Levels: 2, Thresholds: f32}, bcnn.Float32, bcnn.Uint8,
			"elementwise", "quantize_bytes", values / 4, []any{x, y, f32}, func(g *kernels.Geometry) { g.First, g.End, g.OtherC, g.Vector = -2, -1, int32(len(f32)), 4 }},
		"max pool of bytes": {&plan.MaxPool{Window: window}, bcnn.Uint8, bcnn.Uint8,
			"elementwise", "max_pool_bytes", values / 4, []any{x, y}, func(g *kernels.Geometry) { windowed(g); g.Vector = 4 }},
		"add": {&plan.Add{Activation: plan.Activation{Kind: plan.ActivationReLU}}, bcnn.Float32, bcnn.Float32,
			"elementwise", "add", values, []any{x, other, y, []float32(nil)}, func(g *kernels.Geometry) { g.Activation = 1 }},
		"add and PReLU": {&plan.Add{Activation: plan.Activation{Kind: plan.ActivationPReLU, Slope: slope}}, bcnn.Float32, bcnn.Float32,
			"elementwise", "add", values, []any{x, other, y, slope}, func(g *kernels.Geometry) { g.Activation = 2 }},
		"clip": {&plan.Affine{Activation: plan.Activation{Kind: plan.ActivationClip, Min: -1, Max: 6}}, bcnn.Float32, bcnn.Float32,
			"elementwise", "affine", values, []any{x, y, []float32(nil), []float32(nil), []float32{-1, 6}}, func(g *kernels.Geometry) { g.Activation = 3 }},
		"product": {&plan.Pair{}, bcnn.Float32, bcnn.Float32,
			"elementwise", "pair", values, []any{x, other, y}, func(g *kernels.Geometry) { g.OtherPixels, g.OtherC = 15, 40 }},
		"maximum": {&plan.Pair{Kind: plan.PairMax}, bcnn.Float32, bcnn.Float32,
			"elementwise", "pair", values, []any{x, other, y}, func(g *kernels.Geometry) { g.OtherPixels, g.OtherC, g.Scheme = 15, 40, 2 }},
		"table": {&plan.Table{Values: table}, bcnn.Uint8, bcnn.Float32,
			"elementwise", "table_float", values, []any{x, y, table}, func(g *kernels.Geometry) { g.OtherC = 1 }},
		"table of bytes": {&plan.Table{Values: table}, bcnn.Uint8, bcnn.Uint8,
			"elementwise", "table_bytes", values / 4, []any{x, y, table}, func(g *kernels.Geometry) { g.OtherC, g.Vector = 1, 4 }},
		"tables of bits": {&plan.Table{Values: slices.Repeat(table, 40)}, bcnn.Uint8, bcnn.Bits,
			"elementwise", "table_bits", words, []any{x, y, slices.Repeat(table, 40)}, func(g *kernels.Geometry) { g.OtherC = 40 }},
		"flatten bits":   {&plan.Flatten{}, bcnn.Bits, bcnn.Bits, "elementwise", "flatten_bits", words, []any{x, y}, none},
		"flatten floats": {&plan.Flatten{}, bcnn.Float32, bcnn.Float32, "elementwise", "flatten_float", values, []any{x, y}, none},
		"threshold": {&plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &plan.Threshold{I32: i32, Flip: flip}}, bcnn.Uint8, bcnn.Bits,
			"binarize", "binarize", words, []any{x, y, i32, ranges, mask}, func(g *kernels.Geometry) { g.Parts, g.Flip = 32, 1 }},
		"grey": {&plan.Binarize{Scheme: bcnn.SchemeGrey, Threshold: &plan.Threshold{I32: i32}}, bcnn.Uint8, bcnn.Bits,
			"binarize", "binarize", words, []any{x, y, i32, ranges, []uint32(nil)}, func(g *kernels.Geometry) { g.Parts, g.Scheme = 32, 1 }},
		"LBP": {&plan.Binarize{Scheme: bcnn.SchemeLBP}, bcnn.Uint8, bcnn.Bits,
			"binarize", "binarize", words, []any{x, y, []int32(nil), ranges, []uint32(nil)}, func(g *kernels.Geometry) { g.Parts, g.Scheme = 32, 2 }},
		"min max": {&plan.Binarize{Scheme: bcnn.SchemeMinMax}, bcnn.Uint8, bcnn.Bits,
			"binarize", "binarize", words, []any{x, y, []int32(nil), ranges, []uint32(nil)}, func(g *kernels.Geometry) { g.Parts, g.Scheme = 32, 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := Step{Batch: 6, In: of(c.in), Out: of(c.out), X: x, Y: y, More: []Operand{{of(c.in), other}}}
			got, err := s.Elementwise(c.op)
			require.NoError(t, err)
			want := Elementwise{Kernel: Kernel{File: c.file, Name: c.kernel, G: Geometry{Geometry: base}, Args: c.args}, Items: c.items}
			c.g(&want.G.Geometry)
			if c.out == bcnn.Bits {
				want.G.ToBits = 1
			}
			if name == "min max" {
				search := Elementwise{Kernel: Kernel{File: "binarize", Name: ImageRanges, G: want.G, Args: []any{x, ranges}}, Items: RangeParts}
				require.Equal(t, []Elementwise{search, want}, got)
			} else {
				require.Equal(t, []Elementwise{want}, got)
			}
		})
	}
	_, err := Step{}.Elementwise(&plan.Conv{})
	require.ErrorContains(t, err, "*plan.Conv")
}

func TestGrowScratch(t *testing.T) {
	sizes := [Scratches]int{PatchMemory: 5, SumMemory: 9}
	k := Kernel{Args: []any{Tensor(1), Scratch{SumMemory, 8}, []int32{1}, nil, Scratch{PatchMemory, 20}, Scratch{SumMemory, 30}}}
	k.GrowScratch(&sizes)
	require.Equal(t, [Scratches]int{PatchMemory: 20, SumMemory: 30}, sizes)
}
