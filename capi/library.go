//go:build linux && cgo && library

package main

// In the library, bitcnn.c starts the Go runtime: see scripts/lib.

// #cgo CFLAGS: -DBITCNN_DEFERRED
import "C"
