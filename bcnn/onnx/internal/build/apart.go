package build

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// apart emits a layer with weights [out][…][rowLen] on a concatenation of signs and levels of
// unlike factors, as a layer of its own for the channels of each part, whose sums are of
// integers, and the sum of their outputs. ok is false for other values, and for weights
// that are no few multiples of one number per filter.
func (b *Builder) apart(n *pb.Node, v *Value, rows []float32, out, rowLen int, bias []float32, shape bcnn.Shape, padded bool,
	build func(w bcnn.Weights, bias []float32, padValue int) bcnn.Op) (sum *Value, ok bool, err error) {
	parts := b.unlike[v.Layer]
	if parts == nil || v.Signs || v.Levels || v.Clip != nil || v.Step != nil || v.Stairs != nil || v.Windows != nil ||
		v.Pad != nil && v.Pad.Value != 0 || rowLen != v.Shape.C {
		return nil, false, nil
	}
	from := 0
	weights := make([][]float32, len(parts))
	for i, p := range parts {
		size := p.Shape.C
		list, err := b.Floats(len(rows) / rowLen * size)
		if err != nil {
			return nil, false, err
		}
		for r := range len(rows) / rowLen {
			copy(list[r*size:], rows[r*rowLen+from:][:size])
		}
		if few, err := b.few(p, list, out, size); err != nil || !few {
			return nil, false, err
		}
		weights[i] = list
		from += size
	}
	for i, p := range parts {
		p = p.With(p.Node)
		p.Pad = v.Pad
		y, err := b.Weighted(n, p, weights[i], out, p.Shape.C, bias, shape, padded, build)
		if err != nil {
			return nil, false, err
		}
		if bias = nil; sum != nil {
			y = b.Emit(n, "/parts", bcnn.Add{}, shape, sum, y)
		}
		sum = y
	}
	return sum, true, nil
}

// few reports whether weights on signs or levels are ±α or multiples of an α of each filter.
func (b *Builder) few(v *Value, rows []float32, out, rowLen int) (bool, error) {
	packed, _, _, err := b.binaryWeights(rows, out, rowLen)
	if packed != nil || err != nil {
		return packed != nil, err
	}
	integers, _, _, err := b.integerWeights(rows, out, v.Signs)
	return integers != nil, err
}
