package parity

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// together makes a hook that executes the binarisation of an image and the convolution
// behind it as one, a row of outputs after the other. The image keeps its memory up to
// step last. As the convolution reads it, that must be 1; 0 is what the steps say.
func together(last int) func(*fakeEngine, context.Context, bcnn.Tensor, bcnn.Tensor) error {
	return func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		steps := x.plan.Steps
		if x.config.Stepwise || len(steps) < 2 || steps[0].Kind() != "binarize" || steps[1].In[0] != steps[0].Out ||
			x.plan.Tensors[steps[1].Out].DType != bcnn.Bits {
			return x.honest(ctx, out, in)
		}
		image := bcnn.NewTensor(bcnn.Uint8, in.N, in.Shape)
		made := x.plan.Tensors[steps[1].Out]
		result := bcnn.NewTensor(bcnn.Bits, in.N, made.Shape)
		placed := x.plan.Place(in.N, []plan.Use{{Tensor: 0, First: -1, Last: last}, {Tensor: steps[1].Out, First: 1, Last: 2}})
		block := make([]byte, placed.Bytes)
		from, to := block[placed.Offsets[0]:], block[placed.Offsets[steps[1].Out]:]
		copy(from, in.U8)
		row := made.Shape.W * bits.Words(made.Shape.C)
		for at := 0; at < len(result.Words); at += row {
			copy(image.U8, from)
			packed, err := x.single(steps[0])(steps[0].Op, image)
			if err != nil {
				return err
			}
			now, err := x.single(steps[1])(steps[1].Op, packed)
			if err != nil {
				return err
			}
			for k, w := range now.Words[at : at+row] {
				binary.LittleEndian.PutUint64(to[8*(at+k):], w)
			}
		}
		for i := range result.Words {
			result.Words[i] = binary.LittleEndian.Uint64(to[8*i:])
		}
		x.step = func(op plan.Op, in bcnn.Tensor, honest stepFunc) (bcnn.Tensor, error) {
			switch op {
			case steps[0].Op:
				return in, nil
			case steps[1].Op:
				return result, nil
			}
			return honest(op, in)
		}
		defer func() { x.step = nil }()
		return x.honest(ctx, out, in)
	}
}

// TestTakenTogether: with memory as it must be the hook passes, so that the fault is
// what the suite finds; in networks of every scheme.
func TestTakenTogether(t *testing.T) {
	for _, c := range smallNetCases() {
		require.Nil(t, c.check(t.Context(), fake{run: together(1)}.device(), backend.Options{}, func(int) {}), c.Name)
		f := c.check(t.Context(), fake{run: together(0)}.device(), backend.Options{}, func(int) {})
		require.Equal(t, strings.HasPrefix(c.Name, "whole/bytes"), f == nil, c.Name)
	}
}
