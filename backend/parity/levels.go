package parity

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// A number of levels and the lowest of them, as activations and as weights have them.
type integers struct {
	name        string
	low, levels int
}

var (
	activationLevels = []integers{{"ternary", -1, 3}, {"u2", 0, 4}, {"u4", 0, 16}, {"s2", -2, 4}, {"s4", -8, 16}}
	weightLevels     = []integers{{"ternary", -1, 3}, {"s2", -2, 4}, {"s4", -8, 16}}
)

// quantize appends levels of the last layer's values: the values that it gives are
// among the thresholds. There is one list for all channels, or one for each.
func (b *builder) quantize(i integers, each bool) {
	if i.name == "ternary" {
		b.add(bcnn.Ternary())
		return
	}
	lists := 1
	if each {
		lists = b.shape().C
	}
	values, n := b.values(), i.levels-1
	q := bcnn.Quantize{Low: i.low, Levels: i.levels}
	for range lists {
		t := values[b.rng.IntN(len(values))] - float32(n)/4
		for range n {
			q.Thresholds = append(q.Thresholds, t)
			t += float32(b.rng.IntN(3)) / 4
		}
	}
	b.add(q)
}

// integers makes rows of n weights; ±1 where there are no levels.
func (b *builder) integers(i integers, rows, n int) bcnn.Weights {
	if i.levels == 0 {
		return b.bits(rows, n)
	}
	w := bcnn.Weights{Int8: make([]int8, rows*n)}
	for k := range w.Int8 {
		w.Int8[k] = int8(i.low + b.rng.IntN(i.levels))
	}
	return w
}

// convLevels appends a convolution with such weights.
func (b *builder) convLevels(op bcnn.Conv2D, w integers) {
	op.Weights = b.integers(w, op.Out*op.KH*op.KW, b.shape().C/max(op.Groups, 1))
	b.add(op)
}

// levelCases are cases of values and weights of a few levels.
func levelCases() []Case {
	var cases []Case
	add := func(name string, f fill, h, w, c int, layers func(b *builder)) {
		cases = append(cases, layerCase("levels/"+name, "float", [3]int{h, w, c}, f, layers))
	}
	around := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	windows := []struct {
		name string
		bcnn.Conv2D
	}{
		{"k3", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}}},
		{"k3s2", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Top: 1, Left: 0, Bottom: 0, Right: 2}}}},
		{"k2d2", bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 3, DilationH: 2, DilationW: 1, Pad: bcnn.Padding{Top: 1, Left: 2, Bottom: 2}}}},
		{"k1", bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}}},
	}
	ends := []func(b *builder){
		func(b *builder) {},
		func(b *builder) { b.batchNorm(normTies); b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}) },
		func(b *builder) { b.batchNorm(normMixed); b.quantize(activationLevels[1], false) },
		func(b *builder) { b.batchNorm(normFalling); b.quantize(activationLevels[3], true) },
	}
	for i, a := range append(activationLevels, integers{name: "bits"}) {
		for j, w := range append(weightLevels, integers{name: "binary"}) {
			if a.levels == 0 && w.levels == 0 {
				continue
			}
			source := func(b *builder) {
				if a.levels == 0 {
					b.binarySource(bcnn.ZeroIsPlus)
				} else {
					b.quantize(a, (i+j)%2 == 0)
				}
			}
			for k, op := range windows {
				c := []int{5, 33, 64, 16}[(i+j+k)%4]
				f := []fill{fillRandom, fillTies, fillTiny, fillExtremes}[(i+2*j+k)%4]
				add(fmt.Sprintf("%s/%s/%s", a.name, w.name, op.name), f, 6, 5, c, func(b *builder) {
					source(b)
					conv := op.Conv2D
					conv.Out = []int{34, 3, 65}[(i+j+k)%3]
					if a.levels == 0 {
						conv.PadValue = k%3 - 1
					}
					b.convLevels(conv, w)
					ends[(i+j+2*k)%4](b)
				})
			}
			// Groups lie across words. Those of few channels are of float32.
			for k, c := range []int{[]int{12, 72}[(i+j)%2], 4 * 50, 4 * 100} {
				out := []int{8, 4 * 21, 4 * 42}[k]
				add(fmt.Sprintf("%s/%s/groups", a.name, w.name), fillRandom, 5, 4, c, func(b *builder) {
					source(b)
					b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: out, Groups: 4}, w)
					ends[(i+j+k)%4](b)
				})
			}
			for _, flatten := range []bool{false, true} {
				add(fmt.Sprintf("%s/%s/dense/flatten=%v", a.name, w.name, flatten), fillRandom, 2, 3, 19, func(b *builder) {
					source(b)
					if flatten {
						b.add(bcnn.Flatten{})
					}
					b.add(bcnn.Dense{Out: 13, Weights: b.integers(w, 13, b.shape().Values()), Bias: b.floats(13, 3)})
					ends[(i+j+1)%4](b)
				})
			}
		}
		if a.levels == 0 {
			continue
		}
		// What reads levels as numbers, and what they come from.
		for _, f := range []fill{fillTies, fillExtremes} {
			add(a.name+"/values", f, 3, 4, 65, func(b *builder) { b.quantize(a, true) })
		}
		add(a.name+"/maxpool", fillRandom, 7, 6, 21, func(b *builder) {
			b.quantize(a, false)
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 3, KW: 2, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Top: 1}}})
			b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 9}, integers{})
			b.batchNorm(normFalling)
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}}) // moves behind the thresholds
			b.quantize(a, true)
		})
		add(a.name+"/residual", fillRandom, 4, 5, 33, func(b *builder) {
			b.quantize(a, false)
			levels := b.last()
			b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: 33}, weightLevels[0])
			b.batchNorm(normMixed)
			b.add(bcnn.Add{}, b.last(), levels)
			b.quantize(a, false)
			b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 3}})
		})
		add(a.name+"/joined", fillTies, 3, 3, 7, func(b *builder) {
			b.quantize(a, false)
			b.add(bcnn.Channels{Index: []int32{6, 0, -1, 3}})
			b.add(bcnn.Concat{}, b.last(), 0)
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		})
		// Levels that are moved as planes, joined, and such again behind zeros.
		for k, w := range []integers{{}, weightLevels[1]} {
			add(fmt.Sprintf("%s/moved/%s", a.name, []string{"binary", "s2"}[k]), fillRandom, 4, 5, 65, func(b *builder) {
				b.quantize(a, true)
				levels := b.last()
				var mixed []int32
				for _, c := range b.rng.Perm(65) {
					mixed = append(mixed, int32(c))
				}
				b.add(bcnn.Channels{Index: mixed})
				b.add(bcnn.Pixels{Rows: []int32{3, 1, 0, 2}, Cols: []int32{4, 0, 1, 2, 2}})
				b.add(bcnn.Concat{}, b.last(), levels)
				b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: 33}, w)
				b.batchNorm(normMixed)
				b.quantize(a, false)
				b.add(bcnn.Channels{Index: []int32{32, -1, 0, 7, 7, 12, -1}})
				b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2}, Out: 34}, w)
			})
		}
	}
	cases = append(cases, rareZeroCases()...)
	// Integers that are added to sums of ±1 before they are scaled, as {0, 1} are made of ±1:
	// into float32, behind an activation, into thresholds, of groups and of dense layers.
	for i, op := range windows {
		for k, groups := range []int{1, 2} {
			c := []int{32, 130, 64, 256}[(i+2*k)%4]
			add("offset/"+op.name+fmt.Sprint("/groups=", groups), []fill{fillRandom, fillTies}[k], 6, 5, c, func(b *builder) {
				b.binarySource(bcnn.ZeroIsPlus)
				conv := op.Conv2D
				conv.Out, conv.Groups, conv.PadValue = []int{64, 34}[k], groups, i%3-1
				b.conv(conv, false)
				b.shifted(7)
				b.activation([]string{"", "relu"}[k])
			})
		}
	}
	for _, flatten := range []bool{false, true} {
		for _, end := range []bool{false, true} {
			add(fmt.Sprintf("offset/dense/flatten=%v/bits=%v", flatten, end), fillRandom, 2, 3, 64, func(b *builder) {
				b.binarySource(bcnn.ZeroIsMinus)
				if flatten {
					b.add(bcnn.Flatten{})
				}
				b.dense(33, false)
				b.shifted(100)
				if end {
					b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
				}
			})
		}
	}
	// As many as 8-bit tensors have.
	add("s8/values", fillTies, 3, 4, 9, func(b *builder) { b.quantize(integers{"s8", -128, 256}, true) })
	// From one convolution to the next, with pools between.
	pools := []struct {
		name string
		bcnn.Window
	}{
		{"none", bcnn.Window{}},
		{"2×2", bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}},
		{"3×2", bcnn.Window{KH: 3, KW: 2, StrideH: 3, StrideW: 2}},
		{"overlapping", bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: around}},
	}
	for i, a := range activationLevels {
		for j, pool := range pools {
			for k, w := range []integers{{}, weightLevels[0], weightLevels[1]} {
				c := []int{64, 65, 100, 128}[(i+j+k)%4]
				norms := []norm{normMixed, normTies, normFalling}
				add(fmt.Sprintf("planes/%s/%s/pool=%s", a.name, []string{"binary", "ternary", "s2"}[k], pool.name), []fill{fillRandom, fillTies}[(i+j)%2], 3+(i+k)%2, 5, c, func(b *builder) {
					b.quantize(a, k == 1)
					stride := 1 + j%2*(k%2)
					b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, StrideH: stride, StrideW: stride, Pad: around}, Out: 65 + 63*(k%2)}, w)
					b.batchNorm(norms[(i+j+k)%3])
					before := (i+j+k)%2 == 0 // the thresholds
					if before && pool.KH > 0 {
						b.add(bcnn.MaxPool{Window: pool.Window})
					}
					b.quantize(a, true)
					if !before && pool.KH > 0 {
						b.add(bcnn.MaxPool{Window: pool.Window})
					}
					b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 64}, w)
					b.batchNorm(norms[(i+j+k+1)%3])
					if k == 0 {
						b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
					} else {
						b.quantize(a, false)
					}
					b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 2, KW: 2, Pad: around}, Out: 33}, integers{})
				})
			}
		}
	}
	// Integers of 8 bits.
	s8 := integers{"s8", -128, 256}
	add("s8/values", fillRandom, 3, 4, 65, func(b *builder) { b.quantize(s8, true) })
	add("s8/network", fillRandom, 9, 8, 3, func(b *builder) {
		b.quantize(s8, false)
		b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: 33}, s8)
		b.quantize(s8, true)
		b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
		b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: 16}, integers{})
		b.quantize(s8, true)
		b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 4, KW: 4}})
		b.quantize(s8, false)
		b.add(bcnn.Flatten{})
		b.add(bcnn.Dense{Out: 10, Weights: b.integers(s8, 10, b.shape().Values())})
	})
	// 3×3 layers of whole blocks of channels, which the CPU may compute in squares of outputs.
	for i, sq := range []struct{ h, w, c, out, a, weights int }{{8, 8, 64, 64, 1, 1}, {7, 9, 128, 64, 2, 2}, {6, 10, 64, 128, 4, 0}} {
		a, w := activationLevels[sq.a], weightLevels[sq.weights]
		add(fmt.Sprintf("squares/%s/%s", a.name, w.name), []fill{fillRandom, fillTies}[i%2], sq.h, sq.w, sq.c, func(b *builder) {
			b.quantize(a, i%2 == 0)
			b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: sq.out}, w)
			b.batchNorm([]norm{normMixed, normTies, normFalling}[i])
			b.quantize(a, true)
			b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 64}, w)
			b.batchNorm(normMixed)
		})
	}
	for i, a := range activationLevels {
		for _, in := range []string{"bytes", "bits"} {
			cases = append(cases, layerCase("levels/from/"+a.name, in, [3]int{4, 3, 5 + 60*(i%2)}, fillRandom, func(b *builder) { b.quantize(a, i%2 == 0) }))
		}
		add(a.name+"/network", fillRandom, 9, 8, 3, func(b *builder) {
			for k := range 3 {
				b.convLevels(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: around}, Out: 32}, weightLevels[k%2])
				b.batchNorm([]norm{normMixed, normTies, normFalling}[k])
				b.activation([]string{"relu", "leaky", "relu6"}[k])
				b.quantize(activationLevels[(i+k)%len(activationLevels)], k > 0)
			}
			b.add(bcnn.Flatten{})
			b.add(bcnn.Dense{Out: 10, Weights: b.integers(integers{}, 10, b.shape().Values())})
			b.add(bcnn.Softmax{})
		})
	}
	return cases
}
