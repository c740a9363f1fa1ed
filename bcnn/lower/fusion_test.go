package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/placetest"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// drawing builds a network in few words; its layers are named by the caller.
type drawing struct{ *bcnn.Network }

func draw(d bcnn.DType, h, w, c int) drawing { return drawing{fed(d, h, w, c)} }

func (d drawing) add(name string, op bcnn.Op, inputs ...int) drawing {
	d.Append(name, op, inputs...)
	return d
}

// ends makes layers the outputs.
func (d drawing) ends(layers ...int) drawing {
	d.Outputs = layers
	return d
}

// ending names an activation.
func ending(a plan.Activation) string {
	if a.Kind == plan.ActivationFunction {
		return string(a.Function)
	}
	return a.Kind.String()
}

// lines describes the steps of a plan: what is read, done and made.
func lines(p *plan.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		out := p.Tensors[s.Out]
		line := fmt.Sprintf("%v %s %s → %v %v", s.In, s.Kind(), s.Name, out.Shape, out.DType)
		switch op := s.Op.(type) {
		case *plan.Conv:
			for _, e := range []struct {
				is   bool
				what string
			}{{op.Scale != nil, " scaled"}, {op.Activation.Kind != plan.ActivationNone, " " + ending(op.Activation)}} {
				if e.is {
					line += e.what
				}
			}
			if op.Threshold != nil && op.Threshold.Flip != nil {
				line += " flipped"
			}
			if op.Pool != nil {
				line += fmt.Sprintf(" pool %d×%d", op.Pool.KH, op.Pool.KW)
			}
		case *plan.Affine:
			if op.Scale != nil {
				line += " scaled"
			}
			if op.Activation.Kind != plan.ActivationNone {
				line += " " + ending(op.Activation)
			}
		case *plan.Add:
			if op.Activation.Kind != plan.ActivationNone {
				line += " " + ending(op.Activation)
			}
		case *plan.Channels:
			line += fmt.Sprint(" ", op.Index)
		case *plan.Sign:
			if op.Threshold.Flip != nil {
				line += " flipped"
			}
		case *plan.MaxPool:
			if op.Flip != nil {
				line += " flipped"
			}
		}
		all = append(all, line)
	}
	return all
}

// What becomes one step, and what does not.
func TestWhatIsFused(t *testing.T) {
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	relu := bcnn.ReLU{}
	half := bcnn.Affine{Scale: []float32{0.5}}
	falling := bcnn.Affine{Scale: []float32{-1}}
	each := func(n int) bcnn.Affine { return bcnn.Affine{Bias: constant(n, 1)} }
	pool := bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}
	sliding := bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}}
	padded := bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Bottom: 1, Right: 1}}}
	whole := bcnn.MaxPool{Window: bcnn.Window{KH: 4, KW: 4}}
	leaky := bcnn.PReLU{Slope: []float32{0.5}}
	bends := bcnn.PReLU{Slope: []float32{0.5, -0.5}}
	clip := bcnn.Clip{Min: -1, Max: 1}
	mean := bcnn.AvgPool{Window: bcnn.Window{KH: 4, KW: 4}}
	dense := func(in, out int) bcnn.Dense {
		return bcnn.Dense{Out: out, Weights: bcnn.Weights{Bits: make([]uint64, out*bits.Words(in))}}
	}
	floatDense := func(in, out int) bcnn.Dense {
		return bcnn.Dense{Out: out, Weights: bcnn.Weights{F32: make([]float32, out*in)}}
	}
	const input = bcnn.NetworkInput
	for _, c := range []struct {
		name          string
		net           drawing
		want, unfused string
	}{
		{"epilogue", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("a", half).add("r", relu),
			"[0] conv c+a+r → 4×4×3 float32 scaled relu",
			"[0] conv c → 4×4×3 float32; [1] affine a+r → 4×4×3 float32 scaled relu"},
		{"tanh takes a step of its own", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("a", half).add("t", bcnn.Function{Name: bcnn.Tanh}).add("r", relu),
			"[0] conv c+a → 4×4×3 float32 scaled; [1] affine t → 4×4×3 float32 tanh; [2] affine r → 4×4×3 float32 relu",
			"[0] conv c → 4×4×3 float32; [1] affine a+t → 4×4×3 float32 scaled tanh; [2] affine r → 4×4×3 float32 relu"},
		{"tanh in front of a pool and a sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("t", bcnn.Function{Name: bcnn.Tanh}).add("p", pool).add("s", sign).add("d", dense(12, 2)),
			"[0] conv c+t+p+s → 2×2×3 bits pool 2×2; [1] dense d → 1×1×2 float32", ""},
		{"epilogue without a scale", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("r", relu),
			"[0] conv c+r → 4×4×3 float32 relu",
			"[0] conv c → 4×4×3 float32; [1] affine r → 4×4×3 float32 relu"},
		{"more than an epilogue", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("r", relu).add("a", half),
			"[0] conv c+r → 4×4×3 float32 relu; [1] affine a → 4×4×3 float32 scaled", ""},
		{"the factor of bytes", draw(bcnn.Uint8, 4, 4, 2).add("a", half).add("c", point(2, 3)),
			"[0] conv a+c → 4×4×3 float32 scaled",
			"[0] conv a+c → 4×4×3 float32; [1] affine c → 4×4×3 float32 scaled"},
		{"bias and factor of bytes", draw(bcnn.Uint8, 1, 1, 2).add("a", half).add("d", bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: make([]uint64, 3)}, Bias: constant(3, 1)}).add("s", sign),
			"[0] dense a+d+s → 1×1×3 bits; [1] affine affine → 1×1×3 float32",
			"[0] dense a+d → 1×1×3 float32; [1] sign d+s → 1×1×3 bits; [2] affine affine → 1×1×3 float32"},
		{"pool, then sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", pool).add("s", sign).add("d", dense(12, 2)),
			"[0] conv c+p+s → 2×2×3 bits pool 2×2; [1] dense d → 1×1×2 float32",
			"[0] conv c → 4×4×3 float32; [1] sign s → 4×4×3 bits; [2] maxpool p → 2×2×3 bits; [3] dense d → 1×1×2 float32"},
		{"sign, then pool", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("s", sign).add("p", pool).add("d", dense(12, 2)),
			"[0] conv c+s+p → 2×2×3 bits pool 2×2; [1] dense d → 1×1×2 float32",
			"[0] conv c → 4×4×3 float32; [1] sign s → 4×4×3 bits; [2] maxpool p → 2×2×3 bits; [3] dense d → 1×1×2 float32"},
		{"two pools", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("s", sign).add("p", pool).add("q", pool).add("d", dense(3, 2)),
			"[0] conv c+s+p → 2×2×3 bits pool 2×2; [1] maxpool q → 1×1×3 bits; [2] dense d → 1×1×2 float32", ""},
		{"a pool on each side of a sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", pool).add("s", sign).add("q", pool).add("d", dense(3, 2)),
			"[0] conv c+p+s → 2×2×3 bits pool 2×2; [1] maxpool q → 1×1×3 bits; [2] dense d → 1×1×2 float32", ""},
		{"two pools, then sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", pool).add("q", pool).add("s", sign).add("d", dense(3, 2)),
			"[0] conv c → 4×4×3 float32; [1] maxpool p → 2×2×3 float32; [2] sign s → 2×2×3 bits; [3] maxpool q → 1×1×3 bits; [4] dense d → 1×1×2 float32", ""},
		{"a pool that slides, then sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", sliding).add("s", sign).add("d", dense(27, 2)),
			"[0] conv c+s → 4×4×3 bits; [1] maxpool p → 3×3×3 bits; [2] dense d → 1×1×2 float32", ""},
		{"sign, then a pool that slides", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("s", sign).add("p", sliding).add("d", dense(27, 2)),
			"[0] conv c+s → 4×4×3 bits; [1] maxpool p → 3×3×3 bits; [2] dense d → 1×1×2 float32", ""},
		{"sign, then a pool with padding", draw(bcnn.Uint8, 3, 3, 2).add("c", point(2, 3)).add("s", sign).add("p", padded).add("d", dense(12, 2)),
			"[0] conv c+s → 3×3×3 bits; [1] maxpool p → 2×2×3 bits; [2] dense d → 1×1×2 float32", ""},
		{"sign, pool, and another reader of the sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("s", sign).add("p", pool).
			add("d", dense(12, 2)).add("e", dense(48, 2), 1).add("+", bcnn.Add{}, 3, 4),
			"[0] conv c+s → 4×4×3 bits; [1] maxpool p → 2×2×3 bits; [2] dense d → 1×1×2 float32; [1] dense e → 1×1×2 float32; [3 4] add + → 1×1×2 float32", ""},
		{"falling, pool and sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("f", falling).add("p", pool).add("s", sign).add("d", dense(12, 2)),
			"[0] conv c+f+p+s → 2×2×3 bits pool 2×2; [1] dense d → 1×1×2 float32",
			"[0] conv c → 4×4×3 float32; [1] sign f+s → 4×4×3 bits flipped; [2] maxpool p → 2×2×3 bits; [3] dense d → 1×1×2 float32"},
		{"pool, falling and sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", pool).add("f", falling).add("s", sign).add("d", dense(12, 2)),
			"[0] conv c+p+f+s → 2×2×3 bits flipped pool 2×2; [1] dense d → 1×1×2 float32",
			"[0] conv c → 4×4×3 float32; [1] sign f+s → 4×4×3 bits; [2] maxpool p → 2×2×3 bits flipped; [3] dense d → 1×1×2 float32"},
		{"sign of bytes", draw(bcnn.Uint8, 4, 4, 2).add("a", each(2)).add("s", sign).add("d", dense(32, 2)),
			"[0] binarize a+s → 4×4×2 bits; [1] dense d → 1×1×2 float32", ""},
		{"falling sign of bytes, then a pool", draw(bcnn.Uint8, 4, 4, 2).add("f", falling).add("s", sign).add("p", pool).add("d", dense(8, 2)),
			"[0] binarize f+s → 4×4×2 bits; [1] maxpool p → 2×2×2 bits; [2] dense d → 1×1×2 float32", ""},
		{"the sign of ±1", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("t", sign).add("d", dense(2, 2)),
			"[0] sign s → 1×1×2 bits; [1] dense d → 1×1×2 float32", ""},
		{"functions of ±1, then sign", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("a", half).add("t", sign).add("d", dense(2, 2)),
			"[0] sign s+a+t → 1×1×2 bits; [1] dense d → 1×1×2 float32", ""},
		{"pool of floats", draw(bcnn.Float32, 4, 4, 2).add("p", pool).add("a", half).add("q", pool),
			"[0] maxpool p → 2×2×2 float32; [1] affine a → 2×2×2 float32 scaled; [2] maxpool q → 1×1×2 float32", ""},
		{"pool of bytes", draw(bcnn.Uint8, 4, 4, 2).add("p", pool),
			"[0] affine affine → 4×4×2 float32; [1] maxpool p → 2×2×2 float32", ""},
		{"a sum with ReLU", draw(bcnn.Float32, 1, 1, 2).add("a", half).add("+", bcnn.Add{}, 0, input).add("r", relu),
			"[0] affine a → 1×1×2 float32 scaled; [1 0] add ++r → 1×1×2 float32 relu", ""},
		{"a sum with two ReLUs and a scale", draw(bcnn.Float32, 1, 1, 2).add("+", bcnn.Add{}, input, input).add("r", relu).add("q", relu).add("a", half).add("t", relu),
			"[0 0] add ++r+q → 1×1×2 float32 relu; [1] affine a+t → 1×1×2 float32 scaled relu", ""},
		{"a sum with a scale and ReLU", draw(bcnn.Float32, 1, 1, 2).add("+", bcnn.Add{}, input, input).add("a", half).add("r", relu),
			"[0 0] add + → 1×1×2 float32; [1] affine a+r → 1×1×2 float32 scaled relu", ""},
		{"a sum that is read twice", draw(bcnn.Float32, 1, 1, 2).add("+", bcnn.Add{}, input, input).add("r", relu).add("*", bcnn.Add{}, 0, 1),
			"[0 0] add + → 1×1×2 float32; [1] affine r → 1×1×2 float32 relu; [1 2] add * → 1×1×2 float32", ""},
		{"a leaky epilogue", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("a", half).add("l", leaky).add("b", each(3)),
			"[0] conv c+a+l → 4×4×3 float32 scaled prelu; [1] affine b → 4×4×3 float32 scaled",
			"[0] conv c → 4×4×3 float32; [1] affine a+l → 4×4×3 float32 scaled prelu; [2] affine b → 4×4×3 float32 scaled"},
		{"a clip behind real weights", draw(bcnn.Float32, 1, 1, 2).add("d", floatDense(2, 3)).add("c", clip),
			"[0] dense d+c → 1×1×3 float32 clip", "[0] dense d → 1×1×3 float32; [1] affine c → 1×1×3 float32 clip"},
		{"hardtanh, pool, sign", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("h", clip).add("p", pool).add("s", sign).add("d", dense(12, 2)),
			"[0] conv c+h+p+s → 2×2×3 bits pool 2×2; [1] dense d → 1×1×2 float32", ""},
		{"leaky ReLU, pool that slides, sign", draw(bcnn.Float32, 4, 4, 2).add("l", leaky).add("p", sliding).add("s", sign).add("d", dense(18, 2)),
			"[0] sign l+s → 4×4×2 bits; [1] maxpool p → 3×3×2 bits; [2] dense d → 1×1×2 float32", ""},
		{"a slope that falls, then sign", draw(bcnn.Uint8, 1, 1, 2).add("c", point(2, 2)).add("a", half).add("l", bends).add("b", each(2)).add("s", sign).add("d", dense(2, 2)),
			"[0] conv c+a+l → 1×1×2 float32 scaled prelu; [1] sign b+s → 1×1×2 bits; [2] dense d → 1×1×2 float32", ""},
		{"a sum with a leaky ReLU", draw(bcnn.Float32, 2, 1, 2).add("+", bcnn.Add{}, input, input).add("f", bcnn.Flatten{}).add("l", leaky),
			"[0 0] add ++l → 2×1×2 float32 prelu; [1] flatten flatten → 1×1×4 float32", ""},
		{"a sum with a slope that falls and ReLU", draw(bcnn.Float32, 1, 1, 2).add("+", bcnn.Add{}, input, input).add("l", bends).add("r", relu),
			"[0 0] add ++l → 1×1×2 float32 prelu; [1] affine r → 1×1×2 float32 relu", ""},
		{"a mean of bits", draw(bcnn.Float32, 4, 4, 2).add("s", sign).add("p", mean).add("r", relu),
			"[0] sign s → 4×4×2 bits; [1] avgpool p → 1×1×2 float32; [2] affine r → 1×1×2 float32 relu", ""},
		{"a mean of bytes", draw(bcnn.Uint8, 4, 4, 2).add("p", mean),
			"[0] affine affine → 4×4×2 float32; [1] avgpool p → 1×1×2 float32", ""},
		{"a mean of a chain", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("a", half).add("r", relu).add("p", mean),
			"[0] conv c+a+r → 4×4×3 float32 scaled relu; [1] avgpool p → 1×1×3 float32", ""},
		{"a function that two signs read, one behind a summand", draw(bcnn.Float32, 1, 1, 2).add("l", leaky).add("s", sign).add("a", half, 0).add("t", sign).add("+", bcnn.Add{}, 1, 3),
			"[0] sign l+s → 1×1×2 bits; [0] sign l+a+t → 1×1×2 bits; [1] affine affine → 1×1×2 float32; [2] affine affine → 1×1×2 float32; [3 4] add + → 1×1×2 float32", ""},
		{"a function that a sign and a sum read", draw(bcnn.Float32, 1, 1, 2).add("l", leaky).add("s", sign).add("+", bcnn.Add{}, 0, 1),
			"[0] affine l → 1×1×2 float32 prelu; [1] sign s → 1×1×2 bits; [2] affine affine → 1×1×2 float32; [1 3] add + → 1×1×2 float32", ""},
		{"a function that two signs read, and that is an output", draw(bcnn.Float32, 1, 1, 2).add("l", leaky).add("s", sign).add("t", sign, 0).ends(1, 0, 2),
			"[0] affine l → 1×1×2 float32 prelu; [1] sign s → 1×1×2 bits; [1] sign t → 1×1×2 bits; [2] affine affine → 1×1×2 float32; [3] affine affine → 1×1×2 float32", ""},
		{"bits joined", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("t", sign, input).add("c", bcnn.Concat{}, 0, 1, 0).add("d", dense(6, 2)),
			"[0] sign s → 1×1×2 bits; [0] sign t → 1×1×2 bits; [1 2 1] concat c → 1×1×6 bits; [3] dense d → 1×1×2 float32", ""},
		{"bits and floats joined", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("c", bcnn.Concat{}, 0, input).add("t", sign).add("d", dense(4, 2)),
			"[0] sign s → 1×1×2 bits; [1] affine affine → 1×1×2 float32; [2 0] concat c → 1×1×4 float32; [3] sign t → 1×1×4 bits; [4] dense d → 1×1×2 float32", ""},
		{"chains joined", draw(bcnn.Float32, 1, 1, 2).add("a", half).add("l", leaky, input).add("c", bcnn.Concat{}, 0, 1),
			"[0] affine a → 1×1×2 float32 scaled; [0] affine l → 1×1×2 float32 prelu; [1 2] concat c → 1×1×4 float32", ""},
		{"a product", draw(bcnn.Float32, 2, 2, 2).add("a", half).add("p", bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2}}, input).add("c", clip).add("*", bcnn.Mul{}, 0, 2),
			"[0] avgpool p → 1×1×2 float32; [0] affine a → 2×2×2 float32 scaled; [1] affine c → 1×1×2 float32 clip; [2 3] mul * → 2×2×2 float32", ""},
		{"channels of bits", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("i", bcnn.Channels{Index: []int32{1, 0, 1}}).add("d", dense(3, 2)),
			"[0] sign s → 1×1×2 bits; [1] channels i → 1×1×3 bits [1 0 1]; [2] dense d → 1×1×2 float32", ""},
		{"channels of bits with zeros", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("i", bcnn.Channels{Index: []int32{1, -1}}),
			"[0] sign s → 1×1×2 bits; [1] affine affine → 1×1×2 float32; [2] channels i → 1×1×2 float32 [1 -1]", ""},
		{"channels of bytes", draw(bcnn.Uint8, 1, 1, 3).add("i", bcnn.Channels{Index: []int32{2, 1, 0}}),
			"[0] affine affine → 1×1×3 float32; [1] channels i → 1×1×3 float32 [2 1 0]", ""},
		{"ReLU of the input", draw(bcnn.Float32, 1, 1, 2).add("r", relu),
			"[0] affine r → 1×1×2 float32 relu", ""},
		{"ReLU of bits", draw(bcnn.Float32, 1, 1, 2).add("s", sign).add("r", relu),
			"[0] sign s → 1×1×2 bits; [1] affine r → 1×1×2 float32 relu", ""},
		{"only a view of the input", draw(bcnn.Float32, 2, 1, 2).add("f", bcnn.Flatten{}),
			"[0] flatten flatten → 1×1×4 float32", ""},
		{"only a view of a vector", draw(bcnn.Float32, 1, 1, 2).add("f", bcnn.Flatten{}).add("m", bcnn.Softmax{}),
			"[0] affine affine → 1×1×2 float32", ""},
		{"only a view of bytes", draw(bcnn.Uint8, 2, 1, 2).add("f", bcnn.Flatten{}),
			"[0] affine affine → 2×1×2 float32; [1] flatten flatten → 1×1×4 float32", ""},
		{"a flattened vector", draw(bcnn.Uint8, 1, 1, 2).add("c", point(2, 3)).add("a", half).add("f", bcnn.Flatten{}).add("b", each(3)),
			"[0] conv c+a+b → 1×1×3 float32 scaled", ""},
		{"a flattened image", draw(bcnn.Uint8, 2, 1, 2).add("c", point(2, 3)).add("f", bcnn.Flatten{}).add("a", half).add("b", each(6)),
			"[0] conv c+a → 2×1×3 float32 scaled; [1] flatten flatten → 1×1×6 float32; [2] affine b → 1×1×6 float32 scaled", ""},
		{"a flattened pool of one pixel", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", whole).add("f", bcnn.Flatten{}).add("b", each(3)),
			"[0] conv c → 4×4×3 float32; [1] maxpool p → 1×1×3 float32; [2] affine b → 1×1×3 float32 scaled", ""},
		{"a flattened pool of one pixel of a pixel", draw(bcnn.Uint8, 1, 1, 2).add("c", point(2, 3)).add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}).add("f", bcnn.Flatten{}).add("b", each(3)),
			"[0] conv c → 1×1×3 float32; [1] maxpool p → 1×1×3 float32; [2] affine b → 1×1×3 float32 scaled", ""},
		{"flattened bits with values per channel", draw(bcnn.Float32, 2, 1, 2).add("s", sign).add("f", bcnn.Flatten{}).add("b", each(4)),
			"[0] sign s → 2×1×2 bits; [1] flatten flatten → 1×1×4 bits; [2] affine b → 1×1×4 float32 scaled", ""},
		{"flattened bits into a dense layer", draw(bcnn.Float32, 2, 1, 2).add("s", sign).add("f", bcnn.Flatten{}).add("d", dense(4, 2)),
			"[0] sign s → 2×1×2 bits; [1] dense d → 1×1×2 float32", ""},
		{"flattened bytes with values per channel", draw(bcnn.Uint8, 2, 1, 2).add("f", bcnn.Flatten{}).add("b", each(4)),
			"[0] affine affine → 2×1×2 float32; [1] flatten flatten → 1×1×4 float32; [2] affine b → 1×1×4 float32 scaled", ""},
		{"a flattened image that two read", draw(bcnn.Float32, 2, 1, 2).add("a", half).add("f", bcnn.Flatten{}).add("b", each(4)).add("c", each(4), 1).add("+", bcnn.Add{}, 2, 3),
			"[0] affine a → 2×1×2 float32 scaled; [1] flatten flatten → 1×1×4 float32; " +
				"[2] affine b → 1×1×4 float32 scaled; [2] affine c → 1×1×4 float32 scaled; [3 4] add + → 1×1×4 float32", ""},
		{"bytes that two read as numbers", draw(bcnn.Uint8, 2, 1, 2).add("p", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 1}}).add("q", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 1}}, -1).add("+", bcnn.Add{}, 0, 1),
			"[0] affine affine → 2×1×2 float32; [1] maxpool p → 1×1×2 float32; [1] maxpool q → 1×1×2 float32; [2 3] add + → 1×1×2 float32", ""},
		{"real weights on a chain", draw(bcnn.Float32, 1, 1, 2).add("a", half).add("d", floatDense(2, 3)).add("r", relu).add("b", each(3)).add("s", sign),
			"[0] affine a → 1×1×2 float32 scaled; [1] dense d+r+b+s → 1×1×3 bits; [2] affine affine → 1×1×3 float32",
			"[0] affine a → 1×1×2 float32 scaled; [1] dense d → 1×1×3 float32; [2] sign r+b+s → 1×1×3 bits; [3] affine affine → 1×1×3 float32"},
		{"a dense layer on a pool of a convolution", draw(bcnn.Uint8, 4, 4, 2).add("c", point(2, 3)).add("p", whole).add("d", floatDense(3, 2)),
			"[0] conv c → 4×4×3 float32; [1] maxpool p → 1×1×3 float32; [2] dense d → 1×1×2 float32", ""},
		{"a dense layer on a pool of floats", draw(bcnn.Float32, 4, 4, 2).add("p", whole).add("d", floatDense(2, 2)),
			"[0] maxpool p → 1×1×2 float32; [1] dense d → 1×1×2 float32", ""},
		{"a convolution that two read", draw(bcnn.Uint8, 1, 1, 2).add("c", point(2, 3)).add("a", half).add("b", each(3)).add("+", bcnn.Add{}, 1, 2),
			"[0] conv c+a → 1×1×3 float32 scaled; [1] affine b → 1×1×3 float32 scaled; [1 2] add + → 1×1×3 float32", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := lower.Network(t.Context(), c.net.Network, lower.Options{})
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Join(lines(p), "; "))
			placetest.RequirePlaced(t, p)
			p, err = lower.Network(t.Context(), c.net.Network, lower.Options{Unfused: true})
			require.NoError(t, err)
			if c.unfused != "" {
				require.Equal(t, c.unfused, strings.Join(lines(p), "; "))
			}
			placetest.RequirePlaced(t, p)
		})
	}
}
