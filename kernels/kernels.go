// Package kernels embeds the sources of the GPU kernels.
package kernels

import "embed"

// CL holds the OpenCL C sources. common.cl goes before each of the others.
//
//go:embed cl/*.cl
var CL embed.FS

// PTX holds the CUDA kernels, compiled from cu/*.cu: NAME.smXX.ptx for devices of
// compute capability X.X and later.
//
//go:embed cu/ptx/*.ptx
var PTX embed.FS
