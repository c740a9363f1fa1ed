//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// bag holds objects of the driver until they are released. It is used on the device's
// thread.
type bag struct {
	thread *thread
	gpu.Objects
}

// release frees everything, and returns the first error. What belonged to a lost device
// went with it: the driver is not asked then.
func (b *bag) release() error {
	err := b.Release()
	if err != nil {
		b.thread.note(err)
	}
	return err
}

// driverCall makes the release of an object that is one call.
func (b *bag) driverCall(call string, f func() error) func() error {
	return func() error {
		if b.thread.lost.Load() != nil {
			return nil
		}
		return shim.Check(call, f())
	}
}

// memory makes uninitialised memory on the device, in whole words: kernels read bytes so.
func (b *bag) memory(bytes int) (cu.DevicePtr, error) {
	p, err := cu.MemAlloc(int64(max((bytes+3)&^3, 4)))
	if err != nil {
		return 0, fmt.Errorf("%d bytes on the device: %w", bytes, shim.Check("cuMemAlloc", err))
	}
	b.Add(b.driverCall("cuMemFree", func() error { return cu.MemFree(p) }))
	return p, nil
}

// upload makes memory with the given contents, which are there when it returns. Kernels
// do not read what is empty.
func upload[T int32 | uint32 | float32](b *bag, data []T) (cu.DevicePtr, error) {
	if len(data) == 0 {
		return 0, nil
	}
	bytes := len(data) * int(unsafe.Sizeof(data[0]))
	p, err := b.memory(bytes)
	if err != nil {
		return 0, err
	}
	if err := shim.Check("cuMemcpyHtoD", cu.MemcpyHtoD(p, unsafe.Pointer(&data[0]), int64(bytes))); err != nil {
		return p, err
	}
	return p, arrive()
}

// arrive waits for what was uploaded: the driver may return while it is under way, on a
// stream that those of ours do not wait for.
func arrive() error { return shim.Check("cuCtxSynchronize", cu.Synchronize()) }

// clearMemory fills memory with zeros, which are there when it returns.
func clearMemory(p cu.DevicePtr, bytes int) error {
	if err := shim.Check("cuMemsetD8", cu.MemsetD8(p, 0, int64((bytes+3)&^3))); err != nil {
		return err
	}
	return arrive()
}

// pinned makes page-locked memory of the host, in whole words as well.
func (b *bag) pinned(bytes int) (unsafe.Pointer, error) {
	p, err := shim.HostAlloc(max((bytes+3)&^3, 4))
	if err != nil {
		return nil, fmt.Errorf("%d bytes of page-locked memory: %w", bytes, err)
	}
	b.Add(b.driverCall("cuMemFreeHost", func() error { return cu.MemFreeHost(p) }))
	return p, nil
}

// pageable makes plain memory of the host.
func (b *bag) pageable(bytes int) (unsafe.Pointer, error) {
	p := shim.Malloc(max((bytes+3)&^3, 4))
	if p == nil {
		return nil, fmt.Errorf("%d bytes of memory: %w", bytes, &shim.Error{Call: "malloc", Code: shim.OutOfMemory})
	}
	b.Add(func() error {
		shim.Free(p)
		return nil
	})
	return p, nil
}

func (b *bag) stream() (cu.Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return s, shim.Check("cuStreamCreate", err)
	}
	held := s
	b.Add(b.driverCall("cuStreamDestroy", held.Destroy))
	return s, nil
}

func (b *bag) event(flags cu.EventFlags) (cu.Event, error) {
	e, err := cu.MakeEvent(flags)
	if err != nil {
		return e, shim.Check("cuEventCreate", err)
	}
	held := e
	b.Add(b.driverCall("cuEventDestroy", func() error { return cu.DestroyEvent(&held) }))
	return e, nil
}

func (b *bag) launch(l shim.Launch) {
	b.Add(func() error {
		l.Free()
		return nil
	})
}
