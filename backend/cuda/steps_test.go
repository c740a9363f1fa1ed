//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/kernels"
)

// wholeKernel is the kernel that executes the whole network; empty if there is none.
func wholeKernel(exe *running) string {
	if exe.network == nil {
		return ""
	}
	return exe.network.launches[0].spec.Name
}

// requireSteps runs a network by a table of steps, with tensors that share memory and
// that lie apart, several times: a launch must leave the barrier as it found it.
func requireSteps(t *testing.T, net *bcnn.Network, n int) {
	t.Helper()
	for _, p := range placements {
		exe := requireReference(t, p.device(t), net, backend.Options{Kernels: gpu.Fused}, n)
		require.Equal(t, "steps", wholeKernel(exe))
		for _, images := range []int{n, 1} {
			requireRun(t, exe, uint64(images+10*n), images)
		}
	}
}

// TestTails runs blocks of residual networks, whose sums and signs are made with the
// convolution: of several widths, with and without another reader of the values.
func TestTails(t *testing.T) {
	needCooperative(t)
	for _, c := range []int{32, 33, 70, 128} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			requireSteps(t, residualNet(c), 3)
		})
	}
}

// residualNet has blocks of sign, convolution, norm and sum, shortcuts that come first and
// second in a sum, slopes, one block at half the size with a convolution around it, and a
// dense layer.
func residualNet(c int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(9, uint64(c)))
	net := &bcnn.Network{Name: "residual", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 9, W: 7, C: 3}}}}
	add := func(op bcnn.Op, inputs ...int) int { return net.Append(fmt.Sprint(len(net.Layers)), op, inputs...) }
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	conv := func(side, stride, in, out, from int) int {
		pad, padValue := side/2, 1
		if from == bcnn.NetworkInput {
			padValue = 0
		}
		return add(bcnn.Conv2D{Window: bcnn.Window{KH: side, KW: side, StrideH: stride, StrideW: stride,
			Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}}, Out: out, PadValue: padValue,
			Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, out*side*side, in)}}, from)
	}
	norm := func(n int) int { return add(bcnn.Affine{Scale: random(n), Bias: random(n)}) }
	sign := func(from int) int { return add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, from) }
	conv(3, 1, 3, c, bcnn.NetworkInput)
	last := norm(c)
	for block := range 3 {
		conv(3, 1, c, c, sign(last))
		made := norm(c)
		if block == 1 {
			last = add(bcnn.Add{}, last, made)
		} else {
			last = add(bcnn.Add{}, made, last)
		}
		last = add(bcnn.PReLU{Slope: random(c)}, last)
	}
	bits := sign(last)
	conv(1, 2, c, 2*c, bits)
	around := norm(2 * c)
	conv(3, 2, c, 2*c, bits)
	add(bcnn.Add{}, norm(2*c), around)
	moved := norm(2 * c)
	conv(1, 1, 2*c, 2*c, sign(moved))
	sign(add(bcnn.Add{}, norm(2*c), moved))
	// A dense layer reads the words of padding, too.
	add(bcnn.Conv2D{Window: bcnn.Window{KH: 5, KW: 4}, Out: c, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, c*5*4, 2*c)}})
	last = norm(c)
	sign(last)
	add(bcnn.Dense{Out: c, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, c, c)}})
	add(bcnn.Add{}, norm(c), last)
	return net
}

// TestZooInOneLaunch runs published networks at a size that tests can bear.
func TestZooInOneLaunch(t *testing.T) {
	needCooperative(t)
	short := map[string]bool{"birealnet18": true, "bmxnet-resnet18": true, "cnv-1w1a": true, "lfc-1w2a": true}
	for _, e := range zoo.Networks() {
		t.Run(e.Name, func(t *testing.T) {
			if !short[e.Name] {
				testenv.Long(t)
			}
			requireSteps(t, e.Reduced(3), 2)
		})
	}
}

// TestSmallImagesInOneLaunch runs those of small images at their size.
func TestSmallImagesInOneLaunch(t *testing.T) {
	testenv.Long(t)
	needCooperative(t)
	for _, name := range []string{"bmxnet-lenet", "cnv-1w1a", "lfc-1w1a", "binarynet", "bmxnet-resnet18"} {
		t.Run(name, func(t *testing.T) {
			net, err := zoo.New(name, 1)
			require.NoError(t, err)
			exe := requireReference(t, testDevice(t), net, backend.Options{Kernels: gpu.Fused}, 1)
			require.NotEmpty(t, wholeKernel(exe))
		})
	}
}

// TestEveryStep launches every kind of step of a table, in cases of the parity table.
func TestEveryStep(t *testing.T) {
	testenv.Long(t)
	needCooperative(t)
	d := unsharedDevice(t)
	left := make(map[int32]bool)
	for kind := range kernels.StepKinds {
		left[int32(kind)] = true
	}
	var some []parity.Case
	for _, c := range parity.Cases() {
		if len(left) == 0 {
			break
		}
		all, err := candidatesOf(d, c, gpu.Fused)
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), c.Network(), lower.Options{})
		require.NoError(t, err)
		s := candidates.NewSteps(plan, all, d.limits, c.Batch)
		require.NotNil(t, s, c.Name)
		if candidates.NewFused(plan, d.limits, d.arch) != nil {
			continue
		}
		before := len(left)
		for _, step := range s.Table {
			delete(left, step.Kind)
		}
		if len(left) < before {
			some = append(some, c)
		}
	}
	require.Empty(t, left, "kinds of steps that no case has")
	requireParity(t, d, backend.Options{Kernels: gpu.Fused}, some)
}
