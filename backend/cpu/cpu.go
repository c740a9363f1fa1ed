// Package cpu executes plans on the processor. Importing it registers the
// backend "cpu", which has one device.
package cpu

import (
	"context"
	"fmt"
	"runtime"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/host"
	"github.com/bitcnn/bitcnn/internal/text"
)

func init() { backend.Register(cpuBackend{}) }

type cpuBackend struct{}

func (cpuBackend) Name() string { return "cpu" }

func (cpuBackend) Devices() ([]driver.Device, error) { return []driver.Device{device{}}, nil }

// Device returns the processor, the only device of the backend.
func Device() *backend.Device { return backend.NewDevice(device{}) }

type device struct{}

func (device) Info() driver.Info {
	name := cpuid.CPU.BrandName
	if name == "" {
		name = runtime.GOARCH
	}
	return driver.Info{
		ID:          "cpu",
		Name:        name,
		Kind:        driver.CPU,
		Detail:      fmt.Sprintf("%s, %s", sets.Names()[0], text.Count(host.Threads(), "thread")),
		Memory:      host.Memory(),
		MaxBatch:    1 << 24,
		MaxThreads:  1024,
		ISAs:        sets.Names(),
		MissingISAs: sets.Missing(),
	}
}

func (device) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	set, err := sets.Lookup(c.ISA)
	if err != nil {
		return nil, err
	}
	return newExecutable(ctx, plan, set, c)
}
