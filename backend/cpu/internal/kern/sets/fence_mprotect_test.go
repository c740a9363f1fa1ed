//go:build linux || darwin

package sets

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fences counts the buffers of fenced.
var fences atomic.Int64

// fenced returns n bytes behind which memory cannot be read, or, every second time, in front
// of which it cannot.
func fenced(t *testing.T, n int) []uint8 {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, page+size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	require.NoError(t, syscall.Mprotect(all[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(all[page+size:], syscall.PROT_NONE))
	if fences.Add(1)%2 == 0 {
		return all[page : page+n : page+n]
	}
	return all[page+size-n : page+size : page+size]
}
