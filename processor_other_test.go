//go:build !unix

package bitcnn

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
