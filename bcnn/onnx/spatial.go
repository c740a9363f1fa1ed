package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// handler imports a node.
type handler = func(*importer, *pb.Node) build.Operand

// alongRows makes of the handler of an operator on images one that also takes sequences (batch,
// channels, positions), as images of one row.
func alongRows(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		v := im.env[n.Input(0)].Value
		if v == nil || len(v.View) != 3 || !view.IsBatch(v.View[0]) || v.Shape.H != 1 || !slices.Equal(v.View[2], view.All(view.W, v.Shape.W)) {
			return images(im, n)
		}
		const row = 2 // the new dimension
		v = im.build.Settle(v)
		m := widened(n)
		image := v.With(v.Node)
		image.View = edit(v.View, []int{row}, true, nil)
		m.Inputs[0] = im.alias(n.Input(0), "as images", build.Operand{Value: image})
		if n.OpType == "Conv" || n.OpType == "ConvTranspose" {
			w := im.constant(n, 1)
			if w != nil && len(w.Dims) == 3 {
				wide := *w
				wide.Dims = slices.Insert(slices.Clone(w.Dims), row, 1)
				m.Inputs[1] = im.alias(n.Input(1), "of images", build.Operand{Constant: &wide})
			}
		}
		r := images(im, m)
		out := r.Value.With(n)
		out.View = edit(out.View, []int{row}, false, nil)
		return build.Operand{Value: out}
	}
}

// arranged makes of the handler of an operator on images one that also takes tensors whose
// dimensions lie otherwise in memory, such as a vector that a Reshape has made an image of. It puts
// them in order first.
func arranged(images handler) handler {
	return func(im *importer, n *pb.Node) build.Operand {
		v := im.env[n.Input(0)].Value
		if v == nil || v.Hole || len(v.View) < 3 || len(v.View) > 4 || !view.IsBatch(v.View[0]) || v.Type != pb.Float {
			return images(im, n)
		}
		row := len(v.View) == 3
		image := v.With(v.Node)
		if row {
			image.View = edit(v.View, []int{2}, true, nil)
		}
		across := row && len(v.View[1]) == 0 && v.Shape.Pixels() == 1 // see acrossChannels
		if _, err := image.CheckPooled(); err == nil && (image.CheckImage() == nil || n.OpType == "MaxPool" || n.OpType == "AveragePool") || across {
			return images(im, n)
		}
		rows, cols := 2, 3
		if row {
			rows, cols = -1, 2
		}
		v = im.build.Arrange(n, v, 1, rows, cols)
		m := *n
		m.Inputs = slices.Clone(n.Inputs)
		m.Inputs[0] = im.alias(n.Input(0), "as an image", build.Operand{Value: v})
		return images(im, &m)
	}
}

// widened returns a node on sequences with the attributes that it has on images of one row.
func widened(n *pb.Node) *pb.Node {
	m := *n
	m.Inputs, m.Attrs = slices.Clone(n.Inputs), slices.Clone(n.Attrs)
	for i, a := range m.Attrs {
		var add []int64
		switch a.Name {
		case "kernel_shape", "strides", "dilations", "output_shape":
			add = []int64{1}
		case "output_padding", "pads":
			add = []int64{0}
		case "axes": // of a Resize, which reports axes that a sequence does not have
			wide := *a
			wide.Is = slices.Clone(a.Is)
			for k, axis := range a.Is {
				if axis < 0 && axis >= -3 {
					axis += 3
				}
				if axis >= 2 {
					axis++ // one is inserted for the row
				}
				wide.Is[k] = axis
			}
			m.Attrs[i] = &wide
			continue
		default:
			continue
		}
		wide := *a // the row has pads of 0 and sizes of 1
		wide.Is = slices.Concat(add, a.Is)
		if a.Name == "pads" && len(a.Is) == 2 {
			wide.Is = []int64{0, a.Is[0], 0, a.Is[1]}
		}
		m.Attrs[i] = &wide
	}
	return &m
}

// padPositions returns, for each row or column of a padded or cropped image, the one of the image
// that it repeats, −1 for the fill value. If one side is cropped and the other padded, ONNX does
// not say whether pixels of the image are repeated or, as in ONNX Runtime, only those that the crop
// leaves. It fails if that makes a difference.
func (im *importer) padPositions(mode string, size, begin, end int) []int32 {
	list := im.paddedPositions(mode, size, begin, end)
	if min(begin, end) >= 0 || max(begin, end) <= 0 {
		return list
	}
	cropped := im.paddedPositions(mode, size+min(begin, end), max(begin, 0), max(end, 0))
	for i := range cropped {
		if cropped[i] >= 0 {
			cropped[i] -= int32(min(begin, 0))
		}
	}
	if !slices.Equal(list, cropped) {
		try.Failf("pads of %d and %d of a size of %d repeat pixels that are cropped, mode %s: crop with a Slice in front", begin, end, size, text.Quote(mode))
	}
	return list
}

// paddedPositions is padPositions for pads that repeat any pixel of the image.
func (im *importer) paddedPositions(mode string, size, begin, end int) []int32 {
	n := begin + size + end
	if n < 1 {
		try.Failf("pads of %d and %d leave nothing of %d pixels", begin, end, size)
	}
	at := map[string]func(p int) int{
		"constant": func(p int) int {
			if p >= size {
				return -1
			}
			return max(p, -1)
		},
		"edge": func(p int) int { return max(0, min(p, size-1)) },
		"wrap": func(p int) int { return (p%size + size) % size },
		"reflect": func(p int) int {
			if p >= size {
				return 2*(size-1) - p
			}
			return max(p, -p)
		},
	}[mode]
	switch {
	case at == nil:
		try.Failf("mode %s is not supported, want constant, edge, reflect or wrap", text.Quote(mode))
	case mode == "reflect" && max(begin, end) >= size:
		try.Failf("pads of %d and %d reflect a size of %d more than once: they must be smaller than it", begin, end, size)
	}
	return try.Value(budget.List(im.budget, n, func(i int) int32 { return int32(at(i - begin)) }))
}

// allPositions returns 0 to size−1.
func allPositions(size int) []int32 {
	list := make([]int32, size)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

func (im *importer) depthToSpace(n *pb.Node) build.Operand {
	v := im.settledImage(n)
	b := n.Int("blocksize", 0)
	mode := n.Text("mode", "DCR")
	if b < 1 || b > pb.MaxSize || int64(v.Shape.C)%(b*b) != 0 || mode != "DCR" && mode != "CRD" {
		try.Failf("blocksize %d, mode %s, is not possible for %d channels: want DCR or CRD, and a multiple of blocksize² channels", b, text.Quote(mode), v.Shape.C)
	}
	block := int(b)
	try.Check(im.budget.Charge(16 * int64(v.Shape.C+block*(v.Shape.H+v.Shape.W))))
	if mode == "CRD" { // a channel of the result is block² neighbouring channels
		of := v.Shape.C / (block * block)
		order := try.Value(budget.List(im.budget, v.Shape.C, func(c int) int { return c%of*block*block + c/of }))
		v = im.build.Pick(n, "/order", v, 1, order)
	}
	return build.Operand{Value: im.build.Pixels(n, "", v, bcnn.Pixels{Rows: allPositions(block * v.Shape.H), Cols: allPositions(block * v.Shape.W), BlockH: block, BlockW: block})}
}

// spaceToDepth imports SpaceToDepth: for each place in a block, the pixels there become channels.
func (im *importer) spaceToDepth(n *pb.Node) build.Operand {
	v := im.settledImage(n)
	b := n.Int("blocksize", 0)
	block := int(max(-1, min(b, pb.MaxSize)))
	if block < 1 || v.Shape.H%block != 0 || v.Shape.W%block != 0 {
		try.Failf("blocksize %d does not divide the height and width of %v (height×width×channels)", b, v.Shape)
	}
	every := func(first, size int) []int32 {
		return try.Value(budget.List(im.budget, size/block, func(i int) int32 { return int32(first + i*block) }))
	}
	var parts []*build.Value
	for y := range block {
		for x := range block {
			op := bcnn.Pixels{Rows: every(y, v.Shape.H), Cols: every(x, v.Shape.W)}
			part := im.build.Pixels(n, "/pixels", v, op)
			parts = append(parts, part)
		}
	}
	out := im.build.Concat(n, parts, 1)
	switch mode := n.Text("mode", "DCR"); mode {
	case "DCR":
	case "CRD": // the pixels of a channel are neighbours
		order := try.Value(budget.List(im.budget, out.Shape.C, func(c int) int { return c%(block*block)*v.Shape.C + c/(block*block) }))
		out = im.build.Pick(n, "/order", out, 1, order)
	default:
		try.Failf("mode %s is not supported, want DCR or CRD", text.Quote(mode))
	}
	return build.Operand{Value: out}
}

// settledImage returns the first input of a node as a settled image with its channels in order.
func (im *importer) settledImage(n *pb.Node) *build.Value {
	v := im.value(n, 0)
	return im.settledImageOf(n, v)
}

// settledImageOf is settledImage for any value.
func (im *importer) settledImageOf(n *pb.Node, v *build.Value) *build.Value {
	v = im.build.Settle(v)
	try.Check(v.CheckReal())
	try.Check(v.CheckImage())
	return im.build.InChannelOrder(n, v)
}

// picked picks rows and columns of a value. nil stands for all of them.
func (im *importer) picked(n *pb.Node, v *build.Value, op bcnn.Pixels) *build.Value {
	if op.Rows == nil && op.Cols == nil {
		return v
	}
	try.Check(im.budget.Charge(4 * int64(v.Shape.H+v.Shape.W)))
	if op.Rows == nil {
		op.Rows = allPositions(v.Shape.H)
	}
	if op.Cols == nil {
		op.Cols = allPositions(v.Shape.W)
	}
	return im.build.Pixels(n, "", v, op)
}
