//go:build !(opencl && cgo && linux && (amd64 || arm64))

package opencl

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
)

func init() { backend.Register(driver.Unavailable("opencl", reason())) }

func reason() string {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return "this build has no OpenCL on " + runtime.GOOS + "/" + runtime.GOARCH + ", only on linux/amd64 and linux/arm64"
	}
	return "this build is without OpenCL; rebuild it with make, or with the tag opencl and the settings that 'bcnn env' prints"
}
