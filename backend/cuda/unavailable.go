//go:build !(cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64)))

package cuda

import (
	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/trampoline"
)

func init() { backend.Register(driver.Unavailable("cuda", trampoline.Missing("CUDA", "cuda"))) }
