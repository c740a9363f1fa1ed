//go:build unix

package tuning

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no cache is passed over, without waiting for it and without reading it
// all.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, endless, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "endless"), filepath.Join(dir, "large")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("/dev/zero", endless))
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, maxBytes+1))
	for _, path := range []string{pipe, endless, large, dir} {
		c := load(path)
		require.Empty(t, c.Steps)
		c.Put("a", Entry{Name: "x"})
		got, ok := c.Get("a")
		require.True(t, ok)
		require.Equal(t, "x", got.Name)
	}
	// A pipe and a folder stay what they are; a link and a file are replaced.
	for path, kept := range map[string]bool{pipe: false, dir: false, endless: true, large: true} {
		_, ok := load(path).Get("a")
		require.Equal(t, kept, ok, path)
	}
}
