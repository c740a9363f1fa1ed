// Package all brings in every backend of this build. Import it for its side
// effects:
//
//	import _ "github.com/bitcnn/bitcnn/backend/all"
package all

import (
	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/cpu"    // registers itself
	_ "github.com/bitcnn/bitcnn/backend/opencl" // registers itself, or says why not
)

func init() {
	// Listed all the same, so that a user sees what could be there.
	backend.Register(backend.Unavailable("cuda", "not part of this build"))
}
