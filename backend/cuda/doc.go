// Package cuda executes plans on NVIDIA GPUs. Importing it registers the backend
// "cuda".
//
// It is part of a build with the tag cuda, with cgo, on Linux on amd64 or arm64
// and on Windows on amd64; other builds register a backend that says so. Neither a
// CUDA toolkit nor a driver is needed to build; the driver is looked for when the
// devices are first asked for.
//
// One OS thread per device makes all calls of the driver, through package-level
// functions of gorgonia.org/cu and internal/shim. Compile lays weights out,
// uploads them and reserves all memory; for every step it takes the fastest of the
// kernels that can execute it (tune.go). Run copies the input to page-locked
// memory, launches one CUDA graph, which holds the copies and all kernels of the
// plan for that batch size, and copies the output.
package cuda
