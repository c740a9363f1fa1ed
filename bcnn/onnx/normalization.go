package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

func (im *importer) batchNorm(n *pb.Node) (result, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return result{}, err
	}
	for _, flag := range []struct {
		name    string
		allowed int64
	}{{"training_mode", 0}, {"spatial", 1}} {
		if set, err := n.Int(flag.name, flag.allowed); err != nil {
			return result{}, err
		} else if set != flag.allowed {
			return result{}, fmt.Errorf("%s %d is not supported", flag.name, set)
		}
	}
	epsilon, err := n.Float("epsilon", 1e-5)
	if err != nil {
		return result{}, err
	}
	if len(v.view) < 2 || !view.IsBatch(v.view[0]) {
		return result{}, errors.New("its input does not have the dimensions batch and channels first")
	}
	if !view.Only(v.view[1], view.C) && len(v.view) == 2 {
		v = im.build.flattened(v, n)
	}
	if !view.Only(v.view[1], view.C) || view.Product(v.view[1]) != v.shape.C {
		return result{}, errors.New("its second dimension is not that of the channels in memory")
	}
	lists := make([][]float32, 4)
	for i := range lists {
		if lists[i], err = im.bias(n, i+1, v.shape.C); err != nil {
			return result{}, err
		}
		if lists[i] == nil {
			return result{}, fmt.Errorf("input %d is missing", i+1)
		}
	}
	if order := v.channels(v.view[1]); order != nil {
		for i, from := range lists {
			if lists[i], err = im.build.floats(len(from)); err != nil {
				return result{}, err
			}
			for k, c := range order {
				lists[i][c] = from[k]
			}
		}
	}
	op := bcnn.BatchNorm{Gamma: lists[0], Beta: lists[1], Mean: lists[2], Var: lists[3], Epsilon: epsilon}
	return result{value: im.build.emit(n, "", op, v.shape, v)}, nil
}
