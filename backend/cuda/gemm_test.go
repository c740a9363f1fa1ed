//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// mostTiles is the number of tiles of the form of GEMM that has the most, with the
// large integer one.
const mostTiles = 6

// TestGEMM runs each tile of the kernels for tensor cores on a part of the table.
func TestGEMM(t *testing.T) {
	testenv.Long(t)
	for pick := range mostTiles {
		for i, variant := range []string{gpu.TensorCore, gpu.SplitK} {
			t.Run(fmt.Sprint(variant, pick), func(t *testing.T) {
				requireParityPlaced(t, pick, backend.Options{Kernels: variant}, everyNth(48, 2*pick+i))
			})
		}
	}
}

// TestSplitKAgain: parts leave what they share as they found it, for batches of every
// size.
func TestSplitKAgain(t *testing.T) {
	d := unsharedDevice(t)
	plan, err := lower.Network(t.Context(), backendtest.OneConv(6, 3, 256, 70), lower.Options{})
	require.NoError(t, err)
	e := &executable{device: d, plan: plan, config: driver.Config{MaxBatch: 3, Kernels: gpu.SplitK}, ctx: t.Context()}
	all, err := e.candidates()
	require.NoError(t, err)
	require.Greater(t, len(all[1]), 1)
	for pick := range all[1] {
		d.pick = pick
		exe := compiled(t, d, plan, backend.Options{Kernels: gpu.SplitK}, 3)
		require.Greater(t, exe.steps[1].launches[0].spec.Parts, 1)
		require.Equal(t, "splitk: "+exe.steps[1].launches[0].spec.Label(), exe.Explain()[1].Kernel)
		for seed, images := range []int{3, 1, 2, 3, 1} {
			in := backendtest.RandomImages(uint64(seed), images, plan.Inputs[0])
			want, err := ref.Run(t.Context(), plan, in, nil)
			require.NoError(t, err)
			requireOutput(t, exe, want, in)
		}
		require.NoError(t, exe.Close())
	}
}

// convShape is a convolution of bits, or of bytes, with weights of 8 bits or binary ones; 0
// groups and a dilation of 0 are 1.
type convShape struct {
	bytes, binary                                bool
	h, w, in, out, k, groups, dilation, padValue int
	pool                                         [2]int
	images                                       int
}

// networks have the convolution, once with bits as its outputs, and, where it is not pooled,
// once with floats.
func (c convShape) networks() []*bcnn.Network {
	rng := rand.New(rand.NewPCG(uint64(c.in), uint64(c.out)))
	net := &bcnn.Network{Name: "gemm", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: c.h, W: c.w, C: c.in}}}}
	inGroup := c.in / max(c.groups, 1)
	var weights bcnn.Weights
	if c.bytes { // with a zero point of 77
		net.Append("scale", bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-77.0 / 64}})
	} else {
		net.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: slices.Repeat([]int32{128}, c.in)})
	}
	if c.bytes && !c.binary {
		weights.Int8 = make([]int8, c.out*c.k*c.k*inGroup)
		for i := range weights.Int8 {
			weights.Int8[i] = int8(rng.IntN(256) - 128)
		}
	} else {
		weights.Bits = backendtest.RandomBits(rng, c.out*c.k*c.k, inGroup)
	}
	dilation := max(c.dilation, 1)
	r := c.k / 2 * dilation
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: c.k, KW: c.k, DilationH: dilation, DilationW: dilation,
		Pad: bcnn.Padding{Top: r, Left: r, Bottom: r, Right: r}},
		Out: c.out, Groups: max(c.groups, 1), PadValue: c.padValue, Weights: weights})
	if c.pool != [2]int{} {
		net.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: c.pool[0], KW: c.pool[1], StrideH: c.pool[0], StrideW: c.pool[1]}})
	}
	scale, bias := make([]float32, c.out), make([]float32, c.out)
	for i := range c.out {
		scale[i], bias[i] = float32(rng.NormFloat64()), float32(rng.IntN(21)-10)
	}
	net.Append("norm", bcnn.Affine{Scale: scale, Bias: bias})
	float := *net
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("bits", bcnn.Affine{Scale: []float32{1}})
	nets := []*bcnn.Network{net}
	if c.pool == [2]int{} {
		nets = append(nets, &float)
	}
	return nets
}

// TestGEMMShapes runs the tiles of the kernels for tensor cores where they are full, cut off, pooled
// over windows of one lane and of several, and where the sum is long.
func TestGEMMShapes(t *testing.T) {
	testenv.Long(t)
	for _, c := range []convShape{
		{h: 9, w: 9, in: 256, out: 130, k: 3, groups: 1, padValue: 0, images: 2},
		{h: 8, w: 16, in: 64, out: 256, k: 3, groups: 1, padValue: 1, pool: [2]int{2, 2}, images: 1},
		{h: 8, w: 8, in: 32, out: 96, k: 5, groups: 1, padValue: 0, pool: [2]int{4, 4}, images: 3},
		{h: 8, w: 10, in: 96, out: 33, k: 3, groups: 1, padValue: -1, pool: [2]int{4, 2}, images: 2},
		{h: 8, w: 7, in: 3, out: 64, k: 3, groups: 1, padValue: 0, pool: [2]int{2, 1}, images: 2},
		{h: 5, w: 6, in: 128, out: 320, k: 3, groups: 2, padValue: 0, images: 2},
		{h: 5, w: 6, in: 384, out: 96, k: 1, groups: 3, padValue: -1, images: 5},
		{h: 1, w: 1, in: 1000, out: 300, k: 1, groups: 1, padValue: -1, images: 140},
	} {
		nets := c.networks()
		for pick := range 2 * mostTiles {
			d := unsharedDevice(t)
			d.pick = pick / 2
			variant := []string{gpu.TensorCore, gpu.SplitK}[pick%2]
			for i, n := range nets {
				t.Run(fmt.Sprintf("%dx%dx%d/k%d/out%d/%s%d/%d", c.h, c.w, c.in, c.k, c.out, variant, d.pick, i), func(t *testing.T) {
					exe := requireReference(t, d, n, backend.Options{Kernels: variant}, c.images)
					if variant == gpu.TensorCore {
						require.Equal(t, "conv_mma", exe.steps[1].launches[0].spec.File)
					}
				})
			}
		}
	}
}

// TestWarpgroupShapes runs the products of warpgroups on tiles that are full and cut off, squares
// and sequences, over several for each warpgroup.
func TestWarpgroupShapes(t *testing.T) {
	testenv.Long(t)
	for _, c := range []convShape{
		{h: 19, w: 21, in: 128, out: 130, k: 3, images: 3},
		{h: 18, w: 11, in: 256, out: 100, k: 3, padValue: 1, pool: [2]int{2, 2}, images: 5},
		{h: 12, w: 12, in: 384, out: 33, k: 1, padValue: -1, images: 9},
		{h: 11, w: 9, in: 128, out: 64, k: 3, dilation: 2, images: 2},
		{h: 9, w: 16, in: 250, out: 128, k: 5, images: 1},
		{h: 3, w: 5, in: 128, out: 32, k: 3, padValue: 1, images: 40},
		{h: 1, w: 1, in: 128, out: 128, k: 1, images: 70},
	} {
		d := unsharedDevice(t)
		if !d.limits.Warpgroups {
			t.Skip("compute capability 9.0 alone has them")
		}
		seen := make(map[string]bool)
		for i, n := range c.networks() {
			for d.pick = range 2 {
				t.Run(fmt.Sprintf("%dx%dx%d/k%d/out%d/%d/%d", c.h, c.w, c.in, c.k, c.out, i, d.pick), func(t *testing.T) {
					exe := requireReference(t, d, n, backend.Options{Kernels: gpu.Warpgroup}, c.images)
					spec := exe.steps[1].launches[0].spec
					require.Equal(t, "conv_wgmma", spec.File)
					seen[fmt.Sprint(spec.Name, spec.G.TileX)] = true
				})
			}
		}
		// Pooled ones have squares alone.
		if c.pool == [2]int{} {
			require.Len(t, seen, 4)
		}
	}
}

// TestSharedMemory: who needs less shared memory of a kernel leaves others what they need.
func TestSharedMemory(t *testing.T) {
	d := testDevice(t)
	if !d.limits.Warpgroups {
		t.Skip("compute capability 9.0 alone has kernels that need much")
	}
	var executables []*running
	for _, channels := range []int{512, 256} {
		plan, err := lower.Network(t.Context(), backendtest.OneConv(6, 3, channels, 32), lower.Options{})
		require.NoError(t, err)
		executables = append(executables, compiled(t, d, plan, backend.Options{Kernels: gpu.Warpgroup}, 1))
	}
	spec := func(i int) candidates.Spec { return executables[i].steps[1].launches[0].spec }
	require.Equal(t, spec(0).Name, spec(1).Name)
	require.Greater(t, spec(0).Shared, spec(1).Shared)
	require.Greater(t, spec(1).Shared, d.limits.SharedDefault)
	for _, exe := range executables {
		requireRun(t, exe, 3, 1)
	}
}

// TestByteShapes runs the tiles for tensor cores and the products of warpgroups on bytes, as
// TestGEMMShapes and TestWarpgroupShapes do on bits: every candidate of these kinds.
func TestByteShapes(t *testing.T) {
	testenv.Long(t)
	for _, c := range []convShape{
		{h: 9, w: 9, in: 64, out: 130, k: 3, images: 2},
		{h: 8, w: 16, in: 16, out: 256, k: 3, pool: [2]int{2, 2}, images: 1},
		{h: 8, w: 8, in: 24, out: 96, k: 5, pool: [2]int{4, 4}, images: 3},
		{binary: true, h: 8, w: 10, in: 96, out: 33, k: 3, pool: [2]int{4, 2}, images: 2},
		{binary: true, h: 5, w: 6, in: 64, out: 128, k: 3, groups: 2, images: 2},
		{h: 5, w: 6, in: 36, out: 40, k: 1, images: 5},
		{h: 1, w: 1, in: 1000, out: 100, k: 1, images: 70},
		{h: 19, w: 21, in: 32, out: 130, k: 3, images: 1},
		{binary: true, h: 10, w: 11, in: 128, out: 40, k: 3, pool: [2]int{2, 2}, images: 2},
		{h: 12, w: 12, in: 48, out: 33, k: 1, images: 4},
		{h: 11, w: 9, in: 16, out: 64, k: 3, dilation: 2, images: 2},
	} {
		t.Run(fmt.Sprintf("%dx%dx%d", c.h, c.w, c.in), func(t *testing.T) {
			c.bytes = true
			nets := c.networks()
			run := 0
			for _, n := range nets {
				plan, err := lower.Network(t.Context(), n, lower.Options{})
				require.NoError(t, err)
				in := backendtest.RandomImages(7, c.images, plan.Inputs[0])
				want, err := ref.Run(t.Context(), plan, in, nil)
				require.NoError(t, err)
				for _, variant := range []string{gpu.TensorCore, gpu.SplitK, gpu.Warpgroup} {
					d := unsharedDevice(t)
					e := &executable{device: d, plan: plan, config: driver.Config{MaxBatch: c.images, Kernels: variant}, ctx: t.Context()}
					all, err := e.candidates()
					require.NoError(t, err)
					for pick, of := range all[0] {
						if file := of.Specs[0].File; file != "conv_mma" && file != "conv_wgmma_bytes" {
							continue
						}
						d.pick = pick
						exe := compiled(t, d, plan, backend.Options{Kernels: variant}, c.images)
						require.Equal(t, of.Specs[0].Label(), exe.steps[0].launches[0].spec.Label())
						requireOutput(t, exe, want, in)
						run++
					}
				}
			}
			require.NotZero(t, run)
		})
	}
}

// gemmNet is a dense layer of size outputs on as many bits, whose result is bits.
func gemmNet(size int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	net := &bcnn.Network{Name: "gemm", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 1, W: 1, C: size}}}}
	thresholds := make([]int32, size)
	for i := range thresholds {
		thresholds[i] = 128
	}
	net.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: thresholds})
	net.Append("gemm", bcnn.Dense{Out: size, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, size, size)}})
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("end", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, 1, size)}})
	return net
}

// BenchmarkGEMM is the product of square matrices of bits, with each tile of the variant
// c: the device time of the step, as operations per second, two for a product of ±1
// values. An emulator gets a small one.
func BenchmarkGEMM(b *testing.B) {
	size := 8192
	if testDevice(b).info.Kind == backend.Emulated {
		size = 256
	}
	plan, err := lower.Network(b.Context(), gemmNet(size), lower.Options{})
	require.NoError(b, err)
	in := backendtest.RandomImages(1, size, plan.Inputs[0])
	out := bcnn.NewTensor(bcnn.Float32, size, plan.OutputShape())
	seen := make(map[string]bool)
	for pick := range mostTiles {
		d := testDevice(b)
		d.pick = pick
		var best time.Duration
		compiled, err := compile(b.Context(), d, plan, backend.Options{Kernels: gpu.TensorCore, MaxBatch: size, Timed: func(i int, _ string, took time.Duration) {
			if i == 1 && (best == 0 || took < best) {
				best = took
			}
		}})
		require.NoError(b, err)
		exe := compiled
		kernel := exe.steps[1].launches[0].spec.Name
		if !seen[kernel] {
			seen[kernel] = true
			b.Run(fmt.Sprintf("%d/%s", size, kernel), func(b *testing.B) {
				best = 0
				for b.Loop() {
					require.NoError(b, exe.run(b.Context(), out, in))
				}
				b.ReportMetric(2*float64(size)*float64(size)*float64(size)/best.Seconds()/1e12, "Tops/s")
				b.ReportMetric(float64(best.Microseconds()), "device-µs")
			})
		}
		require.NoError(b, exe.Close())
	}
}
