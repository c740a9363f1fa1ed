package build

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// mostExp is an exponent x up to which e^x is finite in float32.
const mostExp = 88

// overflowDepth is how many layers Overflows looks back.
const overflowDepth = 6

// Overflows reports whether a value may be infinite for usual inputs: because it depends on the
// exponential of a value without bounds.
func (b *Builder) Overflows(v *Value) bool {
	if f := v.Func; f != nil && !slices.ContainsFunc(f.pieces, func(p piece) bool {
		return p.constant == nil && p.line.rounding == nil && p.line.hi >= math.MaxFloat32
	}) {
		return false
	}
	return b.overflows(v.Layer, overflowDepth)
}

func (b *Builder) overflows(layer, depth int) bool {
	l, ok := b.made(layer)
	if !ok || depth == 0 || b.budget.Charge(layerUnits) != nil {
		return false
	}
	switch op := l.Op.(type) {
	case bcnn.Function:
		if op.Name != bcnn.Exp {
			return false
		}
		of, err := b.values.Of(l.Inputs[0])
		return err == nil && of.Max > mostExp
	case bcnn.Clip:
		if op.Max < math.MaxFloat32 {
			return false
		}
	case bcnn.Affine, bcnn.BatchNorm, bcnn.PReLU, bcnn.ReLU, bcnn.Add, bcnn.Mul, bcnn.Channels, bcnn.Concat:
	default:
		return false
	}
	for _, in := range l.Inputs {
		if b.overflows(in, depth-1) {
			return true
		}
	}
	return false
}
