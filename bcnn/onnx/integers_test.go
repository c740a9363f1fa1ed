package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestQuantisedValues has every type that QuantizeLinear gives, with one zero point and with one for
// each channel, and operators that move and select its integers before DequantizeLinear.
func TestQuantisedValues(t *testing.T) {
	r := rand.New(rand.NewPCG(553, 554))
	between := []struct {
		name  string
		nodes []testNode // from a to b
	}{
		{"Unsqueeze", []testNode{op("Unsqueeze", "a one", "c"), op("Squeeze", "c one", "b")}},
		{"Relu", []testNode{op("Relu", "a", "b")}},
		{"MaxPool", []testNode{op("MaxPool", "a", "b", "kernel_shape", []int{2, 2}, "pads", []int{1, 0, 0, 1})}},
		{"Transpose", []testNode{op("Transpose", "a", "b", "perm", []int{0, 1, 3, 2})}},
		{"Reshape", []testNode{op("Reshape", "a flat", "c"), op("Transpose", "c", "e", "perm", []int{0, 1}), op("Reshape", "e shape", "b")}},
		{"Concat", []testNode{op("Max", "a point", "c"), op("Concat", "a c a", "b", "axis", 2)}},
		{"Split", []testNode{op("Split", "a", "c e", "axis", 3), op("Concat", "e c", "b", "axis", 3)}},
		{"Slice", []testNode{op("Slice", "a one three two", "c"), op("Pad", "c pads point", "b")}},
		{"Resize", []testNode{op("Resize", "a _ scales", "b", "mode", "nearest", "coordinate_transformation_mode", "asymmetric", "nearest_mode", "floor")}},
		{"limits", []testNode{op("Clip", "a point top", "b")}},
		{"limits by Max and Min", []testNode{op("Max", "a point", "c"), op("Min", "top c", "b")}},
		{"comparison", []testNode{op("Greater", "a point", "c"), op("Where", "c point a", "b")}},
		{"Cast", []testNode{op("Slice", "a one three two", "c"), op("Cast", "c", "e", "to", int(pb.Float)), op("QuantizeLinear", "e unit point", "b")}},
	}
	for _, typ := range []pb.DataType{pb.Int8, pb.Uint8, pb.Int16, pb.Uint16, pb.Int4, pb.Uint4, pb.Int2, pb.Uint2} {
		for _, zeros := range [][]float64{{0}, {1}, {1, 0, 1}} {
			for _, c := range between {
				if least, _ := typ.Limits(); c.name == "Relu" && least == 0 || c.name == "MaxPool" && typ.Bits() != 8 || typ.Bits() < 8 && !slices.Contains([]string{"Unsqueeze", "Transpose", "Reshape"}, c.name) {
					continue // which ONNX does not define
				}
				t.Run(fmt.Sprint(typ, zeros, c.name), func(t *testing.T) {
					dims := []int{len(zeros)}
					if len(zeros) == 1 {
						dims = []int{}
					}
					m := testModel{input: image(3, 4, 6), output: "y", inits: []testTensor{
						{name: "zero", typ: typ, dims: dims, values: zeros}, {name: "point", typ: typ, dims: []int{}, values: zeros[:1]}, {name: "top", typ: typ, dims: []int{}, values: []float64{1}},
						number("quarter", 0.25), number("unit", 1), ints("flat", -1, 72), ints("shape", -1, 3, 4, 6), ints("one", 1), ints("three", 3), ints("two", 2), ints("pads", 0, 0, 1, 0, 0, 0, 0, 2),
						floats("scales", []int{4}, 1, 1, 2, 2), randomTensor(r, "w", []int{2, 3, 2, 2}, -1, 1),
					}, nodes: []testNode{op("QuantizeLinear", "x quarter zero", "a", "axis", 1)}}
					if len(zeros) > 1 {
						m.inits[3] = floats("quarter", []int{3}, 0.25, 0.5, 0.25)
					}
					m.nodes = append(append(m.nodes, c.nodes...), op("DequantizeLinear", "b quarter zero", "deq", "axis", 1), op("Conv", "deq w", "y"))
					net, _ := compare(t, r, m, Options{}, false)
					layers := summarize(t, net)
					require.Len(t, layers, 1)
					if len(zeros) == 1 && typ.Bits() <= 4 { // levels, which a convolution of signs adds up as integers
						require.Empty(t, layers[0].WhyFloat)
					}
				})
			}
		}
	}
}

// TestManyLevels rounds to more integers than there may be levels.
func TestManyLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(555, 556))
	for _, c := range []struct {
		name  string
		nodes []testNode
	}{
		{"Quant", []testNode{op("qonnx.custom_op.general/Quant", "x tiny zero sixteen", "y", "signed", 1, "narrow", 0)}},
		{"Quant of channels", []testNode{op("qonnx.custom_op.general/Quant", "x each zero sixteen", "y", "signed", 0, "narrow", 0)}},
		{"Round", []testNode{op("Mul", "x big", "a"), op("Round", "a", "b"), op("Clip", "b low high", "c"), op("Mul", "c tiny", "y")}},
		{"Round behind Clip", []testNode{op("Clip", "x zero high", "a"), op("Mul", "a big", "b"), op("Round", "b", "c"), op("Div", "c big", "y")}},
		{"Round twice", []testNode{op("Mul", "x big", "a"), op("Clip", "a low high", "b"), op("Round", "b", "c"), op("Mul", "c half", "d"), op("Round", "d", "y")}},
		{"Round of steps", []testNode{op("Sign", "x", "a"), op("Mul", "a high", "b"), op("Round", "b", "y")}},
		{"Cast", []testNode{op("Mul", "x big", "a"), op("Clip", "a low high", "b"), op("Round", "b", "c"), op("Cast", "c", "d", "to", int(pb.Int32)), op("Cast", "d", "y", "to", int(pb.Float))}},
		{"QuantizeLinear of scales", []testNode{op("QuantizeLinear", "x scales points", "a", "axis", 1), op("DequantizeLinear", "a scales points", "y", "axis", 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 6), output: "y", nodes: c.nodes, inits: []testTensor{
				number("zero", 0), number("sixteen", 16), number("tiny", 0x1p-12), number("big", 512), number("low", -700), number("high", 650), number("half", 0.5),
				floats("each", []int{3, 1, 1}, 0x1p-12, 0x1p-3, 0x1p-14), floats("scales", []int{3}, 0x1p-14, 0x1p-12, 0x1p-5), {name: "points", typ: pb.Int16, dims: []int{3}, values: []float64{32000, -5, 7}},
			}}
			compare(t, r, m, Options{}, false)
		})
	}
}

// DequantizeLinear subtracts its zero point before it multiplies by the scale, so that 0 comes back as
// 0 and each integer as one rounded product.
func TestManyLevelsOfThirds(t *testing.T) {
	scales := []float32{1. / 3, 0.1, 0.7}
	for name, c := range map[string]struct {
		typ      pb.DataType
		from, to []float64 // zero points of QuantizeLinear and DequantizeLinear
	}{
		"INT16":          {pb.Int16, []float64{-20, -20, -20}, []float64{-20, -20, -20}},
		"UINT16":         {pb.Uint16, []float64{32768, 32768, 32768}, []float64{32768, 32768, 32768}},
		"moved":          {pb.Int16, []float64{-20, -20, -20}, []float64{-7, -7, -7}},
		"moved from 0":   {pb.Int16, []float64{0, 0, 0}, []float64{11, 11, 11}},
		"channels":       {pb.Int16, []float64{-20, 7, 30000}, []float64{-20, 7, 30000}},
		"moved channels": {pb.Int16, []float64{-20, 7, 30000}, []float64{-9, 18, 30011}},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 6), output: "y", nodes: []testNode{
				op("QuantizeLinear", "x scale from", "a", "axis", 1), op("DequantizeLinear", "a scale to", "y", "axis", 1),
			}, inits: []testTensor{
				floats("scale", []int{3}, float64(scales[0]), float64(scales[1]), float64(scales[2])),
				{name: "from", typ: c.typ, dims: []int{3}, values: c.from}, {name: "to", typ: c.typ, dims: []int{3}, values: c.to},
			}}
			net, _, err := Decode(t.Context(), m.encode(), Options{})
			require.NoError(t, err)
			p, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			x, want := bcnn.NewTensor(bcnn.Float32, 1, net.Inputs[0].Shape), make([]float32, 3*4*6)
			for i := range x.F32 {
				s, k := scales[i%3], float32(i/3-12)
				x.F32[i] = s * (k + 0.25) // no tie
				want[i] = (k + float32(c.from[i%3]-c.to[i%3])) * s
			}
			y, err := ref.Run(t.Context(), p, x, nil)
			require.NoError(t, err)
			require.Equal(t, want, y.F32)
		})
	}
}

// QuantizeLinear and DequantizeLinear of ONNX Runtime's own domain are those of ONNX.
func TestOwnQuantisers(t *testing.T) {
	r := rand.New(rand.NewPCG(559, 560))
	for _, typ := range []pb.DataType{pb.Int8, pb.Uint8, pb.Int16, pb.Uint4} {
		nets := map[string]any{}
		for _, domain := range []string{"", "com.microsoft/"} {
			m := testModel{input: image(3, 4, 6), output: "y", inits: []testTensor{
				{name: "zero", typ: typ, dims: []int{}, values: []float64{3}}, number("quarter", 0.25), floats("scales", []int{4}, 1, 2, 0.5, 4),
				{name: "w", typ: typ, dims: []int{4, 3, 1, 1}, values: []float64{1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4}}, {name: "zeros", typ: typ, dims: []int{4}, values: []float64{3, 2, 1, 4}},
			}, nodes: []testNode{op(domain+"QuantizeLinear", "x quarter zero", "a"), op(domain+"DequantizeLinear", "a quarter zero", "b"),
				op(domain+"DequantizeLinear", "w scales zeros", "c", "axis", 0), op("Conv", "b c", "y")}}
			if domain == "" {
				compare(t, r, m, Options{}, false)
			}
			net, _, err := Decode(t.Context(), m.encode(), Options{})
			require.NoError(t, err)
			nets[domain] = net
		}
		require.Equal(t, nets[""], nets["com.microsoft/"], "%v", typ)
	}
}

// Integers that are always the same are a number, with no rounding left of the zero point: 11/3 less
// 11/3 need not be 0 when a scale of ⅓ is multiplied in.
func TestTheSameInteger(t *testing.T) {
	r := rand.New(rand.NewPCG(103, 104))
	m := testModel{input: image(2, 2, 2), output: "y", opset: 13, nodes: []testNode{
		op("Clip", "x low high", "a"), op("QuantizeLinear", "a scale zero", "b"), op("Concat", "b b", "c", "axis", 1), op("DequantizeLinear", "c scale zero", "y"),
	}, inits: []testTensor{number("low", -0.1), number("high", 0.1), number("scale", 1./3), {name: "zero", typ: pb.Uint8, dims: []int{}, values: []float64{11}}}}
	compare(t, r, m, Options{}, false)
}
