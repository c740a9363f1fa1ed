package onnx

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// standardised evaluates the operators that normalise, on a constant: some networks normalise their
// weights when they run.
func (im *importer) standardised(n *pb.Node, t *eval.Tensor) build.Operand {
	epsilon := n.Float("epsilon", 1e-5)
	var c [4]*eval.Tensor // scale and shift; for a batch norm also mean and variance
	for i := range c {
		c[i] = im.constant(n, i+1)
	}
	// Squares overflow FLOAT16, so it is computed in FLOAT and rounded at the end, as other
	// runtimes do.
	typ := t.Type
	if typ == pb.Float16 || typ == pb.BFloat16 {
		for _, p := range []**eval.Tensor{&t, &c[0], &c[1], &c[2], &c[3]} {
			if *p == nil {
				continue
			}
			*p = im.eval.Cast(pb.Float)([]*eval.Tensor{*p})
		}
	}
	dims := t.Dims
	t, axes, perChannel := im.normalisedOver(n, t, &c)
	// of broadcasts a constant of one number per position of dimension 1.
	of := func(p *eval.Tensor, dims []int) *eval.Tensor {
		if p == nil || !perChannel {
			return p
		}
		if len(p.Dims) != 1 || p.Len() != dims[1] {
			try.Failf("a constant of shape %v does not fit %d channels", p.Dims, dims[1])
		}
		each := slices.Repeat([]int{1}, len(dims))
		each[1] = dims[1]
		return p.Redim(each)
	}
	mean := of(c[2], dims)
	variance := of(c[3], dims)
	if mean == nil && n.OpType != "RMSNormalization" {
		mean = im.eval.Reduce("ReduceMean", t, axes)
	}
	t = im.computed(t, []string{"Sub"}, mean)
	if variance == nil {
		square := im.computed(t, []string{"Mul"}, t)
		variance = im.eval.Reduce("ReduceMean", square, axes)
	}
	variance = im.computed(variance, []string{"Add"}, eval.Scalar(variance.Type, float64(epsilon)))
	deviation := im.eval.Unary("Sqrt")([]*eval.Tensor{variance})
	t = im.computed(t, []string{"Div"}, deviation)
	// Scale and shift of a GroupNormalization are one per group (opset 18), and apply before the
	// groups are split into channels again, or one per channel, and apply after.
	if c[0] == nil || !perChannel || c[0].Len() != t.Dims[1] {
		t = t.Redim(dims)
	}
	for i, op := range []string{"Mul", "Add"} {
		t = im.computed(t, []string{op}, of(c[i], t.Dims))
	}
	return build.Operand{Constant: im.eval.Cast(typ)([]*eval.Tensor{t.Redim(dims)})}
}

// normalisedOver returns a constant, with its groups as dimension 1 if it has any, and the axes of
// its mean and variance. perChannel says that scale and shift are one per position of dimension 1.
// A batch norm in training mode computes mean and variance itself, so they are removed from c.
func (im *importer) normalisedOver(n *pb.Node, t *eval.Tensor, c *[4]*eval.Tensor) (_ *eval.Tensor, axes []int, perChannel bool) {
	dims := t.Dims
	switch n.OpType {
	case "BatchNormalization":
		training := n.Bit("training_mode", 0)
		if c[2] == nil || c[3] == nil {
			try.Failf("its mean or its variance is missing")
		}
		if training != 0 {
			c[2], c[3], axes = nil, nil, []int{0}
		}
	case "InstanceNormalization":
	case "GroupNormalization":
		groups := n.Int("num_groups", 0)
		if len(dims) < 2 || groups < 1 || int64(dims[1])%groups != 0 || t.Len() == 0 {
			try.Failf("num_groups must divide the number of channels")
		}
		t = t.Redim([]int{dims[0], int(groups), t.Len() / dims[0] / int(groups)})
	default: // LayerNormalization, RMSNormalization
		for a := axisIndex(n.Int("axis", -1), len(dims)); a < len(dims); a++ {
			axes = append(axes, a)
		}
		return t, axes, false
	}
	if len(dims) < 2 {
		try.Failf("its input has shape %v, which has no dimension of channels", dims)
	}
	for a := 2; a < len(t.Dims); a++ {
		axes = append(axes, a)
	}
	return t, axes, true
}
