//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestHandlesAreAlone checks what taking the handles out of cu's types relies on.
func TestHandlesAreAlone(t *testing.T) {
	for _, object := range []any{cu.Stream{}, cu.Function{}, cu.Module{}} {
		kind := reflect.TypeOf(object)
		require.Equal(t, 1, kind.NumField(), kind)
		require.Equal(t, unsafe.Sizeof(uintptr(0)), kind.Size())
		require.Equal(t, reflect.Pointer, kind.Field(0).Type.Kind(), kind)
	}
}

var (
	versions  = regexp.MustCompile(`(?m)^#define (cu\w+) (cu\w+)$`)
	functions = regexp.MustCompile(`(?m)^CUresult (cu\w+)\(`)
	constants = regexp.MustCompile(`(?m)^\t(CU\w+) = (-?\d+),$`)
	structs   = regexp.MustCompile(`(?ms)^typedef struct \{\n(.*?)^\} (\w+);`)
	fields    = regexp.MustCompile(`(?m)(\w+)(?:\[\d+\])?;$`)
	handles   = regexp.MustCompile(`(?m)^typedef (?:struct \w+ \*\w+|int \w+|unsigned long long \w+|uint32_t \w+);$`)
)

func header(t *testing.T) string {
	text, err := os.ReadFile("include/cuda.h")
	require.NoError(t, err)
	return string(text)
}

func TestSymbolsAreThoseOfTheHeader(t *testing.T) {
	text := header(t)
	exported := make(map[string]string)
	for _, m := range versions.FindAllStringSubmatch(text, -1) {
		exported[m[1]] = m[2]
	}
	var declared, slots []string
	for _, m := range functions.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if versioned, ok := exported[name]; ok {
			name = versioned
		}
		declared = append(declared, name)
	}
	symbols, err := os.ReadFile("symbols.h")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`SYMBOL\((\w+)\)`).FindAllStringSubmatch(string(symbols), -1) {
		slots = append(slots, m[1])
	}
	require.Greater(t, len(declared), 150)
	require.ElementsMatch(t, declared, slots)
}

// TestHeader compares our header with NVIDIA's, of a toolkit or where CUDA_H says:
// every constant by its value, every struct by its fields' places, every function by
// a second declaration.
func TestHeader(t *testing.T) {
	theirs := ""
	for _, path := range []string{os.Getenv("CUDA_H"), "/usr/local/cuda/include/cuda.h", "/usr/include/cuda.h"} {
		if _, err := os.Stat(path); err == nil && theirs == "" {
			theirs = path
		}
	}
	if theirs == "" {
		testenv.Absent(t, "cuda.h", errors.New("no header of NVIDIA's to compare with; CUDA_H may name one"))
	}
	text := header(t)
	var c strings.Builder
	fmt.Fprintf(&c, "#include %q\n#include <stddef.h>\n", theirs)
	values := constants.FindAllStringSubmatch(text, -1)
	require.Greater(t, len(values), 250)
	for _, m := range values {
		fmt.Fprintf(&c, "_Static_assert((int)%s == %s, \"%s\");\n", m[1], m[2], m[1])
	}
	// C refuses a second declaration that differs from the first.
	c.WriteString(strings.Join(handles.FindAllString(text, -1), "\n") + "\n")
	types := structs.FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, types)
	for _, m := range types {
		fmt.Fprintf(&c, "typedef struct {\n%s} our_%s;\n", m[1], m[2])
		fmt.Fprintf(&c, "_Static_assert(sizeof(our_%s) == sizeof(%s), \"%s\");\n", m[2], m[2], m[2])
		for _, f := range fields.FindAllStringSubmatch(m[1], -1) {
			fmt.Fprintf(&c, "_Static_assert(offsetof(our_%s, %s) == offsetof(%s, %s), \"%s.%s\");\n", m[2], f[1], m[2], f[1], m[2], f[1])
			fmt.Fprintf(&c, "_Static_assert(sizeof ((our_%s *)0)->%s == sizeof ((%s *)0)->%s, \"%s.%s\");\n", m[2], f[1], m[2], f[1], m[2], f[1])
		}
	}
	for _, line := range strings.Split(text, "\n") {
		// Later toolkits give this name another signature, by a macro.
		if functions.MatchString(line) && !strings.HasPrefix(line, "CUresult cuGraphInstantiate(") {
			c.WriteString(line + "\n")
		}
	}
	file := filepath.Join(t.TempDir(), "header.c")
	require.NoError(t, os.WriteFile(file, []byte(c.String()), 0o644))
	output, err := exec.Command("cc", "-std=c11", "-fsyntax-only", file).CombinedOutput()
	require.NoError(t, err, string(output))
}

func TestErrors(t *testing.T) {
	require.NoError(t, Check("cuInit", nil))
	err := Check("cuMemAlloc", cu.OutOfMemory)
	var code *Error
	require.ErrorAs(t, err, &code)
	require.Equal(t, OutOfMemory, code.Code)
	require.False(t, code.Lost())
	for _, code := range []int{719, 810} {
		require.True(t, (&Error{Code: code}).Lost())
	}
	other := errors.New("other")
	require.ErrorIs(t, Check("cuInit", other), other)
	require.Contains(t, (&Error{"cuInit", 12345}).Error(), "cuInit: error 12345")
	require.Contains(t, (&Error{"cuStreamSynchronize", 702}).Error(), "a smaller batch takes less")
}

func TestLaunchKeepsItsParameters(t *testing.T) {
	geometry := [3]int32{1, 2, 3}
	l, err := NewLaunch(cu.Function{}, unsafe.Pointer(&geometry), unsafe.Sizeof(geometry), []cu.DevicePtr{7, 8})
	require.NoError(t, err)
	defer l.Free()
	geometry = [3]int32{}
	require.Equal(t, [3]int32{1, 2, 3}, *(*[3]int32)(l.Geometry()))
	_, err = NewLaunch(cu.Function{}, unsafe.Pointer(&geometry), maxGeometry+1, nil)
	require.Error(t, err)
	_, err = NewLaunch(cu.Function{}, unsafe.Pointer(&geometry), 4, make([]cu.DevicePtr, maxPointers+1))
	require.Error(t, err)
}

// TestTrampolinesAreHidden: what programs export takes the place of a driver's functions
// for the libraries that they load.
func TestTrampolinesAreHidden(t *testing.T) {
	for dir, symbol := range map[string]string{".": "cuInit", "../../../opencl/internal/shim": "clFinish"} {
		library := filepath.Join(t.TempDir(), "shim.so")
		cmd := exec.Command("cc", "-shared", "-fPIC", "-I"+filepath.Join(dir, "include"), "-o", library, filepath.Join(dir, "shim.c"))
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
		f, err := elf.Open(library)
		require.NoError(t, err)
		defer f.Close()
		all, err := f.Symbols()
		require.NoError(t, err)
		named := func(s elf.Symbol) bool { return s.Name == symbol }
		require.True(t, slices.ContainsFunc(all, named), symbol)
		exported, err := f.DynamicSymbols()
		require.NoError(t, err)
		require.False(t, slices.ContainsFunc(exported, named), symbol)
	}
}
