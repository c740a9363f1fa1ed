//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

// Package shim lets a program use go-opencl without linking against libOpenCL,
// which is opened when it is first needed, and adds the calls that go-opencl
// lacks or that allocate there.
package shim

// #cgo CFLAGS: -I${SRCDIR}/include
// #cgo linux LDFLAGS: -ldl
// #cgo windows LDFLAGS: -L${SRCDIR}/lib
// #include "shim.h"
import "C"

import (
	"errors"
	"sync"

	_ "github.com/bitcnn/bitcnn/backend/internal/trampoline" // trampoline.h
)

// Load opens libOpenCL.so.1, on Windows OpenCL.dll of the system's folder. No other function of this package or of go-opencl
// may be called unless it has returned nil.
var Load = sync.OnceValue(func() error {
	if why := C.bitcnn_cl_load(); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
})

// Lose makes all work on queues fail as if the devices had gone, until the
// function that it returns is called. It is for tests; nothing else may be
// running on a device.
func Lose() (find func()) {
	C.bitcnn_cl_lose(1)
	return func() { C.bitcnn_cl_lose(0) }
}
