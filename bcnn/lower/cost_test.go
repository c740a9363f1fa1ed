package lower_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// asked is a network, and how it is lowered.
type asked struct {
	net  *bcnn.Network
	opts lower.Options
}

// loading is what is judged of lowering.
var loading = costtest.Format[asked]{
	Base: 64 << 20, PerByte: bcnn.WorkPerByte + lower.ConstantsPerByte, Free: 40, Steps: 2.5, Soon: 32 << 20, Kinds: kindsOfCost(),
	Draw: func(code []byte) asked {
		s := script{code: code, room: 1 << 18}
		return asked{s.build(), lower.Options{Unfused: len(code)%2 == 0}}
	},
	Read: func(t testing.TB, ctx context.Context, a asked) (size, used int64, err error) {
		if size, err = lower.Size(a.net); err != nil {
			return size, 0, err
		}
		p, constants, units, err := lower.Counted(ctx, a.net, a.opts)
		if err == nil {
			plan.Summarize(a.net, p)
		}
		require.NotErrorIs(t, err, budget.ErrExceeded)
		require.LessOrEqual(t, units, bcnn.WorkPerByte*size)
		return size, constants + units, err
	},
}

// fed returns a network without layers.
func fed(d bcnn.DType, h, w, c int) *bcnn.Network {
	return &bcnn.Network{Name: "cost", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: h, W: w, C: c}, DType: d}}}
}

// plus adds a layer under a name of its own.
func plus(n *bcnn.Network, op bcnn.Op, inputs ...int) int {
	return n.Append(fmt.Sprintf("layer%07d", len(n.Layers)), op, inputs...)
}

// constant is a vector of n values from seed on, no two alike.
func constant(n int, seed float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = seed + float32(i)/float32(n)
	}
	return v
}

func point(in, out int) bcnn.Conv2D { return kernel(in, out, bcnn.Window{KH: 1, KW: 1}) }

func kernel(in, out int, w bcnn.Window) bcnn.Conv2D {
	return bcnn.Conv2D{Window: w, Out: out, Weights: bcnn.Weights{Bits: make([]uint64, out*w.KH*w.KW*bits.Words(in))}}
}

func kindsOfCost() (all []costtest.Kind[asked]) {
	for _, k := range costly {
		for _, opts := range []lower.Options{{}, {Unfused: true}} {
			all = append(all, costtest.Kind[asked]{
				Name: fmt.Sprintf("%s, unfused %v", k.name, opts.Unfused), N: k.small, Make: func(n int) asked { return asked{k.build(n), opts} },
			})
		}
	}
	return all
}

// costly are kinds of networks that are longer and wider than drawn ones; n is about
// their number of layers, channels or taps.
var costly = []struct {
	name  string
	small int // the least of three sizes
	build func(n int) *bcnn.Network
}{
	{"ReLU and scale in turn", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 3)
		for i := range n {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Scale: []float32{-1}, Bias: []float32{float32(i)}})
		}
		return net
	}},
	{"sign of scales per channel", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 64)
		for range n {
			plus(net, bcnn.Affine{Bias: constant(64, 1)})
			plus(net, bcnn.ReLU{})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"sums with the first layer, with ReLUs", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 2)
		first := plus(net, bcnn.ReLU{})
		last := first
		for range n {
			last = plus(net, bcnn.Add{}, last, first)
			last = plus(net, bcnn.ReLU{}, last)
			last = plus(net, bcnn.ReLU{}, last)
		}
		return net
	}},
	{"many readers of one chain", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 2, 2, 2)
		for range n {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Bias: []float32{-1}})
		}
		from := plus(net, bcnn.Flatten{})
		last := from
		for range n {
			side := plus(net, bcnn.Affine{Bias: constant(8, 1)}, from)
			last = plus(net, bcnn.Add{}, side, last)
		}
		return net
	}},
	{"alive in pairs of different sizes", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		var open []int
		for i := range n {
			open = append(open, plus(net, point(1, 1+i%37), bcnn.NetworkInput))
		}
		last := -1
		for i, t := range open {
			t = plus(net, point(1+i%37, 1), t)
			if last >= 0 {
				t = plus(net, bcnn.Add{}, last, t)
			}
			last = t
		}
		return net
	}},
	{"long names that are joined", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		for i := range n {
			net.Append(fmt.Sprintf("%0256d", i), bcnn.Affine{Bias: []float32{1}})
		}
		return net
	}},
	{"labels", 1000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		plus(net, bcnn.ReLU{})
		net.Labels = strings.Split(strings.Repeat("label,", n-1)+"label", ",")
		return net
	}},
	{"dense weights of single channels", 64 * 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, n/64, 64, 1)
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		plus(net, bcnn.Dense{Out: 10, Weights: bcnn.Weights{Bits: make([]uint64, 10*bits.Words(n))}})
		return net
	}},
	{"borders of a large square kernel", 400, func(n int) *bcnn.Network {
		k := 1
		for k*k < n {
			k++
		}
		net := fed(bcnn.Float32, 2, 2, 1)
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		plus(net, kernel(1, 2, bcnn.Window{KH: k, KW: k, Pad: bcnn.Padding{Top: k - 1, Left: k - 1, Bottom: k - 1, Right: k - 1}}))
		return net
	}},
	{"functions of a byte of their own per channel that are summed", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 1, 1, 16)
		sum := plus(net, bcnn.Function{Name: bcnn.Tanh})
		for i := range n {
			one := plus(net, bcnn.Affine{Scale: constant(16, float32(i))}, bcnn.NetworkInput)
			sum = plus(net, bcnn.Add{}, one, sum)
		}
		return net
	}},
}

// What is counted is what is done: each kind of work by its formula.
func TestWorkIsCounted(t *testing.T) {
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	scale := bcnn.Affine{Scale: []float32{2}}
	layers := func(n *bcnn.Network, ops ...bcnn.Op) *bcnn.Network {
		for _, op := range ops {
			plus(n, op)
		}
		return n
	}
	const search = 36 // evaluations for a threshold
	for _, c := range []struct {
		name string
		net  *bcnn.Network
		want int64 // beyond the size and the names of steps
	}{
		{"the threshold of a chain for all channels", layers(fed(bcnn.Float32, 1, 1, 100), scale, scale, sign), search * 3},
		{"thresholds per channel", layers(fed(bcnn.Float32, 1, 1, 100), scale, bcnn.Affine{Bias: constant(100, 1)}, sign), search * 3 * 100},
		{"a scale for all channels", layers(fed(bcnn.Float32, 1, 1, 100), scale, scale, scale), 3 + 3},
		{"scales per channel", layers(fed(bcnn.Float32, 1, 1, 100), scale, bcnn.Affine{Bias: constant(100, 1)}, scale), 2 * 3 * 100},
		{"the zero of bytes for all channels", layers(fed(bcnn.Uint8, 1, 1, 100), scale, scale, point(100, 1)), 2*2 + 1},
		{"the zero of bytes per channel", layers(fed(bcnn.Uint8, 1, 1, 100), scale, bcnn.Affine{Bias: make([]float32, 100)}, point(100, 1)), 2*2*100 + 1},
		{"the zero of bytes until they differ", layers(fed(bcnn.Uint8, 1, 1, 100), bcnn.Affine{Bias: constant(100, 0)}, point(100, 1)), 2*2 + 100}, // and scales per channel
		{"a border", layers(fed(bcnn.Float32, 6, 5, 70), sign, kernel(70, 3, bcnn.Window{KH: 3, KW: 5, Pad: bcnn.Padding{Top: 1, Left: 1, Right: 2}})),
			search + 3*(3*5*2+2*4)},
	} {
		size, err := lower.Size(c.net)
		require.NoError(t, err, c.name)
		p, _, units, err := lower.Counted(t.Context(), c.net, lower.Options{})
		require.NoError(t, err, c.name)
		for _, s := range p.Steps {
			units -= int64(len(s.Name)) + 64*int64(1+len(s.Layers))
		}
		require.Equal(t, c.want, units-size, c.name)
	}
	// The size: parameters, names, 8 bytes for an input and 64 for a layer, labels,
	// and the largest tensor.
	n := layers(fed(bcnn.Float32, 3, 4, 5), bcnn.Flatten{}, bcnn.Dense{Out: 7, Weights: bcnn.Weights{F32: make([]float32, 7*60)}, Bias: make([]float32, 7)},
		bcnn.BatchNorm{Gamma: constant(7, 1), Beta: constant(7, 1), Mean: constant(7, 1), Var: constant(7, 1)},
		bcnn.Affine{Scale: constant(7, 1), Bias: constant(7, 1)})
	n.Labels = strings.Split("a,bc,d,e,f,g,h", ",")
	size, err := lower.Size(n)
	require.NoError(t, err)
	require.EqualValues(t, len("cost")+4*(64+12+8)+4*(7*60+7)+4*4*7+2*4*7+8+(1+1+60), size)
	n = layers(fed(bcnn.Uint8, 9, 8, 3), bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{1, 2, 3}}, point(3, 2), bcnn.Add{})
	n.Layers[2].Inputs = []int{1, 1}
	size, err = lower.Size(n)
	require.NoError(t, err)
	require.EqualValues(t, len("cost")+3*(64+12+8)+8+4*3+8*2+(9+8+3), size)
}

// TestCost lowers every kind of network.
func TestCost(t *testing.T) { loading.Test(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// Levels that are joined with themselves again and again: each layer is looked at once.
func TestCostOfMovedLevels(t *testing.T) {
	const channels = 32
	net := fed(bcnn.Float32, 1, 1, channels)
	net.Append("q", bcnn.Ternary(), bcnn.NetworkInput)
	for i := range 500 {
		net.Append(fmt.Sprintf("j%d", i), bcnn.Concat{}, len(net.Layers)-1, len(net.Layers)-1)
		net.Append(fmt.Sprintf("m%d", i), bcnn.Channels{Index: make([]int32, channels)}, len(net.Layers)-1)
	}
	net.Append("c", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{Bits: []uint64{1}}}, len(net.Layers)-1)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Equal(t, bcnn.Bits, plan.Tensors[len(plan.Tensors)-2].DType)
}
