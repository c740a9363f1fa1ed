//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
)

func init() { backend.Register(cudaBackend{}) }

type cudaBackend struct{}

func (cudaBackend) Name() string { return "cuda" }

func (cudaBackend) Devices() ([]driver.Device, error) {
	found, err := enumerate()
	devices := make([]driver.Device, len(found))
	for i, d := range found {
		devices[i] = d
	}
	return devices, err
}

// enumerate lists the devices that can be used, by the driver's numbers. The error
// says why others cannot.
var enumerate = sync.OnceValues(func() ([]*device, error) {
	if err := shim.Load(); err != nil {
		return nil, fmt.Errorf("%w: NVIDIA driver not found (%w); install the GPU driver, the CUDA toolkit is not needed",
			driver.ErrUnavailable, err)
	}
	count, err := cu.NumDevices()
	if err == nil && count == 0 {
		err = fmt.Errorf("the driver finds no GPU")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrUnavailable, shim.Check("cuDeviceGetCount", err))
	}
	var devices []*device
	var unused []string
	for i := range count {
		dev, err := newDevice(i)
		if err != nil {
			unused = append(unused, err.Error())
			continue
		}
		dev.info.ID = fmt.Sprintf("cuda:%d", len(devices))
		devices = append(devices, dev)
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("%w: no GPU can be used: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	if len(unused) > 0 {
		return devices, fmt.Errorf("%w: %s", driver.ErrUnavailable, strings.Join(unused, "; "))
	}
	return devices, nil
})
