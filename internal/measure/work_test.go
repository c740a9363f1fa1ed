package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/cpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// planesPlan is a sign of three values of 5×5×64 numbers, then a convolution of 3×3 of its two
// planes, padded around.
func planesPlan(t *testing.T) (*bcnn.Network, *plan.Plan) {
	net := &bcnn.Network{Name: "planes", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 5, W: 5, C: 64}}}}
	net.Append("sign", bcnn.Ternary())
	net.Append("conv", bcnn.Conv2D{
		Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}},
		Out:    64, Weights: bcnn.Weights{Bits: make([]uint64, 64*9*bits.Words(64))},
	})
	p, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Len(t, p.Steps, 2)
	require.Equal(t, []int{1}, planeSteps(p))
	return net, p
}

// Only steps on bits compare with the rates.
func TestWorkOf(t *testing.T) {
	net, err := zoo.New("binarynet", Seed)
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.True(t, workOf(plan, 0, 1, nil).none()) // reads bytes
	// 32×32×128 bits in, 16×16×128 bits out, 3×3 kernels.
	require.Equal(t, work{
		products: 3 * 32 * 32 * 128 * 128 * 9, read: 16 * (3*32*32 + 128*9), written: 16 * 3 * 16 * 16,
	}, workOf(plan, 1, 3, nil))
}

// Rows of a lower plane without a bit, padded rows among them, are no work, and outputs that
// pooling drops are none.
func TestProductsOf(t *testing.T) {
	_, p := planesPlan(t)
	row := int64(5 * 64 * 64 * 3) // of a tap of a window, along a row of outputs
	upper := 5 * 3 * row
	for _, c := range []struct {
		filled []int // rows of the lower plane
		taps   int64 // that read them
	}{
		{nil, 0},
		{[]int{0}, 2},
		{[]int{2}, 3},
		{[]int{0, 1, 2, 3, 4}, 13},
	} {
		filled := make([]bool, 10)
		for _, y := range c.filled {
			filled[2*y] = true
		}
		require.Equal(t, upper+c.taps*row, workOf(p, 1, 1, filled).products, c.filled)
		for y := range 5 { // which changes nothing
			filled[2*y+1] = true
		}
		require.Equal(t, upper+c.taps*row, workOf(p, 1, 1, filled).products, c.filled)
		require.Equal(t, 2*(upper+c.taps*row), workOf(p, 1, 2, append(filled, filled...)).products, c.filled)
		require.LessOrEqual(t, upper+c.taps*row, p.Products(1))
	}

	conv := &plan.Conv{
		Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, Out: 8, Groups: 1,
		Pool: &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2},
	}
	in := bcnn.Shape{H: 7, W: 9, C: 4} // 5×7 outputs, of which 4×6 are pooled
	require.Equal(t, int64(4*6*8*9*4), productsOf(conv, in, bcnn.Shape{H: 2, W: 3, C: 8}, 1, nil))
}

// Which rows have a bit is found on the images that are timed.
func TestFilledRows(t *testing.T) {
	net, p := planesPlan(t)
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	for _, c := range []struct{ zeros, share float64 }{{0, 0}, {0.5, 1}} {
		opts := Options{Options: backend.Options{MaxBatch: 2, Threads: 1}, Runs: 2, Zeros: c.zeros}
		filled, err := filledRows(t.Context(), dev, p, opts)
		require.NoError(t, err)
		require.Len(t, filled, 1)
		require.Len(t, filled[1], 2*10)
		require.Equal(t, c.share, lowerShare(filled[1], 2))

		result, err := Model(t.Context(), dev, net, p, opts, func(int, int) {})
		require.NoError(t, err)
		require.Equal(t, 2, result.Steps[1].Planes)
		require.Equal(t, plan.Precision(2), result.Steps[1].Precision)
		require.Equal(t, c.share, *result.Steps[1].PlaneRows)
		require.Nil(t, result.Steps[0].PlaneRows)
		require.Equal(t, p.MACs(1), result.MACs, "two products for one count once")
		require.Equal(t, c.zeros, result.Zeros)
		require.LessOrEqual(t, result.Steps[1].Fraction, 1.0)
	}
}
