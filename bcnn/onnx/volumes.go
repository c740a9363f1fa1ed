package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Volumes, of batch, channels, depth, height and width, are images whose planes lie one below the
// other.

// volume adds the layout of four dimensions behind the batch.
func (w *ways) volume(d []pb.Dim) {
	depth, height := w.fixed(d[1], 0), w.fixed(d[2], 0)
	rows := pb.Dim{Size: int64(depth) * int64(height)}
	if rows.Size == 0 {
		return
	}
	w.add(rows, d[3], d[0], func(s bcnn.Shape) view.View {
		planes := []view.Atom{{Axis: view.H, Stride: height, Size: depth}}
		if depth == 1 {
			planes = nil
		}
		return view.View{view.Batch, view.All(view.C, s.C), planes, view.All(view.H, height), view.All(view.W, s.W)}
	})
}

// poolVolumes makes of the handler of a pool over images one that also takes volumes: maxima and means
// over planes, and then over depths. Which positions of a window lie in the padding is told by each
// dimension, so that also how many count is a product.
func poolVolumes(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		v := im.env[n.Input(0)].Value
		if v == nil || v.Hole || len(v.View) != 5 || v.Type != pb.Float {
			return images(im, n)
		}
		pool := func(from, to int, v *build.Value, dims ...int) *build.Value {
			m := *n
			m.Inputs, m.Attrs = slices.Clone(n.Inputs), slices.Clone(n.Attrs)
			v = v.With(n)
			v.View = try.Value(v.View.Reshape(dims))
			m.Inputs[0] = im.alias(n.Input(0), "as planes", build.Operand{Value: im.build.Arrange(n, v, 1, 2, 3)})
			for i, a := range m.Attrs {
				each := map[string]int{"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2}[a.Name]
				if each == 0 {
					continue
				}
				if len(a.Is) != 3*each {
					try.Failf("%s has %d numbers, want %d", a.Name, len(a.Is), 3*each)
				}
				part, neutral := *a, int64(2-each) // of a dimension that stays: a size or step of 1, or no padding
				part.Is = nil
				for k := range each {
					list := slices.Clone(a.Is[3*k+from : 3*k+to])
					if len(list) == 1 {
						list = append(list, neutral)
					}
					part.Is = append(part.Is, list...)
				}
				m.Attrs[i] = &part
			}
			return images(im, &m).Value
		}
		v = im.build.Settle(v)
		dims := dimensions(v)
		c, depth := dims[1], dims[2]
		y := pool(1, 3, v, c*depth, dims[3], dims[4])
		height, width := y.Size(2), y.Size(3)
		y = pool(0, 1, im.build.Settle(y), c, depth, height*width)
		y = im.build.Settle(y).With(n)
		y.View = try.Value(y.View.Reshape([]int{c, y.Size(2), height, width}))
		return build.Operand{Value: y}
	}
}
