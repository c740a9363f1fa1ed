package plan

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Describe returns the shape of the values of each tensor, and their type: "32×32×16 bits, 2 planes" for
// planes, which have as many rows of bits for a row of values.
func (p *Plan) Describe() []string {
	planes := make([]int, len(p.Tensors))
	for _, s := range p.Steps {
		switch op := s.Op.(type) {
		case *Sign:
			planes[s.Out] = op.Planes
		case *Conv:
			planes[s.Out] = op.OutPlanes
		case *MaxPool, *Channels, *Pixels, *Concat:
			planes[s.Out] = planes[s.In[0]]
		}
	}
	texts := make([]string, len(p.Tensors))
	for i, t := range p.Tensors {
		texts[i] = fmt.Sprintf("%v %v", t.Shape, t.DType)
		if n := planes[i]; n > 1 && t.DType == bcnn.Bits {
			values := t.Shape
			values.H /= n
			texts[i] = fmt.Sprintf("%v %v, %d planes", values, t.DType, n)
		}
	}
	return texts
}
