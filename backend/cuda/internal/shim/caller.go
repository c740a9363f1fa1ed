//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #include "shim.h"
//
// struct stream { CUresult code; int foreign, recorded; };
//
// // Drivers before CUDA 10 lack both calls: there the launches say what is wrong.
// static struct stream look_at(CUstream stream)
// {
// 	struct stream s = {0, 0, 0};
// 	CUcontext mine = 0, its = 0;
// 	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
// 	s.code = cuCtxGetCurrent(&mine);
// 	if (!s.code) {
// 		s.code = cuStreamGetCtx(stream, &its);
// 		s.foreign = !s.code && its != mine;
// 	}
// 	if (!s.code && !s.foreign) {
// 		s.code = cuStreamIsCapturing(stream, &status);
// 		s.recorded = status != CU_STREAM_CAPTURE_STATUS_NONE;
// 	}
// 	if (s.code == CUDA_ERROR_NOT_FOUND)
// 		s.code = 0;
// 	return s;
// }
//
// struct pointer { CUresult code; unsigned kind; int device; };
//
// static struct pointer look_up(CUdeviceptr p)
// {
// 	struct pointer found = {0, 0, -1};
// 	found.code = cuPointerGetAttribute(&found.kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
// 	if (!found.code)
// 		found.code = cuPointerGetAttribute(&found.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
// 	return found;
// }
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// What the driver takes in place of a stream: the one of a context that waits for all
// others, and the one that each thread has of its own.
const legacyStream, perThreadStream = 1, 2

// CallersStream makes a stream of a handle that others made, in this process and for the
// current context. The driver may crash on what never was one.
func CallersStream(handle uintptr) (s cu.Stream, err error) {
	switch {
	case handle == legacyStream:
		handle = 0
	case handle == perThreadStream:
		return s, fmt.Errorf("the default stream of a thread is another one in each thread; want a stream that was made, or 0")
	case handle != 0 && (handle < 4096 || handle%unsafe.Alignof(handle) != 0):
		return s, fmt.Errorf("%#x is not a stream", handle)
	}
	s = *(*cu.Stream)(unsafe.Pointer(&handle))
	found := C.look_at(streamOf(s))
	switch err := check("cuStreamGetCtx", found.code); {
	case err != nil:
		return s, fmt.Errorf("%#x is not a stream of this device: %w", handle, err)
	case found.foreign != 0:
		return s, fmt.Errorf("the stream %#x belongs to another context than the primary one of the device", handle)
	case found.recorded != 0:
		return s, fmt.Errorf("the stream %#x is being recorded in a graph, which cannot wait for other runs", handle)
	}
	return s, nil
}

// OnDevice returns an error unless there is memory of the device, or of all, at an
// address.
func OnDevice(address uint64, d cu.Device) error {
	found := C.look_up(C.CUdeviceptr(address))
	switch {
	case found.code == C.CUDA_ERROR_INVALID_VALUE, found.code == 0 && found.kind == C.CU_MEMORYTYPE_HOST:
		return fmt.Errorf("%#x is not in memory of a device", address)
	case found.code != 0:
		return check("cuPointerGetAttribute", found.code)
	case int(found.device) != int(d):
		return fmt.Errorf("%#x is in memory of device %d, and the model on device %d", address, int(found.device), int(d))
	}
	return nil
}
