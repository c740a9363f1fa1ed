package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInjected sees that the faults of injected.tsv can be put into the code as it is.
func TestInjected(t *testing.T) {
	data, err := os.ReadFile("injected.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	require.Len(t, lines, 20)
	names := map[string]bool{}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		require.Len(t, f, 6, line)
		require.False(t, names[f[0]], f[0])
		names[f[0]] = true
		code, err := os.ReadFile(filepath.Join("..", "..", f[3]))
		require.NoError(t, err, f[0])
		require.Equal(t, 1, strings.Count(string(code), f[4]), "%s: %s", f[0], f[4])
		require.NotEqual(t, f[4], f[5])
	}
}
