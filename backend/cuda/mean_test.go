//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestMeanDriver: whatever the driver refuses, the bits are right or the error is a clear one.
func TestMeanDriver(t *testing.T) {
	some := parity.Keep(backendtest.Cases(t, backendtest.CoreEvery(149), backendtest.CoreEvery(9)))
	networks := []*bcnn.Network{backendtest.OneConv(4, 3, 12, 12)}
	if !testing.Short() {
		networks = append(networks, backendtest.VehicleNet(3, 8))
	}
	for _, c := range []struct {
		refuses string // as BCNN_EMULATOR_FAULT has it
		noted   string // in what the device remembers; empty for nothing
		fails   string // the error, where nothing takes the place of what is refused
	}{
		{"", "", ""},
		{"graphs", "", ""},
		{"instantiate", "", ""},
		{"graph", "a graph: cuGraphLaunch: CUDA_ERROR_OUT_OF_MEMORY", ""},
		{"graph:2", "a graph: cuGraphLaunch: CUDA_ERROR_OUT_OF_MEMORY", ""},
		{"host-alloc", "page-locked memory: ", ""},
		{"host-alloc:2", "page-locked memory: ", ""},
		{"host-alloc,graphs", "page-locked memory: ", ""},
		{"cooperative:1", "", ""},
		{"dependent:1", "", ""},
		{"fastest", "a launch: ", ""},
		{"fastest,graphs", "a launch: ", ""},
		{"refuse:dense_warp_i1", "a launch: kernel dense_warp_i1", ""},
		{"every", "", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
		{"alloc:1", "", "CUDA_ERROR_OUT_OF_MEMORY"},
	} {
		t.Run(c.refuses, func(t *testing.T) {
			d := emulated(t)
			before, driver := gpu.Live.Load(), alive(t, d)
			for _, net := range networks {
				t.Setenv(envFault, "")
				t.Setenv(envFault, refuseKernels(t, d, net, c.refuses))
				for _, timed := range []bool{false, true} {
					err := runMean(t, d, net, timed)
					if c.fails == "" {
						require.NoError(t, err)
						continue
					}
					require.ErrorContains(t, err, c.fails)
					require.NotContains(t, err.Error(), "\n")
				}
			}
			if c.fails == "" {
				t.Setenv(envFault, c.refuses)
				failures, err := parity.Check(t.Context(), backend.NewDevice(d), backend.Options{}, some, nil)
				require.NoError(t, err)
				for _, f := range failures {
					t.Error(f)
				}
			}
			list := strings.Join(d.Info().Refused, "\n")
			require.Contains(t, list, c.noted)
			if c.fails == "" {
				require.Equal(t, c.noted == "", list == "", list)
			}
			require.Equal(t, before, gpu.Live.Load())
			require.Equal(t, driver, alive(t, d))
		})
	}
}

// refuseKernels makes "fastest" the names of the kernels that the network gets, and "every" those of
// all that it may get.
func refuseKernels(t *testing.T, d *device, net *bcnn.Network, refuses string) string {
	t.Helper()
	names := make(map[string]bool)
	switch word, _, _ := strings.Cut(refuses, ","); word {
	case "fastest":
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		exe, err := compile(t.Context(), d, plan, backend.Options{MaxBatch: 3})
		require.NoError(t, err)
		for _, l := range exe.steps[len(exe.steps)-1].launches {
			names[l.spec.Name] = true
		}
		require.NoError(t, exe.Close())
	case "every":
		all, err := stepKernels(d)
		require.NoError(t, err)
		for name := range all {
			names[name] = true
		}
	default:
		return refuses
	}
	list := strings.Split(refuses, ",")[1:]
	for name := range names {
		list = append(list, "refuse:"+name)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// runMean compiles a network, runs it and compares it with the reference.
func runMean(t *testing.T, d *device, net *bcnn.Network, timed bool) error {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	opts := backend.Options{MaxBatch: 3}
	if timed {
		opts.Tap = func(int, string, bcnn.Tensor) {}
	}
	exe, err := compile(t.Context(), d, plan, opts)
	if err != nil {
		return err
	}
	defer exe.Close()
	for _, n := range []int{2, 3, 3, 1} {
		in := backendtest.RandomImages(uint64(n), n, plan.Inputs[0])
		want, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		out := bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape())
		if err := exe.run(t.Context(), out, in); err != nil {
			return err
		}
		exe.perImage = 0 // the next run is one of a graph, on a busy machine, too
		require.NoError(t, compare.Tensors(want, out), "%d images", n)
	}
	return nil
}

// TestEveryAllocation fails each allocation of a Compile, alone: what it was for is done without, or
// the error says that memory is short.
func TestEveryAllocation(t *testing.T) {
	d := emulated(t)
	before, driver := gpu.Live.Load(), alive(t, d)
	ends := make(map[bool]int)
	for n := 1; ; n++ {
		t.Setenv(envFault, fmt.Sprintf("one-alloc:%d", n))
		was := len(d.Info().Refused)
		err := runMean(t, d, backendtest.VehicleNet(3, 8), false)
		if err != nil {
			require.ErrorContains(t, err, "CUDA_ERROR_OUT_OF_MEMORY", "allocation %d", n)
			require.NotContains(t, err.Error(), "\n")
		}
		ends[err == nil]++
		require.Equal(t, before, gpu.Live.Load(), "allocation %d", n)
		require.Equal(t, driver, alive(t, d), "allocation %d", n)
		if err == nil && len(d.Info().Refused) == was && n > 30 { // there is no such allocation
			break
		}
	}
	require.Greater(t, ends[true], 5, ends)
}
