package opencl

import (
	"io/fs"

	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// Headers holds what a C compiler must find to build this package with the tag
// opencl, and go-opencl below it, where no headers of OpenCL are installed: a folder
// include. 'bcnn env' unpacks it.
func Headers() fs.FS { return shim.Files }
