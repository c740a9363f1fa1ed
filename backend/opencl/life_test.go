//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jgillich/go-opencl/cl"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// small is a network with two convolutions, dense layers and fused pooling.
func small() *bcnn.Network { return backendtest.VehicleNet(3, 16) }

func compileSmall(t testing.TB, d *device, opts backend.Options) (*running, bcnn.Tensor, bcnn.Tensor) {
	t.Helper()
	plan, err := lower.Network(t.Context(), small(), lower.Options{})
	require.NoError(t, err)
	exe, err := compile(t.Context(), d, plan, opts)
	require.NoError(t, err)
	t.Cleanup(func() { exe.Close() })
	n := max(opts.MaxBatch, 1)
	return exe, bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape()), backendtest.RandomImages(1, n, plan.Inputs[0])
}

// TestVariantsTakeTheirKernels makes sure that the parity of patches is that of
// the paper's kernels.
func TestVariantsTakeTheirKernels(t *testing.T) {
	names := func(variant string) string {
		exe, _, _ := compileSmall(t, testDevice(t), backend.Options{Kernels: variant})
		var all []string
		for _, s := range exe.steps {
			for _, l := range s.launches {
				all = append(all, l.name)
			}
		}
		return strings.Join(all, " ")
	}
	require.Equal(t, "conv_values pack_patches xor_gemm finish dense_reduce finish dense_reduce finish dense_reduce finish", names(gpu.Patches))
	require.Equal(t, "conv_values conv_bits dense_segments finish dense_segments finish dense_segments finish", names(gpu.Direct))
}

func TestExplain(t *testing.T) {
	d := testDevice(t)
	exe, _, _ := compileSmall(t, d, backend.Options{Kernels: gpu.Patches})
	got := exe.Explain()
	require.Len(t, got, 5)
	require.Equal(t, backend.Choice{Kernel: "direct: conv_values", Tile: "work-groups of 64", Why: whySmall}, got[0])
	require.Equal(t, "patches: pack_patches, xor_gemm, finish", got[1].Kernel)
	d.floatsLack, d.specialiseFrom = "its float32 arithmetic lacks fma", 1
	exe, _, _ = compileSmall(t, d, backend.Options{})
	got = exe.Explain()
	require.Equal(t, gpu.WhyMeasured, got[1].Why)
	require.Equal(t, "direct: dense_segments, finish, float32 on the processor", got[4].Kernel)
	require.Contains(t, got[4].Why, "lacks fma")
	exe, _, _ = compileSmall(t, d, backend.Options{})
	require.Equal(t, gpu.WhyKnown, exe.Explain()[1].Why)
}

// TestNothingLeaks counts the objects of OpenCL that are alive.
func TestNothingLeaks(t *testing.T) {
	d := testDevice(t)
	plan, err := lower.Network(t.Context(), small(), lower.Options{})
	require.NoError(t, err)
	in, out := backendtest.RandomImages(1, 1, plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
	cycle := func(variant string) {
		exe, err := compile(t.Context(), d, plan, backend.Options{Kernels: variant})
		require.NoError(t, err)
		require.Greater(t, gpu.Live.Load(), int64(10))
		require.NoError(t, exe.run(context.Background(), out, in))
		require.NoError(t, exe.Close())
	}
	before := gpu.Live.Load()
	for i := range 1000 {
		cycle(kernelNames[i%len(kernelNames)])
		require.Equal(t, before, gpu.Live.Load(), "after %d cycles", i+1)
	}
	for _, p := range d.programs {
		require.Zero(t, p.users)
	}
}

func TestFailedCompileLeaksNothing(t *testing.T) {
	plan, err := lower.Network(t.Context(), small(), lower.Options{})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		variant string
		buffer  int64
	}{
		"tensor too large":  {gpu.Patches, 100},
		"scratch too large": {gpu.Direct, 1000}, // partial sums of a dense layer
	} {
		t.Run(name, func(t *testing.T) {
			d := testDevice(t)
			before := gpu.Live.Load()
			d.limits.Buffer = test.buffer
			_, err = compile(t.Context(), d, plan, backend.Options{Kernels: test.variant})
			require.ErrorIs(t, err, backend.ErrTooLarge)
			var wrapped *backend.Error
			require.ErrorAs(t, err, &wrapped)
			require.Equal(t, before, gpu.Live.Load())
		})
	}
}

// TestGroupBeyondTheKernel: the kernel may allow less than the device does.
func TestGroupBeyondTheKernel(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	s := candidates.Spec{Kernel: gpu.Kernel{File: "elementwise", Name: "flatten_float"}, Items: 1, Local: 1 << 20}
	own := &bag{context: d.context}
	defer own.release()
	buffer, err := own.buffer(cl.MemReadWrite, 4)
	require.NoError(t, err)
	m := &memory{tensors: []*cl.MemObject{buffer}}
	build := func() error {
		_, err := d.buildStep(t.Context(), candidates.Candidate{Specs: []candidates.Spec{s}}, false, m)
		return err
	}
	s.Args = []any{gpu.Tensor(0), gpu.Tensor(0)}
	require.ErrorIs(t, build(), errGroup)
	s.Local, s.Args = 0, s.Args[:1]
	require.ErrorContains(t, build(), "2 arguments for 3 parameters")
	s.Args = []any{gpu.Tensor(0), "text"}
	require.ErrorContains(t, build(), "argument of type string")
	require.Equal(t, before+1, gpu.Live.Load()) // the buffer
}

// TestWorkGroupTooLarge: another size takes the place of one that the driver refuses.
func TestWorkGroupTooLarge(t *testing.T) {
	d := testDevice(t)
	exe, out, in := compileSmall(t, d, backend.Options{Kernels: gpu.Direct})
	l := exe.steps[1].launches[0]
	l.setLocal(1 << 20)
	require.NoError(t, exe.run(context.Background(), out, in))
	require.Equal(t, smallestGroup, l.sizes.Local())
	require.Len(t, d.Info().Refused, 1)
	require.Contains(t, d.Info().Refused[0], "work-groups of 1048576: clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE")
	// Where all sizes are refused it is an error of the step, but for others that can execute it.
	l.local = 1 << 20
	l.setLocal(l.local)
	require.NoError(t, exe.run(context.Background(), out, in))
	require.NotSame(t, l, exe.steps[1].launches[0])
}

// TestSumsBeyondFloat: the device cannot hand over sums that float32 rounds.
func TestSumsBeyondFloat(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	net := &bcnn.Network{Name: "wide", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 1, W: 1, C: maxExact/255 + 1}}}}
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, 1, net.Inputs[0].Shape.C)}})
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	d := testDevice(t)
	exe, err := compile(t.Context(), d, plan, backend.Options{})
	require.NoError(t, err)
	require.NoError(t, exe.Close())
	d.floatsLack = "its float32 arithmetic lacks fma"
	_, err = compile(t.Context(), d, plan, backend.Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, `step 0 (dense): `)
	require.ErrorContains(t, err, "lacks fma")
}

func TestOutOfMemory(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	d.limits.Buffer = 1 << 62
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 1000), lower.Options{})
	require.NoError(t, err)
	_, err = compile(t.Context(), d, plan, backend.Options{MaxBatch: d.info.MaxBatch}) // terabytes
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.Equal(t, before, gpu.Live.Load())
	_, err = compile(t.Context(), d, plan, backend.Options{MaxBatch: d.info.MaxBatch / 4, Limits: bcnn.Limits{ArenaBytes: 1 << 60}})
	require.ErrorContains(t, err, "buffer of")
	require.Equal(t, before, gpu.Live.Load())
}

func TestDeviceThatDisappears(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	for _, unified := range []bool{false, true} {
		d.unified, d.specialiseFrom = unified, 1<<21
		exe, out, in := compileSmall(t, d, backend.Options{})
		plan := exe.plan
		find := shim.Lose()
		defer func() { find() }()
		for range 2 {
			require.ErrorContains(t, exe.run(context.Background(), out, in), "CL_DEVICE_NOT_AVAILABLE")
		}
		require.ErrorContains(t, exe.Close(), "CL_DEVICE_NOT_AVAILABLE")
		require.Equal(t, before, gpu.Live.Load())
		require.ErrorIs(t, exe.run(context.Background(), out, in), backend.ErrClosed)
		d.specialiseFrom = 1 // so that Compile measures
		_, err := compile(t.Context(), d, plan, backend.Options{})
		require.ErrorContains(t, err, map[bool]string{false: "map 768 bytes", true: "CL_DEVICE_NOT_AVAILABLE"}[unified])
		require.Equal(t, before, gpu.Live.Load())
		find()
	}
}

// TestRefusedCandidate: what the driver's compiler does not take is left out of the
// choice, and not remembered; forced, it is an error with the compiler's log.
func TestRefusedCandidate(t *testing.T) {
	testenv.Long(t)
	d := testDevice(t)
	if d.limits.Dot == candidates.ArmDot {
		t.Skip("the device has the function")
	}
	d.limits.Dot, d.limits.GPU, d.specialiseFrom = candidates.ArmDot, true, 1
	before := gpu.Live.Load()
	exe, out, in := compileSmall(t, d, backend.Options{})
	require.Equal(t, "direct: conv_values", exe.Explain()[0].Kernel)
	require.Equal(t, gpu.WhyMeasured, exe.Explain()[0].Why)
	require.NoError(t, exe.run(context.Background(), out, in))
	require.Len(t, d.tuning.Steps, 4) // of five
	require.NoError(t, exe.Close())
	_, err := compile(t.Context(), d, exe.plan, backend.Options{Kernels: gpu.Vectors})
	require.ErrorContains(t, err, "arm_dot")
	require.Equal(t, before, gpu.Live.Load())
	for _, p := range d.programs {
		require.Zero(t, p.users)
	}
}

func TestDotProductOfExtensions(t *testing.T) {
	for _, c := range []struct {
		extensions string
		packed     bool
		want       candidates.DotProduct
	}{
		{"cl_khr_fp64", true, candidates.NoDot},
		{"cl_khr_integer_dot_product cl_khr_fp64", true, candidates.KHRDot},
		{"cl_khr_integer_dot_product", false, candidates.NoDot},
		{"cl_khr_integer_dot_product cl_arm_integer_dot_product_int8", true, candidates.ArmDot},
		{"cl_arm_integer_dot_product_accumulate_int16", false, candidates.NoDot},
	} {
		require.Equal(t, c.want, dotProduct(strings.Fields(c.extensions), func() bool { return c.packed }), c.extensions)
	}
}

func TestBuildFailureShowsTheLog(t *testing.T) {
	d := testDevice(t)
	_, err := d.build("__kernel void broken(__global int *x) { x[0] = undeclared_name; }", "-DSOMETHING=1")
	require.ErrorContains(t, err, "undeclared_name")
	require.ErrorContains(t, err, "-DSOMETHING=1")
	require.NotContains(t, err.Error(), "\x00")
}

func TestLife(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	backendtest.Life(t, backend.NewDevice(d), backend.Options{})
	require.Equal(t, before, gpu.Live.Load())
}

// TestLifeOfHostFloats has steps that the processor executes.
func TestLifeOfHostFloats(t *testing.T) {
	d := testDevice(t)
	d.floatsLack = "its float32 arithmetic lacks fma"
	before := gpu.Live.Load()
	backendtest.Life(t, backend.NewDevice(d), backend.Options{})
	require.Equal(t, before, gpu.Live.Load())
}

// TestInterruptedTuning leaves nothing behind, of both variants.
func TestInterruptedTuning(t *testing.T) {
	d := testDevice(t)
	d.limits.LocalMemory, d.specialiseFrom = true, 1
	before := gpu.Live.Load()
	backendtest.InterruptCompile(t, backend.NewDevice(d), backendtest.OneConv(6, 3, 32, 32), backend.Options{})
	require.Equal(t, before, gpu.Live.Load())
	for _, p := range d.programs {
		require.Zero(t, p.users)
	}
	require.Len(t, d.tuning.Steps, 2) // of those that were measured to the end
}

// tuned compiles a network whose convolution is measured.
func tuned(t *testing.T, d *device) *running {
	d.specialiseFrom = 1
	return requireReference(t, d, backendtest.OneConv(6, 3, 32, 32), backend.Options{}, 1)
}

func TestTuningIsKept(t *testing.T) {
	testenv.Long(t)
	path := filepath.Join(t.TempDir(), "deep", "tuning.json")
	first := testDevice(t)
	first.tuning = first.loadTuning(path)
	groups := func(e *running) (sizes []int) {
		for _, s := range e.steps {
			for _, l := range s.launches {
				sizes = append(sizes, l.sizes.Local())
			}
		}
		return sizes
	}
	want := groups(tuned(t, first))
	data, err := os.ReadFile(path)
	require.NoError(t, err)

	again := testDevice(t)
	again.tuning = again.loadTuning(path)
	require.Equal(t, first.tuning.Steps, again.tuning.Steps)
	require.NotEmpty(t, again.tuning.Steps)
	require.Equal(t, want, groups(tuned(t, again)))
	unchanged, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(data), string(unchanged)) // nothing was measured again

	for name, bad := range map[string]string{
		"empty":            "",
		"cut":              string(data[:len(data)/2]),
		"not JSON":         "\x00\x01",
		"another type":     `{"Steps": 7}`,
		"another driver":   strings.Replace(string(data), `"Driver": "`, `"Driver": "other `, 1),
		"other kernels":    strings.Replace(string(data), `"Kernels": "`, `"Kernels": "0`, 1),
		"huge work-groups": strings.ReplaceAll(string(data), "\"Groups\": [", "\"Groups\": [ 1000000, "),
		"unknown variant":  strings.ReplaceAll(string(data), `"Variant": "direct"`, `"Variant": "z"`),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
			d := testDevice(t)
			d.tuning = d.loadTuning(path)
			tuned(t, d)
			healed := d.loadTuning(path)
			require.Len(t, healed.Steps, len(first.tuning.Steps))
			for _, c := range healed.Steps {
				require.Contains(t, kernelNames, c.Variant)
				for _, g := range c.Groups {
					require.LessOrEqual(t, g, d.limits.Group)
				}
			}
		})
	}
}

func TestTuningWithoutAPlaceForTheFile(t *testing.T) {
	d := testDevice(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	d.tuning = d.loadTuning(filepath.Join(file, "tuning.json"))
	tuned(t, d)
}

// TestChoiceOfTwo measures both variants, as devices with local memory do.
func TestChoiceOfTwo(t *testing.T) {
	testenv.Long(t)
	d := testDevice(t)
	d.limits.LocalMemory, d.specialiseFrom = true, 1
	exe := requireReference(t, d, backendtest.OneConv(12, 3, 32, 32), backend.Options{}, 2)
	require.NotEmpty(t, d.tuning.Steps)
	for _, c := range d.tuning.Steps {
		require.Contains(t, kernelNames, c.Variant)
	}
	require.NoError(t, exe.Close())
}

// TestDeviceReadsWhatTheHostMade: bits, in a buffer that others have had.
func TestDeviceReadsWhatTheHostMade(t *testing.T) {
	d := testDevice(t)
	d.floatsLack = "its float32 arithmetic lacks fma"
	net := &bcnn.Network{Name: "signs", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 3, W: 3, C: 2}}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsMinus})
	net.Append("end", bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rand.New(rand.NewPCG(1, 1)), 3, 18)}})
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	requireRun(t, d, plan, backend.Options{}, 2)
}

func TestUnfitFloats(t *testing.T) {
	all := uint64(shim.FPFMA | shim.FPDenormals | shim.FPInfNaN | shim.FPNearest)
	for _, test := range []struct {
		config        uint64
		profile, want string
	}{
		{all, "FULL_PROFILE", ""},
		{all &^ shim.FPFMA, "FULL_PROFILE", ""},
		{all &^ shim.FPDenormals, "FULL_PROFILE", ""},
		{all &^ shim.FPInfNaN, "FULL_PROFILE", "its float32 arithmetic lacks infinities"},
		{all, "EMBEDDED_PROFILE", "its float32 arithmetic lacks the full profile"},
		{0, "FULL_PROFILE", "its float32 arithmetic lacks infinities, rounding to nearest"},
	} {
		require.Equal(t, test.want, unfitFloats(test.config, test.profile))
	}
}

func TestInfo(t *testing.T) {
	info := testDevice(t).Info()
	require.Equal(t, "opencl:0", info.ID)
	require.NotEmpty(t, info.Name)
	require.Positive(t, info.Memory)
	require.Contains(t, info.Detail, "driver")
	if strings.Contains(info.Detail, "Portable Computing Language") {
		require.Equal(t, backend.CPU, info.Kind)
	}
}
