//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cuda

import (
	"runtime"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
)

func init() { backend.Register(driver.Unavailable("cuda", reason())) }

func reason() string {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return "this build has no CUDA on " + runtime.GOOS + "/" + runtime.GOARCH + ", only on linux/amd64 and linux/arm64"
	}
	return "this build is without CUDA; rebuild it with make, or with the tag cuda and the settings that 'bcnn env' prints"
}
