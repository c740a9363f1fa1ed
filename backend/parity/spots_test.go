package parity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// spot is the place of a value in the output of a step: image, row, column, channel and,
// of levels, plane. N, H, W and C count them.
type spot struct {
	n, y, x, c, plane int
	N, H, W, C        int
}

// nowhere is a spot that nothing has been written to: memory holds 0.
var nowhere = spot{n: -1}

// planesOf returns the number of planes that an operation makes.
func planesOf(op plan.Op) int {
	planes := 1
	switch op := op.(type) {
	case *plan.Conv:
		planes = op.OutPlanes
	case *plan.MaxPool:
		planes = op.Planes
	case *plan.Sign:
		planes = op.Planes
	case *plan.Table:
		planes = op.Planes
	}
	return max(planes, 1)
}

// index returns the number of the value in a tensor with planes.
func (s spot) index(planes int) int {
	return (((s.n*s.H+s.y)*planes+s.plane)*s.W+s.x)*s.C + s.c
}

// eachSpot calls f for every value of a tensor with planes.
func eachSpot(t bcnn.Tensor, planes int, f func(s spot)) {
	s := spot{N: t.N, H: t.Shape.H / planes, W: t.Shape.W, C: t.Shape.C}
	for s.n = range s.N {
		for s.y = range s.H {
			for s.plane = range planes {
				for s.x = range s.W {
					for s.c = range s.C {
						f(s)
					}
				}
			}
		}
	}
}

// put copies value k of a tensor to value i of another one of the same type.
func put(to bcnn.Tensor, i int, from bcnn.Tensor, k int) {
	switch to.DType {
	case bcnn.Float32:
		to.F32[i] = from.F32[k]
	case bcnn.Uint8:
		to.U8[i] = from.U8[k]
	default:
		c, of := to.Shape.C, from.Shape.C
		word, bit := &to.Words[i/c*bits.Words(c)+i%c/64], uint64(1)<<(i%c%64)
		if *word &^= bit; bits.At(from.Words[k/of*bits.Words(of):], k%of) > 0 {
			*word |= bit
		}
	}
}

// clone copies a tensor.
func clone(t bcnn.Tensor) bcnn.Tensor {
	c := bcnn.NewTensor(t.DType, t.N, t.Shape)
	copy(c.U8, t.U8)
	copy(c.Words, t.Words)
	copy(c.F32, t.F32)
	return c
}

// ranFunc changes what a step has made of its inputs.
type ranFunc = func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error

// kindOf is a kind of step on inputs of one type: "conv of bits". A kind alone is that on
// inputs of every type.
func kindOf(p *plan.Plan, step int) (kind, of string) {
	s := p.Steps[step]
	return s.Kind(), s.Kind() + " of " + p.Tensors[s.In[0]].DType.String()
}

// in limits a fault to steps of a kind.
func in(kind string, f ranFunc) fake {
	return fake{ran: func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		if alone, of := kindOf(x.plan, step); alone != kind && of != kind {
			return nil
		}
		return f(x, step, in, out)
	}}
}

// untapped limits a fault to runs without Tap: what steps that are executed together get
// wrong shows in outputs alone.
func untapped(f fake) fake {
	return fake{ran: func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		if x.config.Stepwise {
			return nil
		}
		return f.ran(x, step, in, out)
	}}
}

// misplaced is the fault that values are those of other spots of the same output: from
// returns the spot, or the one that it is given.
func misplaced(from func(s spot) spot) ranFunc {
	return func(x *fakeEngine, step int, _ []bcnn.Tensor, out bcnn.Tensor) error {
		planes, was := planesOf(x.plan.Steps[step].Op), clone(out)
		zero := bcnn.NewTensor(out.DType, 1, bcnn.Shape{H: 1, W: 1, C: 1})
		eachSpot(out, planes, func(s spot) {
			switch f := from(s); f {
			case s:
			case nowhere:
				put(out, s.index(planes), zero, 0)
			default:
				put(out, s.index(planes), was, f.index(planes))
			}
		})
		return nil
	}
}

// partly is the fault that some values are those of a changed operation. edit returns
// false where it does not apply.
func partly[Op any](edit func(op *Op, in bcnn.Shape) bool, where func(s spot) bool) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		s := x.plan.Steps[step]
		op, ok := any(s.Op).(*Op)
		if !ok {
			return nil
		}
		c := *op
		if !edit(&c, in[0].Shape) {
			return nil
		}
		other, err := x.single(s)(any(&c).(plan.Op), in[0])
		if err == nil {
			take(out, other, planesOf(s.Op), where)
		}
		return err
	}
}

// take takes values from another tensor of the same shape.
func take(out, other bcnn.Tensor, planes int, where func(s spot) bool) {
	eachSpot(out, planes, func(s spot) {
		if where(s) {
			put(out, s.index(planes), other, s.index(planes))
		}
	})
}

// ofInput is the fault that some values are made of another input.
func ofInput(change func(op plan.Op, in bcnn.Tensor) bool, where func(s spot) bool) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		s, changed := x.plan.Steps[step], clone(in[0])
		if !change(s.Op, changed) {
			return nil
		}
		other, err := x.single(s)(s.Op, changed)
		if err == nil {
			take(out, other, planesOf(s.Op), where)
		}
		return err
	}
}

func everywhere(spot) bool { return true }

// TestHonestHooks: hooks that change nothing, but make everything anew, pass: so it is the faults
// that the suite finds.
func TestHonestHooks(t *testing.T) {
	testenv.Long(t)
	hooks := []ranFunc{
		// Another tap of the same pixel.
		misread(func(t tap) tap { t.ky, t.kx = -1, -1; return t }),
		misplaced(func(s spot) spot { return s }),
		partly(func(*plan.Conv, bcnn.Shape) bool { return true }, everywhere),
		misbordered(correction),
		func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
			if len(in) > 1 {
				return nil
			}
			return ofInput(func(plan.Op, bcnn.Tensor) bool { return true }, everywhere)(x, step, in, out)
		},
	}
	honest := fake{ran: func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		for _, hook := range hooks {
			if err := hook(x, step, in, out); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, c := range Core() {
		if !isNetwork(c) {
			require.Nil(t, c.check(t.Context(), honest.device(), backend.Options{}, func(int) {}), c.Name)
		}
	}
}
