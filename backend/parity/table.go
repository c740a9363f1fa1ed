package parity

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// Cases returns the table: the cases of every kind of step, some random networks
// (RandomCase makes more), whole small networks, and those of the zoo, reduced.
func Cases() []Case {
	var cases []Case
	for _, s := range convSpecs() {
		cases = append(cases, s.testCase())
	}
	cases = append(cases, binarizeCases()...)
	cases = append(cases, stepCases()...)
	cases = append(cases, graphCases()...)
	cases = append(cases, endCases()...)
	cases = append(cases, layerCases()...)
	cases = append(cases, spatialCases()...)
	cases = append(cases, matMulCases()...)
	cases = append(cases, levelCases()...)
	cases = append(cases, byteCases()...)
	cases = append(cases, changedCases()...)
	cases = append(cases, specialCases()...)
	for seed := range uint64(60) {
		cases = append(cases, RandomCase(seed))
	}
	cases = append(cases, smallNetCases()...)
	cases = append(cases, zooCases()...)
	return unique(cases)
}

// zooCases are the networks of the zoo, reduced.
func zooCases() []Case {
	var cases []Case
	for _, e := range zoo.Networks() {
		cases = append(cases, Case{
			Name: "zoo/" + e.Name, Batch: 2, fill: fillRandom,
			build: func(*builder) *bcnn.Network { return e.Reduced(1) },
		})
	}
	return cases
}

// unique drops repeated cases: the lists overlap where a parameter has its
// default.
func unique(cases []Case) []Case {
	seen := make(map[string]bool)
	return slices.DeleteFunc(cases, func(c Case) bool {
		again := seen[c.Name]
		seen[c.Name] = true
		return again
	})
}

// NetworkCases are cases of one given network, with inputs of several kinds.
// bcnn.LowerUnfused may refuse a network whose sums float32 does not hold; then
// only the plan of lower.Network is checked.
func NetworkCases(net *bcnn.Network) []Case {
	var cases []Case
	for i, f := range []fill{fillRandom, fillRandom, fillTies, fillZeros, fillOnes} {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%s/%d%s", net.Name, i, f), Batch: 3, fill: f, lenient: true,
			build: func(*builder) *bcnn.Network { return net },
		})
	}
	return cases
}

func binarizeCases() []Case {
	var cases []Case
	add := func(h, w, c int, scheme bcnn.Scheme, low, high int, f fill) {
		name := fmt.Sprintf("binarize/%s/%dx%dx%d", scheme, h, w, c)
		if low < high {
			name += fmt.Sprintf("/t%d-%d", low, high-1)
		}
		if f != "" {
			name += "/" + string(f)
		}
		cases = append(cases, Case{Name: name, Batch: 3, fill: f, build: func(b *builder) *bcnn.Network {
			b.input(bcnn.Uint8, h, w, c)
			op := bcnn.Binarize{Scheme: scheme}
			n := map[bcnn.Scheme]int{bcnn.SchemeThreshold: c, bcnn.SchemeGrey: 1}[scheme]
			for range n {
				op.Thresholds = append(op.Thresholds, int32(low+b.rng.IntN(max(high-low, 1))))
			}
			b.add(op)
			return b.net
		}})
	}
	sizes := [][2]int{{1, 1}, {1, 9}, {8, 1}, {2, 2}, {7, 9}, {16, 33}}
	for _, s := range sizes {
		for _, c := range []int{1, 3} {
			add(s[0], s[1], c, bcnn.SchemeThreshold, 100, 156, fillRandom)
			add(s[0], s[1], c, bcnn.SchemeGrey, 100, 156, fillRandom)
			add(s[0], s[1], c, bcnn.SchemeLBP, 0, 0, fillRandom)
			add(s[0], s[1], c, bcnn.SchemeMinMax, 0, 0, fillRandom)
		}
	}
	for _, c := range []int{1, 3} {
		for _, f := range []fill{fillTies, fillZeros, fillOnes} {
			add(5, 6, c, bcnn.SchemeLBP, 0, 0, f)
			add(5, 6, c, bcnn.SchemeMinMax, 0, 0, f)
			for _, t := range [][2]int{{-1, 2}, {126, 131}, {255, 257}} {
				add(5, 6, c, bcnn.SchemeThreshold, t[0], t[1], f)
				add(5, 6, c, bcnn.SchemeGrey, t[0], t[1], f)
			}
		}
	}
	for _, c := range []int{2, 64, 65, 130} {
		add(3, 4, c, bcnn.SchemeThreshold, 0, 256, fillRandom)
		add(3, 4, c, bcnn.SchemeMinMax, 0, 0, fillRandom)
	}
	return cases
}

// source brings values of one of three types to the layer under test.
func (b *builder) source(in string, h, w, c int) {
	switch in {
	case "bytes":
		b.input(bcnn.Uint8, h, w, c)
	case "bits":
		b.input(bcnn.Float32, h, w, c)
		b.binarySource(bcnn.ZeroIsMinus)
	default:
		b.input(bcnn.Float32, h, w, c)
	}
}

// stepCases are networks of one layer other than a convolution.
func stepCases() []Case {
	var cases []Case
	add := func(name, in string, h, w, c int, f fill, layers func(b *builder)) {
		name = fmt.Sprintf("%s/%s/%dx%dx%d", name, in, h, w, c)
		if f != "" {
			name += "/" + string(f)
		}
		cases = append(cases, Case{Name: name, Batch: 3, fill: f, build: func(b *builder) *bcnn.Network {
			b.source(in, h, w, c)
			layers(b)
			return b.net
		}})
	}
	for _, in := range []string{"bits", "float"} {
		for _, p := range pools {
			for _, c := range []int{1, 33, 64, 130} {
				f := fillRandom
				if c == 33 {
					f = fillTies // for floats: which of two zeros wins
				}
				add("maxpool/"+p.name(), in, 7, 8, c, f, func(b *builder) { b.add(bcnn.MaxPool{Window: p.window()}) })
			}
		}
		// Padding of the size of the window, which strides pass over.
		past := bcnn.Window{KH: 2, KW: 2, StrideH: 6, StrideW: 7, Pad: bcnn.Padding{Bottom: 2, Right: 2}}
		add("maxpool/k2x2s6x7pad2", in, 7, 8, 65, fillRandom, func(b *builder) { b.add(bcnn.MaxPool{Window: past}) })
		for _, c := range []int{1, 3, 32, 33, 64, 65, 100} {
			add("flatten", in, 3, 5, c, fillRandom, func(b *builder) {
				b.add(bcnn.Flatten{})
				b.batchNorm(normTies) // per value, so that the vector is really made
			})
		}
	}
	for _, in := range []string{"bytes", "bits", "float"} {
		for _, c := range []int{1, 3, 33, 64, 130} {
			for _, f := range []fill{fillRandom, fillTies} {
				add("affine", in, 3, 4, c, f, func(b *builder) { b.add(bcnn.Affine{Scale: b.floats(c, 2), Bias: b.floats(c, 2)}) })
				add("affine1+relu", in, 3, 4, c, f, func(b *builder) {
					b.add(bcnn.Affine{Scale: b.floats(1, 2), Bias: b.floats(1, 2)})
					b.add(bcnn.ReLU{})
				})
				add("relu", in, 3, 4, c, f, func(b *builder) { b.add(bcnn.ReLU{}) })
				for _, zero := range []bcnn.ZeroRule{bcnn.ZeroIsPlus, bcnn.ZeroIsMinus} {
					suffix := map[bcnn.ZeroRule]string{bcnn.ZeroIsPlus: "ge", bcnn.ZeroIsMinus: "gt"}[zero]
					add("sign-"+suffix, in, 3, 4, c, f, func(b *builder) { b.add(bcnn.Sign{Zero: zero}) })
					for _, n := range []norm{normMixed, normTies, normFalling} {
						add(fmt.Sprintf("norm%s+sign-%s", n, suffix), in, 3, 4, c, f, func(b *builder) {
							b.batchNorm(n)
							b.add(bcnn.Sign{Zero: zero})
						})
					}
				}
			}
		}
	}
	add("affine", "float", 4, 4, 65, fillTiny, func(b *builder) {
		b.add(bcnn.Affine{Scale: b.floats(65, 0.3), Bias: make([]float32, 65)})
	})
	add("sign", "float", 4, 4, 65, fillTiny, func(b *builder) { b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus}) })
	add("relu", "float", 4, 4, 65, fillTiny, func(b *builder) { b.add(bcnn.ReLU{}) })
	add("softmax", "float", 1, 1, 10, fillRandom, func(b *builder) { b.dense(5, true); b.add(bcnn.Softmax{}) })
	return cases
}

// graphCases are networks in which layers have several readers or inputs.
// endCases are networks with several inputs and outputs.
func endCases() []Case {
	var cases []Case
	add := func(name string, build func(b *builder) *bcnn.Network) {
		cases = append(cases, Case{Name: "ends/" + name, Batch: 3, build: build})
	}
	one := func(out int) bcnn.Conv2D { return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out} }
	const second, third = bcnn.NetworkInput - 1, bcnn.NetworkInput - 2
	for _, c := range []int{3, 32, 65} {
		// Sums, what is made of them, bits and the end of a chain, in another order.
		add(fmt.Sprintf("outputs/%d", c), func(b *builder) *bcnn.Network {
			b.input(bcnn.Float32, 5, 4, c)
			sign := b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			b.conv(one(c), false)
			sums := b.last()
			b.batchNorm(normMixed)
			norm := b.last()
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
			pool := b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
			b.dense(7, false)
			b.add(bcnn.Softmax{})
			b.net.Outputs = []int{norm, b.last(), sign, pool, sums}
			return b.net
		})
		// A layer reads inputs of two types, and the first of them comes late.
		add(fmt.Sprintf("inputs/%d", c), func(b *builder) *bcnn.Network {
			b.input(bcnn.Float32, 6, 5, c)
			b.net.Inputs = append(b.net.Inputs, bcnn.Input{Shape: bcnn.Shape{H: 6, W: 5, C: 3}, DType: bcnn.Uint8}, bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: c}, DType: bcnn.Float32})
			b.add(bcnn.Binarize{Scheme: bcnn.SchemeLBP}, second)
			b.conv(one(c), false)
			b.add(bcnn.Add{}, b.last(), bcnn.NetworkInput)
			gated := b.add(bcnn.Mul{}, b.last(), third)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.NetworkInput)
			b.add(bcnn.Concat{}, b.last(), gated)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
			b.dense(5, false)
			return b.net
		})
	}
	// Outputs that are the same tensor, or an input.
	add("the same", func(b *builder) *bcnn.Network {
		b.input(bcnn.Uint8, 4, 3, 2)
		b.net.Inputs = append(b.net.Inputs, bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 6}, DType: bcnn.Float32})
		b.conv(one(6), false)
		sums := b.last()
		flat := b.add(bcnn.Flatten{})
		copied := b.add(bcnn.Flatten{}, second)
		b.dense(4, true)
		logits := b.last()
		b.add(bcnn.Softmax{})
		b.net.Outputs = []int{logits, b.last(), sums, flat, copied}
		return b.net
	})
	add("nothing but ends", func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 2, 2, 5)
		b.net.Inputs = append(b.net.Inputs, bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 5}, DType: bcnn.Float32})
		sum := b.add(bcnn.Add{}, second, bcnn.NetworkInput)
		product := b.add(bcnn.Mul{}, bcnn.NetworkInput, second)
		b.net.Outputs = []int{product, sum}
		return b.net
	})
	return cases
}

func graphCases() []Case {
	var cases []Case
	add := func(name string, build func(b *builder) *bcnn.Network) {
		cases = append(cases, Case{Name: "graph/" + name, Batch: 3, build: build})
	}
	binaryConv := func(out, pv int) bcnn.Conv2D {
		return bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, Out: out, PadValue: pv}
	}
	for _, c := range []int{1, 32, 65} {
		for _, relu := range []bool{false, true} {
			add(fmt.Sprintf("residual/%d/relu=%v", c, relu), func(b *builder) *bcnn.Network {
				b.input(bcnn.Float32, 5, 4, c)
				last := bcnn.NetworkInput
				for range 3 { // blocks of sign, conv, norm, with a way around
					b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, last)
					b.conv(binaryConv(c, 1), false)
					b.batchNorm(normMixed)
					sum := b.add(bcnn.Add{}, len(b.net.Layers)-1, last)
					if last = sum; relu {
						last = b.add(bcnn.ReLU{})
					}
				}
				return b.net
			})
		}
	}
	add("two readers of bits", func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 6, 6, 33)
		sign := b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		b.conv(binaryConv(10, 0), false)
		left := b.add(bcnn.ReLU{})
		right := b.net.Append("right", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 10, Weights: b.bits(10, 33)}, sign)
		b.add(bcnn.Add{}, left, right)
		return b.net
	})
	// Steps that need memory, behind a convolution that has its rows in memory: many, and short.
	for _, in := range []bcnn.DType{bcnn.Uint8, bcnn.Float32} {
		for _, step := range []struct {
			name string
			add  func(b *builder)
		}{
			{"uneven levels", func(b *builder) {
				b.add(bcnn.Quantize{Levels: 5, Thresholds: []float32{-8, 0, 12, 12}})
				b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5}, false)
			}},
			{"shuffled bits", func(b *builder) {
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
				b.add(bcnn.Channels{Index: reversed(36)})
				b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5}, false)
			}},
			{"values of bits", func(b *builder) {
				sign := b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
				b.add(bcnn.Add{}, sign, sign)
			}},
		} {
			add(fmt.Sprintf("%s behind a convolution of %s", step.name, in), func(b *builder) *bcnn.Network {
				b.input(in, 40, 3, 2)
				if in == bcnn.Float32 {
					b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
				}
				b.conv(binaryConv(36, 0), false)
				step.add(b)
				return b.net
			})
		}
	}
	add("two signs of a function", func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 6, 6, 33)
		b.batchNorm(normMixed)
		function := b.add(bcnn.Function{Name: bcnn.Sigmoid})
		b.add(bcnn.Affine{Bias: []float32{-0.5}})
		gate := b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		b.add(bcnn.Affine{Bias: b.floats(33, 0.5), Scale: []float32{-1}}, function)
		b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		b.conv(binaryConv(33, 1), false)
		b.add(bcnn.Mul{}, gate, b.last())
		return b.net
	})
	add("pool after sign with another reader", func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 6, 6, 33)
		b.binarySource(bcnn.ZeroIsPlus)
		b.conv(binaryConv(40, -1), false)
		b.batchNorm(normTies)
		sign := b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
		b.dense(7, false)
		pooled := len(b.net.Layers) - 1
		whole := b.net.Append("whole", bcnn.Dense{Out: 7, Weights: b.bits(7, 6*6*40)}, sign)
		b.add(bcnn.Add{}, pooled, whole)
		return b.net
	})
	add("sum with itself", func(b *builder) *bcnn.Network {
		b.input(bcnn.Uint8, 3, 3, 3)
		b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 5}, false)
		conv := len(b.net.Layers) - 1
		b.add(bcnn.Add{}, conv, conv)
		b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		return b.net
	})
	add("a value kept for long", func(b *builder) *bcnn.Network {
		b.input(bcnn.Float32, 4, 4, 9)
		b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 12}, true)
		kept := len(b.net.Layers) - 1
		for range 5 {
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 12}, true)
			b.add(bcnn.ReLU{})
		}
		b.add(bcnn.Add{}, len(b.net.Layers)-1, kept)
		return b.net
	})
	add("vehicle network, small", func(b *builder) *bcnn.Network {
		b.input(bcnn.Uint8, 24, 24, 3)
		for _, padValue := range []int{0, -1} { // bytes, then bits
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}},
				Out: 32, PadValue: padValue}, false)
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
			b.batchNorm(normMixed)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		}
		b.add(bcnn.Flatten{})
		for range 2 {
			b.dense(100, false)
			b.batchNorm(normMixed)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		}
		b.dense(6, false)
		b.batchNorm(normTies)
		b.add(bcnn.Softmax{})
		return b.net
	})
	return cases
}

// changedCases are plans that lowering would not make: extremes of thresholds and
// flips where it needs none.
func changedCases() []Case {
	var cases []Case
	extremesI := []int32{math.MinInt32, math.MinInt32 + 1, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}
	inf := float32(math.Inf(1))
	extremesF := []float32{-inf, -math.MaxFloat32, float32(math.Copysign(0, -1)), 0, math.SmallestNonzeroFloat32, math.MaxFloat32, inf}
	change := func(t *plan.Threshold, channels int, withFlip bool) {
		for i := range t.I32 {
			t.I32[i] = extremesI[i%len(extremesI)]
		}
		for i := range t.F32 {
			t.F32[i] = extremesF[i%len(extremesF)]
		}
		if withFlip {
			t.Flip = alternating(channels)
		}
	}
	for _, withFlip := range []bool{false, true} {
		mutate := func(p *plan.Plan) {
			for _, s := range p.Steps {
				channels := p.Tensors[s.Out].Shape.C
				switch op := s.Op.(type) {
				case *plan.Binarize:
					if op.Threshold != nil {
						change(op.Threshold, channels, withFlip)
					}
				case *plan.Conv:
					if op.Threshold != nil {
						change(op.Threshold, channels, withFlip)
					}
				case *plan.Sign:
					change(&op.Threshold, channels, withFlip)
				case *plan.MaxPool:
					if withFlip && p.Tensors[s.Out].DType == bcnn.Bits {
						op.Flip = alternating(channels)
					}
				}
			}
		}
		add := func(c Case) {
			c.Name = fmt.Sprintf("changed/flip=%v/%s", withFlip, c.Name)
			c.mutate = mutate
			cases = append(cases, c)
		}
		for _, in := range []string{"bits", "bytes", "float"} {
			for _, f := range []fill{fillRandom, fillTies} {
				for _, p := range []pooling{{}, {at: "postsign", k: [2]int{2, 2}}, pools[6]} {
					if p.at == "" && p.k[0] > 0 {
						p.at = "postsign"
					}
					add(convSpec{in: in, c: 20, out: 67, pool: p, fill: f, pad: [4]int{1, 1, 1, 1}}.testCase())
				}
				add(convSpec{in: in, c: 20, out: 67, dense: true, fill: f}.testCase())
			}
		}
		for _, c := range binarizeCases() {
			if c.fill == fillTies {
				add(c)
			}
		}
	}
	return unique(cases)
}

// alternating is a flip mask with bits 0, 3, 6 … set.
func alternating(channels int) []uint64 {
	mask := make([]uint64, (channels+63)/64)
	for c := 0; c < channels; c += 3 {
		mask[c/64] |= 1 << (c % 64)
	}
	return mask
}
