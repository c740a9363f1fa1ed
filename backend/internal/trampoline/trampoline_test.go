package trampoline_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestTrampoline: arguments arrive, and the mode of the floating-point unit is the default
// one in the driver and the caller's behind it.
func TestTrampoline(t *testing.T) {
	for _, machine := range []struct{ arch, compiler, emulator string }{
		{"amd64", "cc", ""}, {"arm64", "aarch64-linux-gnu-gcc", "qemu-aarch64"},
	} {
		t.Run(machine.arch, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				testenv.Absent(t, "cc", errors.New("the shims are for Linux"))
			}
			program := filepath.Join(t.TempDir(), "check")
			run := []string{program}
			switch runtime.GOARCH {
			case machine.arch:
				machine.compiler = "cc"
			case "amd64":
				for name, tool := range map[string]string{"aarch64-cc": machine.compiler, "qemu-aarch64": machine.emulator} {
					if _, err := exec.LookPath(tool); err != nil {
						testenv.Absent(t, name, err)
					}
				}
				run = []string{machine.emulator, "-L", "/usr/aarch64-linux-gnu", program}
			default:
				t.Skip("for another processor")
			}
			if _, err := exec.LookPath(machine.compiler); err != nil {
				testenv.Absent(t, "cc", err)
			}
			for _, source := range []string{"testdata/check.c", "trampoline.h"} { // results are kept while these stay the same
				_, err := os.ReadFile(source)
				require.NoError(t, err)
			}
			out, err := exec.Command(machine.compiler, "-O1", "-Wall", "-Wextra", "-Werror", "testdata/check.c", "-o", program).CombinedOutput()
			require.NoError(t, err, "%s", out)
			out, err = exec.Command(run[0], run[1:]...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// TestArguments: no function of a driver has more arguments than a trampoline copies.
func TestArguments(t *testing.T) {
	for file, prototype := range map[string]*regexp.Regexp{
		"../../cuda/internal/shim/include/cuda.h":    regexp.MustCompile(`(?m)^CUresult (cu\w+)\(([^;]*)\);`),
		"../../opencl/internal/shim/include/CL/cl.h": regexp.MustCompile(`(?m)^(?:cl_\w+ |void \*)(cl[A-Z]\w*)\(([^;]*)\);`),
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		// WAIT stands for three parameters.
		all := prototype.FindAllStringSubmatch(strings.ReplaceAll(string(text), "WAIT", "x, x, x"), -1)
		require.Greater(t, len(all), 40)
		for _, function := range all {
			parameters := strings.Split(regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(function[2], ""), ",")
			require.LessOrEqual(t, len(parameters), 14, function[0])
			require.NotContains(t, function[0], "...")
		}
	}
}
