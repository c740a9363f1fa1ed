package trampoline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestTrampoline: arguments arrive, and the mode of the floating-point unit is the default
// one in the driver and the caller's behind it.
func TestTrampoline(t *testing.T) {
	for _, machine := range []struct {
		system, compiler string
		emulator         []string
	}{
		{"linux/amd64", "cc", nil},
		{"linux/arm64", "aarch64-linux-gnu-gcc", []string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}},
		{"windows/amd64", "x86_64-w64-mingw32-gcc", []string{filepath.Join(testenv.Root(t), "scripts", "wine")}},
	} {
		t.Run(machine.system, func(t *testing.T) {
			switch runtime.GOOS + "/" + runtime.GOARCH {
			case machine.system:
				machine.compiler, machine.emulator = "cc", nil
			case "linux/amd64":
				requireTools(t, machine.system)
			default:
				t.Skip("for another system")
			}
			if _, err := exec.LookPath(machine.compiler); err != nil {
				testenv.Absent(t, "cc", err)
			}
			for _, source := range []string{"testdata/check.c", "trampoline.h"} { // results are kept while these stay the same
				_, err := os.ReadFile(source)
				require.NoError(t, err)
			}
			program := filepath.Join(t.TempDir(), "check.exe")
			// Compilers order data and code in another way where they do not optimise.
			for _, level := range []string{"-O0", "-O2"} {
				out, err := exec.Command(machine.compiler, level, "-Wall", "-Wextra", "-Werror", "testdata/check.c", "-o", program).CombinedOutput()
				require.NoError(t, err, "%s", out)
				run := append(slices.Clone(machine.emulator), program)
				out, err = exec.Command(run[0], run[1:]...).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
		})
	}
}

// requireTools ends a test for another system without what builds and runs programs for it.
func requireTools(t *testing.T, system string) {
	tools := map[string]map[string]string{
		"linux/arm64":   {"aarch64-cc": "aarch64-linux-gnu-gcc", "qemu-aarch64": "qemu-aarch64"},
		"windows/amd64": {"mingw": "x86_64-w64-mingw32-gcc", "wine": "wine64"},
	}
	for name, tool := range tools[system] {
		_, err := exec.LookPath(tool)
		if err != nil && tool == "wine64" {
			_, err = exec.LookPath("/usr/lib/wine/wine64") // where Debian's package has it
		}
		if err != nil {
			testenv.Absent(t, name, err)
		}
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
