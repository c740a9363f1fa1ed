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
// become ±1 and an Affine layer behind.
func (b *Builder) Weighted(n *pb.Node, v *Value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (*Value, error) {
	packed, alpha, err := b.binaryWeights(rows, out, rowLen)
	if err != nil {
		return nil, err
	}
	gain := v.Gain
	if gain == 0 {
		gain = 1
	}
	padValue := 0
	if v.Pad != nil && v.Pad.Value != 0 {
		p := v.Pad.Value / gain
		if !v.Signs || packed == nil || p != 1 && p != -1 {
			return nil, fmt.Errorf("padding with %v at %v needs binary weights and an input of ±%v", v.Pad.Value, v.Pad.Node, v.Pad.Value)
		}
		padValue = int(p)
	}
	in := v
	if v.Pad != nil {
		in = v.With(v.Node)
		in.Pad = nil
	}
	if packed == nil {
		if in, err = b.Settle(in); err != nil {
			return nil, err
		}
		return b.Emit(n, "", build(bcnn.Weights{F32: rows}, bias, 0), shape, in), nil
	}
	w := bcnn.Weights{Bits: packed}
	if alpha == nil && gain == 1 {
		return b.Emit(n, "", build(w, bias, padValue), shape, in), nil
	}
	y := b.Emit(n, "", build(w, nil, padValue), shape, in)
	if alpha != nil && gain != 1 {
		y = b.Emit(n, "/gain", bcnn.Affine{Scale: []float32{gain}}, shape, y)
	} else if alpha == nil {
		alpha = []float32{gain}
	}
	return b.Emit(n, "/scale", bcnn.Affine{Scale: alpha, Bias: bias}, shape, y), nil
}

// binaryWeights packs weights that are ±α for one α > 0 per filter. packed is
// nil where there are others, alpha is nil where all α are 1.
func (b *Builder) binaryWeights(rows []float32, out, rowLen int) (packed []uint64, alpha []float32, err error) {
	size := len(rows) / out
	if size == 0 {
		return nil, nil, errors.New("the weights are empty")
	}
	if alpha, err = b.Floats(out); err != nil {
		return nil, nil, err
	}
	one, same := true, true
	for o := range out {
		filter := rows[o*size : (o+1)*size]
		a := float32(math.Abs(float64(filter[0])))
		binary := a != 0 && a-a == 0
		err := b.budget.Loop(size, func(lo, hi int) {
			for _, w := range filter[lo:hi] {
				binary = binary && (w == a || w == -a)
			}
		})
		if err != nil || !binary {
			return nil, nil, err
		}
		alpha[o] = a
		one = one && a == 1
		same = same && a == alpha[0]
	}
	words := bits.Words(rowLen)
	if err := b.budget.Charge(8 * int64(len(rows)/rowLen*words)); err != nil {
		return nil, nil, err
	}
	packed = make([]uint64, len(rows)/rowLen*words)
	for row := range len(rows) / rowLen {
		to, from := packed[row*words:][:words], rows[row*rowLen:][:rowLen]
		err := b.budget.Loop(rowLen, func(lo, hi int) { // lo is a multiple of a word
			bits.Pack(to[lo/bits.WordBits:][:bits.Words(hi-lo)], from[lo:hi], hi-lo)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	switch {
	case one:
		alpha = nil
	case same:
		alpha = alpha[:1]
	}
	return packed, alpha, nil
}
