//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
)

func init() { backend.Register(cudaBackend{}) }

type cudaBackend struct{}

func (cudaBackend) Name() string { return "cuda" }

func (cudaBackend) Devices() ([]backend.Device, error) {
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

// enumerate lists the devices that can be used, by the driver's numbers. Where
// there are none the error says why, of every device that there is.
var enumerate = sync.OnceValues(func() ([]*device, error) {
	if err := shim.Load(); err != nil {
		return nil, fmt.Errorf("%w: no NVIDIA driver: %w; install the driver of the GPU (a CUDA toolkit is not needed)",
			backend.ErrUnavailable, err)
	}
	count, err := cu.NumDevices()
	if err == nil && count == 0 {
		err = fmt.Errorf("the driver finds no GPU")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, shim.Check("cuDeviceGetCount", err))
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
		return nil, fmt.Errorf("%w: no GPU can be used: %s", backend.ErrUnavailable, strings.Join(unused, "; "))
	}
	// A device that is left out has no line of its own, so the first says so.
	if len(unused) > 0 {
		devices[0].info.Detail += "; not used: " + strings.Join(unused, "; ")
	}
	return devices, nil
})
