//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
)

// caller is a run on a stream of the caller's.
type caller struct {
	stream  uintptr
	out, in []uintptr
	// done takes place when the last of these runs has been done; running says that
	// nobody has waited for it. The tensors of the plan are one set, so runs on several
	// streams take place one after the other.
	done          cu.Event
	running       bool
	enqueue, wait *request
}

// Enqueue copies the inputs on the device: the caller's need not lie as kernels want
// them, whose loads are of whole words. Small outputs may take the way through
// page-locked memory, where kernels store them for Run: see mapEnds.
func (e *executable) Enqueue(stream uintptr, images int, out, in []uintptr) error {
	if err := e.thread.gone(); err != nil {
		return err
	}
	e.images = images
	e.caller.stream, e.caller.out, e.caller.in = stream, out, in
	defer func() { e.caller.out, e.caller.in = nil, nil }()
	return e.thread.do(e.caller.enqueue)
}

// enqueueForCaller is Enqueue; it runs on the device's thread.
func (e *executable) enqueueForCaller() error {
	stream, err := shim.CallersStream(e.caller.stream)
	if err != nil {
		return err
	}
	if err := e.checkMemory("input", e.inputs, e.caller.in); err != nil {
		return err
	}
	if err := e.checkMemory("output", e.outputs, e.caller.out); err != nil {
		return err
	}
	graph, err := e.graphOf(e.deviceGraphs, e.images, func() error { return e.enqueueSteps(e.stream, false) })
	if err != nil {
		return err
	}
	if e.caller.running {
		if err := shim.Check("cuStreamWaitEvent", stream.Wait(e.caller.done, 0)); err != nil {
			return err
		}
	}
	enqueue := func() error {
		for i, to := range e.inputs {
			if err := e.copyOn(stream, e.memory.tensors[to.tensor], cu.DevicePtr(e.caller.in[i]), to); err != nil {
				return err
			}
		}
		if e.direct {
			err = e.enqueueSteps(stream, false)
		} else {
			err = graph.Launch(stream)
		}
		if err != nil {
			return err
		}
		for i, from := range e.outputs {
			if err := e.copyOn(stream, cu.DevicePtr(e.caller.out[i]), e.memory.tensors[from.tensor], from); err != nil {
				return err
			}
		}
		return nil
	}
	// Also what has been enqueued before an error must be done before others go on.
	err = enqueue()
	e.caller.running = true
	return errors.Join(err, shim.Check("cuEventRecord", e.caller.done.Record(stream)))
}

func (e *executable) copyOn(stream cu.Stream, to, from cu.DevicePtr, of end) error {
	return shim.Check("cuMemcpyAsync", cu.MemcpyAsync(to, from, int64(e.bytes(of.tensor, e.images)), stream))
}

// checkMemory makes sure that the first and the last byte of tensors are in memory of the
// device: in between may be several allocations.
func (e *executable) checkMemory(what string, list []end, addresses []uintptr) error {
	for i, of := range list {
		first := uint64(addresses[i])
		for _, address := range []uint64{first, first + uint64(e.bytes(of.tensor, e.images)) - 1} {
			if err := shim.OnDevice(address, e.device.number); err != nil {
				return fmt.Errorf("%w: %s %d: %w", backend.ErrShape, what, i, err)
			}
		}
	}
	return nil
}

// finishCaller waits until what Enqueue has enqueued has been done, which uses the memory
// of the plan.
func (e *executable) finishCaller() error {
	if !e.caller.running {
		return nil
	}
	return e.thread.do(e.caller.wait)
}

// waitForCaller is finishCaller; it runs on the device's thread.
func (e *executable) waitForCaller() error {
	if !e.caller.running {
		return nil
	}
	err := shim.Check("cuEventSynchronize", e.caller.done.Synchronize())
	if err == nil {
		e.caller.running = false
	}
	return err
}
