//go:build cuda && cgo && linux && (amd64 || arm64)

package shim

// #cgo CFLAGS: -I${SRCDIR}/include
// #cgo LDFLAGS: -Wl,--as-needed -L${SRCDIR}/lib -ldl
// #include "shim.h"
import "C"

import (
	"errors"
	"sync"

	_ "github.com/bitcnn/bitcnn/backend/internal/trampoline" // trampoline.h
)

// Load opens libcuda.so.1 and initialises the driver. No other function of this
// package or of cu may be called unless it has returned nil.
var Load = sync.OnceValue(func() error {
	if why := C.bitcnn_cuda_load(); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
})
