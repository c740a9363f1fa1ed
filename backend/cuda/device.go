//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/ptx"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/tuning"
	"github.com/bitcnn/bitcnn/kernels"
)

// device is one GPU. Its context and modules live as long as the process.
type device struct {
	number cu.Device
	info   driver.Info
	driver string // all that tells one device and driver from another
	limits candidates.Limits
	arch   int // of the PTX that it takes
	// integrated says that the device is part of the processor.
	integrated bool
	// unified says that page-locked memory has the same address on the device.
	unified bool
	// early says that the device can begin a kernel before the one ahead of it has ended
	// (programmatic dependent launch), and that the driver records this in graphs.
	early bool
	// without are the variants of kernels that are left out.
	without []string
	// tuneFrom is the work of a step, in multiply-accumulates of an image, from which
	// on its kernels are measured.
	tuneFrom int64
	// For tests: tensors share no memory, so that guard pages lie behind each; the
	// number of the kernel to take of those for a step, where it has so many; and the
	// variant of kernels that measuring is to find the fastest.
	unshared bool
	pick     int
	fastest  string

	mu     sync.Mutex // guards what follows
	thread *thread

	tuningMu sync.Mutex // guards what follows
	tuning   *tuning.Cache
}

// newDevice describes a device. The error says why it cannot be used.
func newDevice(i int) (*device, error) {
	number, err := cu.GetDevice(i)
	if err != nil {
		return nil, shim.Check("cuDeviceGet", err)
	}
	name, err := number.Name()
	if err != nil {
		return nil, shim.Check("cuDeviceGetName", err)
	}
	name = strings.TrimSpace(name)
	memory, err := number.TotalMem()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, shim.Check("cuDeviceTotalMem", err))
	}
	attribute := func(a cu.DeviceAttribute) int {
		v, failed := number.Attribute(a)
		if failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", name, shim.Check("cuDeviceGetAttribute", failed))
		}
		return v
	}
	d := &device{number: number, tuneFrom: 1 << 20, pick: -1}
	d.limits = candidates.Limits{
		Capability:    10*attribute(cu.ComputeCapabilityMajor) + attribute(cu.ComputeCapabilityMinor),
		Processors:    attribute(cu.MultiprocessorCount),
		Threads:       attribute(cu.MaxThreadsPerBlock),
		SharedDefault: attribute(cu.MaxSharedMemoryPerBlock),
		GridY:         min(attribute(cu.MaxGridDimY), attribute(cu.MaxGridDimZ)),
	}
	d.integrated, d.unified = attribute(cu.Integrated) != 0, attribute(cu.UnifiedAddressing) != 0
	clock := attribute(cu.ClockRate)
	if err != nil {
		return nil, err
	}
	d.limits.Shared = d.limits.SharedDefault
	// Drivers that do not know these attributes do not have what they tell of.
	if v, err := number.Attribute(shim.SharedMemoryOptIn); err == nil {
		d.limits.Shared = max(d.limits.Shared, v)
	}
	if v, err := number.Attribute(shim.CooperativeLaunch); err == nil {
		d.limits.Cooperative = v != 0
	}
	version := cu.Version()
	if d.arch, err = ptx.Choose(d.limits.Capability, version); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.limits.Warpgroups, d.limits.WarpgroupBytes = ptx.Warpgroups(d.limits.Capability, version)
	d.early = d.arch >= 90 && version >= 12030
	without, err := d.leaveOut(os.Getenv(withoutVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.driver = fmt.Sprintf("%s|sm_%d|%d|%d|%d|%d", name, d.limits.Capability, version, d.limits.Processors, clock, d.arch)
	d.info = driver.Info{
		Name:     name,
		Kind:     kind(name, d.integrated),
		Memory:   memory,
		MaxBatch: d.limits.GridY,
		Kernels:  kernelNames,
		Detail: fmt.Sprintf("sm_%d, driver for CUDA %s, %d multiprocessors, %d KiB of shared memory per block, kernels for sm_%d",
			d.limits.Capability, ptx.Version(version), d.limits.Processors, d.limits.Shared>>10, d.arch) + without,
	}
	return d, nil
}

// withoutVariable is that of the environment which names what is left out, separated by commas:
// a fault of one kind of kernels, or of a device or a driver under it, is no reason to do without
// the others.
const withoutVariable = "BCNN_CUDA_WITHOUT"

// leaveOut leaves kinds of kernels out, and returns what to say of it.
func (d *device) leaveOut(list string) (detail string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
			continue
		case gpu.Warpgroup:
			d.limits.Warpgroups, d.limits.WarpgroupBytes = false, false
		case gpu.Fused:
			d.limits.Cooperative = false
		case earlyLaunches:
			d.early = false
		case gpu.Patches, gpu.TensorCore, gpu.SplitK:
			d.without = append(d.without, name)
		default:
			return "", fmt.Errorf("%s has %q, want some of wgmma, fused, early, splitk, tensorcore and patches, separated by commas", withoutVariable, name)
		}
		detail += ", without " + name
	}
	return detail, nil
}

func kind(name string, integrated bool) driver.Kind {
	switch {
	case strings.Contains(strings.ToLower(name), "emulat"):
		return driver.Emulated
	case integrated:
		return driver.IntegratedGPU
	}
	return driver.DiscreteGPU
}

func (d *device) Info() driver.Info {
	info := d.info
	info.Refused = d.choices().Refusals()
	return info
}

// kernelNames are the variants of kernels. Direct ones are the only ones of some
// steps.
var kernelNames = []string{gpu.Patches, gpu.Direct, gpu.TensorCore, gpu.SplitK, gpu.Fused, gpu.Warpgroup}

func (d *device) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	e, err := newExecutable(ctx, d, plan, c)
	if err != nil {
		return nil, err // not a nil *executable
	}
	return e, nil
}

// open makes the context on first use.
func (d *device) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.thread != nil {
		return d.thread.gone()
	}
	t, err := startThread(d.number, d.integrated)
	if err != nil {
		return err
	}
	d.thread = t
	return nil
}

// choices are what is remembered of the device.
func (d *device) choices() *tuning.Cache {
	d.tuningMu.Lock()
	defer d.tuningMu.Unlock()
	if d.tuning == nil {
		d.tuning = d.loadTuning(tuning.Path("cuda", d.driver, kernels.PTXHash()))
	}
	return d.tuning
}

func (d *device) loadTuning(path string) *tuning.Cache {
	return tuning.Load(d.info.Name, d.driver, kernels.PTXHash(), path)
}
