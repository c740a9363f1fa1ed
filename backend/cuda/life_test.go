//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/internal/tuning"
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

// TestVariantsTakeTheirKernels makes sure that the parity of a variant is that of
// its kernels.
func TestVariantsTakeTheirKernels(t *testing.T) {
	names := func(variant string) string {
		d := testDevice(t)
		d.tuneFrom = math.MaxInt // not what is the fastest here
		exe, _, _ := compileSmall(t, d, backend.Options{Kernels: variant})
		var all []string
		for _, s := range exe.steps {
			for _, l := range s.launches {
				all = append(all, l.spec.Label())
			}
		}
		return strings.Join(all, " ")
	}
	require.Regexp(t, "^conv_bytes_k5_pool2 conv_bits_k5_pool2( dense_warp_i1){3}$", names(gpu.Direct))
	require.Regexp(t, "^conv_bytes_k5_pool2 pack_patches xor_gemm finish( dense_block){3}$", names(gpu.Patches))
	require.Regexp(t, "^conv_bytes_(mma_p16|k5)_pool2( conv_(and|imma|xor|popc)_[0-9]+x[0-9]+){4}$", names(gpu.TensorCore))
	// The rows of the dense layers are too short to be split.
	require.Regexp(t, "^conv_bytes_k5_pool2 conv_(and|imma|xor|popc)_64x64 in 2 parts( dense_warp_i1){3}$", names(gpu.SplitK))
}

func TestExplain(t *testing.T) {
	explain := func(variant string) []backend.Choice {
		exe, _, _ := compileSmall(t, testDevice(t), backend.Options{Kernels: variant})
		choices := exe.Explain()
		require.Len(t, choices, 5)
		return choices
	}
	a := explain(gpu.Patches)
	require.Equal(t, "direct: conv_bytes_k5_pool2", a[0].Kernel)
	require.Equal(t, "patches: pack_patches, xor_gemm, finish", a[1].Kernel)
	require.Regexp(t, `^blocks of \d+, \d+, \d+ threads$`, a[1].Tile)
	for _, c := range a {
		require.NotEmpty(t, c.Why)
	}
	if testDevice(t).limits.Cooperative {
		require.Equal(t, "fused: network", explain(gpu.Fused)[4].Kernel)
	}
}

// alive counts what the emulated driver holds, other than modules and contexts.
// Others do not tell.
func alive(t *testing.T, d *device) (objects []int) {
	if d.info.Kind != backend.Emulated {
		return nil
	}
	for i := range 7 {
		if i == 2 { // modules stay
			continue
		}
		n, err := d.number.Attribute(cu.DeviceAttribute(10000 + i))
		require.NoError(t, err)
		objects = append(objects, n)
	}
	return objects
}

// TestNothingLeaks counts our objects, and those of the emulated driver.
func TestNothingLeaks(t *testing.T) {
	testenv.Long(t)
	d := testDevice(t)
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 8), lower.Options{})
	require.NoError(t, err)
	in, out := backendtest.RandomImages(1, 2, plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, 2, plan.OutputShape())
	before, driver := gpu.Live.Load(), alive(t, d)
	for i := range 1000 {
		exe, err := compile(t.Context(), d, plan, backend.Options{Kernels: append([]string{""}, kernelNames...)[i%(1+len(kernelNames))], MaxBatch: 2})
		require.NoError(t, err)
		require.Greater(t, gpu.Live.Load(), before+10)
		require.NoError(t, exe.run(context.Background(), out, in))
		require.NoError(t, exe.Close())
		require.Equal(t, before, gpu.Live.Load(), "after %d cycles", i+1)
	}
	require.Equal(t, driver, alive(t, d))
}

// TestOutOfMemory fails every allocation of a Compile in turn.
func TestOutOfMemory(t *testing.T) {
	d := emulated(t)
	plan, err := lower.Network(t.Context(), small(), lower.Options{})
	require.NoError(t, err)
	before, driver := gpu.Live.Load(), alive(t, d)
	defer os.Unsetenv(envFault)
	failures := 0
	for n := 1; ; n++ {
		os.Setenv(envFault, fmt.Sprintf("alloc:%d", n))
		exe, err := compile(t.Context(), d, plan, backend.Options{})
		if err == nil {
			require.NoError(t, exe.Close())
			break
		}
		failures++
		var wrapped *backend.Error
		require.ErrorAs(t, err, &wrapped)
		require.ErrorContains(t, err, "CUDA_ERROR_OUT_OF_MEMORY")
		require.Equal(t, before, gpu.Live.Load(), "after the failure of allocation %d", n)
		require.Equal(t, driver, alive(t, d), "after the failure of allocation %d", n)
	}
	require.Greater(t, failures, 10)
	os.Unsetenv(envFault)
	requireReference(t, d, small(), backend.Options{}, 1) // the device stays usable
}

func TestTooLarge(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 1000), lower.Options{})
	require.NoError(t, err)
	_, err = compile(t.Context(), d, plan, backend.Options{MaxBatch: d.limits.GridY}) // terabytes
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.Equal(t, before, gpu.Live.Load())
}

// TestLaunchTooLarge: other kernels take the place of those that the driver refuses to launch, and it
// is noted which it has refused.
func TestLaunchTooLarge(t *testing.T) {
	d := testDevice(t)
	exe, out, in := compileSmall(t, d, backend.Options{Kernels: gpu.Direct})
	require.NoError(t, exe.run(context.Background(), out, in))
	want := slices.Clone(out.F32)
	exe.direct = true
	was := exe.steps[1]
	was.launches[0].spec.Block = 2048
	require.NoError(t, exe.run(context.Background(), out, in))
	require.NotSame(t, was, exe.steps[1])
	require.NotEqual(t, was.name, exe.steps[1].name)
	require.Equal(t, want, out.F32)
	require.Len(t, d.Info().Refused, 1)
	require.Contains(t, d.Info().Refused[0], "blocks of 2048 threads")
	require.NoError(t, exe.run(context.Background(), out, in))
	require.Equal(t, want, out.F32)
}

func TestRefusedKernels(t *testing.T) {
	d := testDevice(t)
	err := d.thread.do(newRequest(func() error {
		_, err := shim.LoadModule([]byte(".version 1.0\nnonsense"))
		return err
	}))
	require.ErrorContains(t, err, "cuModuleLoadDataEx: CUDA_ERROR_")
	err = d.thread.do(newRequest(func() error {
		_, err := d.thread.function("elementwise", "no_such_kernel", d.arch)
		return err
	}))
	require.ErrorContains(t, err, "elementwise.cu for sm_")
	require.ErrorContains(t, err, "no kernel no_such_kernel")
	require.NoError(t, d.thread.gone())
}

func TestLife(t *testing.T) {
	d := testDevice(t)
	before, driver := gpu.Live.Load(), alive(t, d)
	backendtest.Life(t, backend.NewDevice(d), backend.Options{})
	require.Equal(t, before, gpu.Live.Load())
	require.Equal(t, driver, alive(t, d))
}

// TestInterruptedTuning leaves nothing behind.
func TestInterruptedTuning(t *testing.T) {
	testenv.Long(t)
	d := measured(t, "")
	before, driver := gpu.Live.Load(), alive(t, d)
	backendtest.InterruptCompile(t, backend.NewDevice(d), backendtest.OneConv(6, 3, 32, 32), backend.Options{})
	require.Equal(t, before, gpu.Live.Load())
	require.Equal(t, driver, alive(t, d))
	require.Len(t, d.tuning.Steps, 2) // of those that were measured to the end
}

// TestCallbacksMayUseTheDevice: Timed and Tap are not called on its thread.
func TestCallbacksMayUseTheDevice(t *testing.T) {
	d := testDevice(t)
	inner, innerOut, innerIn := compileSmall(t, d, backend.Options{})
	calls := 0
	exe, out, in := compileSmall(t, d, backend.Options{Tap: func(int, string, bcnn.Tensor) {
		calls++
		require.NoError(t, inner.run(context.Background(), innerOut, innerIn))
	}})
	require.NoError(t, exe.run(context.Background(), out, in))
	require.Equal(t, len(exe.plan.Steps), calls)
}

// TestBatches runs more batch sizes than graphs are kept, with and without graphs.
func TestBatches(t *testing.T) {
	const most = 2*maxGraphs + 3
	d := testDevice(t)
	for _, direct := range []bool{false, true} {
		exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, most)
		exe.direct = direct
		want := bcnn.NewTensor(bcnn.Float32, most, exe.plan.OutputShape())
		images := backendtest.RandomImages(7, most, exe.plan.Inputs[0])
		require.NoError(t, exe.run(context.Background(), want, images))
		for n := 1; n <= most; n++ {
			in, out := images, bcnn.NewTensor(bcnn.Float32, n, exe.plan.OutputShape())
			in.N, in.U8 = n, images.U8[:n*exe.plan.Inputs[0].Shape.Values()]
			exe.perImage = 0 // on a busy machine, too: a run that takes long waits for each step
			require.NoError(t, exe.run(context.Background(), out, in))
			require.Equal(t, want.F32[:len(out.F32)], out.F32, "%d images", n)
			require.LessOrEqual(t, len(exe.graphs), maxGraphs)
		}
	}
}

// measured returns a device that measures, whatever the times mean.
func measured(t *testing.T, path string) *device {
	d := testDevice(t)
	d.info.Kind, d.tuneFrom = backend.DiscreteGPU, 1
	d.tuning = d.loadTuning(path)
	return d
}

func TestTuningIsKept(t *testing.T) {
	testenv.Long(t)
	path := filepath.Join(t.TempDir(), "deep", "tuning.json")
	chosen := func(d *device) (all []string) {
		exe := requireReference(t, d, backendtest.OneConv(6, 3, 32, 32), backend.Options{}, 1)
		for _, s := range exe.steps {
			for _, l := range s.launches {
				all = append(all, fmt.Sprint(l.spec.Name, l.spec.Grid, l.spec.Block))
			}
		}
		return all
	}
	first := measured(t, path)
	want := chosen(first)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, first.tuning.Steps, 2) // convolution and dense layer

	again := measured(t, path)
	require.Equal(t, first.tuning.Steps, again.tuning.Steps)
	require.Equal(t, want, chosen(again))
	unchanged, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(data), string(unchanged)) // nothing was measured again

	// A choice in the file is taken, whatever was measured.
	for key, c := range again.tuning.Steps {
		if strings.HasPrefix(c.Name, "conv") {
			again.tuning.Put(key, tuning.Entry{Variant: gpu.Direct, Name: "conv_bits_p1"})
		}
	}
	require.Contains(t, strings.Join(chosen(measured(t, path)), " "), "conv_bits_p1[")

	for name, bad := range map[string]string{
		"empty":             "",
		"cut":               string(data[:len(data)/2]),
		"not JSON":          "\x00\x01",
		"another type":      `{"Steps": 7}`,
		"another driver":    strings.Replace(string(data), `"Driver": "`, `"Driver": "other `, 1),
		"other kernels":     strings.Replace(string(data), `"Kernels": "`, `"Kernels": "0`, 1),
		"unknown variant":   strings.ReplaceAll(string(data), `"Variant": "`, `"Variant": "z`),
		"unknown candidate": strings.ReplaceAll(string(data), `"Name": "`, `"Name": "z`),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(bad), 0o644))
			chosen(measured(t, path))
			healed := first.loadTuning(path)
			require.Len(t, healed.Steps, 2)
			for _, c := range healed.Steps {
				require.Contains(t, kernelNames, c.Variant)
				require.Regexp(t, "^(conv_|dense_|patches)", c.Name)
			}
		})
	}
}

// TestFailureWhileMeasuring leaves nothing behind.
func TestFailureWhileMeasuring(t *testing.T) {
	testenv.Long(t)
	emulated(t)
	d := measured(t, "")
	plan, err := lower.Network(t.Context(), backendtest.OneConv(6, 3, 32, 32), lower.Options{})
	require.NoError(t, err)
	before := gpu.Live.Load()
	defer os.Unsetenv(envFault)
	for n := 1; ; n++ {
		os.Setenv(envFault, fmt.Sprintf("alloc:%d", n))
		exe, err := compile(t.Context(), d, plan, backend.Options{})
		if err == nil {
			require.NoError(t, exe.Close())
			require.Greater(t, n, 20)
			break
		}
		require.ErrorContains(t, err, "CUDA_ERROR_OUT_OF_MEMORY")
		require.Equal(t, before, gpu.Live.Load())
	}
}

// TestUploadsComeFirst: a stream that waits for no other reads what has been uploaded, and
// zeros where memory has been cleared.
func TestUploadsComeFirst(t *testing.T) {
	d := testDevice(t)
	want := []uint32{7, 1 << 31, 0, 42}
	cleared := []uint32{0, 0, 0, 42}
	var uploaded, after []uint32
	require.NoError(t, d.thread.do(newRequest(func() error {
		own := bag{thread: d.thread}
		stream, err := own.stream()
		if err != nil {
			return err
		}
		bytes := 4 * len(want)
		to, err := own.pinned(bytes)
		if err != nil {
			return err
		}
		from, err := upload(&own, want)
		if err != nil {
			return err
		}
		fetch := func() []uint32 {
			err = errors.Join(err, shim.CopyOut(to, from, bytes, stream), stream.Synchronize())
			return slices.Clone(unsafe.Slice((*uint32)(to), len(want)))
		}
		uploaded = fetch()
		if err := clearMemory(from, bytes-4); err != nil {
			return err
		}
		after = fetch()
		return errors.Join(err, own.release())
	})))
	require.Equal(t, want, uploaded)
	require.Equal(t, cleared, after)
}

func TestInfo(t *testing.T) {
	info := testDevice(t).Info()
	require.Equal(t, "cuda:0", info.ID)
	require.NotEmpty(t, info.Name)
	require.Positive(t, info.Memory)
	require.Regexp(t, `^sm_\d+, driver for CUDA \d+\.\d`, info.Detail)
	require.Equal(t, strings.Contains(info.Name, "Emulated"), info.Kind == backend.Emulated)
	if auto, err := backend.Open("auto"); err == nil && info.Kind == backend.Emulated {
		require.NotEqual(t, info.ID, auto.Info().ID)
	}
}

// TestPeaksOf: what is compared with is what kernels of the device can do.
func TestPeaksOf(t *testing.T) {
	for _, c := range []struct {
		arch, capability int
		want             string // with tensor cores
	}{
		{53, 53, ""}, {61, 70, ""}, {75, 75, " peak_mma_xor"}, {75, 90, " peak_mma_xor"}, {80, 89, " peak_mma_and"},
		{90, 90, " peak_mma_and peak_wgmma_and"}, {90, 100, " peak_mma_s8"}, {90, 121, " peak_mma_s8"},
	} {
		limits := candidates.Limits{Capability: c.capability, Warpgroups: c.capability == 90}
		for _, tensorCores := range []bool{false, true} {
			var got strings.Builder
			for _, k := range peaksOf(c.arch, limits, tensorCores) {
				got.WriteString(" " + k.name)
			}
			want := " peak_popc peak_popc_csa"
			if tensorCores {
				want += c.want
			}
			require.Equal(t, want, got.String(), c)
		}
	}
	for _, k := range peaksOf(90, candidates.Limits{Capability: 90}, true) { // with a driver that is too old
		require.NotEqual(t, peaksOfWarpgroups, k.file)
	}
}

func TestPeak(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	if d.info.Kind == backend.Emulated {
		peak, err := d.Peak(driver.Config{})
		require.NoError(t, err)
		require.Zero(t, peak)
	}
	some := capabilities(d)
	if testing.Short() {
		some = some[:1]
	}
	for _, capability := range some {
		end := d.as(capability)
		for _, variant := range []string{"", gpu.Direct} {
			peak, err := d.peak(driver.Config{Kernels: variant}, 0)
			require.NoError(t, err)
			require.Positive(t, peak)
		}
		end()
	}
	if d.info.Kind == backend.Emulated {
		rate, err := d.Bandwidth(driver.Config{}, 1000)
		require.NoError(t, err)
		require.Zero(t, rate)
	}
	for _, size := range []int64{1, 1000, 1 << 20} {
		rate, err := d.bandwidth(size, 0)
		require.NoError(t, err)
		require.Positive(t, rate)
	}
	_, err := d.bandwidth(1<<31, 0)
	require.ErrorContains(t, err, "a buffer of")
	require.Equal(t, before, gpu.Live.Load())
}
