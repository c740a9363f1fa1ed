package onnx

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// standardised imports the operators that normalise, on a constant: weights of which a
// network takes mean and variance itself.
func (im *importer) standardised(n *pb.Node, t *eval.Tensor) (build.Operand, error) {
	epsilon, err := n.Float("epsilon", 1e-5)
	if err != nil {
		return build.Operand{}, err
	}
	var c [4]*eval.Tensor // scale and shift, and of a batch norm mean and variance
	for i := range c {
		if c[i], err = im.constant(n, i+1); err != nil {
			return build.Operand{}, err
		}
	}
	// FLOAT16 has no room for squares: it is computed in FLOAT and rounded in the end, as
	// other runtimes do.
	typ := t.Type
	if typ == pb.Float16 || typ == pb.BFloat16 {
		for _, p := range []**eval.Tensor{&t, &c[0], &c[1], &c[2], &c[3]} {
			if *p == nil {
				continue
			}
			if *p, err = im.eval.Cast(pb.Float)([]*eval.Tensor{*p}); err != nil {
				return build.Operand{}, err
			}
		}
	}
	dims := t.Dims
	centred, perChannel := true, true
	var axes []int // over which mean and variance are taken
	switch n.OpType {
	case "BatchNormalization":
		training, err := n.Int("training_mode", 0)
		if err != nil {
			return build.Operand{}, err
		}
		if c[2] == nil || c[3] == nil {
			return build.Operand{}, errors.New("its mean or its variance is missing")
		}
		if training != 0 {
			c[2], c[3], axes = nil, nil, []int{0}
		}
	case "InstanceNormalization":
	case "GroupNormalization":
		groups, err := n.Int("num_groups", 0)
		if err != nil {
			return build.Operand{}, err
		}
		if len(dims) < 2 || groups < 1 || int64(dims[1])%groups != 0 || t.Len() == 0 {
			return build.Operand{}, errors.New("its groups do not divide its channels")
		}
		t = t.Redim([]int{dims[0], int(groups), t.Len() / dims[0] / int(groups)})
	default: // LayerNormalization, RMSNormalization
		axis, err := n.Int("axis", -1)
		if err != nil {
			return build.Operand{}, err
		}
		from, err := axisIndex(axis, len(dims))
		if err != nil {
			return build.Operand{}, err
		}
		for a := from; a < len(dims); a++ {
			axes = append(axes, a)
		}
		centred, perChannel = n.OpType == "LayerNormalization", false
	}
	if perChannel {
		if len(dims) < 2 {
			return build.Operand{}, fmt.Errorf("a constant of dimensions %v has no channels", dims)
		}
		for a := 2; a < len(t.Dims); a++ {
			axes = append(axes, a)
		}
	}
	// of is a constant for each position of dimension 1.
	of := func(p *eval.Tensor, dims []int) (*eval.Tensor, error) {
		if p == nil || !perChannel {
			return p, nil
		}
		if len(p.Dims) != 1 || p.Len() != dims[1] {
			return nil, fmt.Errorf("a constant of dimensions %v for %d channels", p.Dims, dims[1])
		}
		each := make([]int, len(dims))
		for a := range each {
			each[a] = 1
		}
		each[1] = dims[1]
		return p.Redim(each), nil
	}
	mean, err := of(c[2], dims)
	if err != nil {
		return build.Operand{}, err
	}
	variance, err := of(c[3], dims)
	if err != nil {
		return build.Operand{}, err
	}
	if mean == nil && centred {
		if mean, err = im.eval.Reduce("ReduceMean", t, axes); err != nil {
			return build.Operand{}, err
		}
	}
	if t, err = im.computed(t, []string{"Sub"}, mean); err != nil {
		return build.Operand{}, err
	}
	if variance == nil {
		square, err := im.computed(t, []string{"Mul"}, t)
		if err == nil {
			variance, err = im.eval.Reduce("ReduceMean", square, axes)
		}
		if err != nil {
			return build.Operand{}, err
		}
	}
	variance, err = im.computed(variance, []string{"Add"}, eval.Scalar(variance.Type, float64(epsilon)))
	if err != nil {
		return build.Operand{}, err
	}
	deviation, err := im.eval.Unary("Sqrt")([]*eval.Tensor{variance})
	if err != nil {
		return build.Operand{}, err
	}
	if t, err = im.computed(t, []string{"Div"}, deviation); err != nil {
		return build.Operand{}, err
	}
	// Numbers of the groups come before what they are made of, those of channels behind.
	if c[0] == nil || !perChannel || c[0].Len() != t.Dims[1] {
		t = t.Redim(dims)
	}
	for i, op := range []string{"Mul", "Add"} {
		p, err := of(c[i], t.Dims)
		if err == nil {
			t, err = im.computed(t, []string{op}, p)
		}
		if err != nil {
			return build.Operand{}, err
		}
	}
	t, err = im.eval.Cast(typ)([]*eval.Tensor{t.Redim(dims)})
	return build.Operand{Constant: t}, err
}
