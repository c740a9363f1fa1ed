//go:build cuda && cgo && (amd64 || arm64)

package cuda

import (
	"fmt"
	"os"
	"syscall"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// findDriver begins the program anew where testenv.EnvCUDADriver names a folder in which the linker
// has not looked.
func findDriver() {
	const libraries = "LD_LIBRARY_PATH"
	dir, old := os.Getenv(testenv.EnvCUDADriver), os.Getenv(libraries)
	if dir == "" {
		return
	}
	if old != "" {
		dir += ":" + old
	}
	os.Unsetenv(testenv.EnvCUDADriver) // what tests start may do without
	err := os.Setenv(libraries, dir)
	if err == nil {
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "the driver that", testenv.EnvCUDADriver, "names:", err)
	os.Exit(1)
}
