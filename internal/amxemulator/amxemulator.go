//go:build amd64 && linux && cgo && amxemulated

// Package amxemulator executes the instructions on tiles where the processor does not, or has no
// permission to, and those of AVX-512 that the kernels of package amx have besides: so these are tested on
// every processor. Importing it is all that is needed; the process must not ask for the permission.
package amxemulator

// #cgo CFLAGS: -O2 -Wall -Wextra
// #cgo LDFLAGS: -lm
// int install(void);
// long executed(void);
// int released(void);
import "C"

import "fmt"

func init() {
	if code := C.install(); code != 0 {
		panic(fmt.Sprintf("amxemulator: sigaction: errno %d", code))
	}
}

// Executed returns how many instructions were executed.
func Executed() int { return int(C.executed()) }

// Released reports whether tiles are as in a thread that has never used them.
func Released() bool { return C.released() != 0 }
