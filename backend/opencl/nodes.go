package opencl

import "io/fs"

// gpuNodes are the files through which the drivers of GPUs on Linux reach them.
var gpuNodes = []string{
	"dev/dri/renderD*", // Mesa, Intel, AMD, and any other driver of the kernel's DRM
	"dev/kfd",          // AMD
	"dev/nvidia*",      // NVIDIA
	"dev/nvhost-gpu",   // NVIDIA Tegra
	"dev/nvmap",        // NVIDIA Tegra
	"dev/mali*",        // Arm
	"dev/kgsl-*",       // Qualcomm
	"dev/pvr*",         // Imagination
	"dev/galcore",      // VeriSilicon
	"dev/dxg",          // Windows, from its Linux subsystem
}

// hasGPUNode reports whether a file system has the node of any GPU. Starting
// drivers to find none takes a tenth of a second and more where one of them
// brings a compiler along, as PoCL does.
func hasGPUNode(root fs.FS) bool {
	for _, pattern := range gpuNodes {
		if nodes, err := fs.Glob(root, pattern); err != nil || len(nodes) > 0 {
			return true
		}
	}
	return false
}
