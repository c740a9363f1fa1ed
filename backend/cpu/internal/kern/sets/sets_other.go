//go:build !(amd64 || arm || arm64) || purego

package sets

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// native returns the Sets in assembly, of which there are none.
func native() []kern.Set { return nil }

func missing() map[string]string { return nil }
