// Package driver is what a backend implements, as database/sql/driver is for
// database/sql. Package backend calls it: there the arguments are checked, options
// get their defaults, runs wait for each other, errors get their names, and
// Options.Timed and Options.Tap are called. So a backend checks nothing that is said
// here to be given, holds no lock, and wraps no error but to say where it
// happened, such as "step 3 (conv2): …".
package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Backend is one way to reach devices, such as "cpu" or "cuda". Package
// backend's Register makes it known.
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

// Device executes plans. It is safe for concurrent use.
type Device interface {
	Info() Info
	// Compile uploads the weights and reserves all memory. The plan has passed
	// Plan.Check, and c is complete. A *plan.UnsupportedError
	// names every step that has no kernel; the error wraps ErrTooLarge where the
	// plan needs more memory than c.ArenaBytes or numbers that the device cannot
	// count. When ctx ends, its error is returned as soon as what is in hand is
	// done: the layout of the weights of a step, the compilation of a program, the
	// measurement of a kernel. After an error nothing is left behind.
	Compile(ctx context.Context, plan *plan.Plan, c Config) (Engine, error)
}

// PeakMeter is implemented by devices that can measure what they could do at
// best. Of c, MaxBatch and ArenaBytes mean nothing.
type PeakMeter interface {
	// Peak returns the products of ±1 values per second that a loop of nothing
	// but the arithmetic of the kernels reaches, 0 if its times mean nothing.
	Peak(c Config) (perSecond float64, err error)
	// Bandwidth returns the bytes per second at which size bytes are read over
	// and over, 0 if its times mean nothing. size is at least 1.
	Bandwidth(c Config, size int64) (perSecond float64, err error)
}

// Config is what Device.Compile is asked for: the options of package backend,
// which are within what Info says, with their defaults filled in.
type Config struct {
	MaxBatch int    // images per Run at the most, from 1 to Info.MaxBatch
	Threads  int    // from 1 to Info.MaxThreads; 0 if that is
	ISA      string // one of Info.ISAs; empty if there is none
	Kernels  string // one of Info.Kernels, or empty for the fastest of them all
	// ArenaBytes limits the memory for tensors and all else that grows with the
	// images; see CheckMemory.
	ArenaBytes int64
	// Stepwise says that RunSteps will be called in place of Run.
	Stepwise bool
}

// CheckMemory refuses to reserve bytes of memory in all for the tensors of an engine
// and all else that grows with the images, where c allows less. The error wraps
// ErrTooLarge.
func (c Config) CheckMemory(bytes int64) error {
	if bytes <= c.ArenaBytes {
		return nil
	}
	return fmt.Errorf("%w: the tensors of a batch of %d need at least %d bytes of memory, and the limit is %d",
		ErrTooLarge, c.MaxBatch, bytes, c.ArenaBytes)
}

// Engine is a plan that is ready to run on a device. One goroutine at a time calls
// its methods; engines of the same device are used at the same time.
type Engine interface {
	// Run computes the outputs of a batch. in and out are those of the plan in
	// order, of the right types, shapes and lengths, and of the same number of
	// images, from 1 to Config.MaxBatch. They are the caller's and must not be
	// kept. Run does not allocate. It looks at ctx as it goes, and returns its
	// error as soon as what is in hand is done: a tile on the CPU, the kernels that
	// have been launched on a GPU. The engine stays usable, whatever the error.
	Run(ctx context.Context, out, in []bcnn.Tensor) error
	// RunSteps is Run for an engine with Config.Stepwise. It waits for each step
	// and then calls after, with the time the step took on the device. The first
	// error of after ends the run and is returned as it is.
	RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error
	// Read copies the tensor that a step has just written, in the canonical
	// layout. It is called by after only, for the step in hand, and t has the type
	// and the shape of the tensor and as many images as the run.
	Read(step int, t bcnn.Tensor) error
	// Explain returns what was chosen for each step of the plan, and why. It is
	// called once, after Compile.
	Explain() []Choice
	// Close frees everything. It is the last call.
	Close() error
}

// Enqueuer is implemented by engines that take tensors in memory of the device.
type Enqueuer interface {
	// Enqueue puts a run of 1 to Config.MaxBatch images on a stream of the caller's, by
	// its handle, and returns without waiting for it. out and in are the addresses of
	// tensors, in order, of the types and shapes of the plan. The engine is not one with
	// Config.Stepwise. A later Run, or Enqueue on another stream, comes after, and Close
	// waits for it.
	Enqueue(stream uintptr, images int, out, in []uintptr) error
}

var (
	// ErrUnavailable: the backend or the device is not there.
	ErrUnavailable = errors.New("not available")
	// ErrTooLarge: a plan does not fit into the memory or the numbers of a device.
	ErrTooLarge = errors.New("too large for the device")
)

// Unavailable returns a backend without devices, to be registered where a build
// lacks the real one. The reason completes the sentence "it is not available: …".
func Unavailable(name, reason string) Backend { return unavailable{name, reason} }

type unavailable struct{ name, reason string }

func (u unavailable) Name() string { return u.name }

func (u unavailable) Devices() ([]Device, error) {
	return nil, fmt.Errorf("%w: %s", ErrUnavailable, u.reason)
}
