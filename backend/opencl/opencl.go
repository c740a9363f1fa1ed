//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"fmt"
	"os"
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

func (openclBackend) MayHaveGPU() bool { return hasGPUNode(os.DirFS("/")) }

func (openclBackend) Devices() ([]driver.Device, error) {
	found, err := enumerate()
	devices := make([]driver.Device, len(found))
	for i, d := range found {
		devices[i] = d
	}
	return devices, err
}

// enumerate lists the devices that can be used. The error says why others cannot.
var enumerate = sync.OnceValues(func() ([]*device, error) {
	if err := shim.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w; install an OpenCL driver and loader (Debian: ocl-icd-libopencl1 and the driver of the device, or pocl-opencl-icd for the processor)",
			driver.ErrUnavailable, err)
	}
	platforms, err := cl.GetPlatforms()
	if err != nil || len(platforms) == 0 {
		return nil, fmt.Errorf("%w: the OpenCL loader finds no driver (/etc/OpenCL/vendors lists them): %v", driver.ErrUnavailable, err)
	}
	var devices []*device
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
			dev.info.ID = fmt.Sprintf("opencl:%d", len(devices))
			devices = append(devices, dev)
		}
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("%w: no OpenCL device can be used: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	if len(unused) > 0 {
		return devices, fmt.Errorf("%w: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	return devices, nil
})
