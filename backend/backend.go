// Package backend is the contract between plans and the devices that execute
// them: CPU, CUDA and OpenCL. The outputs are the same bits on every device.
//
// Backends register themselves when their package is imported; importing
// backend/all brings in every one that this build has.
package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Backend is one way to reach devices, such as "cpu" or "cuda".
type Backend interface {
	Name() string
	// Devices lists the devices, starting the driver on first use. Where there
	// are none the error wraps ErrUnavailable and says what to install or how
	// to rebuild. Beside devices an error says why others that are there cannot
	// be used.
	Devices() ([]Device, error)
}

// Prober is implemented by backends whose driver takes long to start.
type Prober interface {
	// MayHaveGPU reports whether the backend may find a GPU, without starting its
	// driver. Where it is false, "auto" passes the backend over.
	MayHaveGPU() bool
}

// Kind is what sort of device a device is; auto prefers them in this order.
type Kind int

const (
	DiscreteGPU Kind = iota
	IntegratedGPU
	CPU
	// Emulated devices are for tests: auto never picks them, nor a CPU that is
	// reached through a GPU interface, such as OpenCL on PoCL.
	Emulated
)

func (k Kind) String() string {
	names := [...]string{"discrete GPU", "integrated GPU", "CPU", "emulated"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Info describes a device.
type Info struct {
	ID     string // as Open takes it: "cpu", "cuda:0"
	Name   string // the product's name
	Kind   Kind
	Detail string // "avx2, 8 threads", "sm_90"
	Memory int64  // bytes, 0 if unknown

	// ISAs are the instruction sets that Options.ISA takes, the best first. Only
	// the CPU has several.
	ISAs []string
	// Variants are what Options.Variant takes. Only GPUs have several.
	Variants []string
}

// Device executes plans. It is safe for concurrent use.
type Device interface {
	Info() Info
	// Compile uploads the weights and reserves all memory. ErrUnsupported names
	// every step that has no kernel, ErrTooLarge a plan that needs more memory
	// than opts.Limits or the device allow. When ctx ends, its error is returned
	// as soon as what is in hand is done: the layout of the weights of a step, the
	// compilation of a program, the measurement of a kernel.
	Compile(ctx context.Context, plan *bcnn.Plan, opts Options) (Executable, error)
}

// Executable is a plan that is ready to run on a device. Different Executables
// may run at the same time; one Executable is used by one goroutine at a time,
// except that Close may be called from anywhere.
type Executable interface {
	// Run computes the output of a batch: in has the type and shape of the
	// plan's input and 1 ≤ N ≤ MaxBatch, out is Float32 of the output's shape
	// with the same N, else the error wraps ErrShape. Both stay the caller's
	// and are not kept. Run does not allocate. When ctx ends, Run returns its
	// error as soon as what is in hand is done: a tile on the CPU, the kernels
	// that have been launched on a GPU. What out holds then is unspecified.
	Run(ctx context.Context, out, in bcnn.Tensor) error
	// Close waits for a Run in progress, so it must not be called by Timed or
	// Tap, and frees everything. Later calls of Run return ErrClosed; a second
	// Close does nothing.
	Close() error
}

// PeakMeter is implemented by devices that can measure what they could do at
// best, so that a benchmark can say which fraction of it a step reaches.
type PeakMeter interface {
	// Peak returns the products of ±1 values per second that a loop of nothing
	// but the arithmetic of the kernels reaches, with the Threads and the ISA of
	// opts. Clock rates and load change: measure it shortly before or after.
	Peak(opts Options) (perSecond float64, err error)
	// Bandwidth returns the bytes per second at which size bytes are read over
	// and over, with the Threads of opts.
	Bandwidth(opts Options, size int64) (perSecond float64, err error)
}

// Explainer is implemented by executables that can say how they execute a plan.
type Explainer interface {
	// Explain returns what was chosen for each step of the plan, and why.
	Explain() []Choice
}

// Choice is how a step is executed, in words.
type Choice struct {
	Kernel string // "wide bits, joined rows"
	Tile   string // "24 rows × 64 channels, 4 tiles"; empty where there are none
	Why    string
}

// Options are the options of Compile. The zero value is good.
type Options struct {
	MaxBatch int // images per Run at the most; 0 means 1
	Limits   bcnn.Limits
	Threads  int    // CPU threads; 0 means all that the process may use
	ISA      string // CPU instruction set, for tests and benchmarks; "" means the best
	// Variant forces the kernels of a GPU backend: "a" takes those of the paper,
	// which extract patches in local memory, wherever there is one for a step,
	// "b" the direct ones; on CUDA "c" binary tensor cores, and "f" one launch for
	// a whole small network. "" means the fastest.
	Variant string
	// Timed, if set, is called after every step with the time it took on the
	// device. Steps are then synchronised one by one.
	Timed func(step int, name string, d time.Duration)
	// Tap, if set, is called after every step with the tensor it wrote, in the
	// canonical layout. The tensor is only valid during the call.
	Tap func(step int, name string, t bcnn.Tensor)
}

var (
	// ErrUnavailable: the backend or the device is not there.
	ErrUnavailable = errors.New("not available")
	// ErrUnsupported: the device has no kernel for a step.
	ErrUnsupported = errors.ErrUnsupported
	// ErrTooLarge: a plan does not fit into the memory or the numbers of a device.
	ErrTooLarge = errors.New("too large for the device")
	// ErrShape: a tensor does not fit the plan.
	ErrShape = errors.New("wrong tensor")
	// ErrClosed: the Executable has been closed.
	ErrClosed = errors.New("executable is closed")
)

// Error is an error of an operation on a device.
type Error struct {
	Device string // "cuda:0"
	Op     string // "compile", "run", "open"
	Err    error
}

func (e *Error) Error() string { return e.Device + ": " + e.Op + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Compile lowers the network and compiles the plan on the device.
func Compile(ctx context.Context, dev Device, net *bcnn.Network, opts Options) (Executable, error) {
	switch {
	case ctx == nil:
		return nil, errNoContext
	case dev == nil:
		return nil, errors.New("no device")
	case net == nil:
		return nil, errors.New("no network")
	}
	plan, err := bcnn.Lower(ctx, net, bcnn.LowerOptions{Limits: opts.Limits})
	if err != nil {
		return nil, err
	}
	return dev.Compile(ctx, plan, opts)
}
