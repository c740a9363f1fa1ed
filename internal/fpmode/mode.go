// Package fpmode has computations take place in the default mode of the floating-point
// unit: to the nearest number, subnormal numbers as they are, exceptions masked.
//
// The mode is that of a thread, and Go never sets it. Threads of the Go runtime have the
// default one unless the program was started in another, as C libraries that were built
// with -ffast-math do it, or C code has set it in a thread.
//
// What computes between Enter and Leave belongs in a function of its own, or Leave in a
// defer: the compiler does not know of the mode, and may compute a product behind Leave.
package fpmode

import "runtime"

// Mode is what Enter found and Leave restores.
type Mode struct {
	found   word
	changed bool
}

// Enter sets the default mode, if the thread has another one, and keeps the goroutine in
// the thread until Leave. It takes some nanoseconds where it has nothing to do.
func Enter() Mode {
	if get()&control == usual {
		return Mode{}
	}
	runtime.LockOSThread()
	m := Mode{get(), true} // the thread may be another one
	set(usual)
	return m
}

// Leave restores what Enter found, with the flags of exceptions.
func (m Mode) Leave() {
	if m.changed {
		set(m.found)
		runtime.UnlockOSThread()
	}
}
