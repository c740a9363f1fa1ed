package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) batchNorm(n *pb.Node) (build.Operand, error) {
	if r, err := im.operand(n, 0); err != nil {
		return build.Operand{}, err
	} else if r.Constant != nil {
		return im.standardised(n, r.Constant)
	}
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	for _, flag := range []struct {
		name    string
		allowed int64
	}{{"training_mode", 0}, {"spatial", 1}} {
		if set, err := n.Int(flag.name, flag.allowed); err != nil {
			return build.Operand{}, err
		} else if set != flag.allowed {
			return build.Operand{}, fmt.Errorf("%s %d is not supported", flag.name, set)
		}
	}
	epsilon, err := n.Float("epsilon", 1e-5)
	if err != nil {
		return build.Operand{}, err
	}
	if len(v.View) < 2 || !view.IsBatch(v.View[0]) {
		return build.Operand{}, errors.New("its input does not have the dimensions batch and channels first")
	}
	if !view.Only(v.View[1], view.C) && len(v.View) == 2 {
		v = im.build.Flattened(v, n)
	}
	channels := v.View[1]
	if !view.Only(channels, view.C) {
		return build.Operand{}, errors.New("its second dimension is not that of the channels in memory")
	}
	lists := make([][]float32, 4)
	for i := range lists {
		from, err := im.bias(n, i+1, view.Product(channels))
		if err == nil && from == nil {
			err = fmt.Errorf("input %d is missing", i+1)
		}
		if err != nil {
			return build.Operand{}, err
		}
		if lists[i] = from; slices.Equal(channels, view.Whole(view.C, v.Shape.C)) {
			continue
		}
		// They are in another order in memory, or only a part of the dimension that is
		// the channels there, as where a vector has become an image.
		if lists[i], err = im.build.Floats(v.Shape.C); err != nil {
			return build.Operand{}, err
		}
		if err := im.budget.Charge(int64(len(channels)) * int64(v.Shape.C)); err != nil {
			return build.Operand{}, err
		}
		for c := range lists[i] {
			lists[i][c] = from[view.Position(channels, c)]
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return build.Operand{Value: im.build.Emit(n, "", op, v.Shape, v)}, nil
}
