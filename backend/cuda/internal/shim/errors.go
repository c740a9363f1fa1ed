//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"reflect"
)

// Error is an error code of the driver.
type Error struct {
	Call string
	Code int
}

func (e *Error) Error() string {
	var name *C.char
	text := fmt.Sprintf("%s: error %d", e.Call, e.Code)
	if C.cuGetErrorName(C.CUresult(e.Code), &name) == C.CUDA_SUCCESS && name != nil {
		text = e.Call + ": " + C.GoString(name)
	}
	if e.Code == launchTimeout {
		text += ": a kernel ran longer than the system lets it on a GPU with a display (two seconds on Windows: TDR); a smaller batch takes less"
	}
	return text
}

// Codes that callers tell apart.
const (
	OutOfMemory    = 2
	UnsupportedPTX = 222
	InvalidPTX     = 218
	launchTimeout  = 702
)

// lost are the codes after which the context, or the device, is of no more use.
var lost = map[int]bool{
	4: true, 46: true, 100: true, 101: true, 201: true, 214: true, 220: true, 226: true, 227: true,
	700: true, 702: true, 709: true, 710: true, 714: true, 715: true, 716: true, 717: true, 718: true, 719: true,
	810: true, // the client of MPS was terminated
	999: true,
}

// Lost reports whether the device cannot be used any more after the error.
func (e *Error) Lost() bool { return lost[e.Code] }

// Refused reports whether the driver has refused what it was asked for, but may do other
// things.
func Refused(err error) bool {
	if err == nil { // before anything is allocated
		return false
	}
	var code *Error
	return errors.As(err, &code) && !code.Lost()
}

// Check wraps an error of cu, whose errors are the codes, and says what call it
// came from.
func Check(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return &Error{Call: call, Code: int(v.Int())}
	}
	return fmt.Errorf("%s: %w", call, err)
}

func check(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{Call: call, Code: int(code)}
}
