package bcnn

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// CheckPair tests whether values can be combined with others: they are as many, or
// repeated over channels or pixels or both.
func CheckPair(values, others Shape) error {
	pixels := others.H == values.H && others.W == values.W
	if !pixels && (others.H != 1 || others.W != 1) || others.C != values.C && others.C != 1 {
		return fmt.Errorf("shapes %v and %v cannot be combined: the second must be equal to the first, or 1 in channels or pixels", values, others)
	}
	return nil
}

func pairOutput(in []ValueType) (ValueType, error) {
	return ValueType{in[0].Shape, RealValue}, CheckPair(in[0].Shape, in[1].Shape)
}

// Add is the sum of two layers of the same shape.
type Add struct{}

func (Add) Kind() string              { return "add" }
func (Add) inputs() (least, most int) { return 2, 2 }

func (Add) output(in []ValueType) (ValueType, error) {
	if in[0].Shape != in[1].Shape {
		return in[0], fmt.Errorf("shapes %v and %v differ", in[0].Shape, in[1].Shape)
	}
	return ValueType{in[0].Shape, RealValue}, nil
}

func (Add) values(_ Shape, of []sets.Set) sets.Set { return of[0].Plus(of[1]) }

// Mul is the product of two layers. The second one has the shape of the first,
// H×W×C, or is repeated over its pixels (1×1×C), its channels (H×W×1), or both.
type Mul struct{}

func (Mul) Kind() string                             { return "mul" }
func (Mul) inputs() (least, most int)                { return 2, 2 }
func (Mul) output(in []ValueType) (ValueType, error) { return pairOutput(in) }
func (Mul) values(_ Shape, of []sets.Set) sets.Set   { return sets.Product(of[0], of[1]) }

// Min and Max are the smaller and the larger of the values of two layers, whose shapes
// are as those of Mul. A NaN in either is the result; of values that are equal, such
// as +0 and −0, the second one is.
type (
	Min struct{}
	Max struct{}
)

func (Min) Kind() string                             { return "min" }
func (Min) inputs() (least, most int)                { return 2, 2 }
func (Min) output(in []ValueType) (ValueType, error) { return pairOutput(in) }
func (Min) values(_ Shape, of []sets.Set) sets.Set   { return sets.Either(of[0], of[1], math.Min) }
func (Max) Kind() string                             { return "max" }
func (Max) inputs() (least, most int)                { return 2, 2 }
func (Max) output(in []ValueType) (ValueType, error) { return pairOutput(in) }
func (Max) values(_ Shape, of []sets.Set) sets.Set   { return sets.Either(of[0], of[1], math.Max) }

// Mask is the first of two layers where the second one is not 0, and +0 elsewhere. Shapes are
// as those of Mul. A NaN of the second layer is not 0. Infinities and NaN of the first one
// stay where the second is not 0, and become +0 elsewhere, where a product with 0 is NaN.
type Mask struct{}

func (Mask) Kind() string                             { return "mask" }
func (Mask) inputs() (least, most int)                { return 2, 2 }
func (Mask) output(in []ValueType) (ValueType, error) { return pairOutput(in) }
func (Mask) values(_ Shape, of []sets.Set) sets.Set   { return of[0].Or(sets.Single(0)) }

// MatMul is the product of the rows of two layers, as attention computes of queries and keys:
// of inputs H×W×K and H×V×K the output is H×W×V, and
//
//	y[h][w][v] = Σ_k a[h][w][k]·b[h][v][k]
//
// so row h of an image is a matrix of its own, a head for instance. With Transpose in front of
// the second input it is the product a·b of each row. Where both inputs are ±1 it is computed in
// exact integers.
type MatMul struct{}

func (MatMul) Kind() string              { return "matmul" }
func (MatMul) inputs() (least, most int) { return 2, 2 }

func (MatMul) output(in []ValueType) (ValueType, error) {
	shape, err := MatMul{}.OutputShape(in[0].Shape, in[1].Shape)
	return ValueType{shape, RealValue}, err
}

func (MatMul) values(in Shape, of []sets.Set) sets.Set { return sets.Products(of[0], of[1], in.C) }

// OutputShape returns the shape of the product of two inputs.
func (MatMul) OutputShape(a, b Shape) (Shape, error) {
	if a.H != b.H || a.C != b.C {
		return a, fmt.Errorf("heights or channels of %v and %v differ", a, b)
	}
	return Shape{H: a.H, W: a.W, C: b.W}, nil
}
