//go:build linux || darwin

package sets

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fenced returns n bytes behind which memory cannot be read.
func fenced(t *testing.T, n int) []uint8 {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	require.NoError(t, syscall.Mprotect(all[size:], syscall.PROT_NONE))
	return all[size-n : size : size]
}
