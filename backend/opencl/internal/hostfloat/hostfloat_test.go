package hostfloat

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// bitsOf has the bits of floats in place of them, of which all NaNs have the same.
func bitsOf(t bcnn.Tensor) bcnn.Tensor {
	for _, v := range t.F32 {
		if v != v {
			v = float32(math.NaN())
		}
		t.Words = append(t.Words, uint64(math.Float32bits(v)))
	}
	t.F32 = nil
	return t
}

// TestStep compares every step of the table that reads or writes floats, convolutions of
// bits and bytes apart, with the reference.
func TestStep(t *testing.T) {
	seen := make(map[string]int)
	for _, c := range backendtest.Cases(t, parity.Cover, parity.Cases) {
		p, err := lower.Network(t.Context(), c.Network(), lower.Options{})
		require.NoError(t, err)
		tensors := make([]bcnn.Tensor, len(p.Tensors))
		in := c.Inputs(p, c.Batch)
		copy(tensors, in)
		_, err = ref.RunAll(t.Context(), p, in, func(step int, _ string, made bcnn.Tensor) { tensors[p.Steps[step].Out] = made })
		require.NoError(t, err)
		for k, s := range p.Steps {
			in, out := p.Tensors[s.In[0]].DType, p.Tensors[s.Out].DType
			conv, isConv := s.Op.(*plan.Conv)
			if whole := isConv && (conv.Int8 != nil || conv.Int16 != nil); in != bcnn.Float32 && (isConv && !whole || out != bcnn.Float32) {
				continue
			}
			made := bcnn.NewTensor(out, c.Batch, p.Tensors[s.Out].Shape)
			for i := range made.F32 {
				made.F32[i] = -1000 // everything is to be written
			}
			for i := range made.U8 {
				made.U8[i] = 255
			}
			for i := range made.Words {
				made.Words[i] = ^uint64(0)
			}
			compute, err := Step(s, func(tensor int) *bcnn.Tensor {
				if tensor == s.Out {
					return &made
				}
				return &tensors[tensor]
			})
			require.NoError(t, err)
			compute()
			require.Equal(t, bitsOf(tensors[s.Out]), bitsOf(made), "%s, step %d (%s)", c.Name, k, s.Name)
			switch op := s.Op.(type) {
			case *plan.Conv:
				seen["conv of "+in.String()+" to "+out.String()]++
			case *plan.MaxPool:
				seen["max pool"]++
			case *plan.Affine:
				seen["affine of "+in.String()]++
				// In place, as the scaling of sums is.
				if in == bcnn.Float32 {
					same := bcnn.NewTensor(in, c.Batch, p.Tensors[s.Out].Shape)
					copy(same.F32, tensors[s.In[0]].F32)
					Affine(op, &same, &same)
					require.Equal(t, bitsOf(made), bitsOf(same), c.Name)
				}
			case *plan.Sign:
				seen["sign"]++
			case *plan.Add:
				seen["add"]++
			case *plan.Quantize:
				seen["quantize to "+out.String()]++
			default:
				seen[s.Kind()+" of "+in.String()]++
			}
		}
	}
	for _, what := range []string{"conv of float32 to float32", "conv of float32 to bits", "conv of uint8 to float32", "quantize to uint8", "quantize to float32", "max pool", "affine of uint8", "affine of bits", "affine of float32", "sign", "add",
		"flatten of float32", "avgpool of bits", "avgpool of float32", "mul of float32", "concat of float32", "channels of float32"} {
		require.Positive(t, seen[what], "%s among %v", what, seen)
	}
	_, err := Step(plan.Step{Op: &plan.Binarize{}, In: []int{0}}, func(int) *bcnn.Tensor { return &bcnn.Tensor{} })
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
