//go:build cgo && (linux || (windows && amd64))

// The command capi is the C library: scripts/lib builds libbitcnn.so and libbitcnn.a of
// it, or bitcnn.dll. include/bitcnn.h is what programs see; its functions are in bitcnn.c, which calls
// the functions that are exported here.
//
// Nothing of the caller's memory is kept when a function returns, and no pointer to Go's
// memory is given out: models and sessions are numbers, which a table knows.
package main

/*
#cgo CFLAGS: -std=gnu11 -Wall -Wextra -Werror -I${SRCDIR}/include
#include "bitcnn.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn"
)

func main() {} // a library has none, but Go wants it

// bitcnnGoVersion returns text from malloc.
//
//export bitcnnGoVersion
func bitcnnGoVersion() *C.char {
	return C.CString(bitcnn.Version())
}

// bitcnnGoReady returns: a call from C waits until the runtime has started.
//
//export bitcnnGoReady
func bitcnnGoReady() {}

// do runs a function, turns its error into a status with a text, and a panic, which is
// a mistake in this module, into one as well.
func do(message **C.char, f func() error) C.int { return finish(message, protect(f)) }

func protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r}
		}
	}()
	return f()
}

func finish(message **C.char, err error) C.int {
	if err == nil {
		return C.BITCNN_OK
	}
	*message = C.CString(err.Error())
	return statusOf(err)
}

// put writes text to caller-owned memory, cut to size and with a 0 at the end.
func put(to *C.char, size C.size_t, length *C.size_t, text string) error {
	if length != nil {
		*length = C.size_t(len(text))
	}
	if size == 0 {
		return nil
	}
	if err := fits(unsafe.Pointer(to), uint64(size)); err != nil {
		return err
	}
	fill(unsafe.Slice((*byte)(unsafe.Pointer(to)), min(int(size), len(text)+1)), text)
	return nil
}

// fill writes text, cut where a character begins if it does not fit, and zeros.
func fill(to []byte, text string) {
	n := min(len(text), len(to)-1)
	for n > 0 && n < len(text) && text[n]&0xc0 == 0x80 {
		n--
	}
	clear(to[copy(to, text[:n]):])
}

// putArray writes text to a field of a structure.
func putArray(to []C.char, text string) {
	fill(unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), len(to)), text)
}

// fits refuses memory that goes beyond what can be addressed.
func fits(data unsafe.Pointer, bytes uint64) error {
	const most = 1 << 47
	if bytes > most || uint64(uintptr(data)) > ^uint64(0)-bytes {
		return invalid("memory of %d bytes at %#x exceeds the address space", bytes, uintptr(data))
	}
	return nil
}

func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// at returns the element of an index of the caller's.
func at[T any](list []T, index C.size_t, what string) (value T, err error) {
	if uint64(index) >= uint64(len(list)) {
		return value, &notFoundError{fmt.Sprintf("%s %d: there are %d", what, uint64(index), len(list))}
	}
	return list[index], nil
}
