package build

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Halves rounds a FLOAT value to a type of 16 bits, of which the result has the numbers: see
// bcnn.Float16Shift.
func (b *Builder) Halves(n *pb.Node, v *Value, typ pb.DataType) Operand {
	try.Check(v.CheckReal())
	to, back := b.eval.Cast(typ), b.eval.Cast(pb.Float)
	if r, ok := b.Pointwise(n, []Operand{{Value: v}}, func(args []*eval.Tensor) *eval.Tensor { return back([]*eval.Tensor{to(args)}) }); ok {
		return r // constants
	}
	v = b.Settle(v)
	if b.held(v, typ) {
		return Operand{Value: v.With(n)}
	}
	function := func(suffix string, name bcnn.FunctionName, v *Value) *Value {
		return b.Emit(n, suffix, bcnn.Function{Name: name}, v.Shape, v)
	}
	sum := func(suffix string, x, y *Value) *Value { return b.Emit(n, suffix, bcnn.Add{}, v.Shape, x, y) }
	shift := bcnn.Float16Shift
	if typ == pb.BFloat16 {
		shift = bcnn.BFloat16Shift
	}
	s := function("/shift", shift, v)
	r := sum("", sum("/shifted", v, s), b.Emit(n, "/back", bcnn.Affine{Scale: []float32{-1}}, v.Shape, s))
	if typ == pb.Float16 && !b.bounded(v) {
		r = b.Emit(n, "/range", bcnn.Mul{}, v.Shape, r, function("/range", bcnn.Float16Range, r))
	}
	return Operand{Value: r}
}

// bounded reports whether no number of a value is infinite as a FLOAT16.
func (b *Builder) bounded(v *Value) bool {
	of := try.Value(b.values.Of(v.Layer))
	const most = 65504
	return of.Min >= -most && of.Max <= most
}

// held reports whether a type of 16 bits holds all numbers of a value: multiples of a power of two,
// so few of it that none is rounded.
func (b *Builder) held(v *Value, typ pb.DataType) bool {
	of := try.Value(b.values.Of(v.Layer))
	if !of.Only || of.Often.Unit == 0 || of.Often.Rounded || !b.bounded(v) {
		return false
	}
	most, least := 0x1p11, 0x1p-24
	if typ == pb.BFloat16 {
		most, least = 0x1p8, 0x1p-133
	}
	unit := of.Often.Unit
	fraction, _ := math.Frexp(unit)
	return fraction == 0.5 && unit >= least && of.Often.Most <= most*unit
}
