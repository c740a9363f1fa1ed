package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// tied says what ties a file to a machine: cgo, a module of a driver or any other, a build
// constraint, or a name that is one; or nothing.
func tied(name string, file *ast.File) string {
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		first, _, _ := strings.Cut(imported, "/")
		switch {
		case err != nil:
			return err.Error()
		case imported == "C" || imported == "unsafe":
			return imported
		case strings.Contains(first, ".") && !strings.HasPrefix(imported, module+"/"):
			return imported
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() < file.Package && constraint.IsGoBuild(c.Text) {
				return c.Text
			}
		}
	}
	if base := path.Base(name); strings.Contains(base, "_") {
		return "its name" // which may end in an operating system or a processor
	}
	return ""
}

// TestPortable: what needs no driver is compiled on every machine.
func TestPortable(t *testing.T) {
	dir := testenv.Root(t)
	files := make(map[string]int)
	walk(t, dir, func(name string) error {
		if !slices.Contains(portable, path.Dir(name)) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files[path.Dir(name)]++
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err == nil && tied(name, file) != "" {
			t.Errorf("%s is tied to machines by %s", name, tied(name, file))
		}
		return err
	})
	for _, pkg := range portable {
		require.Positive(t, files[pkg], pkg)
	}
}

func TestTied(t *testing.T) {
	for source, want := range map[string]string{
		`package a; import "fmt"`:                                       "",
		`package a; import "github.com/bitcnn/bitcnn/kernels"`:          "",
		`package a; import "C"`:                                         "C",
		`package a; import "unsafe"`:                                    "unsafe",
		`package a; import "gorgonia.org/cu"`:                           "gorgonia.org/cu",
		`package a; import cl "github.com/jgillich/go-opencl/cl"`:       "github.com/jgillich/go-opencl/cl",
		"//go:build cuda\n\npackage a":                                  "//go:build cuda",
		"// Package a does.\npackage a\n\n//go:build is a constraint\n": "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments)
		require.NoError(t, err)
		require.Equal(t, want, tied("a.go", file), source)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a", 0)
	require.NoError(t, err)
	require.Equal(t, "its name", tied("b/a_linux.go", file))
}
