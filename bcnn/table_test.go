package bcnn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// allBytes has every byte in every channel.
func allBytes(s bcnn.Shape) bcnn.Tensor {
	x := bcnn.NewTensor(bcnn.Uint8, 1, s)
	for i := range x.U8 {
		x.U8[i] = uint8(i/s.C + i%s.C)
	}
	return x
}

// requireSameUnfused lowers a network on bytes fused and not, and demands the same bits.
func requireSameUnfused(t *testing.T, n *bcnn.Network) *bcnn.Plan {
	t.Helper()
	plan, err := bcnn.Lower(t.Context(), n, bcnn.LowerOptions{})
	require.NoError(t, err)
	require.NoError(t, plan.Check())
	unfused, err := bcnn.Lower(t.Context(), n, bcnn.LowerOptions{Unfused: true})
	require.NoError(t, err)
	x := []bcnn.Tensor{allBytes(n.Inputs[0].Shape)}
	got, err := ref.RunAll(t.Context(), plan, x, nil)
	require.NoError(t, err)
	want, err := ref.RunAll(t.Context(), unfused, x, nil)
	require.NoError(t, err)
	for o := range want {
		for i, v := range want[o].F32 {
			require.Equal(t, math.Float32bits(v), math.Float32bits(got[o].F32[i]), "output %d, value %d: %v and %v", o, i, v, got[o].F32[i])
		}
	}
	return plan
}

// What becomes of functions of bytes.
func TestTables(t *testing.T) {
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	scale, shift := bcnn.Affine{Scale: []float32{0.05}}, bcnn.Affine{Bias: []float32{-4}}
	each := func(n int) bcnn.Affine {
		return bcnn.Affine{Scale: constant(n, 0.05), Bias: append(constant(n-1, -4), -3)}
	}
	gelu := bcnn.Function{Name: bcnn.GELU}
	floor := bcnn.Quantize{Levels: 13, Thresholds: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	four := bcnn.Quantize{Low: -1, Levels: 4, Thresholds: []float32{-0.1, 0, 3}}
	const input = bcnn.NetworkInput
	for name, c := range map[string]struct {
		net  drawing
		want []string
	}{
		"a scale": {draw(bcnn.Uint8, 16, 16, 3).add("a", scale), []string{"[0] affine a → 16×16×3 float32 scaled"}},
		"scales, which are as fast": {draw(bcnn.Uint8, 16, 16, 3).add("a", scale).add("r", bcnn.ReLU{}).add("b", shift),
			[]string{"[0] affine a+r → 16×16×3 float32 scaled relu", "[1] affine b → 16×16×3 float32 scaled"}},
		"a magnitude and a sign": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("b", shift).add("m", bcnn.PReLU{Slope: []float32{-1}}).add("c", shift).add("s", sign).add("d", point(2, 2)),
			[]string{"[0] affine a+b+m → 16×16×2 float32 scaled prelu", "[1] sign c+s → 16×16×2 bits", "[2] conv d → 16×16×2 float32"}},
		"a function": {draw(bcnn.Uint8, 16, 16, 3).add("a", scale).add("f", bcnn.Function{Name: bcnn.Tanh}),
			[]string{"[0] table a+f → 16×16×3 float32"}},
		"functions": {draw(bcnn.Uint8, 16, 16, 3).add("a", each(3)).add("f", gelu).add("b", shift).add("g", gelu).add("r", bcnn.ReLU{}),
			[]string{"[0] table a+f+b+g+r → 16×16×3 float32"}},
		"of a vector": {draw(bcnn.Uint8, 16, 1, 784).add("a", scale).add("f", gelu).add("b", shift).add("q", floor).add("g", gelu),
			[]string{"[0] table a+f+b+q+g → 16×1×784 float32"}},
		"of a vector, for each channel": {draw(bcnn.Uint8, 16, 1, 784).add("a", scale).add("f", gelu).add("b", each(784)).add("q", floor),
			[]string{"[0] table a+f → 16×1×784 float32", "[1] affine b → 16×1×784 float32 scaled", "[2] quantize q → 16×1×784 float32"}},
		"floor": {draw(bcnn.Uint8, 16, 16, 1).add("a", scale).add("q", floor).add("b", shift),
			[]string{"[0] table a+q+b → 16×16×1 float32"}},
		"levels that a layer reads": {draw(bcnn.Uint8, 16, 16, 1).add("a", scale).add("b", shift).add("f", gelu).add("q", four).add("c", point(1, 2)),
			[]string{"[0] table a+b+f+q → 32×16×1 bits", "[1] conv c → 16×16×2 float32 scaled"}},
		"a sign that changes twice": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("b", shift).add("f", gelu).add("d", bcnn.Affine{Bias: []float32{0.1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] table a+b+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"a sign that changes once": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("b", shift).add("f", gelu).add("d", bcnn.Affine{Bias: []float32{-0.1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] binarize a+b+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"a sign that never changes": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("d", bcnn.Affine{Scale: []float32{-1}, Bias: []float32{-1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] binarize a+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"what others read stays": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("b", shift).add("g", gelu).add("+", bcnn.Add{}, 1, 3),
			[]string{"[0] table a+f → 16×16×2 float32", "[1] affine b+g → 16×16×2 float32 scaled gelu", "[1 2] add + → 16×16×2 float32"}},
		"between other steps": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("p", bcnn.AvgPool{Window: bcnn.Window{KH: 16, KW: 16}}, input).
			add("b", shift, 1).add("*", bcnn.Mul{}, 3, 2),
			[]string{"[0] table a+f+b → 16×16×2 float32", "[0] affine affine → 16×16×2 float32", "[2] avgpool p → 1×1×2 float32", "[1 3] mul * → 16×16×2 float32"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, lines(requireSameUnfused(t, c.net.Network)))
		})
	}
	// An output in the middle stays, too.
	net := draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("b", shift).add("g", gelu)
	net.Outputs = []int{1, 3}
	plan := requireSameUnfused(t, net.Network)
	require.Equal(t, []string{"[0] table a+f → 16×16×2 float32", "[1] affine b+g → 16×16×2 float32 scaled gelu"}, lines(plan))
	require.Equal(t, []int{1, 2}, plan.Outputs)
}

// Any chain of functions of a byte gives what its steps give one by one.
func TestRandomTables(t *testing.T) {
	kinds := make(map[string]int)
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 41))
		c := 1 + rng.IntN(3)
		net := draw(bcnn.Uint8, 16, 16, c)
		values := func(n int, scale float64) []float32 {
			list := make([]float32, n)
			for i := range list {
				list[i] = float32(rng.NormFloat64() * scale)
			}
			return list
		}
		for range 1 + rng.IntN(6) {
			n := []int{1, c}[rng.IntN(2)]
			switch rng.IntN(6) {
			case 0, 1:
				net.add("a", bcnn.Affine{Scale: values(n, 0.2), Bias: values(n, 2)})
			case 2:
				names := bcnn.FunctionNames()
				net.add("f", bcnn.Function{Name: names[rng.IntN(len(names))]})
			case 3:
				net.add("p", bcnn.PReLU{Slope: values(n, 1)})
			case 4:
				net.add("q", bcnn.Quantize{Low: rng.IntN(5) - 2, Levels: 3, Thresholds: []float32{-0.5, 0.5}})
			case 5:
				net.add("c", bcnn.Clip{Min: -2, Max: 3})
			}
		}
		switch rng.IntN(3) {
		case 0:
			net.add("s", bcnn.Sign{Zero: bcnn.ZeroRule(1 + rng.IntN(2))}).add("d", point(c, 2))
		case 1:
			net.add("q", bcnn.Quantize{Low: -1, Levels: 4, Thresholds: []float32{-0.5, 0, 1}}).add("d", point(c, 2))
		}
		for i := range net.Layers {
			net.Layers[i].Name += string(rune('a' + i))
		}
		for _, s := range requireSameUnfused(t, net.Network).Steps {
			kinds[s.Kind()]++
		}
	}
	require.Greater(t, kinds["table"], 150)
	require.Greater(t, kinds["binarize"], 50)
}
