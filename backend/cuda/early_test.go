//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestEarly: kernels begin before those ahead of them have ended, with the same results,
// also where a tensor has the memory of one that was read before.
func TestEarly(t *testing.T) {
	d := testDevice(t)
	if !d.early {
		testenv.Absent(t, "cuda-emulator", fmt.Errorf("%s begins no kernels early", d.info.Detail))
	}
	variants := []string{"", gpu.Patches, gpu.Direct, gpu.TensorCore, gpu.SplitK}
	if testing.Short() {
		variants = []string{"", gpu.TensorCore}
	}
	for _, kernels := range variants {
		for _, p := range placements {
			t.Run(kernels+"/"+p.name, func(t *testing.T) {
				d := p.device(t)
				d.tuneFrom, d.fastest = 1<<62, earlyLaunches // where times are measured
				exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{Kernels: kernels}, 2)
				require.True(t, exe.early)
				require.False(t, exe.direct)
				for images := 1; images <= 2; images++ {
					requireRun(t, exe, uint64(images), images)
				}
				exe.direct = true // launches one by one may begin early, too
				requireRun(t, exe, 3, 2)
			})
		}
	}
	cases := everyNth(40, 3)
	d.tuneFrom, d.fastest = 1<<62, earlyLaunches
	requireParity(t, d, backend.Options{}, cases)
	if d.limits.Warpgroups { // whose kernels do not wait, so they begin behind those ahead
		exe := requireReference(t, d, backendtest.OneConv(8, 3, 128, 128), backend.Options{Kernels: gpu.Warpgroup}, 2)
		require.True(t, exe.early)
		require.Equal(t, "conv_wgmma", exe.steps[1].launches[0].spec.File)
		require.False(t, exe.steps[1].launches[0].waits)
		exe.perImage = 0 // not step by step
		requireRun(t, exe, 4, 2)
	}
	d.early = false
	exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, 1)
	require.False(t, exe.early)
}

// TestEarlyIsMeasured: kernels begin early if the graph of a whole run is faster so.
func TestEarlyIsMeasured(t *testing.T) {
	for _, c := range []struct {
		clock, fault string
		early        bool
	}{
		{"node:10,dependent:5", "", true},
		{"node:10,dependent:20", "", false},
		{"node:10,dependent:5", "dependent", false},   // refused when recorded
		{"node:10,dependent:5", "dependent:3", false}, // not at once
	} {
		t.Run(c.clock+"/"+c.fault, func(t *testing.T) {
			d := timedWhole(t, c.clock)
			if !d.early {
				t.Skip("the driver begins no kernels early")
			}
			d.limits.Cooperative = false // there is one launch
			t.Setenv(envFault, c.fault)
			before, driver := gpu.Live.Load(), alive(t, d)
			exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, 2)
			require.Equal(t, c.early, exe.early)
			require.False(t, exe.direct)
			requireRun(t, exe, 1, 1)
			require.NoError(t, exe.Close())
			require.Equal(t, before, gpu.Live.Load())
			require.Equal(t, driver, alive(t, d))
		})
	}
}

// TestEarlyRefused: where the driver refuses, kernels wait for each other.
func TestEarlyRefused(t *testing.T) {
	d := emulated(t)
	for _, fault := range []string{"", "dependent", "dependent:2"} {
		t.Setenv(envFault, fault)
		exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, 2)
		require.Equal(t, d.early && fault == "", exe.early)
		require.False(t, exe.direct)
		requireRun(t, exe, 1, 1)
	}
}

// TestEarlyNeedsDriver: older drivers and devices are not asked.
func TestEarlyNeedsDriver(t *testing.T) {
	emulated(t)
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "early: true"},
		{[]string{envFault + "=driver:12020"}, "early: false"},
		{[]string{envCapability + "=8.9"}, "early: false"},
		{[]string{envCapability + "=12.0"}, "early: true"},
	} {
		output, err := child(t, "early", c.env...)
		require.NoError(t, err, output)
		require.Contains(t, output, c.want)
	}
}

// BenchmarkEarly compares whole runs at batch 1 whose kernels begin early with such whose
// kernels do not. The kernels are the same.
func BenchmarkEarly(b *testing.B) {
	d := testDevice(b)
	d.limits.Cooperative = false // else small networks are one launch
	vgg, err := zoo.New("vgg16", 1)
	require.NoError(b, err)
	for _, net := range []*bcnn.Network{backendtest.VehicleNet(1, 96), vgg} {
		plan, err := lower.Network(b.Context(), net, lower.Options{})
		require.NoError(b, err)
		exe := compiled(b, d, plan, backend.Options{}, 1)
		in, out := backendtest.RandomImages(1, 1, plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		chosen := exe.early
		for _, early := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/early=%t", net.Name, early), func(b *testing.B) {
				if early && !d.early {
					b.Skip("the device begins no kernels early")
				}
				require.NoError(b, exe.thread.do(newRequest(exe.dropGraphs)))
				exe.early = early
				for b.Loop() {
					require.NoError(b, exe.run(b.Context(), out, in))
				}
				b.ReportMetric(map[bool]float64{true: 1}[chosen == early], "chosen")
			})
		}
	}
}
