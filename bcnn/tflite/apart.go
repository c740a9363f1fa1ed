package tflite

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// mostParts is how many parts of a concatenation are kept apart.
const mostParts = 16

// apart emits a layer with weights [out][…][rowLen] on a concatenation of parts that are
// signs or levels of unlike factors, as a layer of its own for the channels of each part,
// whose sums are of integers, and the sum of their outputs; nil where a part is of real
// numbers, or its weights are.
func (im *importer) apart(o *schema.Operator, v *value, rows, bias []float32, out, rowLen int, shape bcnn.Shape,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) (*value, error) {
	parts := v.parts
	if rowLen != v.shape.C || len(parts) > mostParts {
		return nil, nil
	}
	from, deviation := 0, 0.0
	weights, few := make([][]float32, len(parts)), make([]multiple, len(parts))
	for i, p := range parts {
		if !p.signs && !p.levels {
			return nil, nil
		}
		list, err := im.numbers(len(rows) / rowLen * p.shape.C)
		if err != nil {
			return nil, err
		}
		for r := range len(rows) / rowLen {
			copy(list[r*p.shape.C:], rows[r*rowLen+from:][:p.shape.C])
		}
		if few[i], err = im.multiplesOf(p, list, out); err != nil || few[i].alpha == nil {
			return nil, err
		}
		weights[i], deviation = list, max(deviation, few[i].deviation)
		from += p.shape.C
	}
	im.nearly(o, deviation)
	var sum *value
	for i, p := range parts {
		p := *p
		p.pad = v.pad
		y, err := im.layer(o, &p, weights[i], few[i], bias, p.shape.C, shape, build)
		if err != nil {
			return nil, err
		}
		if bias = nil; sum != nil {
			if y, err = im.emit(o, "/parts", bcnn.Add{}, shape, sum, y); err != nil {
				return nil, err
			}
		}
		sum = y
	}
	return floats(sum, nil)
}
