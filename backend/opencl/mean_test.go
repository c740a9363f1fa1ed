//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// envMean is the environment variable of testdata/mean.c, a layer of OpenCL's loader.
const envMean = "BCNN_MEAN"

// mean is what a driver refuses, and how it ends.
type mean struct {
	refuses string
	// noted is in what the device remembers of it; empty for nothing.
	noted string
	// fails is the error, where nothing can take the place of what is refused; else the bits
	// are right.
	fails string
	// line is what the errors of some cases of the parity suite have, where nothing can take the
	// place of what is refused.
	line string
}

// forced is an error where kernels were asked for by name: it has the compiler's log.
const forced = `(patches|vectors|direct) kernels: .* the driver's compiler says`

// oneOfAKind are those that short tests take.
var oneOfAKind = []string{
	"", "times", "kernel:64", "groupis:64", "lazy:4000", "build:conv_vectors,nolog", "launch:all", "lost:1",
}

var meanDrivers = []mean{
	{"", "", "", ""},
	{"queue", "times of the device, in place of which the host's clock is read: queue: ", "", ""},
	{"times", "CL_PROFILING_INFO_NOT_AVAILABLE", "", ""},
	{"zero", "from 0 to 0 ns", "", ""},
	{"queues:2", "times of the device", "", ""}, // one alone
	{"kernel:64", "kernels patches: work-group too large: kernel pack_patches needs work-groups of 256, and 64 is the largest", "", ""},
	{"kernel:8", "kernel dense_reduce needs work-groups of 64, and 8 is the largest", "", ""},
	{"group:64", "CL_INVALID_WORK_GROUP_SIZE", "", ""},
	{"group:8", "CL_INVALID_WORK_GROUP_SIZE", "", ""},
	{"groupis:64", "work-groups of 64: clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES", "", ""},
	{"groupis:64,code:-54", "CL_INVALID_WORK_GROUP_SIZE", "", ""},
	{"groupis:64,code:-55", "CL_INVALID_WORK_ITEM_SIZE", "", ""},
	{"group:0", "which the processor executes", "", ""},
	{"once:3", "CL_OUT_OF_RESOURCES", "", ""},
	{"once:8,code:-4", "CL_MEM_OBJECT_ALLOCATION_FAILURE", "", ""},
	{"once:8,code:-6", "CL_OUT_OF_HOST_MEMORY", "", ""},
	{"buffer:4000", "Mem Object Allocation Failure", "", `compile: tensor \w+: buffer of \d+ bytes: cl: Mem Object Allocation Failure$`}, // weights, patches, counts
	{"buffer:40", "", "tensor ", ""},
	{"lazy:4000", "CL_MEM_OBJECT_ALLOCATION_FAILURE", "", ""},
	{"hostptr", "", "", ""},
	{"map", "Map Failure", "", ""},
	{"build:conv_vectors", "vectors: build conv_vectors.cl: the driver's compiler says: refused for a test", "", forced},
	{"build:conv_vectors,nolog", "vectors: build conv_vectors.cl: the driver's compiler says nothing: cl: Invalid Program", "", forced},
	{"build:xor_gemm", "build patches.cl", "", forced},
	{"build:conv_bits", "build conv_bits.cl", "", forced},
	{"build:all", "which the processor executes", "", forced},
	{"build:all,nolog", "which the processor executes", "", forced},
	{"create:conv_values", "kernel conv_values: cl: Out Of Host Memory", "", ""},
	{"create:all", "which the processor executes", "", ""},
	{"launch:conv_bits", "kernel conv_bits, work-groups of", "", ""},
	{"launch:xor_gemm", "kernel xor_gemm, work-groups of", "", ""},
	{"launch:binarize", "kernel binarize, work-groups of", "", ""},
	{"launch:finish,code:-4", "kernel finish, work-groups of", "", ""},
	{"launch:all", "which the processor executes", "", ""},
	{"lost:1", "", "CL_OUT_OF_RESOURCES", ""},
	{"lost:20", "", "CL_OUT_OF_RESOURCES", ""},
}

// TestMeanDriver: whatever a driver refuses, the bits are right or the error is a clear one. It runs
// the test binary again behind the layer that refuses, which the loader takes when it starts.
func TestMeanDriver(t *testing.T) {
	if os.Getenv("OPENCL_LAYERS") != "" {
		meanCases(t)
		return
	}
	testDevice(t) // or the test is left out
	if _, err := exec.LookPath("cc"); err != nil {
		testenv.Absent(t, "cc", err)
	}
	layer := filepath.Join(t.TempDir(), "mean.so")
	output, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fvisibility=hidden",
		"-DCL_TARGET_OPENCL_VERSION=120", "-DCL_USE_DEPRECATED_OPENCL_1_2_APIS", "-Iinternal/shim/include", "-o", layer, "testdata/mean.c", "-lpthread").CombinedOutput()
	require.NoError(t, err, string(output))
	cmd := exec.Command(os.Args[0], "-test.run=^TestMeanDriver$", fmt.Sprint("-test.short=", testing.Short()), "-test.v", "-test.timeout=180m")
	cmd.Env = append(os.Environ(), "OPENCL_LAYERS="+layer)
	output, err = cmd.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "--- PASS: TestMeanDriver/launch:all") // it was not skipped
}

func meanCases(t *testing.T) {
	networks := []*answered{{Network: small()}, {Network: backendtest.OneConv(6, 3, 32, 32)}}
	if testing.Short() {
		networks = networks[:1]
	}
	some := parity.Keep(backendtest.Cases(t, backendtest.CoreEvery(97), backendtest.CoreEvery(9)))
	for _, m := range meanDrivers {
		if testing.Short() && !slices.Contains(oneOfAKind, m.refuses) {
			continue
		}
		name := m.refuses
		if name == "" {
			name = "nothing"
		}
		t.Run(name, func(t *testing.T) {
			d := testDevice(t)
			d.tuning = d.loadTuning("")
			before := gpu.Live.Load()
			require.NoError(t, os.Setenv(envMean, m.refuses))
			defer os.Setenv(envMean, "")
			// Steps with general programs, which are not measured.
			general := testDevice(t)
			general.tuning, general.specialiseFrom = d.tuning, 1<<62
			if m.fails == "" {
				failures, err := parity.Check(t.Context(), backend.NewDevice(general), backend.Options{}, some, nil)
				require.NoError(t, err)
				for _, f := range failures {
					if m.line == "" || !regexp.MustCompile(m.line).MatchString(fmt.Sprint(f)) {
						t.Error(f)
					}
				}
			}
			// Of two kinds of memory, and with programs of their own, which are measured.
			for _, unified := range []bool{false, true} {
				d.unified, d.limits.LocalMemory, d.limits.GPU, d.specialiseFrom = unified, true, true, 1
				for _, net := range networks {
					for _, kernels := range []string{"", gpu.Patches} {
						m.run(t, d, net, kernels)
					}
				}
			}
			list := strings.Join(append(general.Info().Refused, d.Info().Refused...), "\n")
			require.Contains(t, list, m.noted)
			if m.fails == "" {
				require.Equal(t, m.noted == "", list == "", list)
			}
			require.NotContains(t, list, "\x00")
			require.Equal(t, before, gpu.Live.Load())
			for _, d := range []*device{general, d} {
				for _, p := range d.programs {
					require.Zero(t, p.users)
				}
			}
		})
	}
}

// answered is a network, its plan, batches of random images and what the reference gives for each.
type answered struct {
	*bcnn.Network
	plan     *plan.Plan
	in, want []bcnn.Tensor
}

// answer runs batches of two sizes, the second twice: what is refused once is not tried again.
func (a *answered) answer(t *testing.T) {
	if a.plan != nil {
		return
	}
	var err error
	a.plan, err = lower.Network(t.Context(), a.Network, lower.Options{})
	require.NoError(t, err)
	for _, n := range []int{2, 3, 3} {
		in := backendtest.RandomImages(uint64(n), n, a.plan.Inputs[0])
		want, err := ref.Run(t.Context(), a.plan, in, nil)
		require.NoError(t, err)
		a.in, a.want = append(a.in, in), append(a.want, want)
	}
}

// run compiles and runs a network, steps timed and not, and compares it with the reference.
func (m mean) run(t *testing.T, d *device, net *answered, kernels string) {
	t.Helper()
	net.answer(t)
	for _, timed := range []func(int, string, time.Duration){nil, func(int, string, time.Duration) {}} {
		err := func() error {
			exe, err := compile(t.Context(), d, net.plan, backend.Options{Kernels: kernels, MaxBatch: 3, Timed: timed})
			if err != nil {
				return err
			}
			defer exe.Close()
			return net.compare(t, exe)
		}()
		switch {
		case m.fails != "":
			require.ErrorContains(t, err, m.fails)
			require.NotContains(t, err.Error(), "\n")
		case kernels != "" && strings.HasPrefix(m.refuses, "build:"):
			// Kernels that were asked for: the error is the compiler's.
			if err != nil {
				require.ErrorIs(t, err, errBuild)
			}
		default:
			require.NoError(t, err)
		}
	}
}

// compare runs all batches.
func (a *answered) compare(t *testing.T, exe *running) error {
	for i, want := range a.want {
		out := bcnn.NewTensor(bcnn.Float32, want.N, a.plan.OutputShape())
		if err := exe.run(context.Background(), out, a.in[i]); err != nil {
			return err
		}
		require.NoError(t, compare.Tensors(want, out))
	}
	return nil
}

// TestPlacesOfTheLayer compares the table of functions in testdata/mean.c with the system's.
func TestPlacesOfTheLayer(t *testing.T) {
	const system = "/usr/include/CL/cl_icd.h"
	header, err := os.ReadFile(system)
	if err != nil {
		testenv.Absent(t, "opencl-headers", err)
	}
	layer, err := os.ReadFile("testdata/mean.c")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(header), "struct _cl_icd_dispatch {")
	require.True(t, found)
	var functions []string
	for _, f := range regexp.MustCompile(`(?m)\b(cl\w+);$`).FindAllStringSubmatch(table, -1) {
		functions = append(functions, f[1])
	}
	places := regexp.MustCompile(`PLACE_(\w+) = (\d+)`).FindAllStringSubmatch(string(layer), -1)
	require.NotEmpty(t, places)
	for _, p := range places {
		var i int
		_, err := fmt.Sscan(p[2], &i)
		require.NoError(t, err)
		require.Equal(t, p[1], functions[i])
	}
}
