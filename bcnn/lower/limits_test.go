package lower_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/budget"
)

func TestLimitsHaveDefaults(t *testing.T) {
	l, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, bcnn.Limits{FileBytes: 4 << 30, Layers: 65536, TensorBytes: 4 << 30}, l)
	own := bcnn.Limits{FileBytes: 1, Layers: 2, TensorBytes: 3, ArenaBytes: 4}
	l, err = own.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, own, l)
	for _, l := range []bcnn.Limits{{FileBytes: -1}, {Layers: -1}, {TensorBytes: -1}, {ArenaBytes: -1}} {
		_, err := l.WithDefaults()
		require.ErrorContains(t, err, "negative")
		_, err = lower.Network(t.Context(), small(), lower.Options{Limits: l})
		require.ErrorContains(t, err, "negative")
	}
}

func TestLowerLimitsLayers(t *testing.T) {
	n := small()
	_, err := lower.Network(t.Context(), n, lower.Options{Limits: bcnn.Limits{Layers: 7}})
	require.NoError(t, err)
	_, err = lower.Network(t.Context(), n, lower.Options{Limits: bcnn.Limits{Layers: 6}})
	require.EqualError(t, err, `network "small" has 7 layers, at most 6 are allowed; Limits.Layers allows more`)
}

func TestNoNetwork(t *testing.T) {
	var n *bcnn.Network
	require.ErrorContains(t, n.Check(), "no network")
	_, err := n.Shapes()
	require.ErrorContains(t, err, "no network")
	_, err = lower.Network(t.Context(), nil, lower.Options{})
	require.ErrorContains(t, err, "no network")
}

// What a plan holds is counted: a limit of just its size passes, one byte less
// does not, and no smaller limit either.
func TestLowerLimitsTensorBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func() *bcnn.Network
		need  int64
		want  string // with one byte less
	}{
		{"the input", func() *bcnn.Network {
			n := fed(bcnn.Float32, 5, 4, 3)
			plus(n, bcnn.MaxPool{Window: bcnn.Window{KH: 5, KW: 4}})
			return n
		}, 240, `network "cost": an input of 240 bytes`},
		{"a tensor", func() *bcnn.Network {
			n := fed(bcnn.Uint8, 5, 4, 3)
			plus(n, bcnn.ReLU{})
			return n
		}, 240, `network "cost": a tensor of 240 bytes`},
		{"parameters", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 10)
			plus(n, bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: make([]float32, 20)}, Bias: []float32{1, 2}})
			return n
		}, 80, `layer "layer0000000": parameters of 80 bytes`},
		{"a bias that is not there", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			plus(n, bcnn.Dense{Out: 20, Weights: bcnn.Weights{F32: make([]float32, 20)}})
			return n
		}, 80, "80 bytes"},
		{"scales and shifts", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 10)
			plus(n, bcnn.Affine{Scale: []float32{2}})
			plus(n, bcnn.ReLU{})
			plus(n, bcnn.Affine{Bias: constant(10, 1)})
			return n
		}, 2 * 80, "the plan's constants take more than 159 bytes"},
		{"scales and shifts of a convolution", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, point(1, 20))
			plus(n, bcnn.Affine{Scale: []float32{2}})
			return n
		}, 4 + 16 + 160, "constants take more than"},
		{"thresholds and flips", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 65)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, bcnn.Affine{Scale: []float32{-1}})
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			return n
		}, (65*4 + 2*2*8) + 65*12, "constants take more than"},
		{"weights that are unpacked", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 65)
			plus(n, bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: make([]uint64, 3*2)}})
			return n
		}, 3*65*4 + 3*4, "constants take more than"},
		{"weights that are split", func() *bcnn.Network {
			n := fed(bcnn.Float32, 8, 8, 1)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: make([]uint64, 3)}})
			return n
		}, (4 + 16) + 3*64*8, "constants take more than"},
		{"weights that need not be split", func() *bcnn.Network {
			n := fed(bcnn.Float32, 2, 1, 64)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, bcnn.Dense{Out: 40, Weights: bcnn.Weights{Bits: make([]uint64, 40*2)}})
			return n
		}, 640, "parameters of 640 bytes"},
		{"weights that are split into two words", func() *bcnn.Network {
			n := fed(bcnn.Float32, 3, 1, 65)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, bcnn.Dense{Out: 20, Weights: bcnn.Weights{Bits: make([]uint64, 20*4)}})
			return n
		}, (65*4 + 2*2*8) + 20*3*2*8, "constants take more than"},
		{"weights that are complemented", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 64)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, point(64, 10))
			plus(n, bcnn.Affine{Scale: []float32{-1}})
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			return n
		}, (64*4 + 16) + (40 + 16) + 80, "constants take more than"},
		{"real weights that are negated", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			plus(n, bcnn.Dense{Out: 10, Weights: bcnn.Weights{F32: make([]float32, 10)}, Bias: make([]float32, 10)})
			plus(n, bcnn.Affine{Scale: []float32{-1}})
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			return n
		}, (40 + 16) + 80, "constants take more than"},
		{"borders", func() *bcnn.Network {
			n := fed(bcnn.Float32, 2, 2, 1)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, kernel(1, 2, bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 4, Left: 4, Bottom: 4, Right: 4}}))
			return n
		}, (4 + 16) + 8*(6+6) + 4*7*7*2, "constants take more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lower := func(limit int64) error {
				_, err := lower.Network(t.Context(), c.build(), lower.Options{Limits: bcnn.Limits{TensorBytes: limit}})
				return err
			}
			require.NoError(t, lower(c.need))
			for limit := c.need - 1; limit > 0; limit-- {
				require.ErrorContains(t, lower(limit), "Limits.TensorBytes allows more", "with %d bytes", limit)
			}
			require.ErrorContains(t, lower(c.need-1), c.want)
		})
	}
}

// Few bytes of layers on millions of channels make large plans.
func TestPlansOfHostileSize(t *testing.T) {
	n := fed(bcnn.Float32, 1, 1, 1<<22)
	for i := range 300 {
		plus(n, bcnn.ReLU{})
		plus(n, bcnn.Affine{Scale: []float32{-1}, Bias: []float32{float32(i)}})
	}
	_, err := lower.Network(t.Context(), n, lower.Options{Limits: bcnn.Limits{TensorBytes: 1 << 26}})
	require.ErrorContains(t, err, "the plan's constants take more than 67108864 bytes; Limits.TensorBytes")
	_, err = lower.Network(t.Context(), n, lower.Options{})
	size, sizeErr := lower.Size(n)
	require.NoError(t, sizeErr)
	require.ErrorContains(t, err, fmt.Sprintf("the plan's constants take more than %d bytes, far more than the size", 64<<20+96*size))
	require.NotErrorIs(t, err, budget.ErrExceeded)

	// On few channels all of it is possible.
	n.Inputs[0].Shape.C = 8192
	_, err = lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
}

// The constants that the size explains are bounded exactly.
func TestPlansOfExplainedSize(t *testing.T) {
	build := func(nameLength int) *bcnn.Network {
		n := fed(bcnn.Float32, 1, 1, 1)
		for range 20 { // each takes 8 bytes for a channel
			plus(n, bcnn.ReLU{})
			plus(n, bcnn.Affine{Bias: []float32{-1}})
		}
		n.Name = strings.Repeat("x", nameLength)
		return n
	}
	const always, perByte = 64 << 20, 96
	n := build(10)
	size, err := lower.Size(n)
	require.NoError(t, err)
	size -= 3 // the sides of the input
	size -= size % 2
	// 20·8·C = always + perByte·(size + 1 + 1 + C)
	c := (always + perByte*(size+2)) / (20*8 - perByte)
	require.Zero(t, (always+perByte*(size+2))%(20*8-perByte))
	n = build(10 + int(size-(mustSize(t, n)-3)))
	n.Inputs[0].Shape.C = int(c)
	_, err = lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	n.Name = n.Name[1:]
	_, err = lower.Network(t.Context(), n, lower.Options{})
	require.ErrorContains(t, err, "more than the size of the network explains")
}

func mustSize(t *testing.T, n *bcnn.Network) int64 {
	size, err := lower.Size(n)
	require.NoError(t, err)
	return size
}

// looks is a context that ends when it is looked at for the last time.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left <= 0 {
		return context.Canceled
	}
	return nil
}

// Whatever takes long looks at the context.
func TestLowerEndsWithItsContext(t *testing.T) {
	ended := &looks{t.Context(), 1}
	_, err := lower.Network(ended, small(), lower.Options{})
	require.ErrorIs(t, err, context.Canceled)

	const much = 1 << 18
	for _, c := range []struct {
		name  string
		build func() *bcnn.Network
	}{
		{"checking", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, much)
			plus(n, bcnn.Affine{Bias: make([]float32, much)})
			return n
		}},
		{"scales", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, much)
			for range 8 {
				plus(n, bcnn.Affine{Bias: make([]float32, much)})
			}
			return n
		}},
		{"thresholds", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, much/8)
			plus(n, bcnn.Affine{Bias: make([]float32, much/8)})
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			return n
		}},
		{"the zero of bytes", func() *bcnn.Network {
			n := fed(bcnn.Uint8, 1, 1, much)
			for range 8 {
				plus(n, bcnn.Affine{Bias: make([]float32, much)})
			}
			plus(n, bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: make([]uint64, bits.Words(much))}})
			return n
		}},
		{"borders", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			plus(n, kernel(1, 8, bcnn.Window{KH: 512, KW: 512, Pad: bcnn.Padding{Top: 511, Bottom: 511, Left: 511, Right: 511}}))
			return n
		}},
		{"names", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			for i := range much / 64 {
				n.Append(fmt.Sprintf("%0256d", i), bcnn.ReLU{})
			}
			return n
		}},
		{"buffers", func() *bcnn.Network {
			n := fed(bcnn.Float32, 1, 1, 1)
			var open []int
			for range 3000 {
				open = append(open, plus(n, bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}, bcnn.NetworkInput))
			}
			last := open[0]
			for _, o := range open[1:] {
				last = plus(n, bcnn.Add{}, last, o)
			}
			return n
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.build()
			all := &looks{t.Context(), math.MaxInt}
			_, err := lower.Network(all, n, lower.Options{})
			require.NoError(t, err)
			count := math.MaxInt - all.left
			require.Greater(t, count, 1)
			for left := 1; left <= count; left++ {
				plan, err := lower.Network(&looks{t.Context(), left}, n, lower.Options{})
				require.ErrorIs(t, err, context.Canceled, "look %d of %d", left, count)
				require.Nil(t, plan)
			}
		})
	}
}

// small is a well-formed network.
func small() *bcnn.Network {
	n := &bcnn.Network{
		Name:   "small",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 6, W: 6, C: 3}, DType: bcnn.Uint8}},
		Labels: []string{"a", "b"},
	}
	pad := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{1, 2, 3}})
	n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: pad}, Out: 2, PadValue: -1,
		Weights: bcnn.Weights{Bits: make([]uint64, 18)}})
	n.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	n.Append("bn", bcnn.BatchNorm{Gamma: []float32{1, 1}, Beta: []float32{0, 0}, Mean: []float32{0, 0}, Var: []float32{1, 1}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	n.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: make([]uint64, 2)}})
	n.Append("softmax", bcnn.Softmax{})
	return n
}
