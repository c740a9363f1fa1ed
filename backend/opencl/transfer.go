//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
)

// end is an input or an output. Where the device and the host have the same memory, the
// tensor itself is mapped to be written or read; elsewhere bytes go through pinned memory
// that the device copies from and to.
type end struct {
	tensor  int            // of the plan
	staging unsafe.Pointer // pinned memory; nil where the tensor is mapped
	// unmapped says that there is neither, since the driver has refused it.
	unmapped bool
	result   *bcnn.Tensor // an output, if the host makes it
}

// send enqueues the transfer of n images of an input.
func (e *executable) send(to end, t *bcnn.Tensor, n int) error {
	buffer, from := shim.BufferOf(e.memory.tensors[to.tensor]), contents(t, e.bytes(to.tensor, n))
	if to.staging != nil {
		copy(unsafe.Slice((*byte)(to.staging), len(from)), from)
		return e.queue.Write(buffer, len(from), to.staging, false)
	}
	if to.unmapped {
		return e.queue.Write(buffer, len(from), data(t), true)
	}
	// The kernels of the last Run are done, so that this waits for nothing.
	at, err := e.queue.Map(buffer, len(from), true)
	if refused(err) {
		e.withoutMaps(err)
		return e.queue.Write(buffer, len(from), data(t), true)
	}
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*byte)(at), len(from)), from)
	return e.queue.Unmap(buffer, at)
}

// receive waits for all that is enqueued and transfers n images of an output.
func (e *executable) receive(t *bcnn.Tensor, from end, n int) error {
	buffer, to := shim.BufferOf(e.memory.tensors[from.tensor]), contents(t, e.bytes(from.tensor, n))
	if from.staging != nil {
		if err := e.queue.Read(buffer, len(to), from.staging, true); err != nil {
			return err
		}
		copy(to, unsafe.Slice((*byte)(from.staging), len(to)))
		return nil
	}
	if from.unmapped {
		return e.queue.Read(buffer, len(to), data(t), true)
	}
	at, err := e.queue.Map(buffer, len(to), false)
	if refused(err) {
		e.withoutMaps(err)
		return e.queue.Read(buffer, len(to), data(t), true)
	}
	if err != nil {
		return err
	}
	copy(to, unsafe.Slice((*byte)(at), len(to)))
	return e.queue.Unmap(buffer, at)
}

// withoutMaps makes all inputs and outputs be copied.
func (e *executable) withoutMaps(err error) {
	e.device.refuse("mapped memory, which is copied in its place", err)
	for _, list := range [][]end{e.inputs, e.outputs} {
		for i := range list {
			list[i].unmapped = list[i].staging == nil
		}
	}
}

// contents are the first bytes of the values of a tensor.
func contents(t *bcnn.Tensor, bytes int) []byte {
	return unsafe.Slice((*byte)(data(t)), bytes)
}
