package backend

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

type fakeDevice struct{ info Info }

func (d fakeDevice) Info() Info { return d.info }

func (d fakeDevice) Compile(context.Context, *plan.Plan, driver.Config) (driver.Engine, error) {
	return nil, errors.ErrUnsupported
}

type fakeBackend struct {
	name  string
	kinds []Kind
}

// pickyBackend has devices that cannot be used beside those that can.
type pickyBackend struct{ fakeBackend }

func (b pickyBackend) Devices() ([]driver.Device, error) {
	devices, _ := b.fakeBackend.Devices()
	return devices, fmt.Errorf("%w: the second is too old", ErrUnavailable)
}

func TestUnusableBesideUsable(t *testing.T) {
	withBackends(t, pickyBackend{fakeBackend{"opencl", []Kind{DiscreteGPU}}})
	require.Len(t, Devices(), 1)
	for _, name := range []string{"auto", "opencl", "opencl:0"} {
		d, err := Open(name)
		require.NoError(t, err)
		require.Equal(t, "opencl:0", d.Info().ID)
	}
	_, err := Open("opencl:1")
	require.ErrorContains(t, err, "the second is too old")
}

func (b fakeBackend) Name() string { return b.name }

func (b fakeBackend) Devices() ([]driver.Device, error) {
	var devices []driver.Device
	for i, k := range b.kinds {
		devices = append(devices, fakeDevice{Info{ID: fmt.Sprintf("%s:%d", b.name, i), Name: "a " + k.String(), Kind: k}})
	}
	return devices, nil
}

// withBackends replaces the registry for the time of a test.
func withBackends(t *testing.T, backends ...driver.Backend) {
	saved := registry.backends
	registry.backends = nil
	t.Cleanup(func() { registry.backends = saved })
	t.Setenv(EnvDevice, "")
	for _, b := range backends {
		Register(b)
	}
}

func TestOpenAutoPrefers(t *testing.T) {
	cpu := fakeBackend{"cpu", []Kind{CPU}}
	for _, c := range []struct {
		name     string
		backends []driver.Backend
		want     string
	}{
		{"the CPU alone", []driver.Backend{cpu}, "cpu:0"},
		{"integrated GPU to CPU", []driver.Backend{cpu, fakeBackend{"opencl", []Kind{IntegratedGPU}}}, "opencl:0"},
		{"discrete to integrated", []driver.Backend{cpu, fakeBackend{"opencl", []Kind{IntegratedGPU, DiscreteGPU}}}, "opencl:1"},
		{"discrete on OpenCL to integrated on CUDA", []driver.Backend{fakeBackend{"opencl", []Kind{DiscreteGPU}}, fakeBackend{"cuda", []Kind{IntegratedGPU}}}, "opencl:0"},
		{"CUDA to OpenCL", []driver.Backend{fakeBackend{"opencl", []Kind{DiscreteGPU}}, cpu, fakeBackend{"cuda", []Kind{DiscreteGPU}}}, "cuda:0"},
		{"the CPU to an emulated GPU", []driver.Backend{fakeBackend{"cuda", []Kind{Emulated}}, cpu}, "cpu:0"},
		{"the CPU to itself through OpenCL", []driver.Backend{fakeBackend{"opencl", []Kind{CPU}}, cpu}, "cpu:0"},
		{"what is available", []driver.Backend{driver.Unavailable("cuda", "no driver"), cpu}, "cpu:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			withBackends(t, c.backends...)
			for _, name := range []string{"auto", ""} {
				d, err := Open(name)
				require.NoError(t, err)
				require.Equal(t, c.want, d.Info().ID)
			}
		})
	}
}

// slowBackend fails the test where its driver is started.
type slowBackend struct {
	fakeBackend
	t   *testing.T
	gpu bool
}

func (b slowBackend) MayHaveGPU() bool { return b.gpu }

func (b slowBackend) Devices() ([]driver.Device, error) {
	b.t.Error("the driver was started")
	return nil, nil
}

func TestOpenAutoStartsNoDriverInVain(t *testing.T) {
	cpu := fakeBackend{"cpu", []Kind{CPU}}
	withBackends(t, cpu, slowBackend{fakeBackend{name: "opencl"}, t, false})
	d, err := Open("auto")
	require.NoError(t, err)
	require.Equal(t, "cpu:0", d.Info().ID)

	withBackends(t, cpu, fakeBackend{"cuda", []Kind{DiscreteGPU}}, slowBackend{fakeBackend{name: "opencl"}, t, true})
	d, err = Open("auto")
	require.NoError(t, err)
	require.Equal(t, "cuda:0", d.Info().ID)
}

func TestOpenAutoFindsNothing(t *testing.T) {
	withBackends(t)
	_, err := Open("auto")
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "backend/all")

	withBackends(t, fakeBackend{"opencl", []Kind{CPU}}, fakeBackend{"cuda", []Kind{Emulated}}, driver.Unavailable("x", "no driver"))
	_, err = Open("auto")
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "no driver")
}

func TestOpenByName(t *testing.T) {
	withBackends(t,
		fakeBackend{"cpu", []Kind{CPU}},
		fakeBackend{"cuda", []Kind{DiscreteGPU, Emulated}},
		fakeBackend{"empty", nil},
		driver.Unavailable("opencl", "libOpenCL is missing"))
	for name, want := range map[string]string{
		"cpu": "cpu:0", "cpu:0": "cpu:0", "cuda": "cuda:0", "cuda:0": "cuda:0", "cuda:1": "cuda:1",
	} {
		d, err := Open(name)
		require.NoError(t, err)
		require.Equal(t, want, d.Info().ID)
	}
	for name, want := range map[string]string{
		"cpu:1":    "the last device of this backend is cpu:0",
		"cuda:2":   "the last device of this backend is cuda:1",
		"opencl":   "libOpenCL is missing",
		"opencl:0": "libOpenCL is missing",
		"empty":    "it has no devices",
		"vulkan":   "no such device, want auto, cpu, cuda, empty, opencl",
		"CPU":      "no such device, want auto, cpu, cuda, empty, opencl",
		"cpu:":     `"" is not a device number`,
		"cpu:-1":   `"-1" is not a device number`,
		"cpu:+0":   `"+0" is not a device number`,
		"cpu:x":    "is not a device number",
		"cpu:0:0":  "is not a device number",
		":0":       "no such device, want auto, cpu, cuda, empty, opencl",
	} {
		_, err := Open(name)
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, name+": ")
		var e *Error
		require.True(t, errors.As(err, &e))
	}
	_, err := Open("\x1b[31mx\n\xff")
	require.ErrorContains(t, err, `\x1b[31mx\n\xff: not available: `, "what was asked for may have anything in it")
	_, err = Open("opencl")
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = Open("vulkan")
	require.ErrorIs(t, err, ErrUnavailable)
}

// twiceBackend has its device by two drivers.
type twiceBackend struct{ fakeBackend }

func (b twiceBackend) Devices() ([]driver.Device, error) {
	devices, err := b.fakeBackend.Devices()
	return append(devices, fakeDevice{Info{ID: b.name + ":other-one"}}), err
}

func TestOpenOtherDrivers(t *testing.T) {
	withBackends(t, twiceBackend{fakeBackend{"opencl", []Kind{DiscreteGPU}}})
	for name, want := range map[string]string{"opencl:0": "opencl:0", "opencl:other-one": "opencl:other-one", "auto": "opencl:0"} {
		d, err := Open(name)
		require.NoError(t, err)
		require.Equal(t, want, d.Info().ID)
	}
	_, err := Open("opencl:another")
	require.ErrorContains(t, err, `"another" is not a device number`)
}

func TestOpenReadsTheEnvironment(t *testing.T) {
	withBackends(t, fakeBackend{"cpu", []Kind{CPU}}, fakeBackend{"cuda", []Kind{DiscreteGPU}})
	t.Setenv(EnvDevice, "cpu")
	d, err := Open("")
	require.NoError(t, err)
	require.Equal(t, "cpu:0", d.Info().ID)
	d, err = Open("auto")
	require.NoError(t, err)
	require.Equal(t, "cuda:0", d.Info().ID)

	t.Setenv(EnvDevice, "npu")
	_, err = Open("")
	require.ErrorContains(t, err, "npu (from BCNN_DEVICE): not available: ")
}

func TestRegisterReplacesAndSorts(t *testing.T) {
	withBackends(t, fakeBackend{"opencl", nil}, driver.Unavailable("cuda", "not part of this build"), fakeBackend{"cpu", []Kind{CPU}})
	Register(fakeBackend{"cuda", []Kind{DiscreteGPU}})
	var names []string
	for _, b := range Backends() {
		names = append(names, b.Name())
	}
	require.Equal(t, []string{"cpu", "cuda", "opencl"}, names)
	require.Len(t, Devices(), 2)
}
