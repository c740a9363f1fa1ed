package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// TestRandomConvolutions draws windows, strides, dilations, padding, groups, pools and weights together.
func TestRandomConvolutions(t *testing.T) {
	each := 15
	if testing.Short() {
		each = 4
	}
	forEach(t, func(t *testing.T, opts backend.Options) {
		rng := rand.New(rand.NewPCG(77, 1))
		for n := 0; n < each; {
			if p := randomConvolution(rng, uint64(n)); p != nil {
				requireReference(t, p, opts)
				n++
			}
		}
	})
}

// randomConvolution returns nil where the window does not fit.
func randomConvolution(rng *rand.Rand, seed uint64) *planner {
	draw := func(n int) int { return rng.IntN(n) }
	w := bcnn.Window{
		KH: 1 + draw(5), KW: 1 + draw(5), StrideH: 1 + draw(3), StrideW: 1 + draw(3), DilationH: 1 + draw(3), DilationW: 1 + draw(3),
		Pad: bcnn.Padding{Top: draw(5), Left: draw(5), Bottom: draw(5), Right: draw(5)},
	}
	in := bcnn.Shape{H: 1 + draw(20), W: 1 + draw(40), C: 1 + draw(200)}
	if in.H+w.Pad.Top+w.Pad.Bottom <= (w.KH-1)*w.DilationH || in.W+w.Pad.Left+w.Pad.Right <= (w.KW-1)*w.DilationW {
		return nil
	}
	o := convOptions{window: w, out: 1 + draw(200), float: draw(2) == 0}
	if draw(4) == 0 {
		p := newPlanner(seed, input(bcnn.Uint8, in.H, in.W, in.C))
		o.int8 = []int{0, 127, -1}[draw(3)]
		if draw(3) == 0 {
			o.int8, o.int16 = 0, 32767
		}
		o.float = o.float || o.int8 >= 0
		p.conv(o)
		return p
	}
	if draw(3) == 0 {
		o.groups = 2 + draw(2)
		in.C, o.out = o.groups*64*(1+draw(2)), o.groups*64
	}
	o.padValue = draw(3) - 1
	pool := bcnn.Window{KH: 1 + draw(2), KW: 1 + draw(2)}
	pool.StrideH, pool.StrideW = pool.KH, pool.KW
	if out := w.Output(in, o.out); !o.float && out.H >= pool.KH && out.W >= pool.KW {
		o.pool = &pool
	}
	p := newPlanner(seed, input(bcnn.Float32, in.H, in.W, in.C))
	p.sign()
	p.conv(o)
	return p
}
