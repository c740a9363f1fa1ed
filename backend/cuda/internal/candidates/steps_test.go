package candidates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/kernels"
)

// table is the table of a network for one image, and its plan.
func table(t *testing.T, net *bcnn.Network, limits Limits) (*Steps, *plan.Plan) {
	all, plan := of(t, net, 1, limits, 90)
	s := NewSteps(plan, all, limits, 1)
	require.NotNil(t, s)
	return s, plan
}

// about are the kernels of a table, those between two barriers on one line: in brackets
// the values of which nothing is stored, with + sums of which the value comes second.
func about(s *Steps) string {
	var b strings.Builder
	left := int32(0)
	for _, step := range s.Table {
		name := kernels.StepKinds[step.Kind]
		if step.Second != 0 {
			name = "+" + name
		}
		if step.Stored == 0 {
			name = "[" + name + "]"
		}
		if left > 0 {
			left--
			b.WriteString(" " + name)
			continue
		}
		left = step.Tail
		b.WriteString("\n" + name)
	}
	return b.String()
}

// TestTails: what follows a convolution goes with it as far as its own values are
// concerned, and values that nothing else reads are not stored.
func TestTails(t *testing.T) {
	weights := func(n int) bcnn.Weights { return bcnn.Weights{Bits: make([]uint64, n)} }
	point := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 64, Weights: weights(64)}
	affine := bcnn.Affine{Scale: []float32{2}, Bias: []float32{-1}}
	sign := bcnn.Sign{Zero: bcnn.ZeroIsPlus}
	for _, c := range []struct {
		name  string
		build func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int)
		want  string
	}{
		{"blocks", func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int) {
			last := bcnn.NetworkInput
			for range 2 {
				add(sign, last)
				last = add(bcnn.Add{}, add(affine, add(point)), last)
			}
		}, "\nsign_bits\n[conv_bits_p1] add sign_bits\n[conv_bits_p1] add"},
		{"shortcut first", func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int) {
			add(sign)
			add(bcnn.PReLU{Slope: make([]float32, 64)}, add(bcnn.Add{}, bcnn.NetworkInput, add(point)))
			moved := add(affine)
			add(sign, moved)
			add(bcnn.Add{}, add(point), moved)
		}, "\nsign_bits\n[conv_bits_p1] [+add] affine_float sign_bits\n[conv_bits_p1] add"},
		{"sum of both paths", func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int) {
			bits := add(sign)
			add(bcnn.Add{}, add(point, bits), add(point, bits))
		}, "\nsign_bits\nconv_bits_p1\n[conv_bits_p1] +add"},
		{"sum with itself", func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int) {
			add(sign)
			conv := add(point)
			add(bcnn.Add{}, conv, conv)
		}, "\nsign_bits\nconv_bits_p1\nadd"},
		{"other reader", func(net *bcnn.Network, add func(op bcnn.Op, inputs ...int) int) {
			add(sign)
			conv := add(point)
			add(sign, conv)
			add(bcnn.Add{}, add(point), conv)
		}, "\nsign_bits\nconv_bits_p1 sign_bits\n[conv_bits_p1] add"},
	} {
		t.Run(c.name, func(t *testing.T) {
			net := &bcnn.Network{Name: "tail", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 3, W: 3, C: 64}}}}
			c.build(net, func(op bcnn.Op, inputs ...int) int { return net.Append(fmt.Sprint(len(net.Layers)), op, inputs...) })
			s, p := table(t, net, large)
			require.Equal(t, c.want, about(s))
			// Whatever is done between two barriers needs its tensors from the first to the last.
			at := 0
			for i := 0; i < len(s.Table); i += 1 + int(s.Table[i].Tail) {
				for k := i; k <= i+int(s.Table[i].Tail); k++ {
					for _, a := range s.Args[k] {
						if tensor, ok := a.(gpu.Tensor); ok {
							require.Contains(t, s.Uses, plan.Use{Tensor: int(tensor), First: at, Last: at + int(s.Table[i].Tail)})
						}
					}
				}
				at += 1 + int(s.Table[i].Tail)
			}
			require.Equal(t, len(p.Steps), at)
		})
	}
}

// TestStepsOfZoo: every published network is a table, on large devices and on small ones,
// and its grid is no larger than there are blocks.
func TestStepsOfZoo(t *testing.T) {
	for _, e := range zoo.Networks() {
		for _, limits := range []Limits{large, blackwell(), small} {
			s, plan := table(t, e.Reduced(1), limits)
			require.GreaterOrEqual(t, len(s.Table), len(plan.Steps), e.Name)
			require.LessOrEqual(t, s.Blocks, limits.Processors)
			for _, step := range s.Table {
				require.Less(t, step.Tail, int32(kernels.StepsGroup))
				require.Positive(t, step.Blocks)
			}
		}
	}
	lenet, err := zoo.New("bmxnet-lenet", 1)
	require.NoError(t, err)
	s, _ := table(t, lenet, large)
	require.LessOrEqual(t, s.Blocks, 132)
}
