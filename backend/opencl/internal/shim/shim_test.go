//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/jgillich/go-opencl/cl"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestHandlesComeFirst checks what handle relies on.
func TestHandlesComeFirst(t *testing.T) {
	for name, object := range map[string]any{
		"clQueue": cl.CommandQueue{}, "clKernel": cl.Kernel{}, "clMem": cl.MemObject{}, "id": cl.Device{}, "clContext": cl.Context{}, "clProgram": cl.Program{},
	} {
		field := reflect.TypeOf(object).Field(0)
		require.Equal(t, name, field.Name)
		require.Zero(t, field.Offset)
		require.Equal(t, reflect.Pointer, field.Type.Kind(), name)
	}
}

func TestSymbolsAreThoseOfTheHeader(t *testing.T) {
	functions := func(file, pattern string) []string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return names
	}
	declared := functions("include/CL/cl.h", `(?m)^(?:cl_\w+ |void \*)(cl[A-Z]\w*)\(`)
	require.NotEmpty(t, declared)
	require.ElementsMatch(t, declared, functions("symbols.h", `SYMBOL\((\w+)\)`))
}

// TestHeader compares our header with the system's: every constant by its value,
// every function by a second declaration, every type by a second definition.
func TestHeader(t *testing.T) {
	const system = "/usr/include/CL/cl.h"
	if _, err := os.Stat(system); err != nil {
		testenv.Absent(t, "opencl-headers", err)
	}
	ours, err := os.ReadFile("include/CL/cl.h")
	require.NoError(t, err)
	text := string(ours)

	var c strings.Builder
	c.WriteString("#define CL_TARGET_OPENCL_VERSION 120\n#define CL_USE_DEPRECATED_OPENCL_1_2_APIS\n#include <CL/cl.h>\n#include <CL/cl_ext.h>\n")
	constants := regexp.MustCompile(`(?m)^#define (CL_\w+) (\S+)$`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(constants), 200)
	for _, m := range constants {
		fmt.Fprintf(&c, "_Static_assert((%s) == (%s), \"%s\");\n", m[1], m[2], m[1])
	}
	// C refuses a second declaration that differs from the first.
	for _, m := range regexp.MustCompile(`(?m)^typedef (?:struct \w+ \*)?[\w ,*]+;$`).FindAllString(text, -1) {
		c.WriteString(m + "\n")
	}
	c.WriteString(text[strings.Index(text, "#define WAIT"):strings.LastIndex(text, "#endif")])

	file := filepath.Join(t.TempDir(), "header.c")
	require.NoError(t, os.WriteFile(file, []byte(c.String()), 0o644))
	output, err := exec.Command("cc", "-std=c11", "-fsyntax-only", file).CombinedOutput()
	require.NoError(t, err, string(output))
}

func TestErrorsHaveNames(t *testing.T) {
	require.EqualError(t, &Error{"clFinish", -36}, "clFinish: CL_INVALID_COMMAND_QUEUE")
	require.EqualError(t, &Error{"clFinish", -9999}, "clFinish: error -9999")
}

func TestSizes(t *testing.T) {
	s := MakeSizes(65, 64, 3, 7)
	require.Equal(t, Sizes{0, 0, 0, 128, 3, 7, 64, 1, 1}, s)
	s.SetImages(2, 5)
	require.Equal(t, Sizes{0, 2, 0, 128, 5, 7, 64, 1, 1}, s)
	require.Equal(t, 64, s.Local())
}
