//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// timed returns a device that measures, on the emulated driver, whose launches take the
// given times.
func timed(t *testing.T, clock string) *device {
	emulated(t)
	t.Setenv(envClock, clock)
	return measured(t, "")
}

// timedWhole is timed for whole networks, whose steps are not measured one by one.
func timedWhole(t *testing.T, clock string) *device {
	d := timed(t, clock)
	d.tuneFrom = math.MaxInt64
	return d
}

// TestRefusedCandidate: of the kernels for a step, those are passed over that the driver
// does not launch.
func TestRefusedCandidate(t *testing.T) {
	testenv.Long(t)
	net := backendtest.OneConv(4, 3, 32, 32)
	d := timed(t, "launch:1,node:1")
	before, driver := gpu.Live.Load(), alive(t, d)
	refuse := ""
	for i := range 2 { // the fastest, then what is chosen in its place
		exe := requireReference(t, d, net, backend.Options{}, 1)
		for _, l := range exe.steps[1].launches {
			require.NotContains(t, refuse, l.spec.Name)
			refuse += "refuse:" + l.spec.Name + ","
		}
		// A choice among what is left is not remembered.
		require.Equal(t, i == 0, len(d.tuning.Steps) == 2)
		require.NoError(t, exe.Close())
		t.Setenv(envFault, refuse)
		d.tuning = d.loadTuning("")
	}
	// Where the driver refuses all, the error is that of the first.
	all, err := stepKernels(d)
	require.NoError(t, err)
	refuse = ""
	for name := range all {
		refuse += "refuse:" + name + ","
	}
	t.Setenv(envFault, refuse)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	_, err = compile(t.Context(), d, plan, backend.Options{})
	require.ErrorContains(t, err, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
	require.Equal(t, before, gpu.Live.Load())
	require.Equal(t, driver, alive(t, d))
}

// TestRefusedNetwork: where the driver launches no grid that meets at barriers, though
// the device could, the steps are executed.
func TestRefusedNetwork(t *testing.T) {
	d := timedWhole(t, "launch:10,cooperative:1,node:1")
	before, driver := gpu.Live.Load(), alive(t, d)
	variants := []string{"", gpu.Fused}
	if testing.Short() {
		variants = variants[:1]
	}
	for _, variant := range variants {
		t.Setenv(envFault, "")
		exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{Kernels: variant}, 2)
		require.NotNil(t, exe.network)
		require.NoError(t, exe.Close())
		t.Setenv(envFault, "cooperative:1")
		exe = requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{Kernels: variant}, 2)
		require.Nil(t, exe.network)
		require.NoError(t, exe.Close())
	}
	require.Equal(t, before, gpu.Live.Load())
	require.Equal(t, driver, alive(t, d))
}

// TestNetworkWithoutMemory: where the steps have memory, and one launch for all of them has
// none, the steps are executed.
func TestNetworkWithoutMemory(t *testing.T) {
	emulated(t)
	d := measured(t, "")
	d.tuneFrom, d.fastest = math.MaxInt64, gpu.Fused
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 8), lower.Options{})
	require.NoError(t, err)
	before, driver := gpu.Live.Load(), alive(t, d)
	steps := 0
	for n, network := 1, false; !network; n++ {
		t.Setenv(envFault, fmt.Sprintf("alloc:%d", n))
		exe, err := compile(t.Context(), d, plan, backend.Options{})
		if err == nil {
			if network = exe.network != nil; !network {
				steps++
			}
			require.NoError(t, exe.Close())
		} else {
			require.ErrorContains(t, err, "CUDA_ERROR_OUT_OF_MEMORY")
			require.Zero(t, steps)
		}
		require.Equal(t, before, gpu.Live.Load())
		require.Equal(t, driver, alive(t, d))
	}
	require.NotZero(t, steps)
}

// TestGraphsAreCompared: what is measured is what runs, so one launch for the whole
// network and its steps are compared as graphs, or launched bare where the driver does
// not record them.
func TestGraphsAreCompared(t *testing.T) {
	for _, c := range []struct {
		name, clock, fault string
		network, direct    bool
	}{
		{"bare launches take long", "launch:1,cooperative:100,node:1", "", true, false},
		{"bare launches are short", "launch:100,cooperative:1,node:10", "", true, false},
		{"not recorded, and slower than a graph", "launch:10,cooperative:20,node:1", "capture", false, false},
		{"not recorded, and faster than a graph", "launch:10,cooperative:20,node:10", "capture", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := timedWhole(t, c.clock)
			t.Setenv(envFault, c.fault)
			before, driver := gpu.Live.Load(), alive(t, d)
			exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, 1)
			require.Equal(t, c.network, exe.network != nil)
			require.Equal(t, c.direct, exe.direct)
			require.Equal(t, !c.direct, len(exe.graphs) > 0)
			require.NoError(t, exe.Close())
			require.Equal(t, before, gpu.Live.Load())
			require.Equal(t, driver, alive(t, d))
		})
	}
}

// TestCandidatesAreTimedInGraphs: the kernels of a step run in a graph, and are measured so.
func TestCandidatesAreTimedInGraphs(t *testing.T) {
	d := timed(t, "launch:100,node:1")
	requireReference(t, d, backendtest.OneConv(4, 3, 32, 32), backend.Options{}, 1)
	require.Len(t, d.tuning.Steps, 2)
	for _, chosen := range d.tuning.Steps {
		require.Less(t, chosen.Seconds, 10e-6, chosen.Name)
	}
}

// TestForcedNetworkWithoutGraphs: an older driver does not record what is forced.
func TestForcedNetworkWithoutGraphs(t *testing.T) {
	needCooperative(t)
	d := emulated(t)
	t.Setenv(envFault, "capture")
	exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{Kernels: gpu.Fused}, 2)
	require.NotNil(t, exe.network)
	require.True(t, exe.direct)
}
