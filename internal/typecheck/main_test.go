package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestCheck checks a module whose packages and tests each fail on one system.
func TestCheck(t *testing.T) {
	testenv.Long(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/m\n\ngo 1.26\n",
		"a/a.go":          "package a\n\nimport \"fmt\"\n\nfunc Print() { fmt.Println(name()) }\n",
		"a/a_linux.go":    "package a\n\nfunc name() string { return \"linux\" }\n",
		"a/a_freebsd.go":  "package a\n\nfunc name() int { return 1 }\n",
		"a/a_js.go":       "package a\n\nfunc name() string { return 1 }\n",
		"b/b.go":          "package b\n\nimport \"example.com/m/a\"\n\nfunc B() { a.Print() }\n",
		"b/b_test.go":     "package b_test\n\nimport \"example.com/m/b\"\n\nvar _ = b.Of\n",
		"b/of_test.go":    "package b\n\nvar Of = B\n",
		"b/of_js_test.go": "package b\n\nconst most = 1 << 40\n\nvar Most int = most\n",
		"b/of_windows.go": "package b\n\nvar Of = B\n",
		"b/b_arm_test.go": "package b\n\nconst most = 1 << 40\n\nvar Most int = most\n",
	} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	for _, c := range []struct {
		platform string
		want     []string // parts of the error; none: no error
	}{
		{"linux/amd64", nil},
		{"freebsd/amd64", nil},
		{"linux/arm", []string{"b_arm_test.go:5:16: cannot use most"}},
		{"windows/amd64", []string{"a.go:5:28: undefined: name", "of_test.go:3:5: Of redeclared in this block"}},
		{"js/wasm", []string{"a_js.go:3:29: cannot use 1 (untyped int constant) as string value"}},
		{"linux", []string{"want SYSTEM/ARCHITECTURE"}},
		{"linux/none", []string{`there is no architecture "none"`}},
	} {
		n, err := check(c.platform, dir)
		if c.want == nil {
			assert.NoError(t, err, c.platform)
			assert.Equal(t, 4, n, "%s: a, b, b for its test and b_test", c.platform)
			continue
		}
		require.Error(t, err, c.platform)
		for _, part := range c.want {
			assert.ErrorContains(t, err, part, c.platform)
		}
	}
	// An import that is not there.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b", "c.go"), []byte("package b\n\nimport _ \"example.com/m/c\"\n"), 0o666))
	_, err := check("linux/amd64", dir)
	assert.ErrorContains(t, err, "example.com/m/c")
}
