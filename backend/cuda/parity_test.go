//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

func TestMain(m *testing.M) {
	findDriver()
	if name := os.Getenv(envChild); name != "" {
		if err := children[name](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// What earlier runs measured must not decide what is tested.
	dir, err := os.MkdirTemp("", "bitcnn-cuda")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// testDevice returns the first device, in a copy of its own.
func testDevice(t testing.TB) *device {
	t.Helper()
	testenv.DependsOnDrivers()
	devices, err := enumerate()
	if len(devices) == 0 {
		testenv.Absent(t, "cuda", err)
	}
	d := devices[0]
	require.NoError(t, d.open())
	return &device{number: d.number, info: d.info, driver: d.driver, limits: d.limits, arch: d.arch, unified: d.unified, early: d.early, without: d.without,
		tuneFrom: d.tuneFrom, pick: -1, thread: d.thread, tuning: d.loadTuning("")}
}

// unsharedDevice is testDevice with tensors that share no memory, so that the emulator notices
// what is read or written beyond one.
func unsharedDevice(t testing.TB) *device {
	d := testDevice(t)
	d.unshared = true
	return d
}

// placements are the ways to place tensors: sharing memory, as users get it, which
// shows what takes the memory of a tensor too early, and apart.
var placements = []struct {
	name   string
	device func(t testing.TB) *device
}{{"shared", testDevice}, {"apart", unsharedDevice}}

// TestParity runs cases as users get them.
func TestParity(t *testing.T) {
	backendtest.Run(t, backend.NewDevice(testDevice(t)), backend.Options{})
}

// everyNth are some cases of the table, from all its parts.
func everyNth(n, first int) []parity.Case {
	var some []parity.Case
	for i, c := range parity.Cases() {
		if i%n == first%n {
			some = append(some, c)
		}
	}
	return some
}

func requireParity(t *testing.T, d *device, opts backend.Options, cases []parity.Case) {
	t.Helper()
	failures, err := parity.Check(t.Context(), backend.NewDevice(d), opts, cases, nil)
	require.NoError(t, err)
	for _, f := range failures {
		t.Error(f)
	}
}

// requireParityPlaced divides the cases among the placements.
func requireParityPlaced(t *testing.T, pick int, opts backend.Options, cases []parity.Case) {
	t.Helper()
	for i, p := range placements {
		var some []parity.Case
		for k := i; k < len(cases); k += len(placements) {
			some = append(some, cases[k])
		}
		d := p.device(t)
		d.pick = pick
		requireParity(t, d, opts, some)
	}
}

// TestVariants forces each kind of kernels.
func TestVariants(t *testing.T) {
	testenv.Long(t)
	for _, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			requireParityPlaced(t, -1, backend.Options{Kernels: variant}, parity.Core())
		})
	}
}

// TestVehicleNet runs the network of the paper at its size, in all schemes.
func TestVehicleNet(t *testing.T) {
	for i, scheme := range vehiclenet.InputSchemes {
		net, err := vehiclenet.Topology(scheme, 6, uint64(i))
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		const images = 2
		in := backendtest.RandomImages(7, images, plan.Inputs[0])
		want, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		for _, variant := range append([]string{""}, kernelNames...) {
			if testing.Short() && variant != "" {
				continue
			}
			for _, p := range placements {
				t.Run(fmt.Sprintf("%s/%s/%s", scheme, variant, p.name), func(t *testing.T) {
					d := p.device(t)
					exe := compiled(t, d, plan, backend.Options{Kernels: variant}, images)
					requireOutput(t, exe, want, in)
					if variant != "" { // else by time
						require.Equal(t, variant == gpu.Fused && d.limits.Cooperative, exe.network != nil)
					}
				})
			}
		}
	}
}

// TestPublished runs the published weights of the paper step by step and, where there
// is a kernel for it, in one launch.
func TestPublished(t *testing.T) {
	testenv.Long(t)
	for _, variant := range []string{"", gpu.Fused} {
		for _, p := range placements {
			t.Run(variant+"/"+p.name, func(t *testing.T) {
				backendtest.PublishedOn(t, backend.NewDevice(p.device(t)), backend.Options{Kernels: variant})
			})
		}
	}
}

// FuzzRandomNetworks takes, for random networks, what users get, each kind of kernels, and
// each candidate.
func FuzzRandomNetworks(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		opts, pick := backend.Options{}, -1
		switch i := int(seed % uint64(2*len(kernelNames)+1)); {
		case i > len(kernelNames):
			pick = int(seed/32) % mostCandidates
		case i > 0:
			opts.Kernels = kernelNames[i-1]
		}
		for _, p := range placements {
			d := p.device(t)
			d.pick = pick
			requireParity(t, d, opts, []parity.Case{parity.RandomCase(seed)})
		}
	})
}

// TestShapes runs convolutions that tiles divide with and without a rest.
func TestShapes(t *testing.T) {
	testenv.Long(t)
	for _, s := range []struct{ size, k, in, out int }{{17, 3, 32, 40}, {16, 3, 64, 64}, {9, 5, 128, 32}, {12, 1, 256, 33}, {20, 7, 3, 16}} {
		for pick := range mostCandidates {
			d := unsharedDevice(t)
			d.pick = pick
			requireReference(t, d, backendtest.OneConv(s.size, s.k, s.in, s.out), backend.Options{}, 2)
		}
	}
}

// TestPatchesOfImages: the patches of the paper are those of the image, in every scheme,
// and what the binarisation makes can be read all the same.
func TestPatchesOfImages(t *testing.T) {
	testenv.Long(t)
	opts := backend.Options{Kernels: gpu.Patches}
	requireParityPlaced(t, -1, opts, wholeNetworks(1, 0))
	for _, p := range placements {
		for i, scheme := range vehiclenet.InputSchemes {
			net, err := vehiclenet.Topology(scheme, 6, uint64(i))
			require.NoError(t, err)
			if scheme == "none" {
				continue
			}
			exe := requireReference(t, p.device(t), net, opts, 2)
			require.Equal(t, "patches: pack_image", exe.Explain()[0].Kernel)
			require.Equal(t, "patches: xor_gemm, finish", exe.Explain()[1].Kernel)
		}
	}
}
