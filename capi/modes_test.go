//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modes are those that testdata/modes.c sets. Unmasked exceptions interrupt a program that
// causes one; most processors for arm64 have none.
var modes = map[string]map[string]string{
	"amd64": {
		"up": "0x5f80", "down": "0x3f80", "toward zero": "0x7f80",
		"FTZ": "0x9f80", "DAZ": "0x1fc0", "FTZ and DAZ": "0x9fc0",
		"invalid": "0x1f00", "subnormal": "0x1e80", "division by 0": "0x1d80",
		"overflow": "0x1b80", "underflow": "0x1780", "inexact": "0x0f80",
		"all": "0xe040",
	},
	"arm64": {
		"up": "0x400000", "down": "0x800000", "toward zero": "0xc00000",
		"FZ": "0x1000000", "NaN": "0x2000000", "FZ16": "0x80000",
		"invalid": "0x100", "division by 0": "0x200", "overflow": "0x400",
		"underflow": "0x800", "inexact": "0x1000", "subnormal": "0x8000",
		"all": "0x3c89f00",
	},
}

// moments are those at which testdata/modes.c sets a mode: while the runtime starts, in a
// thread that has ended when a model is loaded; in calls of one kind; in all; in all, and
// all in another thread.
var moments = []string{"start", "load", "open", "run", "other", "always", "thread"}

// numbers are arguments for testdata/modes.c: a model that depends on rounding, and means
// of subnormal numbers.
func numbers(t *testing.T) []string {
	path := filepath.Join(t.TempDir(), "mean.onnx")
	require.NoError(t, os.WriteFile(path, node("GlobalAveragePool", 1, 2, 1, 1), 0o600))
	return []string{"digits", path}
}

// Outputs do not depend on the mode of the floating-point unit that a program has set, and
// the library leaves it as it was.
func TestModes(t *testing.T) {
	program := compile(t, lib(t), "testdata/modes.c", shared(lib(t))...)
	models := append(numbers(t), "vehiclenet")
	want := runProgram(t, program, append([]string{modes[runtime.GOARCH]["up"], "never"}, models...)...)
	require.Len(t, strings.Split(want, "\n"), len(models)+1)
	for name, mode := range modes[runtime.GOARCH] {
		for _, moment := range moments {
			t.Run(name+"/"+moment, func(t *testing.T) {
				require.Equal(t, want, runProgram(t, program, append([]string{mode, moment}, models...)...))
			})
		}
	}
	// With this option the C compiler lets programs start with FTZ and DAZ.
	t.Run("-ffast-math", func(t *testing.T) {
		for how, flags := range map[string][]string{"shared": shared(lib(t)), "static": builds(lib(t))["static"]} {
			fast := compile(t, lib(t), "testdata/modes.c", append(flags, "-ffast-math")...)
			for _, moment := range []string{"start", "thread"} {
				require.Equal(t, want, runProgram(t, fast, append([]string{"as-is", moment}, models...)...), how)
			}
		}
	})
}
