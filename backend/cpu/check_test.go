package cpu

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func TestTooLarge(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 2048, 2048, 1)) // 2^48 bytes in all
	p.step("affine", &plan.Affine{}, bcnn.Float32, p.last().Shape)
	p.step("affine", &plan.Affine{}, bcnn.Float32, p.last().Shape)
	timed := func(int, string, time.Duration) {} // then all images take a step before any takes the next
	_, err := Device().Compile(t.Context(), p.done(), backend.Options{MaxBatch: 1 << 24, Timed: timed})
	require.ErrorIs(t, err, backend.ErrTooLarge)
	exe, err := Device().Compile(t.Context(), p.done(), backend.Options{MaxBatch: 1 << 24})
	require.NoError(t, err)
	require.NoError(t, exe.Close())
}

type unknownOp struct{ plan.Op }

// TestCompileChecksPlans breaks plans in one place each.
func TestCompileChecksPlans(t *testing.T) {
	conv := func(p *plan.Plan, i int) *plan.Conv { return p.Steps[i].Op.(*plan.Conv) }
	for _, c := range []struct {
		name, want string
		net        func(uint64) *planner
		mutate     func(p *plan.Plan)
	}{
		{"no tensors", "no tensors", smallNet, func(p *plan.Plan) { p.Tensors = nil }},
		{"tensor shape", "tensor 1 (conv): shape", smallNet, func(p *plan.Plan) { p.Tensors[1].Shape.W = -1 }},
		{"huge tensor", "tensor 1 (conv): shape", smallNet, func(p *plan.Plan) { p.Tensors[1].Shape = bcnn.Shape{H: 1 << 24, W: 1 << 24, C: 1 << 24} }},
		{"tensor type", "type DType(9)", smallNet, func(p *plan.Plan) { p.Tensors[1].DType = 9 }},
		{"input", "but the input is", smallNet, func(p *plan.Plan) { p.Inputs[0].Shape.H = 31 }},
		{"output", "output tensor 99", smallNet, func(p *plan.Plan) { p.Outputs = []int{99} }},
		{"output type", "output tensor 1", smallNet, func(p *plan.Plan) { p.Outputs = []int{1} }},
		{"inputs", "step 1 (conv): it has 0 inputs, want 1", smallNet, func(p *plan.Plan) { p.Steps[1].In = nil }},
		{"one input of two", "1 inputs, want 2", floatNet, func(p *plan.Plan) { p.Steps[1].In = []int{0} }},
		{"input not written", "it reads tensor 3", smallNet, func(p *plan.Plan) { p.Steps[1].In[0] = 3 }},
		{"input index", "it reads tensor -1", smallNet, func(p *plan.Plan) { p.Steps[1].In[0] = -1 }},
		{"writes the input", "it writes tensor 0", smallNet, func(p *plan.Plan) { p.Steps[1].Out = 0 }},
		{"writes twice", "it writes tensor 1", smallNet, func(p *plan.Plan) { p.Steps[1].Out = 1 }},
		{"no operation", "not supported: step 1 (conv): no operation", smallNet, func(p *plan.Plan) { p.Steps[1].Op = nil }},
		{"another operation", "operation cpu.unknownOp", smallNet, func(p *plan.Plan) { p.Steps[1].Op = unknownOp{} }},
		{"types", "conv from uint8 to uint8", smallNet, func(p *plan.Plan) { p.Tensors[1].DType = bcnn.Uint8 }},
		{"stride", "stride 0×1", smallNet, func(p *plan.Plan) { conv(p, 0).StrideH = 0 }},
		{"padding", "padding -1", smallNet, func(p *plan.Plan) { conv(p, 0).Pad.Left = -1 }},
		{"window too large", "does not fit", smallNet, func(p *plan.Plan) { conv(p, 0).DilationH = 1 << 20 }},
		{"groups", "2 groups do not fit 3 input", smallNet, func(p *plan.Plan) { conv(p, 0).Groups = 2 }},
		{"dense", "whole input", smallNet, func(p *plan.Plan) { conv(p, 0).Dense = true }},
		{"weights", "words of weights", smallNet, func(p *plan.Plan) { conv(p, 1).Bits = conv(p, 1).Bits[1:] }},
		{"weight padding", "padding bits", smallNet, func(p *plan.Plan) { conv(p, 0).Bits[5] = 1 << 63 }},
		{"float weights", "weights and 20 biases", floatNet, func(p *plan.Plan) { conv(p, 2).F32 = nil }},
		{"bias", "weights and 1 biases", floatNet, func(p *plan.Plan) { conv(p, 2).Bias = []float32{1} }},
		{"thresholds", "31 thresholds for 32", smallNet, func(p *plan.Plan) { conv(p, 0).Threshold.I32 = make([]int32, 31) }},
		{"no thresholds", "no threshold", smallNet, func(p *plan.Plan) { conv(p, 0).Threshold = nil }},
		{"flip", "flip mask of 2 words", smallNet, func(p *plan.Plan) { conv(p, 0).Threshold.Flip = make([]uint64, 2) }},
		{"flip padding", "flip mask: ", smallNet, func(p *plan.Plan) { conv(p, 0).Threshold.Flip = []uint64{1 << 40} }},
		{"pool", "pool {", smallNet, func(p *plan.Plan) { conv(p, 0).Pool.KH = 0 }},
		{"output shape", "its output has shape 16×16×32, want 8×16×32", smallNet, func(p *plan.Plan) { conv(p, 0).Pool.KH = 4 }},
		{"scale for bits", "takes no scale, shift or activation", smallNet, func(p *plan.Plan) { conv(p, 0).Activation.Kind = plan.ActivationReLU }},
		{"scales", "5 scales", floatNet, func(p *plan.Plan) { p.Steps[0].Op.(*plan.Affine).Shift = nil }},
		{"threshold for float32", "takes no threshold and no pool", smallNet, func(p *plan.Plan) { conv(p, 3).Threshold = &plan.Threshold{} }},
		{"border missing", "padding with 1 needs a border", binarizedNet, func(p *plan.Plan) { conv(p, 1).Border = nil }},
		{"border class", "border row class 99", binarizedNet, func(p *plan.Plan) { conv(p, 1).Border.Row[3] = 99 }},
		{"border column", "border column class -1", binarizedNet, func(p *plan.Plan) { conv(p, 1).Border.Col[3] = -1 }},
		{"border size", "border of", binarizedNet, func(p *plan.Plan) { conv(p, 1).Border.Rows++ }},
		{"border correction", "border correction", binarizedNet, func(p *plan.Plan) { conv(p, 1).Border.Correction[3] = math.MaxInt32 }},
		{"scheme", `scheme "x"`, binarizedNet, func(p *plan.Plan) { p.Steps[0].Op.(*plan.Binarize).Scheme = "x" }},
		{"scheme's thresholds", "takes no thresholds", binarizedNet, func(p *plan.Plan) { p.Steps[0].Op.(*plan.Binarize).Threshold = &plan.Threshold{} }},
		{"pool padding", "padding", floatNet, func(p *plan.Plan) { p.Steps[4].Op.(*plan.MaxPool).Pad.Top = 2 }},
		{"pool dilation", "dilation", floatNet, func(p *plan.Plan) { p.Steps[4].Op.(*plan.MaxPool).DilationH = 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := c.net(1).done()
			c.mutate(plan)
			_, err := Device().Compile(t.Context(), plan, backend.Options{})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `cpu: compile: plan "drawn": `)
		})
	}
	_, err := Device().Compile(t.Context(), nil, backend.Options{})
	require.ErrorContains(t, err, "no plan")
}

// FuzzDamagedPlan changes numbers and lengths anywhere in a plan. Compile either
// refuses the plan, or it runs.
func FuzzDamagedPlan(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed, seed*31, uint8(1+seed%4))
	}
	f.Fuzz(func(t *testing.T, seed, damage uint64, hits uint8) {
		p := randomPlan(seed)
		plan := p.done()
		rng := rand.New(rand.NewPCG(damage, 1))
		for range hits % 8 {
			part := []any{&plan.Tensors, &plan.Steps, &plan.Outputs[0]}[rng.IntN(3)]
			corrupt(rng, reflect.ValueOf(part))
		}
		exe, err := Device().Compile(t.Context(), plan, backend.Options{Threads: 2})
		if err != nil {
			return
		}
		defer exe.Close()
		in := bcnn.NewTensor(plan.Tensors[0].DType, 1, plan.Tensors[0].Shape)
		out := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		require.NoError(t, exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
	})
}

// corrupt changes one number or the length of one slice below v.
func corrupt(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			corrupt(rng, v.Elem())
		}
	case reflect.Struct:
		if v.NumField() > 0 {
			corrupt(rng, v.Field(rng.IntN(v.NumField())))
		}
	case reflect.Slice:
		if v.Len() > 0 && rng.IntN(8) > 0 {
			corrupt(rng, v.Index(rng.IntN(v.Len())))
		} else if v.CanSet() && v.Len() > 0 {
			v.Set(v.Slice(0, rng.IntN(v.Len())))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		values := []int64{-1, 0, 1, 2, 3, 64, 1 << 20, math.MaxInt32, v.Int() + 1, v.Int() - 1}
		v.SetInt(values[rng.IntN(len(values))])
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(rng.Uint64() >> rng.IntN(64))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}
