package measure

import (
	"context"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// work is what a step cannot do without for a batch, whatever computes it.
type work struct {
	products      int64 // of bits
	read, written int64 // bytes, each counted once, without padding bits
}

// bytes is the memory that the work goes through.
func (w work) bytes() int64 { return w.read + w.written }

// none says that the rates of a roofline do not compare with a step: not all it reads is bits.
func (w work) none() bool { return w.read == 0 }

// workOf returns the work of step i on bits. filled are the rows of its input's planes
// that have a bit, of all images; nil where it has one plane.
func workOf(p *plan.Plan, i, batch int, filled []bool) work {
	s := p.Steps[i]
	for _, t := range s.In {
		if p.Tensors[t].DType != bcnn.Bits {
			return work{}
		}
	}
	var w work
	switch op := s.Op.(type) {
	case *plan.Conv:
		if !sumsBits(p, s) {
			return work{}
		}
		in := p.Tensors[s.In[0]].Shape
		weights := op.Out * op.KH * op.KW * (in.C / op.Groups)
		w.products = productsOf(op, in, p.Tensors[s.Out].Shape, batch, filled)
		w.read = (int64(weights) + 7) / 8
	case *plan.MaxPool:
	default:
		return work{}
	}
	for _, t := range s.In {
		w.read += int64(batch) * bytesOf(p.Tensors[t])
	}
	w.written = int64(batch) * bytesOf(p.Tensors[s.Out])
	return w
}

// bytesOf returns the bytes of a tensor of one image, without padding bits.
func bytesOf(t plan.Tensor) int64 {
	if t.DType == bcnn.Bits {
		return (int64(t.Shape.Values()) + 7) / 8
	}
	return t.Shape.Bytes(t.DType)
}

// productsOf returns the products of a convolution that its result depends on: those of
// outputs that pooling reads; of the lower planes those of rows that have a bit, since a
// row without one adds the same to all sums. Padded taps of the highest plane count.
func productsOf(op *plan.Conv, in, out bcnn.Shape, batch int, filled []bool) int64 {
	image, planes := op.Image(in), max(op.InPlanes, 1)
	needed := op.Window.Output(image, op.Out)
	if op.Pool != nil {
		needed.H, needed.W = out.H/max(op.OutPlanes, 1)*op.Pool.KH, out.W*op.Pool.KW
	}
	rows := int64(batch) * int64(needed.H) * int64(op.KH) // of the highest plane
	for n := range batch {
		for y := range needed.H {
			for k := range op.KH {
				from := y*op.StrideH - op.Pad.Top + k*op.DilationH
				if from < 0 || from >= image.H {
					continue
				}
				for plane := range planes - 1 {
					if filled[n*in.H+from*planes+plane] {
						rows++
					}
				}
			}
		}
	}
	return rows * int64(needed.W) * int64(op.Out) * op.Taps(in.C) / int64(op.KH)
}

// planeSteps returns the steps that sum products of several planes.
func planeSteps(p *plan.Plan) []int {
	var list []int
	for i, s := range p.Steps {
		if conv, ok := s.Op.(*plan.Conv); ok && conv.InPlanes > 1 && sumsBits(p, s) {
			list = append(list, i)
		}
	}
	return list
}

// filledRows returns, for the tensors that steps on several planes read, which of their rows
// have a bit on the images that are timed.
func filledRows(ctx context.Context, dev *backend.Device, p *plan.Plan, opts Options) (map[int][]bool, error) {
	steps := planeSteps(p)
	if len(steps) == 0 {
		return nil, nil
	}
	rows := map[int][]bool{}
	for _, i := range steps {
		rows[p.Steps[i].In[0]] = nil
	}
	note := func(tensor int, t bcnn.Tensor) {
		if _, wanted := rows[tensor]; wanted {
			rows[tensor] = filledRowsOf(t)
		}
	}
	opts.Timed = nil
	opts.Tap = func(step int, _ string, t bcnn.Tensor) { note(p.Steps[step].Out, t) }
	r, err := NewRunner(ctx, dev, p, opts.Options)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.fill(NewRand(Seed), opts.Zeros)
	for i, t := range r.in {
		note(i, t)
	}
	_, err = r.Run(ctx)
	return rows, err
}

// filledRowsOf tells of each row of a batch whether it has a bit.
func filledRowsOf(t bcnn.Tensor) []bool {
	list := make([]bool, t.N*t.Shape.H)
	row := len(t.Words) / len(list)
	for y := range list {
		for _, w := range t.Words[y*row:][:row] {
			if w != 0 {
				list[y] = true
				break
			}
		}
	}
	return list
}

// lowerShare returns which share of the rows of the lower planes has a bit.
func lowerShare(filled []bool, planes int) float64 {
	n, all := 0, 0
	for i, f := range filled {
		if i%planes == planes-1 {
			continue
		}
		all++
		if f {
			n++
		}
	}
	return float64(n) / float64(max(all, 1))
}
