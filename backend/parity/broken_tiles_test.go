package parity

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// dimension is one along which outputs are divided into blocks.
type dimension struct {
	name string
	of   func(s spot) (i, n int)  // number of the spot, and how many there are
	at   func(s spot, i int) spot // the spot with another number
}

var (
	images = dimension{"images", func(s spot) (int, int) { return s.n, s.N }, func(s spot, i int) spot { s.n = i; return s }}
	rows   = dimension{"rows", func(s spot) (int, int) { return s.y, s.H }, func(s spot, i int) spot { s.y = i; return s }}
	cols   = dimension{"columns", func(s spot) (int, int) { return s.x, s.W }, func(s spot, i int) spot { s.x = i; return s }}
	depth  = dimension{"channels", func(s spot) (int, int) { return s.c, s.C }, func(s spot, i int) spot { s.c = i; return s }}
	// Of an image, where rows do not matter.
	pixels = dimension{"pixels", func(s spot) (int, int) { return s.y*s.W + s.x, s.H * s.W }, func(s spot, i int) spot { s.y, s.x = i/s.W, i%s.W; return s }}
	values = dimension{"values", func(s spot) (int, int) { return (s.y*s.W+s.x)*s.C + s.c, s.H * s.W * s.C }, func(s spot, i int) spot {
		s.y, s.x, s.c = i/s.C/s.W, i/s.C%s.W, i%s.C
		return s
	}}
)

// remainder is a fault of what blocks leave over: where that is so many, the last of them are not
// computed, and what the block before has left there is taken for them. Kernels have code of
// their own for it: masks, shorter loops, blocks that overlap.
type remainder struct {
	kind, in    string
	along       dimension
	block, rest int
}

func (r remainder) device() brokenDevice {
	return brokenDevice{
		name: fmt.Sprintf("%s (%s…): %d of the %s beyond blocks of %d", r.kind, r.in, r.rest, r.along.name, r.block),
		dev: in(r.kind, misplaced(func(s spot) spot {
			i, n := r.along.of(s)
			if n < r.block || n%r.block != r.rest || i < n-1 {
				return s
			}
			return r.along.at(s, max(i-r.block, 0))
		})),
		in: r.in, says: "): image",
	}
}

// remainders are those of blocks that backends have.
func remainders() (all []brokenDevice) {
	for _, kind := range []struct{ kind, in string }{{"conv of bits", "conv/bits/"}, {"conv of uint8", "conv/bytes/"}, {"conv of float32", "conv/float/"}} {
		for _, r := range []remainder{
			{along: depth, block: 8, rest: 7}, {along: depth, block: 16, rest: 1}, {along: depth, block: 16, rest: 15}, {along: depth, block: 32, rest: 1},
			{along: depth, block: 64, rest: 1}, {along: depth, block: 64, rest: 63},
			{along: cols, block: 2, rest: 1}, {along: cols, block: 3, rest: 2}, {along: cols, block: 4, rest: 1}, {along: cols, block: 4, rest: 3},
			{along: cols, block: 6, rest: 5}, {along: cols, block: 8, rest: 7}, {along: cols, block: 16, rest: 1},
			{along: rows, block: 2, rest: 1}, {along: rows, block: 4, rest: 3}, {along: rows, block: 8, rest: 1}, {along: rows, block: 32, rest: 1},
		} {
			r.kind, r.in = kind.kind, kind.in
			all = append(all, r.device())
		}
	}
	for _, kind := range []struct{ kind, in string }{{"dense of bits", "dense/bits/"}, {"dense of uint8", "dense/bytes/"}, {"dense of float32", "dense/float/"}} {
		for _, r := range []remainder{{along: depth, block: 8, rest: 7}, {along: depth, block: 16, rest: 1}, {along: depth, block: 64, rest: 1}, {along: images, block: 2, rest: 1}, {along: images, block: 4, rest: 1}} {
			r.kind, r.in = kind.kind, kind.in
			all = append(all, r.device())
		}
	}
	for _, r := range []remainder{
		// Weights of 8 bits have kernels of their own.
		{"conv of uint8", "bytes/", depth, 16, 1}, {"conv of uint8", "bytes/", depth, 64, 2}, {"conv of uint8", "bytes/", cols, 4, 3}, {"conv of uint8", "bytes/", rows, 4, 1},
		{"binarize", "binarize/", values, 8, 1}, {"binarize", "binarize/", cols, 8, 1},
		{"sign", "sign-", values, 16, 12}, {"sign", "sign-", depth, 64, 2}, {"affine", "affine", values, 16, 12}, {"affine of bits", "affine", depth, 32, 1},
		{"quantize", "levels/", values, 16, 4}, {"table", "table/", depth, 16, 1}, {"maxpool of float32", "maxpool/", depth, 16, 1}, {"maxpool of bits", "maxpool/", depth, 64, 2},
		{"maxpool of uint8", "bytes/", depth, 64, 1}, {"avgpool of float32", "avgpool/", depth, 8, 3}, {"avgpool of bits", "avgpool/", depth, 32, 1},
		{"add", "add+", values, 8, 1}, {"mul", "mul/", depth, 16, 1}, {"min", "min/", depth, 8, 2}, {"concat of float32", "concat/", depth, 16, 1},
		{"concat of bits", "concat/", depth, 64, 1}, {"channels of float32", "channels/", depth, 16, 1}, {"channels of bits", "channels/", pixels, 64, 17},
		{"pixels of bits", "pixels/", cols, 16, 5}, {"pixels of float32", "pixels/", depth, 8, 1}, {"resample", "resample/", depth, 4, 1}, {"topk", "topk/", pixels, 16, 3},
		{"matmul of bits", "matmul/", depth, 4, 1}, {"matmul of float32", "matmul/", depth, 4, 1}, {"transpose of bits", "transpose/", pixels, 2, 1}, {"flatten of bits", "flatten/", depth, 64, 47},
	} {
		all = append(all, r.device())
	}
	return all
}

// wordsBeyond is the fault that words of a row of bits, or values of one of bytes or floats, that
// blocks leave over are those of the block before in a register. The row is the channels of
// a pixel, or all inputs of a dense layer.
func wordsBeyond(block, rest int) ranFunc {
	return ofInput(func(op plan.Op, in bcnn.Tensor) bool {
		pixel := in.Shape.C
		if in.DType == bcnn.Bits {
			pixel = bits.Words(in.Shape.C)
		}
		row := pixel
		if op.(*plan.Conv).Dense {
			row *= in.Shape.Pixels()
		}
		if row < block || row%block != rest {
			return false
		}
		for i := range max(len(in.Words), len(in.U8), len(in.F32)) {
			switch {
			case i%row < row-rest:
			case in.DType == bcnn.Uint8:
				in.U8[i] = in.U8[i-block]
			case in.DType == bcnn.Float32:
				in.F32[i] = in.F32[i-block]
			case i%pixel == pixel-1:
				in.Words[i] = in.Words[i-block] & bits.TailMask(in.Shape.C)
			default:
				in.Words[i] = in.Words[i-block]
			}
		}
		return true
	}, everywhere)
}

// lastImage is the fault that the last image of some batches is that before it.
func lastImage(block int) ranFunc {
	return misplaced(func(s spot) spot {
		if s.N > block && s.N%block == 1 && s.n == s.N-1 {
			s.n--
		}
		return s
	})
}

// brokenTiles are faults of the division of steps into tiles and vectors.
var brokenTiles = slices.Concat(remainders(), []brokenDevice{
	{"words of bits beyond pairs", in("conv of bits", wordsBeyond(2, 1)), "conv/bits/", "(conv): image"},
	{"words of bits beyond blocks of 4", in("conv of bits", wordsBeyond(4, 1)), "conv/bits/", "(conv): image"},
	{"words of a dense layer beyond blocks of 8", in("dense of bits", wordsBeyond(8, 1)), "dense/bits/", "(dense): image"},
	{"the last of a dense layer's words beyond blocks of 4", in("dense of bits", wordsBeyond(4, 2)), "dense/bits/", "(dense): image"},
	{"channels of bytes beyond blocks of 4", in("conv of uint8", wordsBeyond(4, 1)), "bytes/", "(conv): image"},
	{"channels of bytes beyond blocks of 64", in("conv of uint8", wordsBeyond(64, 36)), "bytes/", "(conv): image"},
	{"inputs of bytes beyond blocks of 16", in("dense of uint8", wordsBeyond(16, 4)), "dense/bytes/", "(dense): image"},
	{"channels of floats beyond blocks of 8", in("conv of float32", wordsBeyond(8, 1)), "conv/float/", "(conv): image"},
	{"inputs of floats beyond blocks of 4", in("dense of float32", wordsBeyond(4, 3)), "dense/float/", "(dense): image"},
	{"the last image of pairs", in("conv of bits", lastImage(2)), "conv/bits/", "(conv): image 2"},
	{"the last image of fours", in("conv of bits", lastImage(4)), "conv/bits/", "(conv): image 4"},
	{"the last image of pairs, of a pool", in("maxpool", lastImage(2)), "maxpool/", "(maxpool): image 2"},
})
