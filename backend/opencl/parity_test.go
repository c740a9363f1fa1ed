//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	mathbits "math/bits"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/kernels"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

func TestMain(m *testing.M) {
	// What earlier runs measured must not decide what is tested.
	dir, err := os.MkdirTemp("", "bitcnn-opencl")
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
		testenv.Absent(t, "opencl", err)
	}
	d := devices[0]
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	return &device{id: d.id, info: d.info, driver: d.driver, limits: d.limits, unified: d.unified, defines: d.defines, specialiseFrom: d.specialiseFrom,
		floatsLack: d.floatsLack, context: d.context, programs: make(map[string]*program), tuning: d.loadTuning("")}
}

// generalDevice is a testDevice whose steps all take the general programs, since building
// and measuring those of large steps takes long.
func generalDevice(t testing.TB) *device {
	d := testDevice(t)
	d.specialiseFrom = math.MaxInt64
	return d
}

// TestParity runs cases with every variant, in general programs;
// TestParitySpecialised takes the others.
func TestParity(t *testing.T) {
	for _, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			backendtest.Run(t, backend.NewDevice(generalDevice(t)), backend.Options{Kernels: variant})
		})
	}
}

// large reports whether a step of the case has that many multiply-accumulates.
func large(t *testing.T, c parity.Case, from int64) bool {
	t.Helper()
	plan, err := lower.Network(t.Context(), c.Network(), lower.Options{})
	require.NoError(t, err, c.Name)
	for i := range plan.Steps {
		if plan.Products(i) >= from {
			return true
		}
	}
	return false
}

// TestParitySpecialised takes some of the table with programs that are
// specialised for each step, since building them takes long. Large steps, which users
// get them for, take part more often. Each kind of kernels has other cases.
func TestParitySpecialised(t *testing.T) {
	testenv.Long(t)
	for v, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			d := testDevice(t)
			from := d.specialiseFrom
			d.specialiseFrom = 0
			d.info.Kind = backend.Emulated // which is not measured
			var some []parity.Case
			for i, c := range parity.Cases() {
				if (i+31*v)%97 == 0 || (i+v)%15 == 0 && large(t, c, from) {
					some = append(some, c)
				}
			}
			failures, err := parity.Check(t.Context(), backend.NewDevice(d), backend.Options{Kernels: variant}, some, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range failures {
				t.Error(f)
			}
		})
	}
}

// TestParityOfGPUs takes some of the table with programs as GPUs get them, and measures
// what they choose from, all of which compute the same of random values.
func TestParityOfGPUs(t *testing.T) {
	testenv.Long(t)
	d := testDevice(t)
	d.limits.GPU, d.specialiseFrom = true, 1
	var some []parity.Case
	for i, c := range parity.Cases() {
		if i%193 == 0 {
			some = append(some, c)
		}
	}
	failures, err := parity.Check(t.Context(), backend.NewDevice(d), backend.Options{}, some, nil)
	require.NoError(t, err)
	for _, f := range failures {
		t.Error(f)
	}
	require.NotEmpty(t, d.tuning.Steps)
	for _, e := range d.tuning.Steps {
		require.Empty(t, e.Wrong, "%s, %s", e.Step, e.Variant)
	}
}

// TestDotProducts takes convolutions of bytes with each function for dot products. A
// device that lacks it gets what it computes.
func TestDotProducts(t *testing.T) {
	testenv.Long(t)
	var bytes []parity.Case
	for i, c := range parity.Cases() {
		if i%7 == 0 && (strings.HasPrefix(c.Name, "conv/bytes/") || strings.HasPrefix(c.Name, "bytes/k")) {
			bytes = append(bytes, c)
		}
	}
	require.NotEmpty(t, bytes)
	for dot, defines := range map[candidates.DotProduct]string{
		candidates.ArmDot: "-Darm_dot(a,b)=products(0,a,b)",
		candidates.KHRDot: "-Ddot_4x8packed_ss_int(a,b)=products(0,as_char4(a),as_char4(b))",
	} {
		d := testDevice(t)
		d.info.Kind = backend.Emulated // which is not measured
		if d.limits.Dot != dot {
			d.limits.Dot, d.defines = dot, defines
		}
		opts := backend.Options{Kernels: gpu.Vectors}
		failures, err := parity.Check(t.Context(), backend.NewDevice(d), opts, bytes, nil)
		require.NoError(t, err)
		for _, f := range failures {
			t.Error(f)
		}
		exe := requireReference(t, d, backendtest.VehicleNet(1, 24), opts, 3)
		require.Equal(t, "vectors: conv_vectors", exe.Explain()[0].Kernel)
	}
}

// TestMemoryOfTwoKinds: inputs and outputs are mapped where the device has the host's
// memory, and copied where not.
func TestMemoryOfTwoKinds(t *testing.T) {
	var some []parity.Case
	every := 13
	if testing.Short() {
		every = 97
	}
	for i, c := range parity.Cases() {
		if i%every == 0 {
			some = append(some, c)
		}
	}
	for _, unified := range []bool{false, true} {
		d := generalDevice(t)
		d.unified = unified
		exe, _, _ := compileSmall(t, d, backend.Options{})
		for _, end := range append(exe.inputs, exe.outputs...) {
			require.Equal(t, unified, end.staging == nil)
		}
		failures, err := parity.Check(t.Context(), backend.NewDevice(d), backend.Options{}, some, nil)
		require.NoError(t, err)
		for _, f := range failures {
			t.Error(f)
		}
		before := gpu.Live.Load()
		backendtest.Life(t, backend.NewDevice(d), backend.Options{})
		require.Equal(t, before, gpu.Live.Load())
	}
}

// TestVehicleNet runs the network of the paper at its size, with the programs
// that users get.
func TestVehicleNet(t *testing.T) {
	for i, scheme := range vehiclenet.InputSchemes {
		variants := []string{""}
		if scheme == "none" {
			variants = append([]string{""}, kernelNames...)
		}
		for _, variant := range variants {
			if testing.Short() && variant != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", scheme, variant), func(t *testing.T) {
				net, err := vehiclenet.Topology(scheme, 6, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				requireReference(t, testDevice(t), net, backend.Options{Kernels: variant}, 3)
			})
		}
	}
}

// TestEveryGroup takes every size of work-groups that measuring would choose from, on
// some of the table, whose small steps are not measured.
func TestEveryGroup(t *testing.T) {
	testenv.Long(t)
	d := generalDevice(t)
	for size := smallestGroup; size <= largestGroup; size *= 2 {
		for i, c := range parity.Cases() {
			if i%128 != mathbits.TrailingZeros(uint(size)) {
				continue
			}
			for _, variant := range kernelNames {
				requireGroups(t, d, c, variant, size)
			}
		}
	}
}

// requireGroups compares a case with the reference, with work-groups of a size wherever
// any will do.
func requireGroups(t *testing.T, d *device, c parity.Case, variant string, size int) {
	t.Helper()
	plan, err := lower.Network(t.Context(), c.Network(), lower.Options{})
	require.NoError(t, err, c.Name)
	made, err := compile(t.Context(), d, plan, backend.Options{Kernels: variant, MaxBatch: c.Batch})
	require.NoError(t, err, c.Name)
	exe := made
	for _, s := range exe.steps {
		for _, l := range s.launches {
			if l.local == 0 {
				l.setLocal(min(size, l.largest))
			}
		}
	}
	in := c.Inputs(plan, c.Batch)
	want, err := ref.RunAll(t.Context(), plan, in, nil)
	require.NoError(t, err, c.Name)
	var out []bcnn.Tensor
	for _, o := range plan.Outputs {
		out = append(out, bcnn.NewTensor(bcnn.Float32, c.Batch, plan.Tensors[o].Shape))
	}
	require.NoError(t, exe.Run(t.Context(), out, in), c.Name)
	for i := range out {
		require.NoError(t, compare.Tensors(want[i], out[i]), "%s, kernels %s, work-groups of %d, output %d", c.Name, variant, size, i)
	}
	require.NoError(t, exe.Close())
}

// TestPublished runs the published weights of the paper.
func TestPublished(t *testing.T) {
	testenv.Long(t)
	for _, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			backendtest.PublishedOn(t, backend.NewDevice(testDevice(t)), backend.Options{Kernels: variant})
		})
	}
}

// TestParityHostFloats runs cases as on a device whose float32
// arithmetic falls short.
func TestParityHostFloats(t *testing.T) {
	d := generalDevice(t)
	d.floatsLack = "its float32 arithmetic lacks fma"
	backendtest.Run(t, backend.NewDevice(d), backend.Options{})
	requireReference(t, d, backendtest.VehicleNet(1, 16), backend.Options{}, 3)
}

func FuzzRandomNetworks(f *testing.F) {
	backendtest.Fuzz(f, backend.NewDevice(testDevice(f)), backend.Options{}, kernelNames...)
}

// tinyCases are the first of the table that take each kernel; few and small, for
// an emulator.
func tinyCases(t *testing.T) []parity.Case {
	var cases []parity.Case
	for _, prefix := range []string{
		"binarize/threshold/2x2x3", "binarize/grey/2x2x3", "binarize/lbp/2x2x3", "binarize/minmax/2x2x3",
		"maxpool/", "flatten/bits/3x5x33", "flatten/float/3x5x3", "affine/bytes/3x4x3", "affine/bits/3x4x33", "affine/float/3x4x3",
		"graph/sum with itself", "changed/flip=true/conv/bits",
		"dense/bits/5x6x33/out13/norm/hardtanh", "conv/bits/5x6x33/k3x3/out13/sum/hardtanh", "conv/float/5x6x5/k3x3/out1/sum/prelu",
		"affine+prelu/", "add+prelu/float/7x3x5/extremes", "avgpool/2x3s3x2p0x1/bits/7x8x1", "avgpool/3x3s2x2p1x1/float/7x8x3",
		"concat/33+31+1/bits", "concat/1+1/float", "channels/reversed/bits/3x5x33", "channels/padded/float/3x5x1", "mul/channels/float/5x4x3", "mul/pixels/float/5x4x3",
		"conv/bytes/5x6x3/k3x3/pad2.0.1.3=0/out34/z1/norm", "sigmoid/float/7x3x5", "pixels/padded, spread/bits/5x4x3", "pixels/padded, spread/float/5x4x", "pixels/blocks 1x3/0/bits/3x4x3",
		"resample/3x6/", "topk/5/false/float/2x3x10", "levels/planes/u2/ternary/pool=overlapping/float/3x5x65", "levels/from/u2/bytes/4x3x65", "levels/u2/ternary/k1/float/6x5x5",
		"bytes/maxpool2x2/", "bytes/k3/s8/", "bytes/dense/", "table/float/bytes/5x5x3", "table/bits/bytes/6x5x16", "table/bytes/bytes/6x5x16", "min/channels/float/5x4x3",
		"matmul/3x5/bits/", "matmul/3x5/float/", "transpose/bits/2x33x", "transpose/float/2x33x",
	} {
		for _, c := range parity.Cases() {
			if strings.HasPrefix(c.Name, prefix) {
				cases = append(cases, c)
				break
			}
		}
	}
	for _, what := range []string{`^conv/bits/.*/g\d`, "^conv/bytes/.*maxpool", "^conv/float/", "^dense/bits/.*/norm", "^maxpool/.*/float"} {
		for _, c := range parity.Cases() {
			if regexp.MustCompile(what).MatchString(c.Name) {
				cases = append(cases, c)
				break
			}
		}
	}
	if len(cases) != 51 {
		t.Fatalf("%d cases, want 51", len(cases))
	}
	return cases
}

// noting notes which kernels its executables launch.
type noting struct {
	*device
	launched map[string]bool
}

func (n noting) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	engine, err := n.device.Compile(ctx, plan, c)
	if exe, ok := engine.(*executable); ok {
		for _, s := range exe.steps {
			for _, l := range s.launches {
				n.launched[l.name] = true
			}
		}
	}
	return engine, err
}

// TestTiny is what scripts/opencl-check runs under Oclgrind, whose search for
// uninitialised memory keeps its notes per thread.
func TestTiny(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := testDevice(t)
	launched := map[string]bool{"pack_image": true} // for OneConv
	for i, variant := range kernelNames {
		d.unified = i%2 == 1
		cases := tinyCases(t)
		if variant != gpu.Direct { // other steps have no other kernels
			cases = slices.DeleteFunc(cases, func(c parity.Case) bool {
				return !regexp.MustCompile("^(changed/.*|bytes/|)(conv|dense|k3)/").MatchString(c.Name)
			})
		}
		failures, err := parity.Check(t.Context(), backend.NewDevice(noting{d, launched}), backend.Options{Kernels: variant}, cases, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range failures {
			t.Error(f)
		}
		requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{Kernels: variant}, 1)
		requireReference(t, d, backendtest.OneConv(18, 3, 2, 2), backend.Options{Kernels: variant}, 1) // more than a tile
	}
	files, err := fs.Glob(kernels.CL, "cl/*.cl")
	require.NoError(t, err)
	for _, file := range files {
		if file == "cl/probe.cl" { // TestProbe
			continue
		}
		source, err := kernels.CL.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?s)__kernel .*?void (\w+)\(`).FindAllSubmatch(source, -1) {
			require.True(t, launched[string(m[1])], "no case takes %s of %s", m[1], file)
		}
	}
}

// TestPatchesOfImages: the patches of the paper are those of the image, in every scheme,
// and what the binarisation makes can be read all the same.
func TestPatchesOfImages(t *testing.T) {
	testenv.Long(t)
	d := testDevice(t)
	opts := backend.Options{Kernels: gpu.Patches}
	var whole []parity.Case
	for _, c := range parity.Cases() {
		if strings.HasPrefix(c.Name, "whole/") {
			whole = append(whole, c)
		}
	}
	failures, err := parity.Check(t.Context(), backend.NewDevice(d), opts, whole, nil)
	require.NoError(t, err)
	for _, f := range failures {
		t.Error(f)
	}
	for i, scheme := range vehiclenet.InputSchemes {
		net, err := vehiclenet.Topology(scheme, 6, uint64(i))
		require.NoError(t, err)
		if scheme == "none" {
			continue
		}
		exe := requireReference(t, d, net, opts, 2)
		require.Equal(t, "patches: pack_image", exe.Explain()[0].Kernel)
		require.Equal(t, "patches: xor_gemm, finish", exe.Explain()[1].Kernel)
	}
}
