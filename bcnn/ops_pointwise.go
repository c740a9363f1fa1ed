package bcnn

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// BatchNorm is batch normalisation at inference, per channel:
// (x − Mean)·Gamma/√(Var + Epsilon) + Beta.
type BatchNorm struct {
	Gamma, Beta, Mean, Var []float32
	Epsilon                float32
}

func (BatchNorm) Kind() string              { return "batchnorm" }
func (BatchNorm) inputs() (least, most int) { return 1, 1 }

func (b BatchNorm) output(in []ValueType) (ValueType, error) {
	t := ValueType{in[0].Shape, RealValue}
	for _, p := range []struct {
		name   string
		values []float32
	}{{"gamma", b.Gamma}, {"beta", b.Beta}, {"mean", b.Mean}, {"variance", b.Var}} {
		if err := perChannel(p.name, p.values, t.Shape.C, false); err != nil {
			return t, err
		}
	}
	if err := finite("epsilon", []float32{b.Epsilon}); err != nil {
		return t, err
	}
	for c, v := range b.Var {
		if float64(v)+float64(b.Epsilon) <= 0 {
			return t, fmt.Errorf("variance[%d] + epsilon is %v, want more than 0", c, float64(v)+float64(b.Epsilon))
		}
	}
	return t, nil
}

func (b BatchNorm) values(_ Shape, of []sets.Set) sets.Set {
	if math.IsInf(of[0].Min, -1) && math.IsInf(of[0].Max, 1) {
		return sets.Unknown
	}
	return sets.Normed(of[0], func(yield func(sets.Norm) bool) {
		for c, gamma := range b.Gamma {
			scale := float64(gamma) / math.Sqrt(float64(b.Var[c])+float64(b.Epsilon))
			if !yield(sets.Norm{Mean: float64(b.Mean[c]), Scale: scale, Shift: float64(b.Beta[c])}) {
				return
			}
		}
	})
}

// Affine is x·Scale + Bias, per channel, or with one value for all channels.
type Affine struct {
	Scale, Bias []float32
}

func (Affine) Kind() string              { return "affine" }
func (Affine) inputs() (least, most int) { return 1, 1 }

func (a Affine) output(in []ValueType) (ValueType, error) {
	t := ValueType{in[0].Shape, RealValue}
	if err := perChannelOrOne("scale", a.Scale, t.Shape.C); err != nil {
		return t, err
	}
	return t, perChannelOrOne("bias", a.Bias, t.Shape.C)
}

func (a Affine) values(_ Shape, of []sets.Set) sets.Set { return sets.Affine(of[0], a.Scale, a.Bias) }

// ReLU is 0 where x < 0, else x: −0 and NaN stay.
type ReLU struct{}

func (ReLU) Kind() string                             { return "relu" }
func (ReLU) inputs() (least, most int)                { return 1, 1 }
func (ReLU) output(in []ValueType) (ValueType, error) { return ValueType{in[0].Shape, RealValue}, nil }
func (ReLU) values(_ Shape, of []sets.Set) sets.Set   { return sets.Clip(of[0], 0, math.Inf(1)) }

// PReLU is x where x ≥ 0, else x·Slope, per channel, or with one slope for all
// channels (leaky ReLU).
type PReLU struct {
	Slope []float32
}

func (PReLU) Kind() string              { return "prelu" }
func (PReLU) inputs() (least, most int) { return 1, 1 }

func (p PReLU) output(in []ValueType) (ValueType, error) {
	t := in[0]
	n := t.Shape.C
	if len(p.Slope) == 1 {
		n = 1
	}
	return ValueType{t.Shape, RealValue}, perChannel("slope", p.Slope, n, false)
}

func (p PReLU) values(_ Shape, of []sets.Set) sets.Set { return sets.Leaky(of[0], p.Slope) }

// Clip is Min where x < Min, Max where x > Max, else x: NaN stays. One of the bounds may
// be infinite.
type Clip struct {
	Min, Max float32
}

func (Clip) Kind() string              { return "clip" }
func (Clip) inputs() (least, most int) { return 1, 1 }

func (c Clip) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, c.Check()
}

func (c Clip) values(_ Shape, of []sets.Set) sets.Set {
	return sets.Clip(of[0], float64(c.Min), float64(c.Max))
}

// Check tests the bounds of a clip, of which one may be infinite.
func (c Clip) Check() error {
	low, high := c.Min, c.Max
	if !(low <= high) {
		return fmt.Errorf("clip from %v to %v, want the lower bound first", low, high)
	}
	if math.IsInf(float64(low), 0) && math.IsInf(float64(high), 0) {
		return errors.New("clip without a finite bound")
	}
	return nil
}

// Function is an elementary function of one value, rounded as
// docs/numeric-contract.md says.
type Function struct {
	Name FunctionName
}

func (f Function) Kind() string            { return string(f.Name) }
func (Function) inputs() (least, most int) { return 1, 1 }

func (f Function) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, f.Name.Check()
}

func (f Function) values(Shape, []sets.Set) sets.Set {
	out := sets.Unknown
	switch f.Name {
	case Sigmoid:
		out.Min, out.Max = 0, 1
	case Tanh, Erf:
		out.Min, out.Max = -1, 1
	case Exp, Softplus:
		out.Min = 0
	case ELU:
		out.Min = -1
	}
	return out
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

// Check tests whether there is such a function.
func (f FunctionName) Check() error {
	if f32.Named(string(f)) == nil {
		return fmt.Errorf("unknown function %s", text.Quote(string(f)))
	}
	return nil
}

// Softmax is that of the channels of each pixel. It may only stand at the end, as an output.
// Executables return the logits before it; the function Probabilities computes it on the
// host in float64.
type Softmax struct {
	// Log asks for the logarithms of the probabilities: see LogProbabilities.
	Log bool
}

func (s Softmax) Kind() string {
	if s.Log {
		return "logsoftmax"
	}
	return "softmax"
}

func (Softmax) inputs() (least, most int) { return 1, 1 }
func (Softmax) output(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, nil
}
func (Softmax) values(Shape, []sets.Set) sets.Set { return sets.Unknown }
