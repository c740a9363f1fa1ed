// Package kernels embeds the sources of the GPU kernels.
package kernels

import (
	"embed"
	"fmt"
	"path"
)

// CL holds the OpenCL C sources. common.cl goes before each of the others.
//
//go:embed cl/*.cl
var CL embed.FS

// PTX holds the CUDA kernels, compiled from cu/*.cu: NAME.smXX.ptx for devices of
// compute capability X.X and later, where it differs from that of an older one.
//
//go:embed cu/ptx/*.ptx
var PTX embed.FS

// ReadPTX returns the kernels compiled from cu/NAME.cu for devices of compute
// capability arch (90 for 9.0): of the newest file that is not for newer ones.
func ReadPTX(name string, arch int) ([]byte, error) {
	newest, file := -1, ""
	entries, err := PTX.ReadDir("cu/ptx")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		of := 0
		if _, err := fmt.Sscanf(e.Name(), name+".sm%d.ptx", &of); err == nil && of <= arch && of > newest {
			newest, file = of, e.Name()
		}
	}
	if file == "" {
		return nil, fmt.Errorf("there is no PTX of %s.cu for sm_%d", name, arch)
	}
	return PTX.ReadFile(path.Join("cu/ptx", file))
}
