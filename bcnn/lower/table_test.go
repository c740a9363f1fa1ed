package lower_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
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
func requireSameUnfused(t *testing.T, n *bcnn.Network) *plan.Plan {
	t.Helper()
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	require.NoError(t, plan.Check())
	unfused, err := lower.Network(t.Context(), n, lower.Options{Unfused: true})
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
			[]string{"[0] table a+b+f+q → 16×16×1 uint8", "[1] conv c → 16×16×2 float32"}},
		"levels of many channels": {draw(bcnn.Uint8, 16, 16, 32).add("a", scale).add("b", shift).add("f", gelu).add("q", four).add("c", point(32, 2)),
			[]string{"[0] table a+b+f+q → 32×16×32 bits", "[1] conv c → 16×16×2 float32 scaled"}},
		"a sign that changes twice": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("b", shift).add("f", gelu).add("d", bcnn.Affine{Bias: []float32{0.1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] table a+b+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"a sign that changes once": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("b", shift).add("f", gelu).add("d", bcnn.Affine{Bias: []float32{-0.1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] binarize a+b+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"a sign that never changes": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("d", bcnn.Affine{Scale: []float32{-1}, Bias: []float32{-1}}).add("s", sign).add("c", point(2, 2)),
			[]string{"[0] binarize a+f+d+s → 16×16×2 bits", "[1] conv c → 16×16×2 float32"}},
		"what others read stays": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("p", bcnn.AvgPool{Window: bcnn.Window{KH: 16, KW: 16}}).
			add("b", shift, 1).add("g", gelu).add("*", bcnn.Mul{}, 4, 2),
			[]string{"[0] table a+f → 16×16×2 float32", "[1] avgpool p → 1×1×2 float32", "[0] table b+g → 16×16×2 float32", "[3 2] mul * → 16×16×2 float32"}},
		"sums and products": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("b", shift).add("+", bcnn.Add{}, 1, 2).add("*", bcnn.Mul{}, 3, 0).add("m", bcnn.Min{}, 4, 1),
			[]string{"[0] table a+f+b+++*+m → 16×16×2 float32"}},
		"a product with fewer values": {draw(bcnn.Uint8, 1, 1, 2).add("a", scale).add("f", gelu).add("c", bcnn.Channels{Index: []int32{0}}).add("*", bcnn.Mul{}, 1, 2),
			[]string{"[0] table a+f → 1×1×2 float32", "[1] channels c → 1×1×1 float32 [0]", "[1 2] mul * → 1×1×2 float32"}},
		"between other steps": {draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("p", bcnn.AvgPool{Window: bcnn.Window{KH: 16, KW: 16}}, input).
			add("b", shift, 1).add("*", bcnn.Mul{}, 3, 2),
			[]string{"[0] affine affine → 16×16×2 float32", "[1] avgpool p → 1×1×2 float32", "[0] table a+f+b → 16×16×2 float32", "[3 2] mul * → 16×16×2 float32"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, lines(requireSameUnfused(t, c.net.Network)))
		})
	}
	// An output in the middle stays, too.
	net := draw(bcnn.Uint8, 16, 16, 2).add("a", scale).add("f", gelu).add("b", shift).add("g", gelu)
	net.Outputs = []int{1, 3}
	plan := requireSameUnfused(t, net.Network)
	require.Equal(t, []string{"[0] table a+f → 16×16×2 float32", "[0] table b+g → 16×16×2 float32"}, lines(plan))
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

// Zeros of either sign are different numbers for channels: what they make differs in the
// sign of a zero.
func TestTablesOfZeros(t *testing.T) {
	minus := float32(math.Copysign(0, -1))
	for name, ops := range map[string][]bcnn.Op{
		"shifts": {bcnn.Affine{Scale: []float32{-1, -1}, Bias: []float32{0, minus}}},
		"scales": {bcnn.Affine{Scale: []float32{minus, 0}, Bias: []float32{minus, minus}}},
		"slopes": {bcnn.Affine{Bias: []float32{-7}}, bcnn.PReLU{Slope: []float32{0, minus}}},
	} {
		t.Run(name, func(t *testing.T) {
			net := draw(bcnn.Uint8, 16, 16, 2)
			for i, op := range ops {
				net.add([]string{"a", "b"}[i], op)
			}
			net.add("f", bcnn.Function{Name: bcnn.Tanh})
			p := requireSameUnfused(t, net.Network)
			require.Len(t, p.Steps, 1)
			require.Len(t, p.Steps[0].Op.(*plan.Table).Values, 2*plan.TableSize)
		})
	}
}

// levels256 are 256 levels from low on, one for each of so many parts of 1.
func levels256(low int, parts float32) bcnn.Quantize {
	q := bcnn.Quantize{Low: low, Levels: 256}
	for k := range 255 {
		q.Thresholds = append(q.Thresholds, (float32(low+k)+0.5)/parts)
	}
	return q
}

// int8Point is a convolution of 1×1 with weights of 8 bits.
func int8Point(in, out int) bcnn.Conv2D {
	w := bcnn.Weights{Int8: make([]int8, in*out)}
	for i := range w.Int8 {
		w.Int8[i] = int8(37*i%201 - 100)
	}
	return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out, Weights: w}
}

// What becomes of functions of levels.
func TestTablesOfLevels(t *testing.T) {
	scale, each := bcnn.Affine{Scale: []float32{1.0 / 50}}, bcnn.Affine{Scale: slices.Repeat([]float32{0.01, 0.02}, 10)}
	tanh := bcnn.Function{Name: bcnn.Tanh}
	s8, u8, conv := levels256(-128, 50), levels256(0, 100), int8Point(20, 20)
	pool := bcnn.AvgPool{Window: bcnn.Window{KH: 16, KW: 16}}
	start := func() drawing { // of which the first two steps are as here
		return draw(bcnn.Uint8, 16, 16, 20).add("c", int8Point(20, 20)).add("n", bcnn.Affine{Scale: []float32{1e-4}}).add("q", s8)
	}
	const first, bytes, floats = "[0] conv c+n → 16×16×20 float32 scaled", "[1] quantize q → 16×16×20 uint8", "[1] quantize q → 16×16×20 float32"
	for name, c := range map[string]struct {
		net  drawing
		want []string
	}{
		"to bytes": {start().add("s", scale).add("f", tanh).add("r", u8).add("d", conv),
			[]string{"[2] table s+f+r → 16×16×20 uint8", "[3] conv d → 16×16×20 float32"}},
		"requantised": {start().add("s", scale).add("r", u8).add("d", conv),
			[]string{"[2] table s+r → 16×16×20 uint8", "[3] conv d → 16×16×20 float32"}},
		"a gate by its own levels": {start().add("s", scale).add("f", tanh).add("g", u8).add("h", scale).add("*", bcnn.Mul{}, 3, 6).add("r", u8).add("d", conv),
			[]string{"[2] table s+f+g+h+*+r → 16×16×20 uint8", "[3] conv d → 16×16×20 float32"}},
		"what a layer reads begins anew": {start().add("s", scale).add("f", tanh).add("r", u8).add("d", conv).add("h", scale, 5).add("g", tanh).add("+", bcnn.Add{}, 6, 8),
			[]string{"[2] table s+f+r → 16×16×20 uint8", "[3] conv d → 16×16×20 float32", "[3] table h+g → 16×16×20 float32", "[4 5] add + → 16×16×20 float32"}},
		"floats": {start().add("s", scale).add("f", tanh).add("p", pool),
			[]string{"[2] table s+f → 16×16×20 float32", "[3] avgpool p → 1×1×20 float32"}},
		"two results": {start().add("s", scale).add("f", tanh).add("p", pool).add("r", u8, 4).add("d", conv).add("*", bcnn.Mul{}, 7, 5),
			[]string{"[2] table s+f → 16×16×20 float32", "[3] avgpool p → 1×1×20 float32", "[2] table r → 16×16×20 uint8", "[5] conv d → 16×16×20 float32", "[6 4] mul * → 16×16×20 float32"}},
		"only a scale": {start().add("s", scale).add("p", pool),
			[]string{floats, "[2] affine s → 16×16×20 float32 scaled", "[3] avgpool p → 1×1×20 float32"}},
		"levels as they are": {start().add("p", pool).add("f", tanh, 2).add("*", bcnn.Mul{}, 4, 3),
			[]string{floats, "[2] avgpool p → 1×1×20 float32", "[2] affine f → 16×16×20 float32 tanh", "[4 3] mul * → 16×16×20 float32"}},
		"many channels": {start().add("s", each).add("f", tanh).add("p", pool),
			[]string{floats, "[2] affine s+f → 16×16×20 float32 scaled tanh", "[3] avgpool p → 1×1×20 float32"}},
		"many channels of bytes": {start().add("d", conv).add("s", each, 2).add("f", tanh).add("+", bcnn.Add{}, 3, 5),
			[]string{bytes, "[2] affine affine → 16×16×20 float32 scaled", "[2] conv d → 16×16×20 float32", "[3] affine s+f → 16×16×20 float32 scaled tanh", "[4 5] add + → 16×16×20 float32"}},
		"signs of levels": {start().add("s", scale).add("z", bcnn.Sign{Zero: bcnn.ZeroIsPlus}).add("d", point(20, 2)),
			[]string{floats, "[2] sign s+z → 16×16×20 bits", "[3] conv d → 16×16×2 float32"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if !strings.HasPrefix(want[0], "[1]") {
				want = append([]string{bytes}, want...)
			}
			require.Equal(t, append([]string{first}, want...), lines(requireSameUnfused(t, c.net.Network)))
		})
	}
}

// Any function of levels, of sums and products of others of them too, gives what its steps
// give one by one.
func TestRandomTablesOfLevels(t *testing.T) {
	kinds := make(map[string]int)
	for seed := range uint64(165) {
		rng := rand.New(rand.NewPCG(seed, 43))
		c := []int{1, 3, 20}[rng.IntN(3)]
		net := draw(bcnn.Uint8, 16, 16, c).add("c", int8Point(c, c)).add("n", bcnn.Affine{Scale: []float32{1e-4}})
		last := func() int { return len(net.Layers) - 1 }
		levels := func() bcnn.Op {
			if rng.IntN(3) == 0 {
				return bcnn.Quantize{Low: -1, Levels: 4, Thresholds: []float32{-0.5, 0, 1}}
			}
			return levels256(-rng.IntN(256), float32(20+rng.IntN(100)))
		}
		before := last() + 1
		net.add("q", levels())
		for range 2 + rng.IntN(9) {
			of := before + rng.IntN(last()+1-before)
			if rng.IntN(3) > 0 {
				of = last()
			}
			switch rng.IntN(9) {
			case 0, 1:
				n := []int{1, 1, c}[rng.IntN(3)]
				a := bcnn.Affine{Scale: make([]float32, n), Bias: make([]float32, n)}
				for i := range n {
					a.Scale[i], a.Bias[i] = float32(rng.NormFloat64()*0.1), float32(rng.NormFloat64())
				}
				net.add("a", a, of)
			case 2:
				names := bcnn.FunctionNames()
				net.add("f", bcnn.Function{Name: names[rng.IntN(len(names))]}, of)
			case 3:
				net.add("r", bcnn.ReLU{}, of)
			case 4, 5:
				net.add("q", levels(), of)
			case 6:
				net.add("+", bcnn.Add{}, of, before+rng.IntN(last()+1-before))
			case 7:
				net.add("*", []bcnn.Op{bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}}[rng.IntN(4)], of, before+rng.IntN(last()+1-before))
			case 8: // what is no function of one value
				net.add("d", int8Point(c, c), of)
			}
		}
		net.add("d", int8Point(c, c))
		read := make([]bool, len(net.Layers)) // what nothing reads is an output
		for _, l := range net.Layers {
			for _, in := range l.Inputs {
				if in >= 0 {
					read[in] = rng.IntN(20) > 0 // and some that are read
				}
			}
		}
		for i := range read {
			if !read[i] {
				net.Outputs = append(net.Outputs, i)
			}
		}
		for i := range net.Layers {
			net.Layers[i].Name += string(rune('a' + i))
		}
		plan := requireSameUnfused(t, net.Network)
		implemented := make([]bool, len(net.Layers))
		for _, s := range plan.Steps {
			kind := s.Kind()
			if kind == "table" {
				kind += " to " + plan.Tensors[s.Out].DType.String()
			}
			kinds[kind]++
			for _, l := range s.Layers {
				require.False(t, implemented[l] && kind != "conv", "layer %s", net.Layers[l].Name)
				implemented[l] = true
			}
		}
	}
	require.Greater(t, kinds["table to uint8"], 20, "%v", kinds)
	require.Greater(t, kinds["table to float32"], 100, "%v", kinds)
}
