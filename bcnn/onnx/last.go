package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// channelsLast makes of the handler of an operator on images one for QONNX's domain channels_last,
// in which channels are the last dimension of the first input, of the result and of a convolution's
// weights. The second input of other operators is a vector, which stays as it is.
func channelsLast(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		m := *n
		m.Inputs = slices.Clone(n.Inputs)
		for i := range min(len(n.Inputs), 2) {
			r := im.operand(n, i)
			r = im.permute(n, r, lastFirst(rankOf(r)))
			m.Inputs[i] = im.alias(n.Input(i), "with the channels first", r)
		}
		r := images(im, &m)
		perm := make([]int, rankOf(r)) // back again
		for i, p := range lastFirst(len(perm)) {
			perm[p] = i
		}
		return im.permute(n, r, perm)
	}
}

func rankOf(r build.Operand) int {
	if r.Constant != nil {
		return len(r.Constant.Dims)
	}
	return len(r.Value.View)
}

// lastFirst returns the permutation that moves the last dimension to position 1.
func lastFirst(rank int) []int {
	perm := make([]int, rank)
	for i := range perm {
		switch {
		case i == 1:
			perm[i] = rank - 1
		case i > 1:
			perm[i] = i - 1
		}
	}
	return perm
}
