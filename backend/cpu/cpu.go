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
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/host"
)

func init() { backend.Register(cpuBackend{}) }

const deviceID = "cpu"

type cpuBackend struct{}

func (cpuBackend) Name() string { return "cpu" }

func (cpuBackend) Devices() ([]backend.Device, error) { return []backend.Device{device{}}, nil }

// Device returns the processor, the only device of the backend.
func Device() backend.Device { return device{} }

// ISAs returns the instruction sets that this processor has kernels for, the
// best first, as Options.ISA takes them.
func ISAs() []string { return sets.Names() }

type device struct{}

func (device) Info() backend.Info {
	name := cpuid.CPU.BrandName
	if name == "" {
		name = runtime.GOARCH
	}
	return backend.Info{
		ID:     deviceID,
		Name:   name,
		Kind:   backend.CPU,
		Detail: fmt.Sprintf("%s, %d threads", sets.Names()[0], host.Threads()),
		Memory: host.Memory(),
		ISAs:   sets.Names(),
	}
}

// maxThreads and maxBatch bound Options.Threads and Options.MaxBatch.
const (
	maxThreads = 1024
	maxBatch   = 1 << 24
)

func (device) Compile(ctx context.Context, plan *bcnn.Plan, opts backend.Options) (backend.Executable, error) {
	e, err := compile(ctx, plan, opts)
	if err != nil {
		return nil, &backend.Error{Device: deviceID, Op: "compile", Err: err}
	}
	return e, nil
}

func compile(ctx context.Context, plan *bcnn.Plan, opts backend.Options) (*executable, error) {
	opts, err := backend.CheckCompile(ctx, plan, opts, maxBatch, host.Available())
	if err != nil {
		return nil, err
	}
	set, err := sets.Lookup(opts.ISA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	if opts.Threads == 0 {
		opts.Threads = min(host.Threads(), maxThreads)
	}
	if opts.Threads < 0 || opts.Threads > maxThreads {
		return nil, fmt.Errorf("%d threads, want 1 to %d", opts.Threads, maxThreads)
	}
	return newExecutable(ctx, plan, set, opts)
}
