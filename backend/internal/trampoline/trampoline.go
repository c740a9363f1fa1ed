// Package trampoline has library.h and trampoline.h, by which the shims of CUDA and OpenCL
// open and call their drivers. They import it, so that they are compiled anew when these
// change and go mod vendor copies them.
package trampoline

import (
	"embed"
	"fmt"
	"runtime"
)

//go:embed library.h trampoline.h
var _ embed.FS

// Missing says why this build has no backend, which a tag builds in.
func Missing(name, tag string) string {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64", "linux/arm64", "windows/amd64":
		return fmt.Sprintf("this program was built without %s; to add it, build with -tags %s and the settings that 'bcnn env' prints", name, tag)
	}
	return fmt.Sprintf("there is no %s on %s/%s, only on linux/amd64, linux/arm64 and windows/amd64", name, runtime.GOOS, runtime.GOARCH)
}
