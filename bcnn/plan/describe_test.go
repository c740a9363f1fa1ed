package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestDescribe: a tensor of planes has the shape of its values, through all steps that hand planes on.
func TestDescribe(t *testing.T) {
	tensor := func(d bcnn.DType, h int) plan.Tensor {
		return plan.Tensor{DType: d, Shape: bcnn.Shape{H: h, W: 5, C: 16}}
	}
	p := &plan.Plan{
		Tensors: []plan.Tensor{
			tensor(bcnn.Float32, 4), tensor(bcnn.Bits, 4), tensor(bcnn.Bits, 12), tensor(bcnn.Bits, 6), tensor(bcnn.Bits, 6),
			tensor(bcnn.Bits, 8), tensor(bcnn.Float32, 4),
		},
		Steps: []plan.Step{
			{In: []int{0}, Out: 1, Op: &plan.Sign{}},
			{In: []int{0}, Out: 2, Op: &plan.Sign{Planes: 3}},
			{In: []int{2}, Out: 3, Op: &plan.MaxPool{Planes: 3}},
			{In: []int{3}, Out: 4, Op: &plan.Channels{}},
			{In: []int{2}, Out: 5, Op: &plan.Conv{InPlanes: 3, OutPlanes: 2}},
			{In: []int{5}, Out: 6, Op: &plan.Conv{InPlanes: 2}},
		},
	}
	require.Equal(t, []string{
		"4×5×16 float32", "4×5×16 bits", "4×5×16 bits, 3 planes", "2×5×16 bits, 3 planes", "2×5×16 bits, 3 planes",
		"4×5×16 bits, 2 planes", "4×5×16 float32",
	}, p.Describe())
}
