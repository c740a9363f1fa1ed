package lower_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// Long chains of functions of one value, uniform and per channel, in front of
// whatever ends a chain, mean what they meant. All values stay small multiples
// of 1/2, so that nothing is rounded.
func TestLowerKeepsTheMeaningOfLongChains(t *testing.T) {
	for seed := range uint64(200) {
		b := &builder{rng: rand.New(rand.NewPCG(seed, 31))}
		in := bcnn.Input{Shape: bcnn.Shape{H: 2 + b.intn(2), W: 2, C: 1 + b.intn(4)}, DType: bcnn.Uint8}
		b.net, b.last = &bcnn.Network{Name: "chain", Inputs: []bcnn.Input{in}}, in.Shape
		switch b.intn(4) {
		case 0:
			b.add(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 3, Weights: b.weights(3, b.last.C, false)})
		case 1:
			b.add(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 2, Weights: b.weights(2*4, b.last.C, true)})
		case 2:
			b.add(bcnn.Add{}, bcnn.NetworkInput, bcnn.NetworkInput)
		}
		perChannel := 1 + b.intn(12) // how rare functions per channel are
		for range b.intn(40) {
			switch b.intn(14) {
			case 0, 1, 2, 3:
				b.add(bcnn.ReLU{})
			case 12:
				b.add(bcnn.PReLU{Slope: b.vector([]int{1, b.last.C}[b.intn(2)], 1, 0, 0, []float32{1, -1}[b.intn(2)])})
			case 13:
				low := float32(b.intn(9)-6) / 2
				b.add(bcnn.Clip{Min: low, Max: low + float32(b.intn(12))/2})
			case 4:
				if b.intn(8) == 0 {
					b.add(b.pool())
				} else if b.intn(4) == 0 {
					b.add(bcnn.Flatten{})
				}
			default:
				n := 1
				if b.intn(perChannel) == 0 {
					n = b.last.C
				}
				b.add(bcnn.Affine{Scale: b.vector(n, 1, 1, -1), Bias: b.vector(1+(n-1)*b.intn(2), 0, 0.5, -0.5, 1, -2)})
			}
		}
		switch b.intn(4) {
		case 0:
			b.add(b.zero())
		case 1:
			b.add(b.pool())
			b.add(b.zero())
		case 2:
			b.add(bcnn.Dense{Out: 3, Weights: b.weights(3, b.last.Values(), false), Bias: b.vector(3, 0, 1)})
			b.add(b.zero())
		}
		if len(b.net.Layers) == 0 {
			continue
		}
		requireLowersRight(t, b.net, seed)
	}
}

// A sign behind a function that never falls is a threshold on what stands before it.
func TestLowerFoldsFunctions(t *testing.T) {
	names := bcnn.FunctionNames()
	for seed := range uint64(100) {
		b := &builder{rng: rand.New(rand.NewPCG(seed, 9))}
		in := bcnn.Input{Shape: bcnn.Shape{H: 4, W: 4, C: 3}, DType: bcnn.Uint8}
		b.net, b.last = &bcnn.Network{Name: "function", Inputs: []bcnn.Input{in}}, in.Shape
		b.add(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5, Weights: b.weights(5, 3, seed%2 == 0)})
		b.add(bcnn.Affine{Scale: b.vector(5, 0.25, -0.25, 0.125), Bias: b.vector(1, 0, -1)})
		name := names[seed%uint64(len(names))]
		if name == bcnn.InverseRoot || name == bcnn.RootFactor { // NaN of negative numbers
			b.add(bcnn.PReLU{Slope: []float32{-1}})
		}
		b.add(bcnn.Function{Name: name})
		if seed%3 == 0 {
			b.add(b.pool())
		}
		b.add(bcnn.Affine{Scale: b.vector(5, 1, -3), Bias: b.vector(5, 0, 0.5, -0.9999)})
		b.add(b.zero())
		b.add(bcnn.Dense{Out: 3, Weights: b.weights(3, b.last.Values(), true)})
		requireLowersRight(t, b.net, seed)
	}
}

func chainOf(channels int, ops ...bcnn.Op) *bcnn.Network {
	n := fed(bcnn.Float32, 1, 1, channels)
	for i, op := range ops {
		n.Append(fmt.Sprint(i), op)
	}
	return n
}

func repeat(n int, ops ...bcnn.Op) []bcnn.Op {
	var all []bcnn.Op
	for i := range n {
		all = append(all, ops[i%len(ops)])
	}
	return all
}

// Chains of any length are one threshold, unless they differ from channel to
// channel and are longer than MaxMixed.
func TestWhichChainsAreCut(t *testing.T) {
	scale := bcnn.Affine{Scale: []float32{2}}
	bias := bcnn.Affine{Bias: []float32{1, 2}}
	norm := bcnn.BatchNorm{Gamma: []float32{1, 2}, Beta: []float32{1, 2}, Mean: []float32{1, 2}, Var: []float32{1, 2}}
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	all := func(lists ...[]bcnn.Op) []bcnn.Op {
		var ops []bcnn.Op
		for _, l := range lists {
			ops = append(ops, l...)
		}
		return ops
	}
	one := func(op bcnn.Op) []bcnn.Op { return []bcnn.Op{op} }
	const most = lower.MaxMixed
	// What is cut becomes a step for two functions, an affine one and an activation, and one for the
	// sign.
	const cut = 1 + most/2
	for name, c := range map[string]struct {
		ops   []bcnn.Op
		steps int
	}{
		"uniform":                  {all(repeat(100, bcnn.ReLU{}, scale), one(sign)), 1},
		"most per channel":         {all(repeat(most, bias, bcnn.ReLU{}), one(sign)), 1},
		"one more per channel":     {all(repeat(most, bias, bcnn.ReLU{}), one(bias), one(sign)), cut},
		"most with a bias":         {all(repeat(most-1, scale, bcnn.ReLU{}), one(bias), one(sign)), 1},
		"most and a bias":          {all(repeat(most, scale, bcnn.ReLU{}), one(bias), one(sign)), cut},
		"most and a scale":         {all(one(bias), repeat(most-1, bcnn.ReLU{}, scale), one(scale), one(sign)), cut},
		"most with a batch norm":   {all(one(norm), repeat(most-1, bcnn.ReLU{}, scale), one(sign)), 1},
		"batch norm, most others":  {all(one(norm), repeat(most, bcnn.ReLU{}, scale), one(sign)), cut},
		"most, then uniform":       {all(one(bias), repeat(most-1, bcnn.ReLU{}, scale), repeat(500, scale), one(sign)), cut},
		"8 uniform, a pool":        {all(repeat(8, bcnn.ReLU{}, scale), one(bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}), one(sign)), 2},
		"only ReLUs, then a bias":  {all(repeat(99, bcnn.ReLU{}), one(bias), one(sign)), 1},
		"ReLUs among functions":    {all(repeat(most-2, bias, bcnn.ReLU{}), repeat(99, bcnn.ReLU{}), one(bias), one(sign)), 1},
		"float of many ReLUs":      {repeat(99, bcnn.ReLU{}), 1},
		"float of scales":          {repeat(99, scale), 1},
		"float of scales and ReLU": {repeat(100, scale, bcnn.ReLU{}), 50},
		"clips and leaky ReLUs":    {all(repeat(99, bcnn.Clip{Min: -1, Max: 1}, bcnn.PReLU{Slope: []float32{0.5}}), one(sign)), 1},
		"slopes per channel":       {all(repeat(most, bcnn.PReLU{Slope: []float32{0.5, 0}}), one(sign)), 1},
		"more slopes per channel":  {all(repeat(most+1, bcnn.PReLU{Slope: []float32{0.5, 1}}), one(sign)), most + 1},
		"a falling slope":          {all(one(scale), one(bcnn.PReLU{Slope: []float32{0.5, -0.5}}), one(bias), one(sign)), 2},
		"clip, pool, sign":         {all(one(bcnn.Clip{Min: -1, Max: 1}), one(bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}), one(sign)), 2},
	} {
		p, err := lower.Network(t.Context(), chainOf(2, c.ops...), lower.Options{})
		require.NoError(t, err, name)
		if c.ops[len(c.ops)-1] == bcnn.Op(sign) {
			c.steps++ // makes float32 of the bits, which are the output
		}
		require.Equal(t, c.steps, len(p.Steps), "%s: %v", name, kinds(p))
		// Every layer is in one step.
		seen := map[int]bool{}
		for _, s := range p.Steps {
			var names []string
			for _, l := range s.Layers {
				require.False(t, seen[l], "%s: layer %d twice", name, l)
				seen[l] = true
				names = append(names, fmt.Sprint(l))
			}
			if len(names) == 0 {
				names = []string{s.Kind()}
			}
			require.Equal(t, strings.Join(names, "+"), s.Name)
			if s.Out == p.Outputs[0] {
				require.Equal(t, "output", p.Tensors[s.Out].Name)
			} else {
				require.Equal(t, s.Name, p.Tensors[s.Out].Name)
			}
		}
		require.Len(t, seen, len(c.ops), name)
	}
}

// A step names the layers that it does, and no other does.
func TestEveryLayerIsInOneStep(t *testing.T) {
	for seed := range uint64(300) {
		n := randomNetwork(seed)
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		in := map[int]int{}
		for _, s := range p.Steps {
			for _, l := range s.Layers {
				in[l]++
			}
		}
		for i, l := range n.Layers {
			switch op := l.Op.(type) {
			case bcnn.Flatten, bcnn.Softmax: // no step, or one without a layer
				require.LessOrEqual(t, in[i], 1)
			case bcnn.Sign:
				require.LessOrEqual(t, in[i], 1, "the sign of ±1 is no step")
			default:
				require.Equal(t, 1, in[i], "layer %d (%s) of %s", i, op.Kind(), describe(n))
			}
		}
	}
}
