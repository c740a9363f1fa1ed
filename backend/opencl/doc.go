// Package opencl executes plans on OpenCL 1.2 devices. Importing it registers
// the backend "opencl".
//
// It is part of a build with the tag opencl, with cgo, on Linux on amd64 or
// arm64 and on Windows on amd64; other builds register a backend that says so. The
// driver is looked for when the devices are first asked for.
//
// # Faults of go-opencl
//
// This is how the package avoids what is wrong in the module that it is built
// on, all of it in objects.go and internal/shim:
//
//   - Objects are released by finalizers while kernels still use them, since
//     setting an argument keeps no reference: a bag (objects.go) holds every
//     object until it is released in order.
//   - Every enqueued command allocates an event with a finalizer, and copies its
//     sizes: internal/shim enqueues by itself, without allocating and without
//     events, except for timing.
//   - Getters panic where the driver reports an error or a long text: describing
//     a device recovers, and such a device is left out with the reason.
//   - Its errors do not carry the code of OpenCL in all cases: they are passed on
//     with the name of what failed.
package opencl
