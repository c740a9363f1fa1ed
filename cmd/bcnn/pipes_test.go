//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

// Nothing waits for the writer of a pipe, whatever it is named as.
func TestPipes(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"set/light", "set/dark", "weights"} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	for _, pipe := range []string{"p.bcnn", "p.onnx", "p.png", "p", "set/light/p.png", "weights/pkwConv1.bin"} {
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	}
	require.NoError(t, modelfile.Save("light.bcnn", lightNet()))
	writeFile(t, "empty.onnx", "")
	for args, pipe := range map[string]string{
		"classify --model p.bcnn x.png":                              "p.bcnn",
		"classify --model p.onnx x.png":                              "p.onnx",
		"classify --model p x.png":                                   "p",
		"classify --model digits p.png":                              "p.png",
		"classify --model digits /dev/zero":                          "/dev/zero",
		"inspect p.bcnn":                                             "p.bcnn",
		"parity --model p.onnx":                                      "p.onnx",
		"bench --model p.bcnn":                                       "p.bcnn",
		"convert p.onnx -o x.bcnn":                                   "p.onnx",
		"convert --from onnx empty.onnx -o x.bcnn --labels p":        "p",
		"convert --from bincnn --mode int weights -o x.bcnn":         "weights/pkwConv1.bin",
		"convert --from zoo binarynet -o p.bcnn":                     "p.bcnn",
		"eval --model digits --data p --labels p":                    "p",
		"eval --model light.bcnn --data set/dark/../../p --labels p": "set/dark/../../p",
	} {
		stderr := fail(t, exitJob, strings.Fields(args)...)
		require.Contains(t, stderr, pipe+": not a regular file", args)
		require.Equal(t, 1, strings.Count(stderr, pipe), stderr)
	}
	r := runCommand(t, "eval", "--model", "light.bcnn", "--data", "set")
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, filepath.Join("set", "light", "p.png")+": not a regular file\n")
}
