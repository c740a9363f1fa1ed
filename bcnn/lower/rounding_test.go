package lower_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// outputOf runs a network, fused and unfused, which must give the same bits.
func outputOf(t *testing.T, n *bcnn.Network, in []float32) []float32 {
	t.Helper()
	var outputs [][]float32
	for _, unfused := range []bool{false, true} {
		plan, err := lower.Network(t.Context(), n, lower.Options{Unfused: unfused})
		require.NoError(t, err)
		x := bcnn.NewTensor(bcnn.Float32, 1, n.Inputs[0].Shape)
		copy(x.F32, in)
		y, err := ref.Run(t.Context(), plan, x, nil)
		require.NoError(t, err)
		outputs = append(outputs, y.F32)
	}
	require.Equal(t, outputs[0], outputs[1], "fused and unfused")
	return outputs[0]
}

// alone is what layers give that stand alone, each rounded to float32.
func alone(ops []bcnn.Op, c int, x float32) float32 {
	for _, op := range ops {
		switch op := op.(type) {
		case bcnn.Affine:
			x = f32.FMA(x, float32(pick(op.Scale, c, 1)), float32(pick(op.Bias, c, 0)))
		case bcnn.Sign:
			if x > 0 || x == 0 && op.Zero == bcnn.ZeroIsPlus {
				x = 1
			} else {
				x = -1
			}
		}
	}
	return x
}

// TestAffineFunctionsOfSigns composes affine functions of ±1, and signs of them: all pairs of
// a few numbers that float32 rounds when they are added.
func TestAffineFunctionsOfSigns(t *testing.T) {
	numbers := []float32{0, 0.1, 0.2, 0.3, 0.7, 1, 1e-9, math.SmallestNonzeroFloat32, 3e7, -0.1, -0.25, -1}
	up, down := bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.Sign{Zero: bcnn.ZeroIsMinus}
	for _, lo := range numbers {
		for _, hi := range numbers {
			scale, shift := float32((float64(hi)-float64(lo))/2), float32((float64(hi)+float64(lo))/2)
			for _, by := range numbers {
				values := bcnn.Affine{Scale: []float32{scale}, Bias: []float32{shift}}
				moved := bcnn.Affine{Bias: []float32{-by}}
				apart := bcnn.Affine{Scale: []float32{1, -1}, Bias: []float32{-by, by}} // a value for each channel
				for _, tail := range [][]bcnn.Op{{moved}, {apart}, {moved, up}, {moved, down}, {apart, up}, {moved, down, values}} {
					ops := append([]bcnn.Op{up, values}, tail...)
					n := fed(bcnn.Float32, 1, 2, 2)
					for _, op := range ops {
						plus(n, op)
					}
					in := []float32{-3, 3, 3, -3}
					got := outputOf(t, n, in)
					for i, x := range in {
						require.Equal(t, alone(ops, i%2, x), got[i], "%v and %v less %v: %v", lo, hi, by, tail)
					}
				}
			}
		}
	}
}

// TestConstantsThatAreTakenAwayAgain adds constants and takes them away: what float32 rounds
// away meanwhile stays away.
func TestConstantsThatAreTakenAwayAgain(t *testing.T) {
	const magic = 1.5 * (1 << 23)
	affine := func(scale, bias float32) bcnn.Affine {
		return bcnn.Affine{Scale: []float32{scale}, Bias: []float32{bias}}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	in := make([]float32, 64)
	for i := range in {
		in[i] = float32(rng.NormFloat64() * 4)
	}
	copy(in, []float32{0, 0.5, 1.5, 2.5, -0.5, 0.3, 1e-9, 1e-30})
	for _, ops := range [][]bcnn.Op{
		{affine(1, magic), affine(1, -magic)},
		{affine(16, magic), affine(1, -magic), affine(1.0/16, 0)},
		{affine(1, magic), affine(1, 3-magic)},
		{affine(1, 1), affine(1, -1)},
		{affine(-1, 5), affine(0.5, -2.5)},
		{affine(1, magic), affine(1, -magic), bcnn.Sign{Zero: bcnn.ZeroIsMinus}},
		{affine(1, 1), affine(1, -1), bcnn.Sign{Zero: bcnn.ZeroIsMinus}},
		{bcnn.Affine{Bias: []float32{magic, 1}}, bcnn.Affine{Bias: []float32{-magic, 2}}},
	} {
		n := fed(bcnn.Float32, 1, 32, 2)
		for _, op := range ops {
			plus(n, op)
		}
		got := outputOf(t, n, in)
		for i, x := range in {
			require.Equal(t, alone(ops, i%2, x), got[i], "%v of %v", ops, x)
		}
	}
}

// TestFactorsOutOfRange multiplies by factors whose product is too small for all bits of a
// float32, or too large for one.
func TestFactorsOutOfRange(t *testing.T) {
	least := float32(math.SmallestNonzeroFloat32)
	for _, factors := range [][]float32{{0.5, least}, {0.5, least, 4}, {1e-20, 3e-20}, {0.5, 0.5, 1e-38, 0.25}, {1e30, 1e30}, {least, 1 << 30}} {
		for _, sign := range []bool{false, true} {
			n := fed(bcnn.Float32, 1, 1, 1)
			var ops []bcnn.Op
			if sign {
				ops = append(ops, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			}
			ops = append(ops, bcnn.Affine{Bias: []float32{1}})
			for _, f := range factors {
				ops = append(ops, bcnn.Affine{Scale: []float32{f}})
			}
			for _, op := range ops {
				plus(n, op)
			}
			for _, x := range []float32{-1, 0, 0.25, 1, 1e10} {
				require.Equal(t, alone(ops, 0, x), outputOf(t, n, []float32{x})[0], "%v of %v, sign %v", factors, x, sign)
			}
		}
	}
}

// A channel whose scale has become tiny does not keep a normalisation from being a part of the
// convolution.
func TestGivenUpChannels(t *testing.T) {
	n := fed(bcnn.Float32, 1, 1, 64)
	plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	plus(n, kernel(64, 2, bcnn.Window{KH: 1, KW: 1}))
	plus(n, bcnn.Affine{Scale: []float32{0.1, 1e-30}})
	plus(n, bcnn.BatchNorm{Gamma: []float32{1, 1e-20}, Beta: []float32{0, 0.3}, Mean: []float32{2, 2}, Var: []float32{1, 1}})
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.Len(t, plan.Steps, 2) // the sign, and all else
	require.InDelta(t, 0.3, outputOf(t, n, make([]float32, 64))[1], 1e-7)
}

// TestSumsOfZeros sums levels that are all 0: the sum is 0, whatever it is scaled by.
func TestSumsOfZeros(t *testing.T) {
	for _, q := range []bcnn.Quantize{
		{Low: 0, Levels: 2, Thresholds: []float32{1}},
		{Low: 0, Levels: 4, Thresholds: []float32{1, 2, 3}},
		{Low: -1, Levels: 3, Thresholds: []float32{-1, 1}},
		{Low: -3, Levels: 8, Thresholds: []float32{-3, -2, -1, 1, 2, 3, 4}},
		{Low: 0, Levels: 40, Thresholds: constant(39, 1)},
	} {
		for _, weights := range []int{1, 2, 3} { // the largest; 1 for ±1
			for _, pad := range []int{0, 1} {
				t.Run(fmt.Sprint(q.Low, q.Levels, weights, pad), func(t *testing.T) {
					const in, out = 7, 5
					rng := rand.New(rand.NewPCG(3, uint64(weights)))
					conv := kernel(in, out, bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}})
					if weights == 1 {
						for i := range conv.Weights.Bits {
							conv.Weights.Bits[i] = rng.Uint64() & (1<<in - 1)
						}
					} else {
						conv.Weights = bcnn.Weights{Int8: make([]int8, out*9*in)}
						for i := range conv.Weights.Int8 {
							conv.Weights.Int8[i] = int8(rng.IntN(2*weights+1) - weights)
						}
					}
					n := fed(bcnn.Float32, 4, 4, in)
					plus(n, q)
					plus(n, conv)
					plus(n, bcnn.Affine{Scale: []float32{0.1, 0.3, 1e-7, -0.7, 3.3}})
					for _, y := range outputOf(t, n, make([]float32, 16*in)) {
						require.Zero(t, y)
					}
				})
			}
		}
	}
}

// TestIntegersAreAddedToSums adds integers to sums of ±1 before they are scaled, as those of
// {0, 1} are made of them.
func TestIntegersAreAddedToSums(t *testing.T) {
	for _, pad := range []int{-1, 0, 1} {
		for _, dense := range []bool{false, true} {
			const in, out = 70, 6
			rng := rand.New(rand.NewPCG(5, 6))
			n := fed(bcnn.Float32, 3, 3, in)
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			conv := kernel(in, out, bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}})
			conv.PadValue = pad
			rows, weights := 9*out, conv.Weights.Bits
			var op bcnn.Op = conv
			if dense {
				d := bcnn.Dense{Out: out, Weights: bcnn.Weights{Bits: make([]uint64, out*10)}}
				op, rows, weights = d, out, d.Weights.Bits
			}
			size := len(weights) / rows
			for i := range weights {
				if weights[i] = rng.Uint64(); i%size == size-1 {
					weights[i] &= 1<<(map[bool]int{false: in, true: 9 * in}[dense]%64) - 1
				}
			}
			plus(n, op)
			ops := []bcnn.Op{bcnn.Affine{Bias: []float32{3, -7, 100, 0, -1, 5}}, bcnn.Affine{Scale: []float32{0.1}}, bcnn.Affine{Bias: []float32{0.2}}}
			for _, op := range ops {
				plus(n, op)
			}
			x := make([]float32, 9*in)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			got := outputOf(t, n, x)
			n.Layers = n.Layers[:2]
			for i, s := range outputOf(t, n, x) {
				want := f32.FMA(s+float32(pick(ops[0].(bcnn.Affine).Bias, i%out, 0)), 0.1, 0.2)
				require.Equal(t, want, got[i])
			}
		}
	}
}

// TestSumsThatAreNotRounded composes what adds constants to sums of bits and takes them away, where
// float32 holds every result.
func TestSumsThatAreNotRounded(t *testing.T) {
	const in, out = 40, 2 // sums of at most 360
	bias := func(v ...float32) bcnn.Affine { return bcnn.Affine{Bias: v} }
	scale := func(v ...float32) bcnn.Affine { return bcnn.Affine{Scale: v} }
	for name, c := range map[string]struct {
		ops   []bcnn.Op
		steps int
	}{
		"halves":                   {[]bcnn.Op{scale(0.5, 0.25), bias(1.5, 2.25), bias(-1.5, -2.25)}, 1},
		"in one channel":           {[]bcnn.Op{bias(0.5, 0.75), bias(-0.5, 0.25)}, 1},
		"scaled":                   {[]bcnn.Op{bias(0.5, 0.75), scale(3, -5), bias(-1.5, 3.75), scale(0.1), bias(7)}, 1},
		"24 bits":                  {[]bcnn.Op{bias(0x1p-15, 0), bias(-0x1p-15, 1)}, 1},
		"25 bits":                  {[]bcnn.Op{bias(0x1p-16, 0), bias(-0x1p-16, 1)}, 2},
		"a large constant":         {[]bcnn.Op{bias(0x1p23+0.5, 0.5), bias(-0x1p23-0.5, 1)}, 2},
		"rounded in front":         {[]bcnn.Op{scale(0.1, 0.3), bias(1.5, 0), bias(-1.5, 1)}, 2},
		"a batch norm":             {[]bcnn.Op{bias(0.5, 0.75), bcnn.BatchNorm{Gamma: []float32{2, 3}, Beta: []float32{1, 2}, Mean: []float32{0.5, 1}, Var: []float32{1, 1}}}, 1},
		"a batch norm that rounds": {[]bcnn.Op{bias(0.5, 0.75), bcnn.BatchNorm{Gamma: []float32{2, 3}, Beta: []float32{1, 2}, Mean: []float32{0.5, 1}, Var: []float32{3, 1}}}, 2},
	} {
		n := fed(bcnn.Float32, 4, 4, in)
		plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		conv := kernel(in, out, bcnn.Window{KH: 3, KW: 3})
		rng := rand.New(rand.NewPCG(9, 9))
		for i := range conv.Weights.Bits {
			conv.Weights.Bits[i] = rng.Uint64() & (1<<in - 1)
		}
		plus(n, conv)
		for _, op := range c.ops {
			plus(n, op)
		}
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err, name)
		require.Equal(t, 1+c.steps, len(p.Steps), "%s: %v", name, kinds(p))
		for range 20 {
			x := make([]float32, 16*in)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			outputOf(t, n, x)
		}
	}
}

// TestChainsOfSums draws functions behind sums: they are the same fused and unfused.
func TestChainsOfSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const in, out = 40, 3
	list := func(choices ...float32) []float32 {
		v := make([]float32, []int{1, out}[rng.IntN(2)])
		for i := range v {
			v[i] = choices[rng.IntN(len(choices))]
		}
		return v
	}
	for range 2000 {
		n := fed(bcnn.Float32, 4, 4, in)
		if rng.IntN(3) == 0 {
			plus(n, bcnn.Quantize{Low: int(rng.IntN(2)) * -2, Levels: 4, Thresholds: []float32{-0.5, 0, 0.5}})
		} else {
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		}
		conv := kernel(in, out, bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}})
		for i := range conv.Weights.Bits {
			conv.Weights.Bits[i] = rng.Uint64() & (1<<in - 1)
		}
		plus(n, conv)
		for range 1 + rng.IntN(6) {
			switch rng.IntN(12) {
			case 0:
				plus(n, bcnn.Clip{Min: -3, Max: 200})
			case 1:
				plus(n, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}})
			case 2:
				plus(n, bcnn.Affine{Scale: list(0.1, -3, 1e-3), Bias: list(0, 0.3, 7)})
			case 3:
				plus(n, bcnn.Affine{Bias: list(0, 1.5*(1<<23), -1.5*(1<<23), 1<<24)})
			case 4, 5, 6:
				plus(n, bcnn.Affine{Scale: []float32{[]float32{0.5, 2, 0.25, 1 << 10}[rng.IntN(4)]}})
			default:
				plus(n, bcnn.Affine{Bias: list(-2, 3, 0, 0.5, -0.5, 0.25, -0.25)})
			}
			if s, err := n.Shapes(); err != nil || s[len(s)-1].H < 2 {
				break
			}
		}
		x := make([]float32, 16*in)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		switch rng.IntN(4) {
		case 0:
			plus(n, bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		case 1: // levels that begin at values, as floats, and as bytes or planes for another layer
			q := bcnn.Quantize{Low: -rng.IntN(3), Levels: []int{3, 4, 16, 256}[rng.IntN(4)]}
			reached := outputOf(t, n, x)
			for range q.Levels - 1 {
				q.Thresholds = append(q.Thresholds, reached[rng.IntN(len(reached))])
			}
			slices.Sort(q.Thresholds)
			plus(n, q)
			if rng.IntN(2) == 0 {
				plus(n, int8Point(out, 2))
			}
		}
		outputOf(t, n, x)
	}
}
