package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// acrossChannels wraps the handler of convolutions of sequences. If the sequence is the channels of
// one pixel, as in efficient channel attention (ECA), the channels become the columns of an image,
// and the columns of the result become channels again.
func acrossChannels(sequences handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		v := im.env[n.Input(0)].Value
		if v == nil || len(v.View) != 3 || !view.IsBatch(v.View[0]) || len(v.View[1]) != 0 ||
			v.Shape.C == 1 || v.Shape.Pixels() != 1 || !view.Only(v.View[2], view.C) || view.Product(v.View[2]) != v.Shape.C {
			return sequences(im, n)
		}
		v = im.build.Settle(v)
		v = im.build.InChannelOrder(n, v)
		columns := try.Value(budget.List(im.budget, v.Shape.C, func(i int) int32 { return int32(i) }))
		row := im.build.Pixels(n, "/row", v, bcnn.Pixels{Rows: []int32{0}, Cols: columns, BlockH: 1, BlockW: v.Shape.C})
		row.View = view.View{view.Batch, nil, view.All(view.W, row.Shape.W)}
		m := *n
		m.Inputs = slices.Clone(n.Inputs)
		m.Inputs[0] = im.alias(n.Input(0), "as a row", build.Operand{Value: row})
		r := sequences(im, &m)
		if r.Value == nil || r.Value.Shape.C != 1 {
			return r
		}
		return build.Operand{Value: im.build.Flatten(r.Value, n)}
	}
}
