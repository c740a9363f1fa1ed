//go:build arm && !purego

package sets

import (
	"os"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neonv7"
)

// native returns the Sets in assembly that this processor can run.
func native() []kern.Set {
	if capability(os.DirFS("/"), 16, 12) { // AT_HWCAP, HWCAP_NEON
		return []kern.Set{neonv7.Set()}
	}
	return nil
}

func missing() map[string]string { return nil }
