//go:build !(linux || darwin)

package sets

import "testing"

// fenced returns n bytes.
func fenced(_ *testing.T, n int) []uint8 { return make([]uint8, n) }
