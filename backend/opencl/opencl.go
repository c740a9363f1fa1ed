//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"fmt"
	"strings"
	"sync"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

func init() { backend.Register(openclBackend{}) }

type openclBackend struct{}

func (openclBackend) Name() string { return "opencl" }

func (openclBackend) Devices() ([]backend.Device, error) {
	found, err := enumerate()
	if err != nil {
		return nil, err
	}
	devices := make([]backend.Device, len(found))
	for i, d := range found {
		devices[i] = d
	}
	return devices, nil
}

// enumerate lists the devices that can be used. Where there are none the error
// says why, of every device that there is.
var enumerate = sync.OnceValues(func() ([]*device, error) {
	if err := shim.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w; install an OpenCL driver and loader (Debian: ocl-icd-libopencl1 and the driver of the device, or pocl-opencl-icd for the processor)",
			backend.ErrUnavailable, err)
	}
	platforms, err := cl.GetPlatforms()
	if err != nil || len(platforms) == 0 {
		return nil, fmt.Errorf("%w: the OpenCL loader finds no driver (/etc/OpenCL/vendors lists them): %v", backend.ErrUnavailable, err)
	}
	var devices []*device
	var unused []string
	for _, p := range platforms {
		all, err := p.GetDevices(cl.DeviceTypeAll)
		if err != nil {
			unused = append(unused, fmt.Sprintf("platform %d: %v", len(unused), err))
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
		return nil, fmt.Errorf("%w: no OpenCL device can be used: %s", backend.ErrUnavailable, strings.Join(unused, "; "))
	}
	// A device that is left out has no line of its own, so the first says so.
	if len(unused) > 0 {
		devices[0].info.Detail += "; not used: " + strings.Join(unused, "; ")
	}
	return devices, nil
})
