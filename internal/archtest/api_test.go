package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// apiLine is a line of docs/api.md about one name: its signature, and why it is there.
var apiLine = regexp.MustCompile("(?m)^- `([^`]+)`: .+$")

// TestAPI compares docs/api.md with what packages for programs export.
func TestAPI(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs/api.md"))
	require.NoError(t, err)
	sections := strings.Split(string(page), "\n## ")
	require.Len(t, sections[1:], len(forPrograms))
	for i, folder := range forPrograms {
		var listed []string
		for _, m := range apiLine.FindAllStringSubmatch(sections[i+1], -1) {
			listed = append(listed, m[1])
		}
		require.ElementsMatch(t, signatures(t, folder), listed, "%q of docs/api.md, and what the package exports", folder)
	}
}

// forPrograms are the packages that docs/api.md lists, in its order.
var forPrograms = []string{".", "vision", "serve", "models"}

// signatures are the constants, variables, functions, types and methods that a package exports.
func signatures(t *testing.T, folder string) []string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(testenv.Root(t), folder, "*.go"))
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			parsed = append(parsed, f)
		}
	}
	p, err := doc.NewFromFiles(fset, parsed, folder)
	require.NoError(t, err)
	var all []string
	values := func(values []*doc.Value) {
		for _, v := range values {
			for _, name := range v.Names {
				all = append(all, v.Decl.Tok.String()+" "+name)
			}
		}
	}
	functions := func(functions []*doc.Func) {
		for _, f := range functions {
			var text strings.Builder
			require.NoError(t, printer.Fprint(&text, fset, f.Decl))
			all = append(all, strings.Join(strings.Fields(text.String()), " "))
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		all = append(all, "type "+typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return all
}
