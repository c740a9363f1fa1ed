package parity

import (
	"fmt"
	"math"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// activations are the names that builder.activation knows.
var activations = []string{"relu", "leaky", "prelu", "rising", "relu6", "hardtanh", "least", "most", "zero", "tanh"}

// activation appends an activation.
func (b *builder) activation(name string) {
	inf := float32(math.Inf(1))
	slopes := func(values ...float32) bcnn.PReLU {
		p := bcnn.PReLU{Slope: make([]float32, b.shape().C)}
		for c := range p.Slope {
			if p.Slope[c] = float32(b.rng.NormFloat64()); b.rng.IntN(3) == 0 {
				p.Slope[c] = values[b.rng.IntN(len(values))]
			}
		}
		return p
	}
	switch name {
	case "relu":
		b.add(bcnn.ReLU{})
	case "leaky":
		b.add(bcnn.PReLU{Slope: []float32{0.1}})
	case "prelu": // falls in some channels
		b.add(slopes(0, 1, -1, float32(math.Copysign(0, -1))))
	case "rising":
		p := slopes(0, 1, 0.5)
		for c, s := range p.Slope {
			p.Slope[c] = max(s, -s)
		}
		b.add(p)
	case "relu6":
		b.add(bcnn.Clip{Max: 6})
	case "hardtanh":
		b.add(bcnn.Clip{Min: -1, Max: 1})
	case "least":
		b.add(bcnn.Clip{Min: -0.75, Max: inf})
	case "most":
		b.add(bcnn.Clip{Min: -inf, Max: 1.5})
	case "zero": // a bound of −0
		b.add(bcnn.Clip{Min: float32(math.Copysign(0, -1)), Max: 1})
	case "":
	default:
		b.add(bcnn.Function{Name: bcnn.FunctionName(name)})
	}
}

// layerCases are cases of activations, average pools, products, and of channels that
// are joined and picked.
func layerCases() []Case {
	cases := append(activationCases(), functionCases()...)
	cases = append(cases, avgPoolCases()...)
	cases = append(cases, concatCases()...)
	cases = append(cases, channelsCases()...)
	cases = append(cases, pairCases()...)
	cases = append(cases, tableCases()...)
	return append(cases, blockCases()...)
}

// functionCases are cases of all functions but tanh, which is among the activations: of
// bits, bytes and floats up to where they end, and in front of a sign.
func functionCases() []Case {
	var cases []Case
	for i, name := range bcnn.FunctionNames()[1:] {
		function := bcnn.Function{Name: name}
		for k, in := range []string{"bits", "bytes", "float"} {
			c := []int{1, 5, 33, 64, 67}[(i+k)%5]
			cases = append(cases, layerCase("wide+"+string(name), in, [3]int{7, 3, c}, fillRandom, func(b *builder) {
				b.add(bcnn.Affine{Scale: b.floats(c, map[string]float64{"bits": 100, "bytes": 0.5, "float": 40}[in]), Bias: b.floats(c, 2)})
				b.add(function)
			}))
		}
		cases = append(cases, layerCase(string(name), "float", [3]int{7, 3, 5}, fillExtremes, func(b *builder) { b.add(function) }),
			layerCase(string(name), "float", [3]int{3, 3, 65}, fillTiny, func(b *builder) { b.add(function) }),
			layerCase("norm+"+string(name)+"+pool+sign", []string{"bytes", "bits", "float"}[i%3], [3]int{4, 4, 33}, fillTies, func(b *builder) {
				b.batchNorm(normTies)
				b.add(function)
				b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
				b.add(bcnn.Affine{Bias: b.floats(33, 0.5)})
				b.add(bcnn.Sign{Zero: b.zero()})
			}),
			convSpec{in: "bits", c: 33, out: 13, end: "norm", act: string(name)}.testCase(),
			convSpec{in: "bits", c: 64, out: 67, norm: normTies, act: string(name)}.testCase())
	}
	return cases
}

// layerCase is a case of layers on bytes, bits or floats.
func layerCase(name, in string, s [3]int, f fill, layers func(b *builder)) Case {
	name = fmt.Sprintf("%s/%s/%dx%dx%d", name, in, s[0], s[1], s[2])
	if f != "" {
		name += "/" + string(f)
	}
	return Case{Name: name, Batch: 3, fill: f, build: func(b *builder) *bcnn.Network {
		b.source(in, s[0], s[1], s[2])
		layers(b)
		return b.net
	}}
}

func activationCases() []Case {
	var cases []Case
	for i, act := range activations {
		for k, in := range []string{"bits", "bytes", "float"} {
			if act != "prelu" && act != "hardtanh" && act != "tanh" && k != i%3 { // one of each kind with everything
				continue
			}
			c := map[string]int{"bits": 33, "bytes": 3, "float": 5}[in]
			out := []int{13, 64, 67, 130, 1}[(i+k)%5]
			for _, spec := range []convSpec{
				{in: in, c: c, out: out, end: "sum"}, {in: in, c: c, out: out, end: "norm", pad: [4]int{1, 1, 1, 1}},
				{in: in, c: c, out: out, end: "norm", dense: true}, {in: in, c: c, out: out, end: "sum", dense: true},
				{in: in, c: c, out: 2 * c, groups: c, end: "norm"}, {in: in, c: c, out: c, groups: c, end: "sum", pad: [4]int{1, 0, 0, 1}},
				{in: in, c: c, out: out, norm: normTies}, {in: in, c: c, out: out, norm: normFalling, pool: pooling{at: "presign", k: [2]int{2, 2}}},
				{in: in, c: c, out: out, fill: fillTies, pool: pooling{at: "presign", k: [2]int{3, 3}, s: [2]int{1, 1}}},
			} {
				spec.act = act
				cases = append(cases, spec.testCase())
			}
			for _, c := range []int{1, 3, 33, 64, 130} {
				cases = append(cases, layerCase("affine+"+act, in, [3]int{3, 4, c}, fillRandom, func(b *builder) {
					b.add(bcnn.Affine{Scale: b.floats(c, 2), Bias: b.floats(c, 2)})
					b.activation(act)
				}))
			}
		}
		for _, f := range []fill{fillExtremes, fillTies, fillTiny} {
			for _, c := range []int{5, 65} {
				if f == fillTies && c == 5 || f == fillTiny && c == 65 {
					continue
				}
				cases = append(cases, layerCase(act, "float", [3]int{7, 3, c}, f, func(b *builder) { b.activation(act) }),
					layerCase("add+"+act, "float", [3]int{7, 3, c}, f, func(b *builder) {
						b.add(bcnn.Channels{Index: reversed(c)})
						b.add(bcnn.Add{}, b.last(), bcnn.NetworkInput)
						b.activation(act)
					}))
			}
		}
		for k, in := range []string{"bytes", "bits", "float"} {
			if k != i%3 {
				continue
			}
			cases = append(cases, layerCase("norm+"+act+"+sign", in, [3]int{3, 4, 33}, fillTies, func(b *builder) {
				b.batchNorm(normTies)
				b.activation(act)
				b.add(bcnn.Affine{Bias: b.floats(33, 0.5)})
				b.add(bcnn.Sign{Zero: b.zero()})
			}))
		}
	}
	return cases
}

func reversed(channels int) []int32 {
	index := make([]int32, channels)
	for c := range index {
		index[c] = int32(channels - 1 - c)
	}
	return index
}

func avgPoolCases() []Case {
	var cases []Case
	add := func(p pooling, in string, s [3]int, f fill, count bool) {
		name := "avgpool/" + p.name()
		if count {
			name += "+padding"
		}
		cases = append(cases, layerCase(name, in, s, f, func(b *builder) { b.add(bcnn.AvgPool{Window: p.window(), CountPadding: count}) }))
	}
	for _, in := range []string{"bits", "float", "bytes"} {
		for i, p := range append(pools, pooling{k: [2]int{7, 8}}, pooling{k: [2]int{5, 5}, s: [2]int{1, 1}, pad: [2]int{2, 2}}, pooling{k: [2]int{7, 1}}) {
			for k, c := range []int{1, 3, 33, 64, 130} {
				if k != i%5 && (in == "bytes" || k != (i+2)%5) {
					continue
				}
				add(p, in, [3]int{7, 8, c}, fillRandom, p.pad != [2]int{} && (i+k)%2 == 0)
				if p.pad != [2]int{} {
					add(p, in, [3]int{7, 8, c}, fillRandom, (i+k)%2 != 0)
				}
			}
		}
	}
	for _, f := range []fill{fillTiny, fillTies, fillExtremes, fillOnes} {
		add(pooling{k: [2]int{3, 3}, s: [2]int{1, 1}, pad: [2]int{1, 1}}, "float", [3]int{6, 5, 19}, f, false)
		add(pooling{k: [2]int{3, 3}, s: [2]int{2, 2}, pad: [2]int{1, 1}}, "float", [3]int{6, 5, 64}, f, true)
	}
	add(pooling{k: [2]int{40, 41}}, "float", [3]int{40, 41, 6}, fillRandom, false)
	add(pooling{k: [2]int{40, 41}}, "bits", [3]int{40, 41, 6}, fillRandom, false)
	for _, in := range []string{"bits", "float"} {
		cases = append(cases, layerCase("avgpool+sign", in, [3]int{6, 6, 67}, fillTies, func(b *builder) {
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
			b.batchNorm(normTies)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		}))
	}
	return cases
}

func concatCases() []Case {
	var cases []Case
	many := make([]int, 40)
	for i := range many {
		many[i] = 1 + i%3
	}
	for _, parts := range [][]int{{1, 1}, {1, 63}, {63, 1}, {1, 64}, {64, 1}, {64, 64}, {32, 33}, {33, 31, 1}, {65, 130, 3}, {2, 3, 5, 7, 11, 13, 17, 19}, many} {
		for _, kind := range []string{"bits", "float", "mixed"} {
			name := strings.Trim(strings.ReplaceAll(fmt.Sprint(parts), " ", "+"), "[]")
			if len(parts) == len(many) {
				name = "many"
			}
			cases = append(cases, layerCase("concat/"+name+"/"+kind, "float", [3]int{3, 5, 9}, fillRandom, func(b *builder) {
				var inputs []int
				for i, c := range parts {
					b.net.Append(fmt.Sprint("part", i), bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: c, Weights: b.weights(c, 9, i%2 == 0)}, bcnn.NetworkInput)
					if kind == "bits" || kind == "mixed" && i%2 == 1 {
						b.add(bcnn.Sign{Zero: b.zero()})
					}
					inputs = append(inputs, b.last())
				}
				b.add(bcnn.Concat{}, inputs...)
			}))
		}
	}
	for _, in := range []string{"bytes", "bits", "float"} {
		for _, f := range []fill{fillRandom, fillExtremes} {
			cases = append(cases, layerCase("concat/with itself", in, [3]int{4, 3, 21}, f, func(b *builder) {
				if in == "bytes" {
					b.add(bcnn.Affine{Scale: []float32{0.5}})
				}
				b.add(bcnn.Concat{}, b.last(), b.last(), b.last(), bcnn.NetworkInput)
			}))
		}
	}
	return cases
}

func channelsCases() []Case {
	var cases []Case
	add := func(name string, c int, index func(c int) []int32) {
		for _, in := range []string{"bits", "float", "bytes"} {
			cases = append(cases, layerCase("channels/"+name, in, [3]int{3, 5, c}, fillRandom, func(b *builder) { b.add(bcnn.Channels{Index: index(c)}) }))
		}
		if name == "padded" {
			cases = append(cases, layerCase("channels/"+name, "float", [3]int{3, 5, c}, fillExtremes, func(b *builder) { b.add(bcnn.Channels{Index: index(c)}) }))
		}
	}
	run := func(from, n int) []int32 {
		index := make([]int32, n)
		for i := range index {
			index[i] = int32(from + i)
		}
		return index
	}
	zeros := func(n int) []int32 {
		index := make([]int32, n)
		for i := range index {
			index[i] = -1
		}
		return index
	}
	for _, c := range []int{1, 33, 64, 130} {
		add("reversed", c, reversed)
		add("first half", c, func(c int) []int32 { return run(0, (c+1)/2) })
		add("second half", c, func(c int) []int32 { return run(c/2, (c+1)/2) })
		add("padded", c, func(c int) []int32 { return append(append(zeros(3), run(0, c)...), zeros(2)...) })
		add("repeated", c, func(c int) []int32 { return append(run(0, c), append(reversed(c), run(0, c)...)...) })
	}
	shuffled := func(c, groups int) []int32 {
		var index []int32
		for i := range c {
			index = append(index, int32(i%groups*(c/groups)+i/groups))
		}
		return index
	}
	for _, groups := range []int{2, 4, 5} {
		add(fmt.Sprintf("shuffle of %d", groups), 20*groups, func(c int) []int32 { return shuffled(c, groups) })
	}
	// Bits of 64 pixels at a time, and of those that are left: 17 or 8.
	for _, size := range [][2]int{{9, 9}, {8, 9}} {
		for _, c := range []int{72, 128, 200} {
			cases = append(cases,
				layerCase("channels/shuffle of 8", "bits", [3]int{size[0], size[1], c}, fillRandom, func(b *builder) { b.add(bcnn.Channels{Index: shuffled(c, 8)}) }),
				layerCase("channels/every third", "bits", [3]int{size[0], size[1], c}, fillRandom, func(b *builder) { b.add(bcnn.Channels{Index: shuffled(c, 3)[:c/3]}) }))
		}
	}
	for _, from := range []int{1, 63, 64, 65} {
		add(fmt.Sprintf("from %d", from), 150, func(int) []int32 { return run(from, 80) })
	}
	return cases
}

// tableCases are chains on bytes: with a table for each channel or for all, of floats,
// bits and planes.
func tableCases() []Case {
	var cases []Case
	bends := func(b *builder, each bool) {
		scale, n := []float32{0.04}, b.shape().C
		if each {
			scale = b.floats(n, 0.05)
		}
		b.add(bcnn.Affine{Scale: scale, Bias: []float32{-4}})
		b.add(bcnn.Function{Name: bcnn.GELU})
		b.add(bcnn.Affine{Scale: []float32{-3}, Bias: []float32{-0.25}})
	}
	for i, c := range []int{1, 3, 16, 33, 70} {
		s, each := [3]int{4 + i, 5, c}, c <= 16
		cases = append(cases,
			layerCase("table/float", "bytes", s, fillRandom, func(b *builder) {
				bends(b, each)
				b.activation("leaky")
			}),
			layerCase("table/bits", "bytes", s, fillRandom, func(b *builder) {
				bends(b, each)
				b.add(bcnn.Sign{Zero: b.zero()})
				b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 2}, Out: 9}, false)
			}),
			layerCase("table/planes", "bytes", s, fillRandom, func(b *builder) {
				bends(b, each)
				b.quantize(activationLevels[i], each)
				b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 9}, false)
			}),
			// From bytes to bytes, those of the input and of levels: a gate by the levels of
			// a function of the same value.
			layerCase("table/bytes", []string{"bytes", "float"}[i%2], s, fillRandom, func(b *builder) {
				s8 := integers{"s8", -128, 256}
				if i%2 == 1 {
					b.levels8(128, 256, 128, true)
				}
				bends(b, each)
				bent := b.last()
				b.add(bcnn.Function{Name: bcnn.Sigmoid})
				b.quantize(activationLevels[4], false)
				b.add(bcnn.Affine{Scale: []float32{0.1}})
				b.add(bcnn.Mul{}, bent, b.last())
				b.add(bcnn.Max{}, b.last(), bent)
				b.add(bcnn.Add{}, b.last(), bent)
				b.quantize(s8, false)
				b.add(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 9, Weights: b.integers(s8, 9*4, c)})
			}))
	}
	for _, c := range []int{128, 130} { // planes of few channels cost more than bytes
		cases = append(cases, layerCase("table/planes", "bytes", [3]int{3, 4, c}, fillRandom, func(b *builder) {
			bends(b, false)
			b.quantize(activationLevels[1], false)
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 9}, false)
		}))
	}
	return cases
}

// pairCase combines values with as many, or with those of a pixel, of a channel, or one.
func pairCase(op bcnn.Op, shape string, in [3]int, f fill) Case {
	return layerCase(op.Kind()+"/"+shape, "float", in, f, func(b *builder) {
		b.add(bcnn.Channels{Index: reversed(in[2])})
		if shape == "channels" || shape == "one" {
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: in[0], KW: in[1]}})
		}
		if shape == "pixels" || shape == "one" {
			b.add(bcnn.Channels{Index: []int32{int32(in[2] / 2)}})
		}
		b.add(op, bcnn.NetworkInput, b.last())
	})
}

func pairCases() []Case {
	var cases []Case
	for _, s := range [][2]int{{1, 1}, {5, 4}} {
		for i, c := range []int{1, 3, 33, 64, 130} {
			for _, shape := range []string{"equal", "channels", "pixels", "one"} {
				for _, f := range []fill{fillRandom, fillExtremes} {
					if f == fillExtremes && i%2 == 0 {
						continue
					}
					cases = append(cases, pairCase(bcnn.Mul{}, shape, [3]int{s[0], s[1], c}, f))
				}
			}
		}
	}
	for _, op := range []bcnn.Op{bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}} {
		for _, shape := range []string{"equal", "channels", "pixels", "one"} {
			for _, c := range []int{3, 130} {
				cases = append(cases, pairCase(op, shape, [3]int{5, 4, c}, fillExtremes))
			}
		}
	}
	for _, in := range []string{"bits", "bytes"} {
		cases = append(cases, layerCase("mul/with itself", in, [3]int{4, 3, 21}, fillRandom, func(b *builder) { b.add(bcnn.Mul{}, b.last(), b.last()) }))
	}
	return cases
}

// blockCases are small networks of the blocks that published ones are made of.
func blockCases() []Case {
	three := func(out, pv int) bcnn.Conv2D {
		return bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, Out: out, PadValue: pv}
	}
	point := func(out int) bcnn.Conv2D { return bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: out} }
	half := bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	var cases []Case
	add := func(name string, h, w, c int, layers func(b *builder)) {
		cases = append(cases, layerCase("block/"+name, "float", [3]int{h, w, c}, fillRandom, func(b *builder) {
			layers(b)
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: b.shape().H, KW: b.shape().W}})
			b.add(bcnn.Flatten{})
			b.dense(6, true)
		}))
	}
	for _, c := range []int{24, 65} {
		add("dense net", 6, 5, c, func(b *builder) {
			last := bcnn.NetworkInput
			for range 3 {
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, last)
				b.conv(three(12, 1), false)
				b.batchNorm(normMixed)
				last = b.add(bcnn.Concat{}, last, b.last())
			}
			b.add(bcnn.MaxPool{Window: half})
			b.activation("relu")
			b.conv(point(c), true)
		})
		add("down by means", 7, 6, c, func(b *builder) { // of Bi-Real Net
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			op := three(2*c, 0)
			op.StrideH, op.StrideW = 2, 2
			b.conv(op, false)
			b.batchNorm(normMixed)
			body := b.last()
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Bottom: 1}}}, bcnn.NetworkInput)
			b.conv(point(2*c), true)
			b.batchNorm(normMixed)
			b.add(bcnn.Add{}, body, b.last())
			b.activation("hardtanh")
		})
		add("gate", 6, 5, c, func(b *builder) { // of RealToBinaryNet
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 6, KW: 5}})
			b.dense(c/4, true)
			b.activation("relu")
			b.dense(c, true)
			b.add(bcnn.Affine{Scale: []float32{0.2}, Bias: []float32{0.5}})
			gate := b.add(bcnn.Clip{Min: 0, Max: 1})
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, bcnn.NetworkInput)
			b.conv(three(c, 0), false)
			b.batchNorm(normMixed)
			b.add(bcnn.Mul{}, b.last(), gate)
			b.activation("prelu")
			b.add(bcnn.Add{}, b.last(), bcnn.NetworkInput)
		})
		add("shifts", 6, 5, c, func(b *builder) { // of ReActNet
			b.add(bcnn.Affine{Bias: b.floats(c, 0.5)})
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			b.conv(three(c, 0), false)
			b.batchNorm(normMixed)
			sum := b.add(bcnn.Add{}, b.last(), bcnn.NetworkInput)
			b.add(bcnn.Affine{Bias: b.floats(c, 0.5)}, sum)
			b.activation("rising")
			around := b.add(bcnn.Affine{Bias: b.floats(c, 0.5)})
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			b.conv(point(c), false)
			b.batchNorm(normMixed)
			left := b.add(bcnn.Add{}, b.last(), around)
			b.add(bcnn.Concat{}, left, around)
			b.activation("prelu")
		})
		add("shuffled groups", 6, 5, 2*c, func(b *builder) {
			var index []int32
			for i := range 2 * c {
				index = append(index, int32(i%2*c+i/2))
			}
			for range 2 {
				from := b.last()
				b.add(bcnn.Channels{Index: index[:c]}, from)
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
				b.conv(three(c, -1), false)
				b.batchNorm(normTies)
				body := b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
				b.add(bcnn.Channels{Index: index[c:]}, from)
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
				b.add(bcnn.Concat{}, body, b.last())
				b.add(bcnn.Channels{Index: index}) // of bits
			}
			b.conv(three(10, 1), false)
		})
	}
	return cases
}
