package bitcnn

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// The program of the README is built in a module of its own.
func TestReadme(t *testing.T) {
	testenv.Long(t)
	root := testenv.Root(t)
	tool, err := exec.LookPath("go")
	if err != nil {
		testenv.Absent(t, "go", err)
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(readme), "```go\npackage main\n")
	require.True(t, ok)
	program, _, ok = strings.Cut(program, "```")
	require.True(t, ok)
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	// The modules that this one needs stand in its go.mod: nothing is looked up.
	require.True(t, strings.HasPrefix(string(module), "module "+modulePath+"\n"))
	needs := strings.Replace(string(module), modulePath, "classify", 1)
	needs += "\nrequire " + modulePath + " v0.0.0\nreplace " + modulePath + " => " + root + "\n"
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)

	dir := t.TempDir()
	for name, content := range map[string]string{"main.go": "package main\n" + program, "go.mod": needs, "go.sum": string(sums)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	build := exec.Command(tool, "build", "-o", "classify.exe", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	// It says what it sees, and what it is given.
	run := func(model string) string {
		cmd := exec.Command(filepath.Join(dir, "classify.exe"), model, "internal/samples/digit-7.png")
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) { // an emulator runs the test, of which the kernel does not know
			testenv.Absent(t, "child-processes", err)
		}
		return string(out)
	}
	require.Equal(t, "7\n", run("models/digits.bcnn"))
	require.Contains(t, run("README.md"), "README.md: plain text, not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file")
}
