//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/tuning"
	"github.com/bitcnn/bitcnn/kernels"
)

// device is one OpenCL device. Its context and programs live as long as the
// process.
type device struct {
	id       *cl.Device
	platform string
	info     driver.Info
	driver   string // all that tells one driver from another
	limits   candidates.Limits
	// place tells a piece of hardware from others; empty if it is not known.
	place string
	// merit is the larger, the better the driver is beside another one for the same device.
	merit int
	// unified says that the device and the host have the same memory.
	unified bool
	// floatsLack says why steps with float32 arithmetic run on the host; empty
	// where the device can do them.
	floatsLack string
	// defines are further options of the compiler, which tests set.
	defines string
	// specialiseFrom is the work of a step, in multiply-accumulates of an image, from
	// which on it gets programs of its own.
	specialiseFrom int64

	// binaries are the programs that were compiled before; nil for none.
	binaries *tuning.Programs
	// longest is how long a launch of a batch may take; 0 for any time. A step is launched for one image at first,
	// and by the time that this takes from then on.
	longest time.Duration
	// untimed says that the driver tells no times of commands.
	untimed atomic.Bool

	mu       sync.Mutex // guards what follows
	context  *cl.Context
	programs map[string]*program // by source file and options

	tuningMu sync.Mutex // guards what follows
	tuning   *tuning.Cache
}

// newDevice describes a device. The error says why it cannot be used.
func newDevice(p *cl.Platform, d *cl.Device) (dev *device, err error) {
	defer func() {
		// The getters of go-opencl panic where the driver answers with an error.
		if r := recover(); r != nil {
			dev, err = nil, fmt.Errorf("a device of which the driver cannot tell the properties: %v", r)
		}
	}()
	name := strings.TrimSpace(d.Name())
	platform, version, software := strings.TrimSpace(p.Name()), strings.TrimSpace(d.Version()), strings.TrimSpace(d.DriverVersion())
	if why := unfit(d, platform); why != "" {
		return nil, fmt.Errorf("%s (%s): %s", name, platform, why)
	}
	dev = &device{
		id:     d,
		driver: strings.Join([]string{platform, name, version, software}, "|"),
		limits: candidates.Limits{
			Group:       min(d.MaxWorkGroupSize(), d.MaxWorkItemSizes()[0]),
			LocalBytes:  int(d.LocalMemSize()),
			Buffer:      d.MaxMemAllocSize(),
			LocalMemory: d.LocalMemType() == cl.LocalMemTypeLocal,
			GPU:         d.Type()&cl.DeviceTypeGPU != 0,
		},
		unified:        d.HostUnifiedMemory(),
		specialiseFrom: 1 << 21,
		programs:       make(map[string]*program),
	}
	if dev.limits.GPU {
		dev.longest = longestLaunch
	}
	config, extensions := shim.SingleFPConfig(d), shim.Extensions(d)
	dev.floatsLack = unfitFloats(config, d.Profile())
	dev.limits.Dot = dotProduct(extensions, func() bool { return shim.HasPackedDot(d) })
	for i, has := range []bool{dev.limits.Dot != candidates.NoDot, config&shim.FPFMA != 0 && config&shim.FPDenormals != 0, dev.floatsLack == ""} {
		if has {
			dev.merit |= 1 << i
		}
	}
	switch {
	case emulated(platform):
	case d.Type()&cl.DeviceTypeCPU != 0:
		dev.place = "processor"
	default:
		dev.place = shim.Place(d, extensions)
	}
	local := "local memory in global memory"
	if dev.limits.LocalMemory {
		local = fmt.Sprintf("%d KiB of local memory", dev.limits.LocalBytes>>10)
	}
	dev.info = driver.Info{
		Name:     name,
		Kind:     kind(d, platform),
		Memory:   d.GlobalMemSize(),
		MaxBatch: 1 << 20,
		Kernels:  kernelNames,
		Detail: fmt.Sprintf("%s, %s, driver %s, %d compute units, work-groups up to %d, %s, buffers up to %d MiB",
			platform, version, software, d.MaxComputeUnits(), dev.limits.Group, local, dev.limits.Buffer>>20),
	}
	if dev.limits.Dot != candidates.NoDot {
		dev.info.Detail += ", integer dot product"
	}
	if dev.unified {
		dev.info.Detail += ", memory shared with the host"
	}
	if dev.floatsLack != "" {
		dev.info.Detail += ", float steps on the processor since " + dev.floatsLack
	}
	return dev, nil
}

// unfit says why a device cannot be used, or nothing.
func unfit(d *cl.Device, platform string) string {
	var major, minor int
	fmt.Sscanf(d.Version(), "OpenCL %d.%d", &major, &minor)
	switch {
	case !d.Available():
		return "not available"
	case !d.CompilerAvailable():
		return "its driver has no compiler"
	case !d.EndianLittle():
		return "it is not little-endian"
	case major < 1 || major == 1 && minor < 2:
		return "it has " + d.Version() + ", and OpenCL 1.2 is needed"
	}
	return ""
}

func emulated(platform string) bool { return strings.Contains(platform, "Oclgrind") }

// unfitFloats says what float32 arithmetic lacks to give the bits that the
// numeric contract asks for, or nothing. Whether it has fma and subnormal numbers
// the probe finds out: some drivers have both and do not say so, and others compute
// fma in software, with the sign of some zeros wrong.
func unfitFloats(config uint64, profile string) string {
	var lacks []string
	if strings.Contains(profile, "EMBEDDED") {
		lacks = append(lacks, "the full profile")
	}
	for _, need := range []struct {
		bit  uint64
		name string
	}{{shim.FPInfNaN, "infinities"}, {shim.FPNearest, "rounding to nearest"}} {
		if config&need.bit == 0 {
			lacks = append(lacks, need.name)
		}
	}
	return lacking(lacks)
}

// dotProduct returns the function for dot products that a device with the given
// extensions has; packed asks it for the form that the kernels use. Arm's needs no newer language than ours.
func dotProduct(extensions []string, packed func() bool) candidates.DotProduct {
	switch {
	case slices.Contains(extensions, "cl_arm_integer_dot_product_int8"):
		return candidates.ArmDot
	case slices.Contains(extensions, "cl_khr_integer_dot_product") && packed():
		return candidates.KHRDot
	}
	return candidates.NoDot
}

func kind(d *cl.Device, platform string) driver.Kind {
	switch {
	case emulated(platform):
		return driver.Emulated
	case d.Type()&cl.DeviceTypeGPU == 0:
		return driver.CPU
	case d.HostUnifiedMemory():
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
var kernelNames = []string{gpu.Patches, gpu.Direct, gpu.Vectors}

func (d *device) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	e, err := newExecutable(ctx, d, plan, c)
	if c.Kernels != "" && c.Kernels != gpu.Direct && refused(err) && !errors.Is(err, errBuild) {
		c.Kernels = gpu.Direct // which needs least
		e, err = newExecutable(ctx, d, plan, c)
	}
	if err != nil {
		return nil, err // not a nil *executable
	}
	return e, nil
}

// open makes the context on first use.
func (d *device) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context != nil {
		return nil
	}
	context, err := cl.CreateContext([]*cl.Device{d.id})
	if err != nil {
		return fmt.Errorf("context: %w", err)
	}
	d.context = context
	if d.info.Kind != driver.Emulated { // which checks what it compiles
		d.binaries = tuning.LoadPrograms("opencl")
	}
	if d.floatsLack != "" {
		return nil
	}
	if d.floatsLack, err = d.probe(); refused(err) {
		d.refuse("the probe of float32 arithmetic, which the processor does", err)
		d.floatsLack = "its float32 arithmetic cannot be probed"
		return nil
	}
	if d.floatsLack != "" {
		d.refuse("float steps, which the processor executes", errors.New(d.floatsLack))
	}
	if err != nil {
		context.Release()
		d.context = nil
	}
	return err
}

// choices are what is remembered of the device.
func (d *device) choices() *tuning.Cache {
	d.tuningMu.Lock()
	defer d.tuningMu.Unlock()
	if d.tuning == nil {
		d.tuning = d.loadTuning(tuning.Path("opencl", d.driver, kernels.CLHash()))
	}
	return d.tuning
}

func (d *device) loadTuning(path string) *tuning.Cache {
	return tuning.Load(d.info.Name, d.driver, kernels.CLHash(), path)
}
