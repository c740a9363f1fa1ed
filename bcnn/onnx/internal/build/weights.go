package build

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Weighted emits a layer with weights, [out][…][rowLen]. Weights ±α of a filter
// become ±1 and an Affine layer behind. padded says that the layer pads.
//
// Values ±g + o become ±1 too, exactly: with Σw the sum of a filter's weights,
//
//	Σ w·(g·s + o) = g·Σ w·s + o·Σ w
//
// which holds for padded taps as well if they read the s whose g·s + o is the
// value of the padding. So {0, 1} with zeros around is ½·(s + 1) with −1 around.
func (b *Builder) Weighted(n *pb.Node, v *Value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (*Value, error) {
	if y, ok, err := b.apart(n, v, rows, out, rowLen, bias, shape, padded, build); ok || err != nil {
		return y, err
	}
	packed, alpha, deviation, err := b.binaryWeights(rows, out, rowLen)
	if err != nil {
		return nil, err
	}
	var integers []int8
	if packed == nil && (v.Signs || v.Levels) {
		list, factors, off, err := b.integerWeights(rows, out, v.Signs)
		if err != nil {
			return nil, err
		}
		if integers = list; list != nil {
			alpha, deviation = factors, off
		} else if deviation == 0 {
			deviation = off
		}
	}
	of := weights{rows, out, packed, integers, alpha, deviation}
	if y, ok, err := b.offset(n, v, of, rowLen, bias, shape, padded, build); ok || err != nil {
		return y, err
	}
	if packed == nil && integers == nil {
		if y, ok, err := b.basesLayer(n, v, rows, out, rowLen, bias, shape, padded, build); ok || err != nil {
			return y, err
		}
	}
	y, err := b.weighted(n, v, of, bias, shape, padded, build)
	if err == nil && deviation > 0 && b.err == nil {
		b.Nearly = append(b.Nearly, Nearly{n, deviation, packed != nil || integers != nil, y.Layer})
	}
	return y, err
}

// weights are those of a layer: real ones of out filters, and where they are binary
// the packed signs, or where they are integers these, and what binaryWeights says of
// their factors.
type weights struct {
	rows     []float32
	out      int
	packed   []uint64
	integers []int8
	alpha    []float32
	// deviation is what binaryWeights says of it.
	deviation float64
}

// without returns weight i as it is without its factor.
func (w *weights) without(i int) int {
	switch {
	case w.integers != nil:
		return int(w.integers[i])
	case w.rows[i] > 0:
		return 1
	}
	return -1
}

// weighted is Weighted once the weights are known.
func (b *Builder) weighted(n *pb.Node, v *Value, of weights, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (y *Value, err error) {
	rows, packed, alpha := of.rows, of.packed, of.alpha
	fill := float32(0) // around the image
	in := v
	if v.Pad != nil {
		fill = v.Pad.Value
		in = v.With(v.Node)
		in.Pad = nil
	}
	around := (fill - v.Offset) / v.gain()
	if !padded {
		around = 0
	}
	binary := packed != nil || of.integers != nil
	if v.Levels {
		binary = binary && around == 0 && (v.Offset == 0 || !padded)
	} else {
		binary = binary && v.Signs && (around == 0 || around == 1 || around == -1)
	}
	if fill != 0 && !binary {
		return nil, fmt.Errorf("padding with %v at %v needs binary weights and an input of ±%v", fill, v.Pad.Node, fill)
	}
	if !binary {
		if in, err = b.Settle(in); err != nil {
			return nil, err
		}
		if packed == nil {
			return b.Emit(n, "", build(bcnn.Weights{F32: rows}, bias, 0), shape, in), nil
		}
		around = 0
	}
	w := bcnn.Weights{Bits: packed, Int8: of.integers}
	gain, offset := float32(1), float32(0)
	if binary {
		gain, offset = v.gain(), v.Offset
	}
	plain := alpha == nil && gain == 1 && offset == 0
	var inside []float32 // the bias of the layer itself
	if plain {
		inside = bias
	}
	y = b.Emit(n, "", build(w, inside, int(around)), shape, in)
	switch {
	case plain:
		return y, nil
	case offset != 0:
		// Integers are added before the gain where they are some: a sum of zeros stays 0.
		sums, integers, err := b.filterSums(&of, float64(offset)/float64(gain))
		if err != nil {
			return nil, err
		}
		if integers {
			y = b.Emit(n, "/values", bcnn.Affine{Bias: sums}, shape, y)
			if gain != 1 {
				y = b.Emit(n, "/gain", bcnn.Affine{Scale: []float32{gain}}, shape, y)
			}
		} else {
			if sums, _, err = b.filterSums(&of, float64(offset)); err != nil {
				return nil, err
			}
			y = b.Emit(n, "/values", bcnn.Affine{Scale: []float32{gain}, Bias: sums}, shape, y)
		}
		if alpha == nil && bias == nil {
			return y, nil
		}
	case alpha == nil:
		alpha = []float32{gain}
	case gain != 1:
		y = b.Emit(n, "/gain", bcnn.Affine{Scale: []float32{gain}}, shape, y)
	}
	return b.Emit(n, "/scale", bcnn.Affine{Scale: alpha, Bias: bias}, shape, y), nil
}

// filterSums returns the sums of each filter's weights without their factors, times a
// factor, and whether all of that are integers that float32 holds.
func (b *Builder) filterSums(of *weights, factor float64) (sums []float32, integers bool, err error) {
	if sums, err = b.Floats(of.out); err != nil {
		return nil, false, err
	}
	size := len(of.rows) / of.out
	integers = true
	for o := range sums {
		sum := 0
		err := b.budget.Loop(size, func(lo, hi int) {
			for i := o*size + lo; i < o*size+hi; i++ {
				sum += of.without(i)
			}
		})
		if err != nil {
			return nil, false, err
		}
		x := factor * float64(sum)
		sums[o] = float32(x)
		integers = integers && x == math.Trunc(x) && math.Abs(x) <= 1<<24
	}
	return sums, integers, nil
}

// nearly is the largest deviation, relative to α, of weights that are said to be
// almost ±α.
const nearly = 0.01

// binaryWeights packs weights that are ±α for one α > 0 per filter, up to the
// tolerance of the options. packed is nil where there are others, alpha is nil where
// all α are 1. deviation is the largest distance from ±α, relative to α, of weights
// that are at least almost so.
func (b *Builder) binaryWeights(rows []float32, out, rowLen int) (packed []uint64, alpha []float32, deviation float64, err error) {
	size := len(rows) / out
	if size == 0 {
		return nil, nil, 0, errors.New("the weights are empty")
	}
	if alpha, err = b.Floats(out); err != nil {
		return nil, nil, 0, err
	}
	for o := range out {
		least, most := float32(math.Inf(1)), float32(0)
		err := b.budget.Loop(size, func(lo, hi int) {
			for _, w := range rows[o*size+lo : o*size+hi] {
				w = max(w, -w)
				least, most = min(least, w), max(most, w)
			}
		})
		if err != nil {
			return nil, nil, 0, err
		}
		if !(least > 0) || math.IsInf(float64(most), 0) {
			return nil, nil, 0, nil
		}
		middle := (float64(least) + float64(most)) / 2
		off := (float64(most) - float64(least)) / 2 / middle
		if !(off <= max(nearly, b.options.WeightTolerance, 2*b.Rounding)) {
			return nil, nil, 0, nil
		}
		if math.Abs(middle-1) <= off {
			middle = 1
		}
		alpha[o] = float32(middle)
		a := float64(alpha[o])
		deviation = max(deviation, (a-float64(least))/a, (float64(most)-a)/a)
	}
	if deviation > max(b.options.WeightTolerance, 2*b.Rounding) {
		return nil, nil, deviation, nil
	}
	one, same := true, true
	for _, a := range alpha {
		one = one && a == 1
		same = same && a == alpha[0]
	}
	words := bits.Words(rowLen)
	if err := b.budget.Charge(8 * int64(len(rows)/rowLen*words)); err != nil {
		return nil, nil, 0, err
	}
	packed = make([]uint64, len(rows)/rowLen*words)
	for row := range len(rows) / rowLen {
		to, from := packed[row*words:][:words], rows[row*rowLen:][:rowLen]
		err := b.budget.Loop(rowLen, func(lo, hi int) { // lo is a multiple of a word
			bits.Pack(to[lo/bits.WordBits:][:bits.Words(hi-lo)], from[lo:hi], hi-lo)
		})
		if err != nil {
			return nil, nil, 0, err
		}
	}
	switch {
	case one:
		alpha = nil
	case same:
		alpha = alpha[:1]
	}
	return packed, alpha, deviation, nil
}
