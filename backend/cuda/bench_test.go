//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// randomBits makes rows of packed random bits of n channels.
func randomBits(rng *rand.Rand, rows, n int) []uint64 {
	words := make([]uint64, rows*bits.Words(n))
	for i := range words {
		if words[i] = rng.Uint64(); i%bits.Words(n) == bits.Words(n)-1 {
			words[i] &= bits.TailMask(n)
		}
	}
	return words
}

// vehicleNet has the shape of the network of the paper, with random weights.
func vehicleNet(seed uint64, size int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(seed, 1))
	norm := func(n int) bcnn.BatchNorm {
		b := bcnn.BatchNorm{Epsilon: 1e-5}
		for range n {
			b.Gamma = append(b.Gamma, rng.Float32()-0.5)
			b.Beta = append(b.Beta, rng.Float32()-0.5)
			b.Mean = append(b.Mean, rng.Float32()*10-5)
			b.Var = append(b.Var, rng.Float32()+0.5)
		}
		return b
	}
	net := &bcnn.Network{Name: "vehicle", Input: bcnn.Input{DType: bcnn.Uint8, Shape: bcnn.Shape{H: size, W: size, C: 3}}}
	same := bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}}
	half := bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	channels := 3
	for i := range 2 {
		net.Append(fmt.Sprint("conv", i), bcnn.Conv2D{Window: same, Out: 32, PadValue: -i, Weights: bcnn.Weights{Bits: randomBits(rng, 32*25, channels)}})
		net.Append(fmt.Sprint("pool", i), bcnn.MaxPool{Window: half})
		net.Append(fmt.Sprint("norm", i), norm(32))
		net.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		channels, size = 32, size/2
	}
	values := size * size * 32
	for i, outputs := range []int{100, 100, 6} {
		net.Append(fmt.Sprint("dense", i), bcnn.Dense{Out: outputs, Weights: bcnn.Weights{Bits: randomBits(rng, outputs, values)}})
		net.Append(fmt.Sprint("norm", i+2), norm(outputs))
		if outputs > 6 {
			net.Append(fmt.Sprint("sign", i+2), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		}
		values = outputs
	}
	return net
}

func randomImages(seed uint64, n int, in bcnn.Input) bcnn.Tensor {
	rng := rand.New(rand.NewPCG(seed, 2))
	t := bcnn.NewTensor(in.DType, n, in.Shape)
	for i := range t.U8 {
		t.U8[i] = uint8(rng.IntN(256))
	}
	return t
}

// oneConv is a convolution of bits between two sign layers.
func oneConv(size, k, in, out int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(1, 1))
	net := &bcnn.Network{Name: "conv", Input: bcnn.Input{DType: bcnn.Uint8, Shape: bcnn.Shape{H: size, W: size, C: in}}}
	thresholds := make([]int32, in)
	for i := range thresholds {
		thresholds[i] = 128
	}
	net.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: thresholds})
	net.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: k, KW: k, Pad: bcnn.Padding{Top: k / 2, Left: k / 2, Bottom: k / 2, Right: k / 2}},
		Out: out, PadValue: -1, Weights: bcnn.Weights{Bits: randomBits(rng, out*k*k, in)}})
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("end", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: randomBits(rng, 1, size*size*out)}})
	return net
}

// BenchmarkSteps prints the shortest device time of every step in both variants.
func BenchmarkSteps(b *testing.B) {
	for _, net := range []*bcnn.Network{vehicleNet(1, 96), oneConv(48, 5, 32, 32), oneConv(28, 3, 128, 128), oneConv(14, 3, 256, 256)} {
		for _, variant := range append([]string{""}, variantNames...) {
			b.Run(fmt.Sprintf("%s/%v/variant=%s", net.Name, net.Input.Shape, variant), func(b *testing.B) {
				plan, err := bcnn.Lower(net)
				require.NoError(b, err)
				best := make([]time.Duration, len(plan.Steps))
				exe, err := testDevice(b).Compile(plan, backend.Options{Variant: variant, Timed: func(i int, _ string, d time.Duration) {
					if best[i] == 0 || d < best[i] {
						best[i] = d
					}
				}})
				require.NoError(b, err)
				defer exe.Close()
				in, out := randomImages(1, 1, plan.Input), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
				for b.Loop() {
					require.NoError(b, exe.Run(context.Background(), out, in))
				}
				for i, d := range best {
					b.ReportMetric(float64(d.Nanoseconds())/1e3, fmt.Sprintf("%d-%s-µs", i, plan.Steps[i].Name))
				}
			})
		}
	}
}

// requireReference runs a network on random images and compares it with the
// reference.
func requireReference(t testing.TB, d *device, net *bcnn.Network, opts backend.Options, n int) *executable {
	t.Helper()
	plan, err := bcnn.Lower(net)
	require.NoError(t, err)
	opts.MaxBatch = n
	exe, err := d.Compile(plan, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, exe.Close()) })
	requireRun(t, exe.(*executable), 7, n)
	return exe.(*executable)
}

// requireRun runs n random images and compares the results with the reference.
func requireRun(t testing.TB, exe *executable, seed uint64, n int) {
	t.Helper()
	in := randomImages(seed, n, exe.plan.Input)
	want, err := ref.Run(exe.plan, in, nil)
	require.NoError(t, err)
	out := bcnn.NewTensor(bcnn.Float32, n, exe.plan.OutputShape())
	require.NoError(t, exe.Run(context.Background(), out, in))
	require.Equal(t, want.F32, out.F32)
}

// BenchmarkRun is a whole Run, transfers included.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("vehicle/batch=%d", n), func(b *testing.B) {
			exe := requireReference(b, testDevice(b), vehicleNet(1, 96), backend.Options{}, n)
			in, out := randomImages(1, n, exe.plan.Input), bcnn.NewTensor(bcnn.Float32, n, exe.plan.OutputShape())
			b.ReportAllocs()
			for b.Loop() {
				if err := exe.Run(context.Background(), out, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
