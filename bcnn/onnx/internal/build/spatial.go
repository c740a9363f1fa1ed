package build

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
)

// Pixels returns a value of the pixels of another, whose padding, if there is any, is
// none of its business. Fill stands for values, not for the signs behind them.
func (b *Builder) Pixels(n *pb.Node, suffix string, v *Value, op bcnn.Pixels) (*Value, error) {
	if err := v.CheckReal(); err != nil {
		return nil, err
	}
	blocks := max(op.BlockH, 1) * max(op.BlockW, 1)
	shape := bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: v.Shape.C / blocks}
	if err := b.CheckShape(shape); err != nil {
		return nil, err
	}
	if err := b.budget.Charge(8 * int64(len(op.Rows)+len(op.Cols))); err != nil {
		return nil, err
	}
	if slices.Contains(op.Rows, -1) || slices.Contains(op.Cols, -1) {
		if v.IsSign(op.Fill) {
			op.Fill = (op.Fill - v.Offset) / v.gain()
		} else if op.Fill != 0 || !v.zeroLevel() {
			var err error
			if v, err = b.Settle(v); err != nil {
				return nil, err
			}
		}
	}
	out := b.Emit(n, suffix, op, shape, v)
	out.Signs, out.Levels, out.Gain, out.Offset = v.Signs, v.Levels, v.Gain, v.Offset
	out.View = slices.Clone(v.View)
	if blocks > 1 {
		out.View = view.NCHW(shape)
		return out, nil
	}
	for i := range out.View {
		switch v.AxisOf(i) {
		case view.H:
			out.View[i] = view.Whole(view.H, shape.H)
		case view.W:
			out.View[i] = view.Whole(view.W, shape.W)
		}
	}
	return out, nil
}

// IsSign reports whether the values are two, and x is one of them.
func (v *Value) IsSign(x float32) bool {
	s := (x - v.Offset) / v.gain()
	return v.Signs && (s == 1 || s == -1)
}

// Padded returns a value whose pending padding has become pixels.
func (b *Builder) Padded(v *Value) (*Value, error) {
	p := v.Pad
	switch {
	case p == nil:
		return v, nil
	case v.padded != nil:
		return v.padded, nil
	}
	in := v.With(v.Node)
	in.Pad = nil
	around := func(before, size, after int) []int32 {
		list := make([]int32, before+size+after)
		for i := range list {
			if list[i] = -1; i >= before && i < before+size {
				list[i] = int32(i - before)
			}
		}
		return list
	}
	if err := b.CheckShape(bcnn.Shape{H: p.Top + v.Shape.H + p.Bottom, W: p.Left + v.Shape.W + p.Right, C: v.Shape.C}); err != nil {
		return nil, err
	}
	out, err := b.Pixels(p.Node, "", in, bcnn.Pixels{
		Rows: around(p.Top, v.Shape.H, p.Bottom), Cols: around(p.Left, v.Shape.W, p.Right), Fill: p.Value,
	})
	if err == nil {
		v.padded = out
	}
	return out, err
}

// Resample returns a value of weighted pixels of an image with nothing pending.
func (b *Builder) Resample(n *pb.Node, v *Value, op bcnn.Resample) (*Value, error) {
	shape := bcnn.Shape{H: len(op.Rows.Index) / op.Rows.N, W: len(op.Cols.Index) / op.Cols.N, C: v.Shape.C}
	if err := b.CheckShape(shape); err != nil {
		return nil, err
	}
	out := b.Emit(n, "", op, shape, v)
	out.View = view.View{view.Batch, v.View[1], view.Whole(view.H, shape.H), view.Whole(view.W, shape.W)}
	return out, nil
}

// TopK returns the k largest values among the channels, over which dimension dim runs,
// or the numbers of their channels, which are of type INT64. Those of a softmax are
// those of its input.
func (b *Builder) TopK(n *pb.Node, suffix string, v *Value, dim int, op bcnn.TopK) (*Value, error) {
	if v.Layer >= 0 && b.Net.Layers[v.Layer].Op == bcnn.Op(bcnn.Softmax{}) {
		if op.Values {
			return nil, fmt.Errorf("the values of a softmax are not computed by the network")
		}
		v = v.With(v.Node)
		v.Layer = b.Net.Layers[v.Layer].Inputs[0]
	}
	v, err := b.channelled(v, dim, n)
	if err == nil {
		v, err = b.Ordered(n, v)
	}
	if err == nil {
		v, err = b.Settle(v)
	}
	if err != nil {
		return nil, err
	}
	if op.K < 1 || op.K > v.Shape.C {
		return nil, fmt.Errorf("the %d largest of %d values", op.K, v.Shape.C)
	}
	shape := v.Shape
	shape.C = op.K
	out := b.Emit(n, suffix, op, shape, v)
	out.View = slices.Clone(v.View)
	if out.View[dim] = view.Whole(view.C, op.K); !op.Values {
		out.Type = pb.Int64
	}
	return out, nil
}
