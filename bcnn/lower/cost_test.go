package lower_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// bytesPerByte is what checking and lowering may allocate for each byte of a
// network's size, the constants of the plan apart.
const bytesPerByte = 96

// expense is what one network takes.
type expense struct {
	size      int64 // of the network
	constants int64 // of the plan, in bytes
	units     int64 // of the budget, for all else
	bytes     int64 // allocated, the constants apart
}

// measure checks, lowers and summarises a network and counts the work.
func measure(t testing.TB, n *bcnn.Network, opts lower.Options) (e expense, p *plan.Plan, err error) {
	t.Helper()
	if e.size, err = lower.Size(n); err != nil {
		return e, nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, e.constants, e.units, err = lower.Counted(t.Context(), n, opts)
	if err == nil {
		plan.Summarize(n, p)
	}
	runtime.ReadMemStats(&after)
	e.bytes = int64(after.TotalAlloc-before.TotalAlloc) - e.constants
	return e, p, err
}

// requireLinear holds the expense of a network against its size.
func requireLinear(t testing.TB, e expense) {
	t.Helper()
	require.LessOrEqual(t, e.units, bcnn.WorkPerByte*e.size, "units for a size of %d", e.size)
	const once = 1 << 20 // for what does not depend on the network
	require.LessOrEqual(t, e.bytes, bytesPerByte*e.size+once, "bytes for a size of %d", e.size)
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

// costly are kinds of networks that ask for work of all kinds; n is about their
// number of layers, channels or taps.
var costly = []struct {
	name  string
	small int // the least of three sizes
	build func(n int) *bcnn.Network
}{
	{"ReLU after ReLU", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		for range n {
			plus(net, bcnn.ReLU{})
		}
		return net
	}},
	{"ReLU and scale in turn", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 3)
		for i := range n {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Scale: []float32{-1}, Bias: []float32{float32(i)}})
		}
		return net
	}},
	{"scales in a row", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		for range n {
			plus(net, bcnn.Affine{Scale: []float32{1}, Bias: []float32{1}})
		}
		return net
	}},
	{"scales of images", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 3, 3, 3)
		for range n {
			plus(net, bcnn.Affine{Scale: []float32{1}, Bias: []float32{0}})
		}
		plus(net, point(3, 2))
		return net
	}},
	{"sign of a long chain", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		for range n {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Scale: []float32{1}, Bias: []float32{-1}})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"scales per channel", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 64)
		for range n {
			plus(net, bcnn.Affine{Bias: constant(64, 1)})
			plus(net, bcnn.ReLU{})
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
	{"one scale per channel among many for all", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 256)
		for i := range n {
			if i == n/2 {
				plus(net, bcnn.Affine{Bias: constant(256, 1)})
			}
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Bias: []float32{-1}})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"signs in a row", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 8)
		for range n {
			plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		}
		return net
	}},
	{"signs and ReLUs in turn", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 8)
		for range n {
			plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(net, bcnn.ReLU{})
		}
		return net
	}},
	{"batch norm and sign in turn", 50, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 64)
		for range n {
			plus(net, bcnn.BatchNorm{Gamma: constant(64, -1), Beta: constant(64, -2), Mean: constant(64, 1), Var: constant(64, 1)})
			plus(net, bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		}
		return net
	}},
	{"pools in a row", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 2, 2, 1)
		for range n {
			plus(net, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}})
		}
		return net
	}},
	{"pools and ReLUs in turn", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 2, 2, 1)
		for range n {
			plus(net, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}})
			plus(net, bcnn.ReLU{})
		}
		return net
	}},
	{"flattened again and again", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 3, 3, 2)
		for range n {
			plus(net, bcnn.Flatten{})
			plus(net, bcnn.ReLU{})
		}
		plus(net, bcnn.Affine{Bias: constant(18, 1)})
		return net
	}},
	{"dense layers in a row", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 64)
		for range n {
			plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(net, bcnn.Dense{Out: 64, Weights: bcnn.Weights{Bits: make([]uint64, 64)}, Bias: constant(64, 0)})
		}
		return net
	}},
	{"convolutions with borders", 20, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 4, 4, 8)
		w := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
		for range n {
			plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(net, kernel(8, 8, w))
		}
		return net
	}},
	{"sums of a layer with itself", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 2)
		last := bcnn.NetworkInput
		for range n {
			last = plus(net, bcnn.Add{}, last, last)
		}
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
	{"many readers of the input, all alive", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 2)
		var tensors []int
		for range n {
			tensors = append(tensors, plus(net, bcnn.Affine{Bias: []float32{1}}, bcnn.NetworkInput))
			tensors[len(tensors)-1] = plus(net, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}})
			tensors[len(tensors)-1] = plus(net, point(2, 2))
		}
		last := tensors[0]
		for _, t := range tensors[1:] {
			last = plus(net, bcnn.Add{}, t, last)
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
	{"channels behind a hundred ReLUs", 4000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		for range 100 {
			plus(net, bcnn.ReLU{})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"channels behind ReLUs and scales", 4000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		for range 50 {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Bias: []float32{-1}})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"channels with a bias behind scales", 1000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		for range 10 {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Bias: []float32{-1}})
		}
		plus(net, bcnn.Affine{Bias: constant(n, 1)})
		for range 10 {
			plus(net, bcnn.ReLU{})
			plus(net, bcnn.Affine{Bias: []float32{-1}})
		}
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"channels with a bias", 1000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		for i := range 5 {
			plus(net, bcnn.Affine{Bias: constant(n, float32(i))})
			plus(net, bcnn.ReLU{})
		}
		return net
	}},
	{"channels of bytes", 600, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 1, 1, n)
		plus(net, bcnn.Affine{Scale: []float32{2}})
		plus(net, bcnn.Affine{Scale: []float32{0.5}, Bias: make([]float32, n)})
		plus(net, bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: make([]uint64, bits.Words(n))}})
		return net
	}},
	{"channels of bytes, all alike", 600, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 1, 1, n)
		for range 300 {
			plus(net, bcnn.Affine{Scale: []float32{-1}})
		}
		plus(net, bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: make([]uint64, bits.Words(n))}})
		return net
	}},
	{"channels, each its own group", 1000, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		plus(net, bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: n, Groups: n, Weights: bcnn.Weights{Bits: make([]uint64, n)}})
		plus(net, bcnn.Affine{Scale: []float32{-1}})
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return net
	}},
	{"binary weights of real values", 64 * 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, n)
		plus(net, bcnn.Dense{Out: 10, Weights: bcnn.Weights{Bits: make([]uint64, 10*bits.Words(n))}})
		plus(net, bcnn.Affine{Scale: []float32{-1}})
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
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
	{"borders of a long window", 600, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, n, 1, 1)
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		plus(net, kernel(1, 1, bcnn.Window{KH: n, KW: 1, Pad: bcnn.Padding{Top: n / 2, Bottom: n / 2}}))
		return net
	}},
	{"wide padding of a small kernel", 300, func(n int) *bcnn.Network {
		net := fed(bcnn.Float32, 1, 1, 1)
		plus(net, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		plus(net, kernel(1, 1, bcnn.Window{KH: 1, KW: 1, Pad: bcnn.Padding{Top: n, Bottom: n}}))
		return net
	}},
	{"functions of a byte in a row", 200, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 1, 1, 1)
		for range n {
			plus(net, bcnn.Function{Name: bcnn.Tanh})
		}
		return net
	}},
	{"functions of a byte that are summed", 100, func(n int) *bcnn.Network {
		net := fed(bcnn.Uint8, 1, 1, 1)
		sum := plus(net, bcnn.Function{Name: bcnn.Tanh})
		for range n {
			one := plus(net, bcnn.Function{Name: bcnn.Erf}, bcnn.NetworkInput)
			sum = plus(net, bcnn.Add{}, sum, one)
		}
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
		e, plan, err := measure(t, c.net, lower.Options{})
		require.NoError(t, err, c.name)
		for _, s := range plan.Steps {
			e.units -= int64(len(s.Name)) + 64*int64(1+len(s.Layers))
		}
		require.Equal(t, c.want, e.units-e.size, c.name)
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

// Ten times the network takes ten times the work.
func TestCostIsLinear(t *testing.T) {
	factors := []int{1, 10, 100}
	if testing.Short() {
		factors = factors[:2]
	}
	for _, c := range costly {
		t.Run(c.name, func(t *testing.T) {
			for _, unfused := range []bool{false, true} {
				var last expense
				for _, factor := range factors {
					n := factor * c.small
					net := c.build(n)
					e, plan, err := measure(t, net, lower.Options{Unfused: unfused})
					require.NoError(t, err)
					requireLinear(t, e)
					require.LessOrEqual(t, e.constants, lower.ConstantsPerByte*e.size)
					per := func(n int64) float64 { return float64(n) / float64(e.size) }
					t.Logf("unfused %v, %d: %d steps, size %d; for each byte of it %.2f of constants, %.2f units, %.2f bytes",
						unfused, n, len(plan.Steps), e.size, per(e.constants), per(e.units), per(e.bytes))
					if last.size > 0 {
						require.LessOrEqual(t, e.size, 12*last.size)
						require.LessOrEqual(t, e.constants, 12*last.constants, "constants of %d after %d", n, n/10)
						require.LessOrEqual(t, e.units, 12*last.units, "units of %d after %d", n, n/10)
						// Slices that grow take a power of their growth more.
						require.LessOrEqual(t, e.bytes, 15*max(last.bytes, 1<<12), "bytes of %d after %d", n, n/10)
					}
					last = e
				}
			}
		})
	}
}

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
