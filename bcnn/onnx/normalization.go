package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

func (im *importer) batchNorm(n *pb.Node) build.Operand {
	if r := im.operand(n, 0); r.Constant != nil {
		return im.standardised(n, r.Constant)
	}
	v := im.settled(n, 0)
	for _, flag := range []struct {
		name    string
		allowed int64
	}{{"training_mode", 0}, {"spatial", 1}} {
		if set := n.Int(flag.name, flag.allowed); set != flag.allowed {
			try.Failf("%s %d is not supported, want its default: export the model in eval mode", flag.name, set)
		}
	}
	epsilon := n.Float("epsilon", 1e-5)
	if len(v.View) < 2 || !view.IsBatch(v.View[0]) {
		try.Failf("its input must have the batch and the channels as its first two dimensions")
	}
	switch {
	case view.Only(v.View[1], view.C):
	case len(v.View) == 2:
		v = im.build.Flatten(v, n)
	default: // such as heads of attention that were merged
		v = im.overChannelsOf(n, v, 1)
	}
	channels := v.View[1]
	if !view.Only(channels, view.C) {
		try.Failf("the second dimension of its input must be the channels, which a Reshape or Transpose before it has changed")
	}
	lists := make([][]float32, 4)
	for i := range lists {
		from := im.bias(n, i+1, view.Product(channels))
		if from == nil {
			try.Failf("input %d is missing", i+1)
		}
		if lists[i] = from; slices.Equal(channels, view.All(view.C, v.Shape.C)) {
			continue
		}
		// The channels have another order in memory, or dimension 1 is only a part of them, as in a
		// vector that has become an image.
		lists[i] = im.build.NewFloats(v.Shape.C)
		try.Check(im.budget.Charge(int64(len(channels)) * int64(v.Shape.C)))
		for c := range lists[i] {
			lists[i][c] = from[view.Position(channels, c)]
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return build.Operand{Value: im.build.Emit(n, "", op, v.Shape, v)}
}
