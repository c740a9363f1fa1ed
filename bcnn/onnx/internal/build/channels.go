package build

import (
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Broadcast returns a constant that is broadcast to a value as one number, or as one per channel in
// memory. The value becomes a vector if it must. Broadcast fails if the constant varies over
// pixels.
func (b *Builder) Broadcast(v *Value, t *eval.Tensor, n *pb.Node) (*Value, []float32) {
	v, list, ok := b.PerChannel(v, t, n)
	if !ok {
		try.Failf("a constant that varies over the height or width of an image is not supported: want one number, or one per channel")
	}
	return v, list
}

// PerChannel is Broadcast, but ok is false if the constant varies over pixels.
func (b *Builder) PerChannel(v *Value, t *eval.Tensor, n *pb.Node) (_ *Value, list []float32, ok bool) {
	list, ok = b.perChannel(v, t)
	if !ok && len(v.View) == 2 && v.Shape.Pixels() > 1 {
		v = b.Flatten(b.Settle(v), n)
		list, ok = b.perChannel(v, t)
	}
	return v, list, ok
}

// VariesOverPixels reports whether a constant varies over the height or width of a value.
func (b *Builder) VariesOverPixels(v *Value, t *eval.Tensor) bool {
	if t.Len() < 2 || len(v.View) == 2 {
		return false
	}
	_, ok := b.perChannel(v, t)
	return !ok
}

// uniform reports whether all numbers of a constant are the same. It fails if one is not finite, or
// no float32.
func (b *Builder) uniform(t *eval.Tensor) bool {
	if t.Len() == 0 {
		try.Failf("a constant is empty")
	}
	uniform := true
	try.Check(b.budget.Loop(t.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := t.At(i)
			if x-x != 0 {
				try.Failf("the constant holds %v, want finite numbers", x)
			} else if t.F64 != nil && float64(float32(x)) != x {
				try.Failf("the DOUBLE constant %v has no exact float32 value: export the model in float32", x)
			}
			uniform = uniform && x == t.At(0)
		}
	}))
	return uniform
}

// perChannel is PerChannel without making a vector of the value.
func (b *Builder) perChannel(v *Value, t *eval.Tensor) (list []float32, ok bool) {
	uniform := b.uniform(t)
	lead := len(v.View) - len(t.Dims)
	if lead < 0 {
		try.Failf("a constant of shape %v has more dimensions than the computed tensor, which has %d", t.Dims, len(v.View))
	}
	// Exporters expand constants to all dimensions. Those along which a constant does not vary
	// become 1 again.
	across, expanded := make([]bool, len(t.Dims)), false
	for i, n := range t.Dims {
		d := v.View[lead+i]
		across[i] = n != 1 && (view.IsBatch(d) || !view.Only(d, view.C))
		expanded = expanded || across[i]
	}
	given := t.Dims
	if expanded {
		t = b.eval.Collapse(t, across)
	}
	varies := make([][]view.Atom, len(t.Dims)) // atoms of the dimensions along which t varies
	for i, n := range given {
		batch := view.IsBatch(v.View[lead+i])
		switch {
		case batch && t.Dims[i] != 1 || !batch && n != 1 && v.Size(lead+i) != n:
			try.Failf("a constant of shape %v does not fit the shape of the computed tensor", given)
		case t.Dims[i] != 1:
			varies[i] = v.View[lead+i]
		}
	}
	if uniform {
		return []float32{float32(t.At(0))}, true
	}
	for _, d := range varies {
		if !view.Only(d, view.C) {
			return nil, false
		}
	}
	list = b.NewFloats(v.Shape.C)
	for _, d := range varies { // which every channel looks at
		try.Check(b.budget.Charge(int64(len(d)) * int64(v.Shape.C)))
	}
	try.Check(b.budget.Loop(len(list), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			at := 0
			for i, d := range varies {
				at = at*t.Dims[i] + view.Position(d, c)
			}
			list[c] = float32(t.At(at))
		}
	}))
	return list, true
}
