//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// BenchmarkSteps prints the shortest device time of every step in both variants.
func BenchmarkSteps(b *testing.B) {
	for _, net := range []*bcnn.Network{backendtest.VehicleNet(1, 96), backendtest.OneConv(48, 5, 32, 32), backendtest.OneConv(28, 3, 128, 128), backendtest.OneConv(14, 3, 256, 256)} {
		for _, variant := range append([]string{""}, kernelNames...) {
			b.Run(fmt.Sprintf("%s/%v/variant=%s", net.Name, net.Inputs[0].Shape, variant), func(b *testing.B) {
				plan, err := lower.Network(b.Context(), net, lower.Options{})
				require.NoError(b, err)
				best := make([]time.Duration, len(plan.Steps))
				exe, err := compile(b.Context(), testDevice(b), plan, backend.Options{Kernels: variant, Timed: func(i int, _ string, d time.Duration) {
					if best[i] == 0 || d < best[i] {
						best[i] = d
					}
				}})
				require.NoError(b, err)
				defer exe.Close()
				in, out := backendtest.RandomImages(1, 1, plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
				for b.Loop() {
					require.NoError(b, exe.run(context.Background(), out, in))
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
func requireReference(t testing.TB, d *device, net *bcnn.Network, opts backend.Options, n int) *running {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	exe := compiled(t, d, plan, opts, n)
	requireRun(t, exe, 7, n)
	return exe
}

func compiled(t testing.TB, d *device, plan *plan.Plan, opts backend.Options, n int) *running {
	t.Helper()
	opts.MaxBatch = n
	exe, err := compile(t.Context(), d, plan, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, exe.Close()) })
	return exe
}

// requireRun runs n random images and compares the results with the reference.
func requireRun(t testing.TB, exe *running, seed uint64, n int) {
	t.Helper()
	in := backendtest.RandomImages(seed, n, exe.plan.Inputs[0])
	want, err := ref.Run(t.Context(), exe.plan, in, nil)
	require.NoError(t, err)
	requireOutput(t, exe, want, in)
}

func requireOutput(t testing.TB, exe *running, want, in bcnn.Tensor) {
	t.Helper()
	out := bcnn.NewTensor(bcnn.Float32, in.N, want.Shape)
	require.NoError(t, exe.run(context.Background(), out, in))
	require.Equal(t, want.F32, out.F32)
}

// BenchmarkRun is a whole Run, transfers included.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("vehicle/batch=%d", n), func(b *testing.B) {
			exe := requireReference(b, testDevice(b), backendtest.VehicleNet(1, 96), backend.Options{}, n)
			in, out := backendtest.RandomImages(1, n, exe.plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, n, exe.plan.OutputShape())
			b.ReportAllocs()
			for b.Loop() {
				if err := exe.run(context.Background(), out, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
