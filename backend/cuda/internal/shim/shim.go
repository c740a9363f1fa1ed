//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #cgo CFLAGS: -I${SRCDIR}/include
// #cgo LDFLAGS: -L${SRCDIR}/lib
// #cgo linux LDFLAGS: -Wl,--as-needed -ldl
// #include "shim.h"
import "C"

import (
	"errors"
	"sync"

	_ "github.com/bitcnn/bitcnn/backend/internal/trampoline" // trampoline.h
)

// Load opens libcuda.so.1, on Windows nvcuda.dll of the system's folder, and initialises the driver. No other function of this
// package or of cu may be called unless it has returned nil.
var Load = sync.OnceValue(func() error {
	if why := C.bitcnn_cuda_load(); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
})
