//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

func init() { backend.Register(openclBackend{}) }

type openclBackend struct{}

func (openclBackend) Name() string { return "opencl" }

// MayHaveGPU looks for nothing on Windows, where the loader is there if a driver has brought it.
func (openclBackend) MayHaveGPU() bool { return onWindows || hasGPUNode(os.DirFS("/")) }

const onWindows = runtime.GOOS == "windows"

func (openclBackend) Devices() ([]driver.Device, error) {
	found, err := enumerate()
	devices := make([]driver.Device, len(found))
	for i, d := range found {
		devices[i] = d
	}
	return devices, err
}

// install says what to do where there is no loader, and registry where it finds drivers.
var install, registry = func() (string, string) {
	if onWindows {
		return "install the driver of the GPU, which brings it", `the registry key HKEY_LOCAL_MACHINE\SOFTWARE\Khronos\OpenCL\Vendors`
	}
	return "install an OpenCL driver and loader (Debian: ocl-icd-libopencl1 and the driver of the device, or pocl-opencl-icd for the processor)",
		"/etc/OpenCL/vendors"
}()

// enumerate lists the devices that can be used. The error says why others cannot.
var enumerate = sync.OnceValues(func() ([]*device, error) {
	if err := shim.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w; %s", driver.ErrUnavailable, err, install)
	}
	platforms, err := cl.GetPlatforms()
	if err != nil || len(platforms) == 0 {
		return nil, fmt.Errorf("%w: the OpenCL loader finds no driver (%s lists them): %v", driver.ErrUnavailable, registry, err)
	}
	var found []*device
	var unused []string
	for i, p := range platforms {
		all, err := p.GetDevices(cl.DeviceTypeAll)
		if err != nil {
			unused = append(unused, fmt.Sprintf("platform %d: %v", i, err))
			continue
		}
		for _, d := range all {
			dev, err := newDevice(p, d)
			if err != nil {
				unused = append(unused, err.Error())
				continue
			}
			dev.platform = strings.TrimSpace(p.Name())
			found = append(found, dev)
		}
	}
	devices := arrange(found)
	if len(devices) == 0 {
		return nil, fmt.Errorf("%w: no OpenCL device can be used: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	if len(unused) > 0 {
		return devices, fmt.Errorf("%w: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	return devices, nil
})
