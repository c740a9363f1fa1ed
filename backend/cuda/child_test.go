//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// envChild names what this test binary does instead of testing, in a process of
// its own: a device that has been lost stays so, and the driver is started once.
const envChild = "BITCNN_CUDA_CHILD"

const (
	envFault      = "BCNN_EMULATOR_FAULT"
	envCapability = "BCNN_EMULATOR_CAPABILITY"
	envOrder      = "BCNN_EMULATOR_ORDER"
	envClock      = "BCNN_EMULATOR_CLOCK"
)

var children = map[string]func() error{
	"describe": func() error {
		devices, err := enumerate()
		if len(devices) == 0 {
			return err
		}
		fmt.Println(devices[0].Info())
		_, err = compileTiny(devices[0])
		return err
	},
	"waits": func() error {
		devices, err := enumerate()
		if len(devices) == 0 {
			return err
		}
		if err := devices[0].open(); err != nil {
			return err
		}
		flags, _, err := devices[0].number.PrimaryCtxState()
		fmt.Println("flags:", uint32(flags))
		return err
	},
	"kernels": func() error {
		devices, err := enumerate()
		if len(devices) == 0 {
			return err
		}
		exe, err := compileTiny(devices[0])
		if err != nil {
			return err
		}
		used := make(map[string]bool)
		for _, s := range exe.steps {
			for _, l := range s.launches {
				used[l.spec.Name] = true
			}
		}
		compiled, err := devices[0].number.Attribute(cu.DeviceAttribute(10008))
		fmt.Printf("%d kernels used, %d compiled\n", len(used), compiled)
		return err
	},
	"early": func() error {
		devices, err := enumerate()
		if len(devices) == 0 {
			return err
		}
		exe, err := compileTiny(devices[0])
		if err != nil {
			return err
		}
		fmt.Println("early:", exe.early)
		return runTiny(exe)
	},
	"lost":    func() error { return loseDevice("launch:1") },
	"removed": func() error { return loseDevice("removed:1") },
	"parity":  childParity,
	"enqueue": loseEnqueued,
}

// child runs the test binary again, with more environment variables.
func child(t *testing.T, name string, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, envChild+"="+name)...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// emulated skips a test of what only the emulated driver can do.
func emulated(t testing.TB) *device {
	d := testDevice(t)
	if d.info.Kind != backend.Emulated {
		testenv.Absent(t, "cuda-emulator", errors.New("only the emulated driver can do this (make emulated)"))
	}
	return d
}

func compileTiny(d *device) (*running, error) {
	plan, err := lower.Network(context.Background(), backendtest.VehicleNet(3, 8), lower.Options{})
	if err != nil {
		return nil, err
	}
	return compile(context.Background(), d, plan, backend.Options{})
}

func runTiny(exe *running) error {
	in := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 8, W: 8, C: 3})
	return exe.run(context.Background(), bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 1, W: 1, C: 6}), in)
}

// loseDevice makes a fault between two runs and looks at what comes after it.
func loseDevice(fault string) error {
	devices, err := enumerate()
	if err != nil {
		return err
	}
	d := devices[0]
	exe, err := compileTiny(d)
	if err != nil {
		return err
	}
	other, err := compileTiny(d)
	if err != nil {
		return err
	}
	if err := runTiny(exe); err != nil {
		return err
	}
	os.Setenv(envFault, fault)
	fmt.Println("first:", runTiny(exe))
	// Even if the fault goes away, the context does not come back.
	os.Unsetenv(envFault)
	for _, e := range []*running{exe, other} {
		err := runTiny(e)
		var wrapped *backend.Error
		if !errors.As(err, &wrapped) {
			return fmt.Errorf("a run of a lost device returned %v", err)
		}
		fmt.Println("then:", err)
	}
	_, err = compileTiny(d)
	fmt.Println("compile:", err)
	for range 2 {
		if err := errors.Join(exe.Close(), other.Close()); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	if n := gpu.Live.Load(); n != 0 {
		return fmt.Errorf("%d objects are left", n)
	}
	return nil
}

// childParity runs a part of the table, with all variants, and the kernels of each
// architecture once.
func childParity() error {
	devices, err := enumerate()
	if err != nil {
		return err
	}
	d := devices[0]
	fmt.Println(d.info.Detail)
	for i, variant := range append([]string{""}, kernelNames...) {
		cases := everyNth(60, 7*i)
		if variant == "" { // of which whole networks run all
			cases = append(cases, wholeNetworks(5, 4)...)
		}
		failures, err := parity.Check(context.Background(), backend.NewDevice(d), backend.Options{Kernels: variant}, cases, nil)
		if err != nil {
			return err
		}
		for _, f := range failures {
			return fmt.Errorf("variant %q: %w", variant, f)
		}
	}
	if d.arch != d.limits.Capability || d.arch == 90 { // TestEveryKernel launches the newest
		return nil
	}
	all, err := everyKernel(d)
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := f.check(context.Background(), d); err != nil {
			return err
		}
	}
	return nil
}

// TestCapabilities runs the kernels for each architecture, and threads in every
// order.
func TestCapabilities(t *testing.T) {
	testenv.Long(t)
	emulated(t)
	for _, c := range []struct{ capability, order, kernels string }{
		{"5.3", "forward", "kernels for sm_53"},
		{"6.1", "reverse", "kernels for sm_61"},
		{"7.2", "random:1", "kernels for sm_61"},
		{"7.5", "random:2", "kernels for sm_75"},
		{"8.0", "reverse", "kernels for sm_80"},
		{"8.7", "random:3", "kernels for sm_80"},
		{"9.0", "reverse", "kernels for sm_90"},
		{"9.0", "random:4", "kernels for sm_90"},
		{"12.0", "random:5", "kernels for sm_90"},
	} {
		t.Run(c.capability+"/"+c.order, func(t *testing.T) {
			output, err := child(t, "parity", envCapability+"="+c.capability, envOrder+"="+c.order)
			require.NoError(t, err, output)
			require.Contains(t, output, c.kernels)
		})
	}
}

func TestAbsence(t *testing.T) {
	emulated(t)
	library := "/libcuda.so.1"
	if runtime.GOOS == "windows" {
		library = `\nvcuda.dll`
	}
	for _, c := range []struct{ what, env, want string }{
		{"no driver", "LD_LIBRARY_PATH=/nowhere", "NVIDIA driver not found (libcuda.so.1"},
		{"no device", envFault + "=absent", library + ": error 100 (CUDA_ERROR_NO_DEVICE)"},
		{"stub", envFault + "=stub", library + " is the stub of a CUDA toolkit"},
		{"old driver", envFault + "=driver:8000", "its driver is too old: it supports CUDA 8.0, and the kernels need 9.0"},
		{"old device", envCapability + "=5.0", "compute capability 5.0, and 5.3 is needed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.what == "no driver" && runtime.GOOS == "windows" {
				t.Skip("the folder of the system is looked in whatever the environment: scripts/windows-check takes the file away")
			}
			output, err := child(t, "describe", c.env)
			require.Error(t, err)
			require.Contains(t, output, "not available: ")
			require.Contains(t, output, c.want)
		})
	}
	// A driver that is too old for the newest kernels gets older ones.
	output, err := child(t, "describe", envFault+"=driver:11020")
	require.NoError(t, err, output)
	require.Contains(t, output, "sm_90, driver for CUDA 11.2")
	require.Contains(t, output, "kernels for sm_80")
}

// TestCompilesWhatItUses: the driver compiles no kernels that are not used.
func TestCompilesWhatItUses(t *testing.T) {
	emulated(t)
	output, err := child(t, "kernels")
	require.NoError(t, err, output)
	require.Contains(t, output, "3 kernels used, 3 compiled")
}

// TestWaiting: the driver chooses how to wait, but not for an integrated device.
func TestWaiting(t *testing.T) {
	emulated(t)
	for fault, want := range map[string]cu.ContextFlags{"": cu.SchedAuto, "integrated": cu.SchedSpin} {
		output, err := child(t, "waits", envFault+"="+fault)
		require.NoError(t, err, output)
		require.Contains(t, output, fmt.Sprintf("flags: %d\n", uint32(want)))
	}
}

func TestLostDevice(t *testing.T) {
	emulated(t)
	for name, want := range map[string]string{"lost": "CUDA_ERROR_LAUNCH_FAILED", "removed": "CUDA_ERROR_DEVICE_UNAVAILABLE"} {
		t.Run(name, func(t *testing.T) {
			output, err := child(t, name)
			require.NoError(t, err, output)
			require.Regexp(t, "first: cuda:0: run: .*"+want, output)
			for _, line := range []string{"then: cuda:0: run", "compile: cuda:0: compile"} {
				require.Regexp(t, line+": the device has been lost, and the process must be started again: .*"+want, output)
			}
		})
	}
}
