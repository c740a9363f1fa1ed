package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// gatherND imports GatherND of positions of the first dimension, as PyTorch writes
// x[:, list] between two Transposes, and of rows and columns.
func (im *importer) gatherND(n *pb.Node) (build.Operand, error) {
	v, err := im.settled(n, 0)
	if err != nil {
		return build.Operand{}, err
	}
	indices, err := im.required(n, 1)
	if err != nil {
		return build.Operand{}, err
	}
	batch, err := n.Int("batch_dims", 0)
	if err != nil {
		return build.Operand{}, err
	}
	d := indices.Dims
	switch last := len(d) - 1; {
	case batch != 0 || last < 0:
	case last == 1 && d[last] == 1:
		positions, err := im.positions(v, indices.Redim(d[:1]), 0)
		if err != nil {
			return build.Operand{}, err
		}
		out, err := im.pick(n, v, 0, v.AxisOf(0), positions)
		return build.Operand{Value: out}, err
	case d[last] == 2 && len(v.View) == 4 && last+2 <= pb.MaxRank:
		out, err := im.gatherPixels(n, v, indices)
		return build.Operand{Value: out}, err
	}
	return build.Operand{}, fmt.Errorf("indices of dimensions %v, want a list of positions of the first dimension, or rows and columns of an image", d)
}

// gatherPixels picks rows and columns, the first two dimensions of v, by indices of which each
// dimension moves along one of them, or none: the windows of an adaptive pool in PyTorch.
func (im *importer) gatherPixels(n *pb.Node, v *build.Value, indices *eval.Tensor) (*build.Value, error) {
	image := v.With(n)
	image.View = view.View{v.View[2], v.View[3], v.View[0], v.View[1]}
	if err := image.CheckImage(); err != nil {
		return nil, err
	}
	if !view.IsBatch(v.View[2]) {
		return nil, errors.New("the third dimension is not the batch")
	}
	list, err := indices.Integers()
	if err != nil {
		return nil, err
	}
	dims := indices.Dims[:len(indices.Dims)-1]
	if len(list) == 0 {
		return nil, errors.New("nothing is left")
	}
	const work = 16 // for each index and dimension
	if err := im.budget.Charge(work * int64(len(list)*len(dims))); err != nil {
		return nil, err
	}
	// A step along a dimension moves to other rows, to other columns, or nowhere.
	moves := make([]int, len(dims))
	stride := 2
	strides := make([]int, len(dims))
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = stride
		for i := range list {
			if i/stride%dims[k] == 0 || list[i] == list[i-stride] {
				continue
			}
			if by := 1 + i%2; moves[k] != 0 && moves[k] != by {
				return nil, fmt.Errorf("dimension %d of the indices moves along rows and columns", k)
			}
			moves[k] = 1 + i%2
		}
		stride *= dims[k]
	}
	// The positions along the dimensions that move in a direction; those that move nowhere
	// repeat rows.
	var picked [2][]int32
	seen := make(view.View, len(dims))
	for way, size := range []int{v.Shape.H, v.Shape.W} {
		offsets := []int{0}
		for k, size := range dims {
			if moves[k]-1 == way || moves[k] == 0 && way == 0 {
				next := make([]int, 0, len(offsets)*size)
				for _, from := range offsets {
					for i := range size {
						next = append(next, from+i*strides[k])
					}
				}
				offsets = next
			}
		}
		atom := view.Atom{Axis: view.Axis(way) + view.H, Stride: len(offsets)}
		for k, size := range dims {
			if moves[k]-1 == way || moves[k] == 0 && way == 0 {
				if atom.Stride, atom.Size = atom.Stride/size, size; size > 1 {
					seen[k] = []view.Atom{atom}
				}
			}
		}
		for _, at := range offsets {
			p, err := axisIndex(list[at+way], size)
			if err != nil {
				return nil, fmt.Errorf("index %d of %d", list[at+way], size)
			}
			picked[way] = append(picked[way], int32(p))
		}
	}
	out, err := im.build.Pixels(n, "", image, bcnn.Pixels{Rows: picked[0], Cols: picked[1]})
	if err != nil {
		return nil, err
	}
	out.View = slices.Concat(seen, view.View{image.View[0], image.View[1]})
	return out, nil
}
