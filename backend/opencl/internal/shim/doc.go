//go:build !(opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64)))

// Package shim is empty in builds without OpenCL.
package shim
