package parity

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// matMulCases are cases of products of two matrices and of the swap of columns and channels:
// rows alone and of heads, sides below, at and beyond those of words, blocks and tiles.
func matMulCases() []Case {
	var cases []Case
	for i, side := range [][2]int{{1, 1}, {3, 5}, {7, 64}, {33, 9}, {64, 64}, {65, 130}, {130, 31}} {
		for k, depth := range []int{1, 16, 31, 33, 64, 100, 193} {
			if (i+k)%2 == 1 && i > 0 && k > 0 {
				continue
			}
			for _, in := range []string{"bits", "float"} {
				h := 1 + (i+k)%3
				f := fillRandom
				if in == "float" && depth < 33 {
					f = []fill{fillExtremes, fillTies}[k%2]
				}
				shape := [3]int{h, side[0] + side[1], depth}
				cases = append(cases, layerCase(fmt.Sprintf("matmul/%dx%d", side[0], side[1]), in, shape, f, func(b *builder) {
					b.matMul(side[0])
				}))
			}
		}
	}
	for _, in := range []string{"bits", "float", "bytes"} {
		for i, c := range []int{1, 3, 31, 64, 65, 130} {
			for k, w := range []int{1, 33, 64, 70} {
				if in == "bytes" && c > 3 || i > 0 && (i+k)%2 == 1 {
					continue
				}
				cases = append(cases, layerCase("transpose", in, [3]int{1 + k%2, w, c}, fillRandom, func(b *builder) { b.add(bcnn.Transpose{}) }))
			}
		}
		cases = append(cases, layerCase("matmul/with itself", in, [3]int{2, 9, 3}, fillRandom, func(b *builder) { b.add(bcnn.MatMul{}, b.last(), b.last()) }),
			layerCase("matmul/behind layers", in, [3]int{4, 6, 3}, fillRandom, func(b *builder) {
				b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 40}, false)
				b.batchNorm(normTies)
				b.matMul(2)
				b.add(bcnn.Affine{Scale: []float32{0.125}})
				b.add(bcnn.Sign{Zero: b.zero()})
			}))
	}
	for _, planes := range activationLevels[:3] {
		cases = append(cases, layerCase("transpose/levels", "bits", [3]int{3, 64, 20}, fillRandom, func(b *builder) {
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 33}, false)
			b.quantize(planes, true)
			b.add(bcnn.Transpose{})
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 7}, false)
		}))
	}
	for _, binary := range []bool{true, false} {
		name := "float"
		if binary {
			name = "bits"
		}
		cases = append(cases, Case{Name: "matmul/attention of " + name, Batch: 2, fill: fillRandom, build: func(b *builder) *bcnn.Network {
			b.source("float", 1, 19, 48)
			b.attention(3, 48, binary)
			return b.net
		}})
	}
	return cases
}

// matMul multiplies the first columns of the last layer by the others.
func (b *builder) matMul(first int) {
	s, in := b.shape(), b.last()
	rows := picked(s.H, func(i int) int { return i })
	x := b.add(bcnn.Pixels{Rows: rows, Cols: picked(first, func(i int) int { return i })}, in)
	y := b.add(bcnn.Pixels{Rows: rows, Cols: picked(s.W-first, func(i int) int { return first + i })}, in)
	b.add(bcnn.MatMul{}, x, y)
}

// attention is that of so many heads on so many channels: softmax(q·kᵀ)·v, of signs q and k if
// binary, with weights of attention that are ±1, too.
func (b *builder) attention(heads, channels int, binary bool) {
	in := b.last()
	s := b.shape()
	tokens := s.W
	split := bcnn.Pixels{Rows: picked(heads, func(i int) int { return i }), Cols: picked(tokens, func(i int) int { return i }), BlockH: heads, BlockW: 1}
	project := func() int {
		b.add(bcnn.Affine{Scale: b.floats(channels, 1), Bias: b.floats(channels, 1)}, in)
		if binary {
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: channels}, false)
			b.add(bcnn.Sign{Zero: b.zero()})
		}
		return b.add(split)
	}
	q, k, v := project(), project(), project()
	score := b.add(bcnn.MatMul{}, q, k)
	b.add(bcnn.Affine{Scale: []float32{0.25}})
	if binary {
		b.add(bcnn.Sign{Zero: b.zero()})
		score = b.last()
	} else {
		top := b.add(bcnn.TopK{K: 1, Values: true})
		b.add(bcnn.Affine{Scale: []float32{-1}}, top)
		b.add(bcnn.Channels{Index: make([]int32, tokens)})
		b.add(bcnn.Add{}, score, b.last())
		score = b.add(bcnn.Function{Name: bcnn.Exp})
	}
	turned := b.add(bcnn.Transpose{}, v)
	b.add(bcnn.MatMul{}, score, turned)
	b.batchNorm(normTies)
}
