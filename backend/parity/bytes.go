package parity

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// levels8 appends numbers of so many levels, of which zero stands for 0: one for each
// 1/64, so that values that are drawn reach all of them. middle is the number of 0.
func (b *builder) levels8(zero, levels int, middle float32, each bool) int {
	lists := 1
	if each {
		lists = b.shape().C
	}
	q := bcnn.Quantize{Low: -zero, Levels: levels}
	for c := range lists {
		for k := range levels - 1 {
			q.Thresholds = append(q.Thresholds, (float32(k)-middle+float32(c%5))/64)
		}
	}
	return b.add(q)
}

// uneven adds levels that are one of the numbers, the first of which is 0: the nearest one to half
// of them.
func (b *builder) uneven(numbers []int, each bool) {
	lists := 1
	if each {
		lists = b.shape().C
	}
	q := bcnn.Quantize{Levels: numbers[len(numbers)-1] + 1}
	for c := range lists {
		for k, n := range numbers[1:] {
			middle := float32(n+numbers[k])/4 + float32(c%5)/16
			q.Thresholds = append(q.Thresholds, slices.Repeat([]float32{middle}, n-numbers[k])...)
		}
	}
	b.add(q)
}

// extremeWeights makes rows of n weights of the least and the largest value.
func (b *builder) extremeWeights(rows, n int) bcnn.Weights {
	w := bcnn.Weights{Int8: make([]int8, rows*n)}
	for i := range w.Int8 {
		w.Int8[i] = []int8{-128, 127}[b.rng.IntN(2)]
	}
	return w
}

// integerWeights makes rows of n real weights that are integers up to most.
func (b *builder) integerWeights(most, rows, n int) bcnn.Weights {
	w := bcnn.Weights{F32: make([]float32, rows*n)}
	for i := range w.F32 {
		w.F32[i] = float32(min(b.rng.IntN(2*most+1)-most, 32767))
	}
	w.F32[0] = float32(-most)
	return w
}

// byteCases are cases of levels that flow as bytes, and of weights of 8 and 16 bits.
func byteCases() []Case {
	var cases []Case
	add := func(name, in string, f fill, h, w, c int, layers func(b *builder)) {
		cases = append(cases, layerCase("bytes/"+name, in, [3]int{h, w, c}, f, layers))
	}
	around := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	window := func(k, s, d int, pad bcnn.Padding) bcnn.Window {
		return bcnn.Window{KH: k, KW: k, StrideH: s, StrideW: s, DilationH: d, DilationW: d, Pad: pad}
	}
	windows := []struct {
		name string
		bcnn.Window
	}{
		{"k1", window(1, 1, 1, bcnn.Padding{})}, {"k3", window(3, 1, 1, around)}, {"k5", window(5, 1, 1, bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2})},
		{"k3s2", window(3, 2, 1, bcnn.Padding{Left: 1, Bottom: 2})}, {"k3d2", window(3, 1, 2, bcnn.Padding{Top: 2, Right: 3})}, {"k1s2", window(1, 2, 1, around)},
		{"k2x3", bcnn.Window{KH: 2, KW: 3, StrideH: 1, StrideW: 2}},
	}
	weights := []struct {
		name string
		of   func(b *builder, rows, n int) bcnn.Weights
	}{
		{"s8", func(b *builder, rows, n int) bcnn.Weights { return b.integers(integers{"s8", -128, 256}, rows, n) }},
		{"extreme", (*builder).extremeWeights},
		{"s4", func(b *builder, rows, n int) bcnn.Weights { return b.integers(weightLevels[2], rows, n) }},
		{"binary", (*builder).bits},
	}
	s8 := weights[0].of
	// What reads the sums.
	ends := []struct {
		name string
		add  func(b *builder)
	}{
		{"sums", func(b *builder) {}},
		{"relu", func(b *builder) { b.batchNorm(normMixed); b.add(bcnn.ReLU{}) }},
		{"sign", func(b *builder) { b.batchNorm(normTies); b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}) }},
		{"levels", func(b *builder) { b.quantize(activationLevels[4], true) }},
	}
	channels, outs, zeros := []int{1, 3, 4, 5, 16, 33, 64, 100}, []int{65, 5, 130, 64, 1, 33, 16}, []int{128, 0, 255, 8}
	pools := []bcnn.Window{{KH: 2, KW: 2, StrideH: 2, StrideW: 2}, {KH: 3, KW: 3, StrideH: 2, StrideW: 1, Pad: around}, {KH: 1, KW: 3}}
	conv := func(b *builder, w bcnn.Window, out int, of func(b *builder, rows, n int) bcnn.Weights) {
		b.add(bcnn.Conv2D{Window: w, Out: out, Weights: of(b, out*w.KH*w.KW, b.shape().C)})
	}
	for i, c := range channels {
		for j, w := range windows {
			n := i + 3*j
			weight, zero, end, out := weights[(i+j)%len(weights)], zeros[(n/2)%len(zeros)], ends[n%len(ends)], outs[(i+2*j)%len(outs)]
			if (i+j)%2 == 1 && j > 2 { // of these half are enough
				continue
			}
			f := []fill{fillRandom, fillTies, fillExtremes}[n%3]
			add(fmt.Sprintf("%s/%s/z%d/out%d/%s", w.name, weight.name, zero, out, end.name), "float", f, 6, 7, c, func(b *builder) {
				b.levels8(zero, 256, 128, n%2 == 0)
				conv(b, w.Window, out, weight.of)
				end.add(b)
			})
		}
	}
	// Groups: inputs and outputs of each. Whole blocks of 64 outputs, two groups for one, and groups
	// that are too small.
	for i, g := range []struct{ groups, in, out int }{{2, 16, 64}, {3, 33, 64}, {2, 20, 128}, {4, 16, 32}, {6, 18, 32}, {2, 65, 33}, {3, 17, 32}, {2, 15, 64}} {
		for j, weight := range []int{0, 1, 2, 3} {
			w, end := windows[(2*i+3*j)%len(windows)], ends[(i+j)%len(ends)]
			add(fmt.Sprintf("groups/%d of %d to %d/%s/%s/%s", g.groups, g.in, g.out, w.name, weights[weight].name, end.name), "float", fillRandom, 5, 6, g.groups*g.in, func(b *builder) {
				b.levels8(zeros[(i+j)%len(zeros)], 256, 128, false)
				out := g.groups * g.out
				b.add(bcnn.Conv2D{Window: w.Window, Out: out, Groups: g.groups, Weights: weights[weight].of(b, out*w.KH*w.KW, g.in)})
				end.add(b)
			})
		}
	}
	// Weights that take most of what a multiprocessor has of shared memory.
	add("wide/s8", "float", fillRandom, 6, 7, 128, func(b *builder) {
		b.levels8(8, 256, 128, true)
		conv(b, window(3, 1, 1, around), 40, s8)
		ends[1].add(b)
	})
	add("wide/binary/pool", "float", fillTies, 10, 12, 128, func(b *builder) {
		b.levels8(128, 256, 128, false)
		conv(b, window(3, 1, 1, around), 40, weights[3].of)
		ends[2].add(b)
		b.add(bcnn.MaxPool{Window: pools[0]})
	})
	for i, zero := range zeros {
		for _, flatten := range []bool{false, true} {
			add(fmt.Sprintf("dense/z%d/flatten=%v", zero, flatten), "float", fillRandom, 2+i, 3, channels[2*i], func(b *builder) {
				b.levels8(zero, 256, 128, flatten)
				if flatten {
					b.add(bcnn.Flatten{})
				}
				b.add(bcnn.Dense{Out: outs[i], Weights: weights[(i+1)%len(weights)].of(b, outs[i], b.shape().Values()), Bias: b.floats(outs[i], 3)})
				ends[i].add(b)
			})
			cases[len(cases)-1].Batch = 5 // kernels take four images at a time
		}
	}
	// As large as sums can be, of either sign.
	for _, zero := range []int{0, 255} {
		for _, weight := range []int8{-128, 127} {
			add(fmt.Sprintf("largest/z%d/w%d", zero, weight), "float", fillOnes, 3, 3, 7310, func(b *builder) {
				middle := float32(255) // every number is 255
				if zero == 255 {
					middle = -64 // or 0
				}
				b.levels8(zero, 256, middle, false)
				w := b.integers(integers{low: int(weight), levels: 1}, 3, b.shape().Values())
				for i := range w.Int8[:b.shape().Values()] {
					w.Int8[i] -= int8(i % 2 * int(weight) / 64) // whose sum float32 rounds
				}
				b.add(bcnn.Dense{Out: 3, Weights: w})
				b.quantize(activationLevels[1], true)
			})
		}
	}
	for i, pool := range pools {
		add(fmt.Sprintf("maxpool%dx%d", pool.KH, pool.KW), "float", []fill{fillRandom, fillExtremes, fillTies}[i], 7, 6, []int{65, 3, 16}[i], func(b *builder) {
			b.levels8(zeros[i], 256, 128, i == 0)
			b.add(bcnn.MaxPool{Window: pool})
			conv(b, window(2, 1, 1, bcnn.Padding{}), 9, s8)
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2}})
			b.levels8(zeros[i], 256, 128, true)
			conv(b, window(1, 1, 1, bcnn.Padding{}), 33, s8)
		})
	}
	add("residual", "float", fillRandom, 5, 4, 33, func(b *builder) {
		levels := b.levels8(8, 256, 128, false)
		conv(b, window(3, 1, 1, around), 33, s8)
		b.batchNorm(normMixed)
		b.add(bcnn.Add{}, b.last(), levels)
		levels = b.levels8(0, 256, 0, true)
		conv(b, window(1, 1, 1, bcnn.Padding{}), 33, weights[3].of)
		b.add(bcnn.Mul{}, b.last(), levels)
	})
	// Levels of which some never occur, as quantisers to sums of powers of 2 have them.
	for i, numbers := range [][]int{{0, 1, 2, 4}, {0, 2, 3}, {0, 1, 2, 3, 4, 6, 8, 12}, {0, 200}} {
		for j, each := range []bool{false, true} {
			add(fmt.Sprintf("uneven/%d of %d/each=%v", len(numbers), numbers[len(numbers)-1]+1, each), "float", []fill{fillRandom, fillExtremes}[(i+j)%2], 3, 5, []int{65, 3, 20, 16}[i], func(b *builder) {
				b.uneven(numbers, each)
				conv(b, window(3, 1, 1, around), 9, s8)
			})
		}
	}
	// 16 levels that a layer reads as planes, and another one as numbers.
	add("planes-and-numbers", "float", fillTies, 4, 4, 20, func(b *builder) {
		levels := b.levels8(7, 16, 8, false)
		conv(b, window(3, 1, 1, around), 20, weights[3].of)
		sums := b.last()
		b.add(bcnn.Conv2D{Window: window(3, 1, 1, around), Out: 20, Weights: s8(b, 20*9, 20)}, levels)
		b.add(bcnn.Add{}, b.last(), sums)
	})
	// From layer to layer.
	add("network", "bytes", fillRandom, 12, 11, 3, func(b *builder) {
		b.add(bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-2}})
		conv(b, window(3, 2, 1, around), 16, s8)
		for i, out := range []int{33, 16} {
			b.batchNorm(normMixed)
			b.add(bcnn.ReLU{})
			b.levels8(128*i, 256, 0, i == 1)
			conv(b, window(3, 1, 1, around), out, weights[i+1].of)
		}
		b.batchNorm(normMixed)
		b.levels8(0, 17, 8, false)
		b.add(bcnn.AvgPool{Window: bcnn.Window{KH: 6, KW: 6}})
		b.levels8(3, 256, 128, false)
		b.add(bcnn.Flatten{})
		b.add(bcnn.Dense{Out: 10, Weights: s8(b, 10, 16)})
		b.add(bcnn.Softmax{})
	})
	// Integer weights of the bytes of an image.
	for i, c := range []int{1, 3, 4, 5} {
		weight := []integers{weightLevels[0], {"s8", -128, 256}, weightLevels[2], {"s8", -128, 256}}[i]
		w := windows[i]
		add("image/"+weight.name+"/"+w.name, "bytes", []fill{fillRandom, fillOnes, fillZeros, fillTies}[i], 9, 8, c, func(b *builder) {
			b.add(bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-float32(zeros[i]) / 64}})
			conv(b, w.Window, outs[i], func(b *builder, rows, n int) bcnn.Weights { return b.integers(weight, rows, n) })
			ends[(i+1)%len(ends)].add(b)
		})
	}
	add("image/dense", "bytes", fillRandom, 3, 3, 5, func(b *builder) { b.add(bcnn.Dense{Out: 5, Weights: s8(b, 5, 45)}) })
	// Weights of 16 bits of the bytes of an image.
	for i, w := range windows {
		c, most := channels[i%4], []int{32639, 32768, 129}[i%3]
		add(fmt.Sprintf("image/s16/%s/%d", w.name, most), "bytes", []fill{fillRandom, fillOnes, fillTies}[i%3], 9, 8, c, func(b *builder) {
			b.add(bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-float32(zeros[i%4]) / 64}})
			conv(b, w.Window, outs[i], func(b *builder, rows, n int) bcnn.Weights { return b.integerWeights(most, rows, n) })
			ends[(i+1)%len(ends)].add(b)
		})
	}
	for _, out := range []int{5, 64, 130} { // as first layers of networks for large images
		add(fmt.Sprintf("image/s16/k7s2/out%d", out), "bytes", fillRandom, 23, 21, 3, func(b *builder) {
			conv(b, window(7, 2, 1, bcnn.Padding{Top: 3, Left: 3, Bottom: 3, Right: 3}), out, func(b *builder, rows, n int) bcnn.Weights { return b.integerWeights(32639, rows, n) })
			b.batchNorm(normMixed)
			b.add(bcnn.ReLU{})
		})
	}
	add("image/s16/dense", "bytes", fillRandom, 3, 3, 5, func(b *builder) {
		b.add(bcnn.Dense{Out: 5, Weights: b.integerWeights(32768, 5, 45)})
	})
	for _, zero := range []int{0, 255} { // 257·32,767·255 is the largest sum below 2³¹
		add(fmt.Sprintf("image/s16/largest/z%d", zero), "bytes", []fill{fillOnes, fillZeros}[zero/255], 1, 1, 257, func(b *builder) {
			b.add(bcnn.Affine{Bias: []float32{-float32(zero)}})
			w := bcnn.Weights{F32: slices.Concat(slices.Repeat([]float32{32767}, 257), slices.Repeat([]float32{-32767}, 257))}
			w.F32[256], w.F32[513] = 32766, -32766 // whose sum float32 rounds
			b.add(bcnn.Dense{Out: 2, Weights: w})
		})
	}
	// In front of integer weights of ±1 values, computed in float32, padding stays what it is.
	for _, value := range padValues {
		add(fmt.Sprintf("floats/pad=%d", value), "float", fillRandom, 5, 4, 17, func(b *builder) {
			b.binarySource(bcnn.ZeroIsPlus)
			w := window(3, 1, 1, bcnn.Padding{Top: 1, Left: 2, Right: 1})
			b.add(bcnn.Conv2D{Window: w, Out: 9, PadValue: value, Weights: s8(b, 9*9, 17)})
		})
	}
	return cases
}
