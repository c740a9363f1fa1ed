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

// MatMulStep makes Float32 of two Bits or two Float32 tensors, H×W×K and H×V×K: the output is
// H×W×V. Of bits it is float32(K − 2·popcount(a xor b)); of float32 values acc = +0, then
// acc = fma(a[h][w][k], b[h][v][k], acc) for each k in this order.
type MatMulStep struct{}

// TransposeStep swaps columns and channels of a Bits or Float32 tensor, as the layer Transpose
// does.
type TransposeStep struct{}

func (*MatMulStep) stepKind() string    { return "matmul" }
func (*TransposeStep) stepKind() string { return "transpose" }

// matMulShape returns the shape of the product of two inputs.
func matMulShape(a, b Shape) (Shape, error) {
	if a.H != b.H || a.C != b.C {
		return a, fmt.Errorf("heights or channels of %v and %v differ", a, b)
	}
	return Shape{H: a.H, W: a.W, C: b.W}, nil
}

func (s Shape) transposed() Shape { return Shape{H: s.H, W: s.C, C: s.W} }

func (MatMul) output(in []valueType) (valueType, error) {
	shape, err := matMulShape(in[0].shape, in[1].shape)
	return valueType{shape, realValue}, err
}

func (Transpose) output(in []valueType) (valueType, error) {
	t := in[0]
	t.shape = t.shape.transposed()
	if t.kind == byteValue {
		t.kind = realValue
	}
	return t, nil
}

func (op *MatMulStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	shape, err = matMulShape(in[0].Shape, in[1].Shape)
	return in[0].DType != Uint8 && in[0].DType == in[1].DType && out.DType == Float32, shape, err
}

func (op *TransposeStep) output(in []PlanTensor, out PlanTensor) (types bool, shape Shape, err error) {
	return moves(in[0], out), in[0].Shape.transposed(), nil
}
