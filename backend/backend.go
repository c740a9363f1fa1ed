// Package backend executes plans on devices: CPU, CUDA and OpenCL. The outputs
// are the same bits on every device. lower.Compile makes the plan of a network.
//
// Backends register themselves when their package is imported; importing
// backend/all brings in every one that this build has. What a backend implements
// is in package driver.
package backend

import (
	"errors"
	"time"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

type (
	// Info describes a device and what it takes of Options.
	Info = driver.Info
	// Kind is what sort of device a device is.
	Kind = driver.Kind
	// Choice is how a step is executed, in words.
	Choice = driver.Choice
)

// The kinds of devices, in the order in which auto prefers them; it never picks
// an emulated one.
const (
	DiscreteGPU   = driver.DiscreteGPU
	IntegratedGPU = driver.IntegratedGPU
	CPU           = driver.CPU
	Emulated      = driver.Emulated
)

// Options are the options of Device.Compile. The zero value is good. An option that a
// device cannot honour is an error that matches errors.ErrUnsupported.
type Options struct {
	MaxBatch int // images per Run at the most; 0 means 1
	// Limits bound what may be asked of the device: ArenaBytes is the memory for
	// tensors and all else that grows with the images. 0 means all that the device
	// has; where that is the machine's, all that is free.
	Limits bcnn.Limits
	// Threads is the number of threads, where Info.MaxThreads says that there is a
	// choice; 0 means all that the process may use.
	Threads int
	// ISA is one of the instruction sets that Info.ISAs lists, for tests and
	// benchmarks; empty means the best.
	ISA string
	// Kernels forces one of the variants of kernels that Info.Kernels lists, for
	// tests and benchmarks, wherever there is one for a step: "patches" takes those
	// of the paper, which extract patches into shared memory, "direct" those on
	// packed activations, "vectors" those of OpenCL on vectors of channels, "tensorcore"
	// those on tensor cores, "splitk" those of which several blocks share a sum, "fused"
	// one launch for a whole network, and "wgmma" those on the tensor cores of Hopper's
	// warpgroups. Empty means the fastest.
	Kernels string
	// Timed, if set, is called after every step with the time it took on the
	// device. Steps are then waited for one by one.
	Timed func(step int, name string, d time.Duration)
	// Tap, if set, is called after every step with the tensor it wrote, in the
	// canonical layout. The tensor is only valid during the call.
	Tap func(step int, name string, t bcnn.Tensor)
}

var (
	// ErrUnavailable: the backend or the device is not there.
	ErrUnavailable = driver.ErrUnavailable
	// ErrTooLarge: a plan does not fit into the memory or the numbers of a device.
	ErrTooLarge = driver.ErrTooLarge
	// ErrShape: a tensor does not fit the plan.
	ErrShape = errors.New("wrong tensor")
	// ErrClosed: the Executable has been closed.
	ErrClosed = errors.New("executable is closed")
)

var (
	errNoContext = errors.New("no context")
	errNoDevice  = errors.New("no device")
)

// Error is an error of an operation on a device.
type Error struct {
	Device string // "cuda:0", or what was asked for
	Op     string // "compile", "run", "profile"; "" where the device itself is the matter
	Err    error
}

func (e *Error) Error() string {
	where := text.Escape(e.Device)
	if e.Op != "" {
		where += ": " + e.Op
	}
	return where + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
