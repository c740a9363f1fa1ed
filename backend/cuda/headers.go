package cuda

import (
	"io/fs"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
)

// Headers holds what a C compiler must find to build this package with the tag cuda,
// and gorgonia.org/cu below it, where no CUDA toolkit is installed: a folder include.
// 'bcnn env' unpacks it.
func Headers() fs.FS { return shim.Files }
