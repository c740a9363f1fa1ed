package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports runs models that were imported wrongly once, as testdata/imports/README.md
// says.
func TestImports(t *testing.T) {
	models, err := filepath.Glob("testdata/imports/*/model.*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(models), 24)
	for _, model := range models {
		dir := filepath.Dir(model)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text := func(name string) string {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if !os.IsNotExist(err) {
					require.NoError(t, err)
				}
				return strings.TrimSpace(string(data))
			}
			if why := text("refused"); why != "" {
				require.Contains(t, fail(t, exitJob, "inspect", model), why)
				return
			}
			tolerance := text("tolerance")
			if tolerance == "" {
				tolerance = "0"
			}
			for _, batch := range []string{"1", "32"} {
				r := runCommand(t, "check", "-m", model, "-i", filepath.Join(dir, "input.npz"), "-r", filepath.Join(dir, "expected.npz"),
					"-d", "cpu", "--tolerance", tolerance, "--batch", batch)
				require.Equal(t, exitOK, r.code, "%s%s", r.stdout, r.stderr)
			}
		})
	}
}
