//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/kernels"
)

// thread is the OS thread that makes all calls of the driver for a device, with
// its primary context. It lives as long as the process.
type thread struct {
	requests chan *request
	lost     atomic.Pointer[error] // the failure since which the device is of no use

	// Of the thread alone.
	modules map[string]cu.Module // by kernel
	// waits are the kernels whose threads wait for the kernel ahead, where a device may
	// begin them before that has ended.
	waits map[string]bool
	// shared is how much dynamic shared memory kernels may have, where more than by default.
	shared map[string]int
}

// request is work for the thread. It may be used again and again, by one goroutine
// at a time, without allocating.
type request struct {
	work   func() error
	always bool // also when the device has been lost
	done   chan error
}

func newRequest(work func() error) *request { return &request{work: work, done: make(chan error, 1)} }

// startThread makes the context of a device. Where that is integrated, the thread polls
// when it waits: there the driver may choose to sleep, and to wake up takes long beside a
// small network.
func startThread(d cu.Device, integrated bool) (*thread, error) {
	t := &thread{requests: make(chan *request), modules: make(map[string]cu.Module), waits: make(map[string]bool), shared: make(map[string]int)}
	started := make(chan error)
	go func() {
		// Never unlocked: if this goroutine ends, so does its thread.
		runtime.LockOSThread()
		if integrated {
			// Refused where somebody else has made the context: that is as well.
			_ = d.SetPrimaryCtxFlags(cu.SchedSpin)
		}
		context, err := d.RetainPrimaryCtx()
		if err = shim.Check("cuDevicePrimaryCtxRetain", err); err == nil {
			err = shim.Check("cuCtxSetCurrent", cu.SetCurrentContext(context))
		}
		started <- err
		if err != nil {
			return
		}
		for r := range t.requests {
			r.done <- t.run(r)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return t, nil
}

func (t *thread) run(r *request) error {
	if err := t.gone(); err != nil && !r.always {
		return err
	}
	err := r.work()
	if err != nil { // apart, since what follows allocates
		t.note(err)
	}
	return err
}

// note looks whether the device has been lost.
func (t *thread) note(err error) {
	var code *shim.Error
	if errors.As(err, &code) && code.Lost() {
		t.lost.CompareAndSwap(nil, &err)
	}
}

// gone returns an error if the device has been lost.
func (t *thread) gone() error {
	if err := t.lost.Load(); err != nil {
		return fmt.Errorf("the device has been lost, and the process must be started again: %w", *err)
	}
	return nil
}

// do hands a request over and waits for it.
func (t *thread) do(r *request) error {
	t.requests <- r
	return <-r.done
}

// allowShared lets a kernel have so much dynamic shared memory. Others may need more of it than
// who asks last: steps of the same network, and other executables.
func (t *thread) allowShared(f cu.Function, kernel string, bytes int) error {
	if bytes <= t.shared[kernel] {
		return nil
	}
	err := shim.AllowShared(f, bytes)
	if err == nil {
		t.shared[kernel] = bytes
	}
	return err
}

// function returns a kernel, compiling it if it is asked for the first time.
func (t *thread) function(file, kernel string, arch int) (cu.Function, error) {
	module, ok := t.modules[kernel]
	if !ok {
		text, err := kernels.ReadPTX(file, arch)
		if err == nil {
			text, err = kernels.KernelPTX(text, kernel)
		}
		if err != nil {
			return cu.Function{}, fmt.Errorf("%s.cu for sm_%d: %w", file, arch, err)
		}
		if module, err = shim.LoadModule(text); err != nil {
			var code *shim.Error
			if errors.As(err, &code) && (code.Code == shim.UnsupportedPTX || code.Code == shim.InvalidPTX) {
				err = fmt.Errorf("the driver refuses the kernels; if it is older than they need, update it: %w", err)
			}
			return cu.Function{}, fmt.Errorf("kernel %s of %s.cu for sm_%d: %w", kernel, file, arch, err)
		}
		t.modules[kernel] = module
		t.waits[kernel] = bytes.Contains(text, []byte("\tgriddepcontrol.wait;"))
	}
	f, err := module.Function(kernel)
	return f, shim.Check("cuModuleGetFunction "+kernel, err)
}
