//go:build !(opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64)))

package opencl

import (
	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/trampoline"
)

func init() { backend.Register(driver.Unavailable("opencl", trampoline.Missing("OpenCL", "opencl"))) }
