package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// opening are the functions of the standard library that open files by name.
var opening = map[string][]string{
	"os":        {"Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadFile", "Create", "CreateTemp", "WriteFile", "DirFS", "CopyFS"},
	"io/ioutil": {"ReadFile", "WriteFile", "TempFile"},
	"syscall":   {"Open", "Openat", "Creat"},
}

// mayOpen are the files that may, and why. Everything else goes through package
// internal/files.
var mayOpen = map[string]string{
	"internal/files/replace.go":         "the package itself",
	"internal/files/os_other.go":        "the package itself",
	"internal/files/os_unix.go":         "the package itself",
	"internal/files/os_windows.go":      "the package itself",
	"internal/host/host.go":             "/proc and /sys",
	"backend/opencl/opencl.go":          "/dev",
	"internal/costtest/costtest.go":     "figures of the tests",
	"internal/steps/instrument/main.go": "a tool of the tests",
	"internal/testrun/main.go":          "a tool of the tests",
	"kernels/internal/machine/code.go":  "a tool of the checks",
	"kernels/internal/machine/main.go":  "a tool of the checks",
	"kernels/internal/ptxcpp/main.go":   "a tool of the build",
	"bcnn/onnx/cache.go":                "the blobs beside the folder of a model",
	"bcnn/onnx/files.go":                "the folder of a model",
	"serve/versions.go":                 "the folder of a model",

	"backend/cpu/internal/kern/sets/sets_arm.go":   "what the kernel tells of the processor",
	"backend/cpu/internal/kern/sets/sets_arm64.go": "what the kernel tells of the cores",
}

// opens lists what a file calls or takes of the functions that open files.
func opens(file *ast.File) []string {
	names := map[string]string{} // of packages in this file
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if _, ok := opening[path]; err != nil || !ok {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	var found []string
	if path, ok := names["."]; ok {
		found = append(found, "everything of "+path)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(opening[names[x.Name]], s.Sel.Name) {
				found = append(found, x.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return found
}

// Files are opened in one place.
func TestOpeningFiles(t *testing.T) {
	dir := testenv.Root(t)
	unused := maps.Clone(mayOpen)
	walk(t, dir, func(name string) error {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found := opens(file)
		if _, ok := mayOpen[name]; ok && len(found) > 0 {
			delete(unused, name)
		} else if len(found) > 0 {
			t.Errorf("%s uses %s; want package internal/files", name, strings.Join(found, ", "))
		}
		return nil
	})
	for name := range unused {
		t.Errorf("%s opens no files: it needs no exception", name)
	}
}

func TestOpens(t *testing.T) {
	for source, want := range map[string][]string{
		`package a; import "os"; var f, _ = os.Open("x")`:               {"os.Open"},
		`package a; import "os"; var f = os.ReadFile`:                   {"os.ReadFile"},
		`package a; import o "os"; func f() { o.CreateTemp("", "") }`:   {"o.CreateTemp"},
		`package a; import . "os"; var f, _ = Open("x")`:                {"everything of os"},
		`package a; import "io/ioutil"; var f = ioutil.ReadFile`:        {"ioutil.ReadFile"},
		`package a; import "syscall"; var f = syscall.Open`:             {"syscall.Open"},
		`package a; import "os"; var f = os.Stat`:                       nil,
		`package a; import "x/os2"; var os os2.T; var f = os.Open("x")`: nil,
		`package a; type os struct{}; var f = os{}.Open`:                nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, 0)
		require.NoError(t, err)
		require.Equal(t, want, opens(file), source)
	}
}

// walk calls visit with every Go file below dir that belongs to the module.
func walk(t *testing.T, dir string, visit func(name string) error) {
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != dir {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel))
	}))
}
