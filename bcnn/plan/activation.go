package plan

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

// ActivationKind names a function of one value that a step applies at its end.
type ActivationKind uint8

const (
	ActivationNone ActivationKind = iota
	ActivationReLU
	ActivationPReLU
	ActivationClip
	ActivationFunction
)

func (k ActivationKind) String() string {
	switch k {
	case ActivationNone:
		return "none"
	case ActivationReLU:
		return "relu"
	case ActivationPReLU:
		return "prelu"
	case ActivationClip:
		return "clip"
	case ActivationFunction:
		return "function"
	}
	return fmt.Sprintf("ActivationKind(%d)", uint8(k))
}

// Activation is what a step makes of its float32 values x at the end, by
// comparisons and selections, but for functions:
//
//	none:  x
//	relu:  +0 where x < 0, else x
//	prelu: x·Slope[c], rounded once, where x < 0, else x
//	clip:  t = Min where x < Min, else x; then Max where t > Max, else t
//	function: Function of x; only an Affine ends in one
//
// So a NaN stays one, and −0 stays in relu, prelu, a clip whose Min is a zero of either sign,
// and functions whose value for 0 is 0.
type Activation struct {
	Kind     ActivationKind
	Slope    []float32 // prelu: one per channel of the output
	Min, Max float32   // clip; infinite where a side is open
	Function bcnn.FunctionName
}

// Of returns what the activation makes of a value of channel c.
func (a *Activation) Of(v float32, c int) float32 {
	switch a.Kind {
	case ActivationReLU:
		if v < 0 {
			return 0
		}
	case ActivationPReLU:
		if v < 0 {
			return v * a.Slope[c]
		}
	case ActivationClip:
		if v < a.Min {
			v = a.Min
		}
		if v > a.Max {
			v = a.Max
		}
	case ActivationFunction:
		return f32.Named(string(a.Function)).Of(v)
	}
	return v
}

// check tests what follows a step with so many output channels.
func (a *Activation) check(channels int) error {
	switch a.Kind {
	case ActivationNone, ActivationReLU:
	case ActivationFunction:
		if err := a.Function.Check(); err != nil {
			return err
		}
	case ActivationPReLU:
		if len(a.Slope) != channels {
			return fmt.Errorf("%d slopes for %d channels, want one for each", len(a.Slope), channels)
		}
		return nil
	case ActivationClip:
		return bcnn.Clip{Min: a.Min, Max: a.Max}.Check()
	default:
		return Unsupported(fmt.Sprintf("unknown activation %v", a.Kind))
	}
	if a.Slope != nil {
		return fmt.Errorf("activation %v takes no slopes", a.Kind)
	}
	return nil
}

// checkFused is check for a step that is no Affine.
func (a *Activation) checkFused(channels int) error {
	if a.Kind == ActivationFunction {
		return fmt.Errorf("activation %s is supported only in affine steps", text.Quote(string(a.Function)))
	}
	return a.check(channels)
}
