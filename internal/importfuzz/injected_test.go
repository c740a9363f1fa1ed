package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestInjected sees that the faults of injected.tsv can be put into the code as it is, and
// that it compiles with them. All are put in at once: one build is enough, and what compiles
// with all of them has no variable that one of them leaves unused.
func TestInjected(t *testing.T) {
	data, err := os.ReadFile("injected.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	require.NotEmpty(t, lines[0])
	root := testenv.Root(t)
	names, changed := map[string]bool{}, map[string]string{}
	var packages []string
	for _, line := range lines {
		f := strings.Split(line, "\t")
		require.Len(t, f, 6, line)
		name, half, file, old, with := f[0], f[1], f[3], f[4], f[5]
		require.False(t, names[name], name)
		names[name] = true
		require.Contains(t, []string{"onnx", "lce"}, half, name)
		path := filepath.Join(root, filepath.FromSlash(file))
		code, err := os.ReadFile(path)
		require.NoError(t, err, "fault %s", name)
		require.Equal(t, 1, strings.Count(string(code), old), "fault %s: how often %q occurs in %s", name, old, file)
		require.NotEqual(t, old, with, "fault %s", name)
		if changed[path] == "" {
			changed[path] = string(code)
		}
		require.Equal(t, 1, strings.Count(changed[path], old), "fault %s: another one changes the same text of %s", name, file)
		changed[path] = strings.Replace(changed[path], old, with, 1)
		packages = append(packages, filepath.Dir(path))
	}
	testenv.Long(t) // it compiles what imports
	if _, err := exec.LookPath("go"); err != nil {
		testenv.Absent(t, "go", err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for path, code := range changed {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		require.NoError(t, os.WriteFile(replace[path], []byte(code), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	slices.Sort(packages)
	args := append([]string{"build", "-overlay", file}, slices.Compact(packages)...)
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
}
