package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// gatherND imports GatherND with positions of the first dimension, as PyTorch writes x[:, list]
// between two Transposes, or with rows and columns of an image.
func (im *importer) gatherND(n *pb.Node) build.Operand {
	v := im.settled(n, 0)
	indices := im.required(n, 1)
	batch := n.Int("batch_dims", 0)
	d := indices.Dims
	switch last := len(d) - 1; {
	case batch != 0 || last < 0:
	case last == 1 && d[last] == 1:
		positions := im.positions(v, indices.Redim(d[:1]), 0)
		return build.Operand{Value: im.pick(n, v, 0, v.AxisOf(0), positions)}
	case d[last] == 2 && len(v.View) == 4 && last+2 <= pb.MaxRank:
		return build.Operand{Value: im.gatherPixels(n, v, indices)}
	}
	panic(try.Errorf("indices of shape %v are not supported: want a list of positions along the first dimension, or pairs of row and column of an image", d))
}

// pixelMoves returns for each dimension of indices [d0]…[dn][2] its stride, and whether rows (0) or columns (1)
// change along it: rows where neither does.
func pixelMoves(list []int64, dims []int) (ways, strides []int) {
	ways, strides = make([]int, len(dims)), make([]int, len(dims))
	stride := 2
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = stride
		moves := [2]bool{}
		for i := range list {
			if i/stride%dims[k] > 0 && list[i] != list[i-stride] {
				moves[i%2], ways[k] = true, i%2
			}
		}
		if moves[0] && moves[1] {
			try.Failf("dimension %d of the indices moves along rows and columns at once, but only one of them is supported", k)
		}
		stride *= dims[k]
	}
	return ways, strides
}

// gatherPixels picks rows and columns, the first two dimensions of v, by indices [d0]…[dn][2].
// Along each of d0 … dn only the row or only the column may change, or none. PyTorch writes the
// windows of an adaptive pool so.
func (im *importer) gatherPixels(n *pb.Node, v *build.Value, indices *eval.Tensor) *build.Value {
	image := v.With(n)
	image.View = view.View{v.View[2], v.View[3], v.View[0], v.View[1]}
	try.Check(image.CheckImage())
	if !view.IsBatch(v.View[2]) {
		try.Failf("the third dimension of its input must be the batch, behind height and width")
	}
	list := try.Value(indices.Integers())
	dims := indices.Dims[:len(indices.Dims)-1]
	if len(list) == 0 {
		try.Failf("the result would be empty: nothing is left of the tensor")
	}
	const work = 16 // for each index and dimension
	try.Check(im.budget.Charge(work * int64(len(list)*len(dims))))
	ways, strides := pixelMoves(list, dims)
	// For rows and then for columns, take the positions along the dimensions that change them.
	// Dimensions that change neither repeat rows.
	var picked [2][]int32
	seen := make(view.View, len(dims))
	for way, size := range []int{v.Shape.H, v.Shape.W} {
		offsets := []int{0}
		for k, size := range dims {
			if ways[k] == way {
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
			if ways[k] == way {
				if atom.Stride, atom.Size = atom.Stride/size, size; size > 1 {
					seen[k] = []view.Atom{atom}
				}
			}
		}
		for _, at := range offsets {
			picked[way] = append(picked[way], int32(eval.Position(list[at+way], size)))
		}
	}
	out := im.build.Pixels(n, "", image, bcnn.Pixels{Rows: picked[0], Cols: picked[1]})
	out.View = slices.Concat(seen, view.View{image.View[0], image.View[1]})
	return out
}
