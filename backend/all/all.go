// Package all brings in every backend of this build. Import it for its side
// effects:
//
//	import _ "github.com/bitcnn/bitcnn/backend/all"
package all

import (
	"io/fs"

	_ "github.com/bitcnn/bitcnn/backend/cpu" // registers itself
	"github.com/bitcnn/bitcnn/backend/cuda"
	"github.com/bitcnn/bitcnn/backend/opencl"
)

// Headers holds the C headers with which the backends of the tags cuda and opencl
// are built, in folders include. 'bcnn env' unpacks them.
func Headers() []fs.FS { return []fs.FS{cuda.Headers(), opencl.Headers()} }
