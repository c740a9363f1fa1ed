// Package all brings in every backend of this build. Import it for its side
// effects:
//
//	import _ "github.com/bitcnn/bitcnn/backend/all"
package all

import (
	_ "github.com/bitcnn/bitcnn/backend/cpu"    // registers itself
	_ "github.com/bitcnn/bitcnn/backend/cuda"   // registers itself, or says why not
	_ "github.com/bitcnn/bitcnn/backend/opencl" // registers itself, or says why not
)
