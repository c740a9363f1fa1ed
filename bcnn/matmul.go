package bcnn

import "fmt"

// MatMul is the product of the rows of two layers, as attention computes of queries and keys:
// of inputs H×W×K and H×V×K the output is H×W×V, and
//
//	y[h][w][v] = Σ_k a[h][w][k]·b[h][v][k]
//
// so row h of an image is a matrix of its own, a head for instance. With Transpose in front of
// the second input it is the product a·b of each row. Where both inputs are ±1 it is computed in
// exact integers.
type MatMul struct{}

// Transpose swaps columns and channels: of an input H×W×C the output is H×C×W, and
// y[h][c][w] = x[h][w][c].
type Transpose struct{}

func (MatMul) Kind() string    { return "matmul" }
func (Transpose) Kind() string { return "transpose" }

// OutputShape returns the shape of the product of two inputs.
func (MatMul) OutputShape(a, b Shape) (Shape, error) {
	if a.H != b.H || a.C != b.C {
		return a, fmt.Errorf("heights or channels of %v and %v differ", a, b)
	}
	return Shape{H: a.H, W: a.W, C: b.W}, nil
}

// Transposed returns the shape with columns and channels swapped.
func (s Shape) Transposed() Shape { return Shape{H: s.H, W: s.C, C: s.W} }

func (MatMul) output(in []ValueType) (ValueType, error) {
	shape, err := MatMul{}.OutputShape(in[0].Shape, in[1].Shape)
	return ValueType{shape, RealValue}, err
}

func (Transpose) output(in []ValueType) (ValueType, error) {
	t := in[0]
	t.Shape = t.Shape.Transposed()
	if t.Kind == ByteValue {
		t.Kind = RealValue
	}
	return t, nil
}
