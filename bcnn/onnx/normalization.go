package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) batchNorm(n *pb.Node) (build.Operand, error) {
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
	if !view.Only(v.View[1], view.C) || view.Product(v.View[1]) != v.Shape.C {
		return build.Operand{}, errors.New("its second dimension is not that of the channels in memory")
	}
	lists := make([][]float32, 4)
	for i := range lists {
		if lists[i], err = im.bias(n, i+1, v.Shape.C); err != nil {
			return build.Operand{}, err
		}
		if lists[i] == nil {
			return build.Operand{}, fmt.Errorf("input %d is missing", i+1)
		}
	}
	order, err := im.build.Channels(v, v.View[1])
	if err != nil {
		return build.Operand{}, err
	}
	if order != nil {
		for i, from := range lists {
			if lists[i], err = im.build.Floats(len(from)); err != nil {
				return build.Operand{}, err
			}
			for k, c := range order {
				lists[i][c] = from[k]
			}
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return build.Operand{Value: im.build.Emit(n, "", op, v.Shape, v)}, nil
}
